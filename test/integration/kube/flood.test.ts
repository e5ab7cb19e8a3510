import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { API_VERSION, CONFIRM_DELETE_ANNOTATION, FINALIZER } from '../../../src/resources/meta.ts'
import { untilEstablished } from '../../cluster/apply.ts'
import { installRights } from '../../cluster/chart.ts'
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts'
import { freePort } from '../../cluster/ports.ts'
import { type RunningProcess, startProcess } from '../../cluster/process.ts'
import { until } from './apis.ts'

/** The real operator in front of a namespace whose stakes carry as many labels and annotations as the API server takes. */
const FLOOD = 48
/** Of which the operator by itself takes half; the labels and annotations, held, would take more than all. The pod's limit is 512 MiB. */
const HEAP_MIB = 128
const repository = join(import.meta.dirname, '../../..')
const path = (space: string, name = '') => `/apis/${API_VERSION}/namespaces/${space}/ethereumstakes${name === '' ? '' : `/${name}`}`

let cluster: ControlPlane
let dir: string
let operator: RunningProcess | undefined
let metricsUrl = ''
beforeAll(async () => {
  cluster = await startControlPlane()
  dir = mkdtempSync(join(tmpdir(), 'kube-flood-'))
  await installRights(cluster)
  await untilEstablished(cluster)
  for (const space of ['flood', 'calm']) await cluster.kubectlOk(['create', 'namespace', space])
})
afterAll(async () => {
  await operator?.stop()
  await cluster?.stop()
  rmSync(dir, { recursive: true, force: true })
})

interface Stake {
  readonly metadata: { readonly labels?: Record<string, string>; readonly finalizers?: string[] }
  readonly status?: { readonly conditions?: readonly unknown[] }
}

// Few and long: what they cost the API server goes by their number.
const prefix = Array.from({ length: 4 }, () => 'x'.repeat(60)).join('.')
const labels = Object.fromEntries(Array.from({ length: 1_500 }, (_, index) => [`${prefix}/${'l'.repeat(50)}-${index}`, 'x'.repeat(63)]))
/** More than the cache holds. */
const theirs = Array.from({ length: 20 }, (_, index) => `example.dev/theirs-${index}`)
const annotations = { padding: 'x'.repeat(255 * 1024) }
const stake = (name: string, metadata: object = {}) => ({
  apiVersion: API_VERSION,
  kind: 'EthereumStake',
  metadata: { name, ...metadata },
  spec: {
    network: 'hoodi',
    amountEth: '32',
    withdrawalAddress: '0x52908400098527886E0F7030069857D2E4169EE7',
    credentialsType: 'Compounding',
    signer: 'treasury',
    suspend: true,
  },
})

async function create(space: string, body: unknown): Promise<void> {
  const { status, body: answer } = await cluster.request({ method: 'POST', path: path(space), body, timeoutMs: 60_000 })
  expect(status, JSON.stringify(answer).slice(0, 300)).toBe(201)
}
const get = async (space: string, name: string): Promise<Stake | undefined> => {
  const { status, body } = await cluster.request({ path: path(space, name), timeoutMs: 60_000 })
  return status === 200 ? (body as Stake) : undefined
}
const isLookedAt = async (space: string, name: string): Promise<boolean> => (await get(space, name))?.status?.conditions !== undefined
const metric = async (sample: string): Promise<number> => {
  const lines = (await (await fetch(metricsUrl)).text()).split('\n')
  return Number(lines.find((line) => line.startsWith(`${sample} `))?.slice(sample.length + 1))
}
const cached = () => metric('staking_operator_informer_objects{resource="ethereumstakes"}')
/** The most memory that the process ever had, in MiB. */
const peakMiB = (pid: number): number => Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

async function startOperator(): Promise<RunningProcess> {
  const kubeconfig = join(dir, 'operator.kubeconfig')
  writeFileSync(kubeconfig, await cluster.kubeconfigFor({ namespace: 'staking-system', name: 'staking-operator' }), { mode: 0o600 })
  mkdirSync(join(dir, 'keys'), { recursive: true })
  writeFileSync(join(dir, 'api-key'), 'unused\n', { mode: 0o600 })
  const network = { name: 'hoodi', chain: 'Ethereum', rpcUrls: ['http://127.0.0.1:1'] }
  const networks = join(dir, 'networks.yaml')
  writeFileSync(
    networks,
    JSON.stringify({ stakingApi: { url: 'http://127.0.0.1:1', apiKeyFile: join(dir, 'api-key') }, networks: [network] }),
  )
  const port = await freePort()
  metricsUrl = `http://127.0.0.1:${port}/metrics`
  // Few at a time: what the API server needs for one write of theirs is a second.
  const lease = ['--workers', '4', '--lease-duration', '60s', '--renew-deadline', '50s', '--retry-period', '500ms']
  const files = ['--kubeconfig', kubeconfig, '--networks', networks, '--keys-dir', join(dir, 'keys')]
  return startProcess({
    name: 'operator',
    command: process.execPath,
    args: [
      `--max-old-space-size=${HEAP_MIB}`,
      join(repository, 'src/main.ts'),
      'operator',
      ...files,
      '--listen',
      `127.0.0.1:${port}`,
      ...lease,
    ],
    readyTimeoutMs: 120_000,
    readyWhen: async ({ signal }) => (await fetch(`http://127.0.0.1:${port}/readyz`, { signal })).ok,
  })
}

test(`${FLOOD} stakes with as many labels and annotations as the API server takes: the operator starts, starts again, and serves other namespaces`, {
  timeout: 300_000,
}, async () => {
  const names = Array.from({ length: FLOOD }, (_, index) => `flood-${String(index).padStart(3, '0')}`)
  const left = [...names]
  const maker = async (): Promise<void> => {
    for (let name = left.pop(); name !== undefined; name = left.pop()) await create('flood', stake(name, { labels, annotations }))
  }
  await Promise.all(Array.from({ length: 4 }, maker))
  await create('calm', stake('before'))

  operator = await startOperator()
  expect(await cached()).toBe(FLOOD + 1)
  await until('the other namespace is served', () => isLookedAt('calm', 'before'), 60_000)

  // By way of the watch, while another namespace wants something.
  const change = { metadata: { labels: { poked: 'yes' } } }
  const poking = (async () => {
    for (const name of names.slice(-10)) {
      const poke = {
        method: 'PATCH',
        path: path('flood', name),
        body: change,
        contentType: 'application/merge-patch+json',
        timeoutMs: 60_000,
      } as const
      expect((await cluster.request(poke)).status).toBe(200)
    }
  })()
  await create('calm', stake('meanwhile'))
  await poking
  await until('the other namespace is served', () => isLookedAt('calm', 'meanwhile'), 30_000)

  // The cache doesn't have what others have put there; they lose nothing of it. Where the staking API can't say that nothing was made, a person does.
  const has = async (finalizer: string) => (await get('calm', 'held'))?.metadata.finalizers?.includes(finalizer) === true
  await create(
    'calm',
    stake('held', { finalizers: theirs, labels: { team: 'a' }, annotations: { note: 'kept', [CONFIRM_DELETE_ANNOTATION]: 'held' } }),
  )
  await until('it is marked', () => has(FINALIZER), 60_000)
  expect((await get('calm', 'held'))?.metadata.finalizers).toEqual([...theirs, FINALIZER])
  await cluster.request({ method: 'DELETE', path: path('calm', 'held'), timeoutMs: 60_000 })
  await until('ours is gone', async () => !(await has(FINALIZER)), 60_000)
  expect((await get('calm', 'held'))?.metadata).toMatchObject({ finalizers: theirs, labels: { team: 'a' }, annotations: { note: 'kept' } })

  const { pid } = operator
  const peak = peakMiB(pid)
  expect(operator.alive()).toBe(true)
  expect(peak).toBeLessThan(400)
  await operator.stop()
  operator = await startOperator()
  expect(await cached()).toBe(FLOOD + 3)
  expect(peakMiB(operator.pid)).toBeLessThan(400)
  console.log(`peak memory: ${Math.round(peak)} MiB, after the second start ${Math.round(peakMiB(operator.pid))} MiB`)
})

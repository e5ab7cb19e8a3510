import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { runToEnd } from '../../test/cluster/run.ts'
import { signDepositMessage, withdrawalCredentials } from '../chains/ethereum/deposit.ts'
import { gwei } from '../lib/amounts.ts'

/** The program as a person runs it, against an API server of a few lines. */

vi.setConfig({ testTimeout: 60_000 })

const entry = fileURLToPath(new URL('../kubectl-staking.ts', import.meta.url))
const RECORDS = 600
const HASH = `0x${'ab'.repeat(32)}`

interface Seen {
  readonly url: string
  readonly answer: (status: number, body: object) => void
}
type Route = (seen: Seen) => void
let route: Route
let asked: string[]
let server: Server
let dir: string

const list = (kind: string, items: readonly object[] = []) => ({
  kind: `${kind}List`,
  apiVersion: 'staking.dev/v1alpha1',
  metadata: { resourceVersion: '9' },
  items,
})
const record = (nonce: number) => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind: 'StakingTransaction',
  metadata: { name: `deposit-${nonce}`, resourceVersion: '4', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: {
    network: 'hoodi',
    chainId: 560048,
    signer: 'treasury',
    from: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
    purpose: 'Deposit',
    amount: '32 ETH',
    owner: { kind: 'EthereumStake', namespace: 'team-a', name: `validator-${nonce}` },
  },
  status: { attempts: [{ at: '2026-01-01T00:00:00Z', kind: 'Call', nonce, hash: HASH, maxFeePerGasWei: '1' }] },
})
const stakeOf = (phase: string) => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind: 'EthereumStake',
  metadata: { name: 'validator-1', namespace: 'team-a', uid: 'u', resourceVersion: '5', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { network: 'hoodi' },
  status: {
    phase,
    conditions: [{ type: 'Ready', status: 'False', reason: phase, message: 'm', lastTransitionTime: '2026-01-01T00:00:01Z' }],
  },
})
/** With deposit data that holds, and no transaction. */
const verifiable = () => {
  const withdrawalAddress = '0x52908400098527886E0F7030069857D2E4169EE7'
  const {
    amountGwei,
    depositMessageRoot: _root,
    ...deposit
  } = signDepositMessage(new Uint8Array(32).fill(7), {
    withdrawalCredentials: withdrawalCredentials('0x02', withdrawalAddress),
    amountGwei: gwei(32_000_000_000n),
    genesisForkVersion: '0x10000910',
  })
  return {
    spec: { network: 'hoodi', amountEth: '32', withdrawalAddress, credentialsType: 'Compounding', signer: 'treasury' },
    status: { depositData: { ...deposit, amountGwei: String(amountGwei) } },
  }
}
const notFound = { kind: 'Status', code: 404, reason: 'NotFound', message: 'not found' }
const serve =
  (phase: () => string = () => 'Pending'): Route =>
  ({ url, answer }) => {
    if (url.includes('/stakingtransactions')) return answer(200, list('StakingTransaction', url.includes('fieldSelector') ? [] : records()))
    if (url.includes('/signernonces')) return answer(200, list('SignerNonce'))
    if (url.includes('/events')) return answer(200, { ...list('Event'), apiVersion: 'events.k8s.io/v1' })
    if (url.endsWith('/namespaces/team-a/ethereumstakes/validator-1')) return answer(200, stakeOf(phase()))
    return answer(404, notFound)
  }
const records = () => Array.from({ length: RECORDS }, (_, nonce) => record(nonce))

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'inspect-cli-'))
  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    const url = request.url ?? ''
    asked.push(url)
    route({
      url,
      answer: (status, body) => void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)),
    })
  }
  server = createServer(onRequest).listen(0, '127.0.0.1')
  await once(server, 'listening')
  writeFileSync(
    join(dir, 'config'),
    JSON.stringify({
      kind: 'Config',
      'current-context': 'a',
      clusters: [
        { name: 'c', cluster: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, 'insecure-skip-tls-verify': true } },
      ],
      users: [],
      contexts: [{ name: 'a', context: { cluster: 'c', namespace: 'team-a' } }],
    }),
  )
})
beforeEach(() => {
  route = serve()
  asked = []
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
  rmSync(dir, { recursive: true, force: true })
})

const children: ReturnType<typeof spawn>[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})
function run(...args: readonly string[]) {
  const child = spawn(process.execPath, [entry, ...args], {
    env: { ...process.env, KUBECONFIG: join(dir, 'config') },
    stdio: 'pipe',
  })
  children.push(child)
  // It may end without reading it.
  child.stdin.on('error', () => {})
  if (!args.includes('-')) child.stdin.end()
  const written = { stdout: '', stderr: '' }
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    written.stderr += text
  })
  child.stdout.setEncoding('utf8')
  const read = () =>
    child.stdout.on('data', (text: string) => {
      written.stdout += text
    })
  return { child, written, read, ended: once(child, 'close').then(([code]) => code as number | null) }
}
async function done(...args: readonly string[]) {
  const { written, read, ended } = run(...args)
  read()
  return { code: await ended, ...written }
}
const askedFor = (part: string) => vi.waitFor(() => expect(asked.some((url) => url.includes(part))).toBe(true), 30_000)

describe('whoever reads slowly', () => {
  test('gets all of the audit trail', async () => {
    // A pipe takes 64 KiB at once: the rest is with the program until it is read.
    const line = `"$0" "$1" log -o csv | { sleep 2; cat; }`
    const { code, stdout } = await runToEnd({
      command: 'sh',
      args: ['-c', line, process.execPath, entry],
      env: { KUBECONFIG: join(dir, 'config') },
      signal: AbortSignal.timeout(50_000),
    })
    expect(code).toBe(0)
    expect(stdout.length).toBeGreaterThan(65_536)
    expect(stdout.split(HASH)).toHaveLength(RECORDS + 1)
  })

  test('or reads no more ends it quietly', async () => {
    const { child, written, ended } = run('log')
    await once(child.stdout, 'readable')
    child.stdout.destroy()
    expect([await ended, written.stderr]).toEqual([0, ''])
  })

  // What was found is not forgotten with the reader, as in `plan … | head`.
  test.each([
    ['a plan that is refused', 2, ['plan', '-f', 'refused.json']],
    ['a plan that is not', 0, ['plan', '-f', 'admitted.json']],
    ['a doctor that has found something', 1, ['doctor', '--networks', 'none.yaml', '--keys-dir', '/nowhere']],
    ['a stake that is not verified yet', 2, ['verify', 'stake', 'validator-1']],
  ])('or never did leaves the exit code of %s: %i', async (_what, code, args) => {
    const { spec } = verifiable()
    const admitted = { apiVersion: 'staking.dev/v1alpha1', kind: 'EthereumStake', metadata: { name: 'validator-1' }, spec }
    writeFileSync(join(dir, 'admitted.json'), JSON.stringify(admitted))
    writeFileSync(join(dir, 'refused.json'), JSON.stringify({ ...admitted, spec: { ...spec, amountEth: '31' } }))
    route = ({ url, answer }) =>
      url.endsWith('/validator-1') ? answer(200, { ...stakeOf('Pending'), ...verifiable() }) : answer(404, notFound)
    const { child, written, ended } = run(...args.map((arg) => (arg.endsWith('.json') ? join(dir, arg) : arg)))
    child.stdout.destroy()
    expect([await ended, written.stderr]).toEqual([code, ''])
  })
})

/** More than a pipe takes is with the program once that reads it. */
const isRead = (stdin: Writable) => new Promise<void>((resolve) => void stdin.write('#'.repeat(2 ** 20), () => resolve()))

describe('ended by a signal while it waits for an answer', () => {
  test.each<[string[], NodeJS.Signals, number]>([
    [['status', 'validator-1'], 'SIGINT', 130],
    [['log'], 'SIGTERM', 143],
    [['doctor', '--networks', '/nowhere', '--keys-dir', '/nowhere'], 'SIGINT', 130],
    [['status', '--watch', 'validator-1'], 'SIGINT', 0],
    [['plan', '-f', '-'], 'SIGINT', 130],
    [['verify', 'deposit', '-', '--network', 'hoodi'], 'SIGTERM', 143],
  ])('%j %s: no stack, and the exit code %i', async (args, signal, code) => {
    route = () => {}
    const { child, written, read, ended } = run(...args)
    read()
    await (args.includes('-') ? isRead(child.stdin) : askedFor(''))
    child.kill(signal)
    expect([await ended, written.stderr]).toEqual([code, ''])
  })
})

describe('a watch', () => {
  test('goes on while the API server is away, and says so once', async () => {
    let phase = 'Pending'
    const well = serve(() => phase)
    route = well
    const { child, written, read, ended } = run('status', 'validator-1', '-w', '-o', 'yaml')
    read()
    await vi.waitFor(() => expect(written.stdout).toContain('Pending: m'), 30_000)
    route = ({ answer }) => answer(503, { kind: 'Status', code: 503, message: 'etcd has no leader' })
    await vi.waitFor(() => expect(written.stderr).toMatch(/etcd has no leader\. It is asked again\.\n/), 30_000)
    const before = asked.length
    await vi.waitFor(() => expect(asked.length).toBeGreaterThan(before), 30_000)
    phase = 'Confirmed'
    route = well
    await vi.waitFor(() => expect(written.stdout).toContain('Confirmed: m'), 30_000)
    child.kill('SIGINT')
    expect([await ended, written.stderr.trimEnd().split('\n').length]).toEqual([0, 1])
    // A document for each look.
    expect(parseAllDocuments(written.stdout).map((one) => (one.toJS() as { readonly phase: string }).phase)).toEqual([
      'Pending',
      'Confirmed',
    ])
  })
})

test('a watch of the log tells what is new, and anew what has changed, without a second title', async () => {
  let all = [record(0), record(1)]
  route = (seen) => {
    if (seen.url.includes('/stakingtransactions')) return seen.answer(200, list('StakingTransaction', all))
    return serve()(seen)
  }
  const { child, written, read, ended } = run('log', '--watch', '-o', 'csv')
  read()
  await vi.waitFor(() => expect(written.stdout.split('\n')).toHaveLength(4), 30_000)
  const { status } = record(1)
  const outcome = { is: 'Landed', hash: HASH, nonce: 1, blockNumber: 7 }
  all = [record(0), { ...record(1), status: { ...status, outcome } as typeof status }, record(2)]
  await vi.waitFor(() => expect(written.stdout.split('\n')).toHaveLength(6), 30_000)
  child.kill('SIGINT')
  expect(await ended).toBe(0)
  const [title, ...rows] = written.stdout.trimEnd().split('\n')
  expect(title).toMatch(/^time,/i)
  expect(rows.map((row) => [/validator-\d/.exec(row)?.[0], /Open|Landed/.exec(row)?.[0]])).toEqual([
    ['validator-0', 'Open'],
    ['validator-1', 'Open'],
    ['validator-1', 'Landed'],
    ['validator-2', 'Open'],
  ])
})

test('a watching doctor tells all at first, and ends with what it has found', async () => {
  route = (seen) => (seen.url.includes('customresourcedefinitions') ? seen.answer(404, notFound) : serve()(seen))
  const { child, written, read, ended } = run('doctor', '--watch', '-o', 'wide', '--networks', join(dir, 'none.yaml'))
  read()
  await vi.waitFor(() => expect(written.stdout).toMatch(/^\d+ ok, \d+ warning, \d+ failed, \d+ skipped$/m), 30_000)
  expect(child.exitCode).toBeNull()
  child.kill('SIGINT')
  expect(await ended).toBe(1)
  expect(written.stdout).toMatch(/^failed {3}cluster: /m)
})

test('an audit trail of a signer that nobody has is empty, and that is said', async () => {
  const { code, stdout, stderr } = await done('log', '--signer', 'treasry', '-o', 'csv')
  expect([code, stdout.trimEnd().split('\r\n').length, stderr]).toEqual([
    0,
    1,
    expect.stringMatching(/^Nothing in the transaction log is of/),
  ])
})

test('it is found as people write it who come from kubectl', async () => {
  const { code, stdout, stderr } = await done('-n', 'team-a', 'status', 'ethereumstake.staking.dev', 'validator-1', '-o=wide')
  expect([code, stderr, stdout.split('\n')[0]]).toEqual([0, '', 'EthereumStake team-a/validator-1: Pending'])
})

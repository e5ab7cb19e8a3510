import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { applyObjects } from './apply.ts'
import type { ControlPlane, ServiceAccount } from './control-plane.ts'
import { findHelm } from './helm.ts'
import { BRIEF_GO, type RunResult, runToEnd } from './run.ts'

const repository = join(import.meta.dirname, '../..')
export const chart = join(repository, 'charts/staking-operator')

export interface Rendered {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Record<string, string>
    readonly annotations?: Record<string, string>
  }
  readonly [field: string]: unknown
}

/** A real Helm, with folders of its own. */
export async function startHelm(kubeconfig: string | undefined, signal: AbortSignal) {
  const helm = await findHelm({ env: process.env, log: (line) => console.log(line), signal })
  const dir = mkdtempSync(join(tmpdir(), 'chart-'))
  const env = {
    ...BRIEF_GO,
    HELM_CACHE_HOME: join(dir, 'cache'),
    HELM_CONFIG_HOME: join(dir, 'config'),
    HELM_DATA_HOME: join(dir, 'data'),
    KUBECONFIG: kubeconfig ?? join(dir, 'no-cluster'),
  }
  let files = 0
  /** The same values make the same objects. */
  const rendered = new Map<string, Promise<string>>()
  const valuesFile = (values: object): string => {
    const path = join(dir, `values-${files++}.yaml`)
    writeFileSync(path, JSON.stringify(values))
    return path
  }
  const run = (args: readonly string[]): Promise<RunResult> =>
    runToEnd({ command: helm, args, env, signal: AbortSignal.any([signal, AbortSignal.timeout(60_000)]) })
  async function ok(args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await run(args)
    if (code !== 0) throw new Error(`helm ${args.join(' ')}: ${stderr}`)
    return stdout
  }
  mkdirSync(env.HELM_CACHE_HOME, { recursive: true })
  return {
    run,
    ok,
    valuesFile,
    async render(values: object, release = 'staking-operator'): Promise<readonly Rendered[]> {
      const key = `${release} ${JSON.stringify(values)}`
      const text = rendered.get(key) ?? ok(['template', release, chart, '--namespace', 'staking-system', '--values', valuesFile(values)])
      rendered.set(key, text)
      return objectsIn(await text)
    },
    /** Why values are refused. */
    async refusal(values: object): Promise<string> {
      const { code, stderr } = await run(['template', 'staking-operator', chart, '--values', valuesFile(values)])
      return code === 0 ? '' : stderr
    },
    stop: () => rmSync(dir, { recursive: true, force: true }),
  }
}
export type Helm = Awaited<ReturnType<typeof startHelm>>

const RELEASE = 'staking-operator'
/** Who the operator is in a cluster that the chart was installed in. */
export const OPERATOR = { namespace: 'staking-system', name: 'staking-operator' } as const satisfies ServiceAccount

/** The chart as people install it, by a real Helm. @returns whom the operator runs as */
export async function installChart(cluster: ControlPlane, values: object, signal: AbortSignal): Promise<ServiceAccount> {
  const helm = await startHelm(cluster.adminKubeconfigPath, signal)
  try {
    await helm.ok(['install', RELEASE, chart, '--namespace', OPERATOR.namespace, '--create-namespace', '--values', helm.valuesFile(values)])
    return OPERATOR
  } finally {
    helm.stop()
  }
}

let rights: Promise<string> | undefined
/** Rendered once for all files of one run. */
async function renderedRights(): Promise<string> {
  const folder = process.env.STAKING_TEST_PREPARED
  if (folder === undefined) return renderRights()
  const file = join(folder, 'rights.yaml')
  if (existsSync(file)) return readFileSync(file, 'utf8')
  const text = await renderRights()
  const own = `${file}-${process.pid}`
  writeFileSync(own, text)
  renameSync(own, file)
  return text
}
/** What the operator may do, as the chart renders it, with nothing beside: neither a Deployment nor policies of admission. */
async function renderRights(): Promise<string> {
  const helm = await startHelm(undefined, AbortSignal.timeout(600_000))
  try {
    const values = helm.valuesFile({
      networks: [{ name: 'hoodi', chain: 'Ethereum', rpcUrls: ['http://127.0.0.1:1'] }],
      stakingApi: { url: 'http://127.0.0.1:1' },
    })
    const only = ['rbac', 'serviceaccount'].flatMap((name) => ['--show-only', `templates/operator/${name}.yaml`])
    return await helm.ok(['template', RELEASE, chart, '--namespace', OPERATOR.namespace, '--values', values, ...only])
  } finally {
    helm.stop()
  }
}

/** The definitions and the operator's rights: what most tests need of the chart. @returns whom the operator runs as */
export async function installRights(cluster: ControlPlane): Promise<ServiceAccount> {
  rights ??= renderedRights()
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: OPERATOR.namespace } }
  const crds = readdirSync(join(repository, 'crds')).map((file) => readFileSync(join(repository, 'crds', file), 'utf8'))
  await applyObjects(cluster, [...crds.flatMap(objectsIn), namespace, ...objectsIn(await rights)])
  return OPERATOR
}

const objectsIn = (text: string): readonly Rendered[] =>
  parseAllDocuments(text).flatMap((document) => (document.contents === null ? [] : [document.toJS() as Rendered]))

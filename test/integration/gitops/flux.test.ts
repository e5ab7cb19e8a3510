import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findCondition } from '../../../src/resources/conditions.ts'
import { type Flux, findFlux, startFlux } from '../../cluster/flux.ts'
import { type GitServer, startGitServer } from '../../cluster/git-server.ts'
import { type Commands, pageCommands } from '../../cluster/page-commands.ts'
import { eventually, getSigner, getStake, seen, stake } from '../../stack/resources.ts'
import { staysFor, useStack } from '../operator/harness.ts'

/**
 * Flux's own source-controller and kustomize-controller, as docs/how-to/flux.md sets them up, sync a copy of examples/gitops from a local Git server. The tests
 * go through the life of one repository, in order.
 */
const page = 'docs/how-to/flux.md'
const examples = join(import.meta.dirname, '../../../examples/gitops')
const stopping = new AbortController()
let flux: Flux | undefined
let git: GitServer | undefined
let reader: Commands | undefined
const stack = useStack({ startOperator: false })

const repository = (): GitServer => {
  if (git === undefined) throw new Error('there is no Git server')
  return git
}
const file = (name: string): string => join(repository().tree, 'overlays/local', name)

beforeAll(async () => {
  const assets = await findFlux((line) => console.log(line), stopping.signal)
  git = await startGitServer(stopping.signal)
  cpSync(examples, git.tree, { recursive: true })
  await git.commit('the examples')
  flux = await startFlux(stack().cluster, assets)
  const placeholders = { 'REPOSITORY-URL': git.url, 'overlays/hoodi': 'overlays/local', SIGNER: 'treasury' }
  reader = await pageCommands(stack().cluster, { page, placeholders }, stopping.signal)
}, 45 * 60_000)
afterAll(async () => {
  stopping.abort()
  reader?.stop()
  await flux?.stop()
  await git?.stop()
})

interface Kustomization {
  readonly metadata: { readonly generation: number }
  readonly status?: {
    readonly conditions?: Parameters<typeof findCondition>[0]
    readonly lastAppliedRevision?: string
    readonly lastAttemptedRevision?: string
    readonly lastHandledReconcileAt?: string
  }
}
async function kustomization(): Promise<Kustomization> {
  const { body } = await stack().cluster.request({
    path: '/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/stakes',
  })
  return body as Kustomization
}
const ready = ({ status }: Kustomization) => findCondition(status?.conditions, 'Ready')

/** Adds or removes a stake of the overlay, and has Flux look at once, as the page says. Returns the commit. */
async function commit(message: string, change: () => void): Promise<string> {
  change()
  const name = join(repository().tree, 'overlays/local/kustomization.yaml')
  const stakes = ['extra.yaml', 'stalled.yaml'].filter((each) => readIfThere(file(each)) !== undefined)
  const bare = readFileSync(join(examples, 'overlays/local/kustomization.yaml'), 'utf8')
  const resources = ['../../base', ...stakes].map((each) => `  - ${each}\n`).join('')
  writeFileSync(name, bare.replace('  - ../../base\n', resources))
  const made = await repository().commit(message)
  // The page's request is the time in whole seconds: two within one second are one, and Flux would look at its next interval only.
  await delay(Math.max(0, lookedAtMs + 1_000 - Date.now()))
  await reader?.run('Look now')
  lookedAtMs = Date.now()
  return made
}
let lookedAtMs = 0
const readIfThere = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

test('what the operator has not seen is not healthy: without an operator, Flux waits', async () => {
  reader?.save('A source and a Kustomization', 'stakes.yaml')
  await reader?.run('A source and a Kustomization')
  const { cluster } = stack()
  const applied = await eventually(
    'the stake is applied',
    () => getStake(cluster, 'validator-1', 'team-a'),
    (value) => value !== undefined,
  )
  expect(applied?.status?.observedGeneration).toBe(-1)
  const waiting = await eventually('Flux looks at the health of what it applied', kustomization, (value) =>
    /health checks/i.test(findCondition(value.status?.conditions, 'Reconciling')?.message ?? ''),
  )
  expect(ready(waiting)?.status).toBe('Unknown')
  expect(await reader?.run('What it waits for')).toMatch(/^stakes .* Unknown /m)
})

test('healthy is what is Ready: the signer, and the stake whose deposit is final', async () => {
  await stack().operator.start()
  // Flux writes its conditions by one request and the rest of the status by the next: what is seen between them says Ready without a revision.
  const applied = await eventually(
    'the Kustomization is ready, and says of what',
    kustomization,
    (value) => ready(value)?.status === 'True' && value.status?.lastAppliedRevision !== undefined,
  )
  expect(applied.status?.lastAppliedRevision).toMatch(/^main@sha1:/)
  const { cluster } = stack()
  expect(seen(await getSigner(cluster)).ready).toBe('True')
  expect(seen(await getStake(cluster, 'validator-1', 'team-a')).ready).toBe('True')
  expect(await stack().anvil.depositCount()).toBe(1)
})

test('a second look changes nothing of what it has applied', async () => {
  const { cluster } = stack()
  const byFlux = async () => {
    const line = await cluster.kubectlOk(['get', 'signer,ethstake', '-A', '-o', 'json', '--show-managed-fields'])
    const { items } = JSON.parse(line) as {
      items: { metadata: { name: string; generation: number; managedFields: { manager: string; time: string }[] } }[]
    }
    return items.map(({ metadata: { name, generation, managedFields } }) => ({
      name,
      generation,
      fields: managedFields.filter(({ manager }) => manager === 'kustomize-controller'),
    }))
  }
  const before = await byFlux()
  expect(before.every(({ fields }) => fields.length === 1)).toBe(true)
  await lookOnce('again')
  expect(await byFlux()).toEqual(before)
})

const suspendOf = async () => ((await getSigner(stack().cluster)) as { spec: { suspend?: boolean } }).spec.suspend
/** Has Flux look at once, whatever is new, and waits until it has. */
async function lookOnce(at: string): Promise<void> {
  const request = ['annotate', 'kustomization', 'stakes', '-n', 'flux-system', `reconcile.fluxcd.io/requestedAt=${at}`, '--overwrite']
  await stack().cluster.kubectlOk(request)
  await eventually('Flux has looked again', kustomization, ({ status }) => status?.lastHandledReconcileAt === at)
}

test('a key that kubectl has stopped goes on at the next look of Flux, unless that was suspended first', async () => {
  const { cluster } = stack()
  await cluster.kubectlOk(['patch', 'signer', 'treasury', '--type=merge', '-p', '{"spec":{"suspend":true}}'])
  await lookOnce('stopped')
  expect(await suspendOf()).toBeUndefined()

  await reader?.run('Stop a key in an emergency')
  await cluster.kubectlOk(['annotate', 'kustomization', 'stakes', '-n', 'flux-system', 'reconcile.fluxcd.io/requestedAt=no', '--overwrite'])
  await staysFor(3_000, suspendOf)
  expect(await suspendOf()).toBe(true)
  // What the person does afterwards is theirs: here it was a drill.
  await cluster.kubectlOk(['patch', 'kustomization', 'stakes', '-n', 'flux-system', '--type=merge', '-p', '{"spec":{"suspend":false}}'])
  await lookOnce('drilled')
  expect(await suspendOf()).toBeUndefined()
})

test('what needs a person fails it at once, by name, long before its time is over', async () => {
  await commit('a stake that nobody may pay', () => {
    writeFileSync(file('stalled.yaml'), JSON.stringify(stake('refused', { amountEth: '64' }, { namespace: 'team-a' })))
  })
  const failed = await eventually('the Kustomization fails', kustomization, (value) => ready(value)?.reason === 'HealthCheckFailed')
  expect(ready(failed)?.message).toMatch(/stalled.*EthereumStake\/team-a\/refused/s)
})

test('what is taken out of Git goes where nothing was paid', async () => {
  await commit('without it', () => rmSync(file('stalled.yaml')))
  const { cluster } = stack()
  await eventually(
    'the stake that was never paid is pruned',
    () => getStake(cluster, 'refused', 'team-a'),
    (value) => value === undefined,
  )
  await eventually('the Kustomization is ready again', kustomization, (value) => ready(value)?.status === 'True')
})

test('a paid stake that is taken out of Git waits, and says what holds it', async () => {
  const { cluster, anvil } = stack()
  await commit('another stake', () => {
    writeFileSync(file('extra.yaml'), JSON.stringify(stake('extra', {}, { namespace: 'team-a' })))
  })
  await eventually(
    'it is paid',
    () => getStake(cluster, 'extra', 'team-a'),
    (value) => seen(value).ready === 'True',
  )
  await commit('without it', () => rmSync(file('extra.yaml')))
  const held = await eventually(
    'it is being deleted',
    () => getStake(cluster, 'extra', 'team-a'),
    (value) => value?.metadata.deletionTimestamp !== undefined && seen(value).phase === 'Deleting',
  )
  expect(seen(held).message).toMatch(/32 ETH are staked/)
  expect(await anvil.depositCount()).toBe(2)
})

test('a stake and a signer of the examples stay though their files are gone', async () => {
  const { cluster } = stack()
  const made = await commit('nothing but a namespace', () => {
    writeFileSync(
      join(repository().tree, 'base/kustomization.yaml'),
      'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [namespace.yaml]\n',
    )
  })
  await eventually('Flux has applied what is left', kustomization, (value) => value.status?.lastAppliedRevision?.endsWith(made) === true)
  expect((await getStake(cluster, 'validator-1', 'team-a'))?.metadata.deletionTimestamp).toBeUndefined()
  expect((await getSigner(cluster)).metadata.deletionTimestamp).toBeUndefined()
})

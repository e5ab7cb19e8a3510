import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { kinds } from '../../../src/resources/kinds.ts'
import { untilEstablished } from '../../cluster/apply.ts'
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts'
import { pageCommands } from '../../cluster/page-commands.ts'

/** What the examples are to a real API server, with nobody there who acts on them. */
const examples = join(import.meta.dirname, '../../../examples')
let cluster: ControlPlane
beforeAll(async () => {
  cluster = await startControlPlane()
  await cluster.kubectlOk(['apply', '-f', join(examples, '../crds')])
  await untilEstablished(cluster)
})
afterAll(() => cluster?.stop())

interface Applied {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly resourceVersion?: string }
}
/** All of them with everything, who manages which field and since when too. */
async function stored(): Promise<readonly Applied[]> {
  const all = kinds.map(({ plural }) => plural).join(',')
  const { items } = JSON.parse(await cluster.kubectlOk(['get', all, '-A', '-o', 'json', '--show-managed-fields'])) as { items: Applied[] }
  return items
}
const withoutVersion = (all: readonly Applied[]) =>
  all.map((one) => ({ ...one, metadata: { ...one.metadata, resourceVersion: undefined } }))

test.each<{ what: string; given: readonly string[]; objects: number }>([
  { what: 'the examples', given: ['-f', examples], objects: 17 },
  { what: 'the base for Git with its overlay', given: ['-k', join(examples, 'gitops/overlays/local')], objects: 3 },
])('$what, applied by server-side apply twice, change nothing the second time', async ({ given, objects }) => {
  const apply = () => cluster.kubectlOk(['apply', '--server-side', '--field-manager=gitops', '--force-conflicts', ...given])
  expect((await apply()).trim().split('\n')).toHaveLength(objects)
  const first = await stored()
  await apply()
  const second = await stored()
  expect(withoutVersion(second)).toEqual(withoutVersion(first))
  await apply()
  // The API server writes down the default of status with the first update. From then on there is nothing to write at all.
  expect(await stored()).toEqual(second)
})

test('the page of the base applies the overlay of the tests, from a clone of the repository', async () => {
  const page = await pageCommands(cluster, { page: 'examples/gitops/README.md' }, AbortSignal.timeout(60_000))
  try {
    // What was applied above is another manager's.
    await cluster.kubectlOk(['delete', 'ethstake,signer', '--all', '--all-namespaces'])
    expect((await page.run('Stakes from Git')).trim().split('\n')).toEqual(
      ['namespace/team-a', 'ethereumstake.staking.dev/validator-1', 'stakingsigner.staking.dev/treasury'].map(
        (one) => `${one} serverside-applied`,
      ),
    )
  } finally {
    page.stop()
  }
})

test('the overlay that is to be copied is refused until its placeholders are replaced', async () => {
  const { code, stderr } = await cluster.kubectl([
    'apply',
    '--server-side',
    '--dry-run=server',
    '--force-conflicts',
    '-k',
    join(examples, 'gitops/overlays/hoodi'),
  ])
  expect(code).not.toBe(0)
  expect(stderr).toMatch(/StakingSigner.*"treasury" is invalid.*spec\.address.*must be an Ethereum address/s)
  expect(stderr).toMatch(/EthereumStake.*"validator-1" is invalid.*spec\.withdrawalAddress/s)
})

test('no stake and no signer of the examples goes because its file does', async () => {
  for (const given of [
    ['-f', examples],
    ['-k', join(examples, 'gitops/overlays/local')],
  ]) {
    const { items } = JSON.parse(await cluster.kubectlOk(['create', '--dry-run=client', '-o', 'json', ...given]).then(asList)) as {
      items: { kind: string; metadata: { name: string; annotations?: Record<string, string> } }[]
    }
    for (const { kind, metadata } of items)
      if (kind !== 'Namespace')
        expect(metadata.annotations?.['argocd.argoproj.io/sync-options'], `${kind} ${metadata.name}`).toBe('Prune=false')
  }
})

/** kubectl prints one object after the other. */
const asList = (printed: string): string => `{"items":[${printed.trim().replaceAll(/\n\}\n\{/g, '\n},\n{')}]}`

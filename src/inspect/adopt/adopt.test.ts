import { describe, expect, test } from 'vitest'
import { adoptAll, type StakesNamed } from './adopt.ts'
import { readManifests } from './manifests.ts'

const never = new AbortController().signal
const text = `# The fleet of team a.
apiVersion: staking.dev/v1alpha1
kind: EthereumStake
metadata:
  name: validator-1
  namespace: team-a # ours
spec:
  network: hoodi
  amountEth: "32"
---
apiVersion: v1
kind: ConfigMap
metadata: { name: other }
---
apiVersion: staking.dev/v1alpha1
kind: SolanaStake
metadata: { name: sol-1 }
spec: { network: devnet, adopt: { stakeId: st_old } }
`
const known =
  (stakes: Readonly<Record<string, readonly string[] | undefined>>): StakesNamed =>
  async ({ reference }) =>
    reference in stakes ? stakes[reference]?.map((stakeId) => ({ stakeId })) : []
const adopted = async (named: StakesNamed, from = text) => {
  const file = readManifests(from, 'fleet.yaml', 'default')
  const adoptions = await adoptAll([file], named, never)
  return { is: adoptions.map(({ is }) => is), says: adoptions.map(({ says }) => says).join('; '), text: file.text() }
}

test('a stake that was made before is adopted, by its place; comments and all else stay', async () => {
  const { is, text: written } = await adopted(known({ 'EthereumStake/team-a/validator-1': ['st_1'] }))
  expect(is).toEqual(['adopts', 'adopted already'])
  expect(written).toBe(text.replace('amountEth: "32"\n', 'amountEth: "32"\n  adopt:\n    stakeId: st_1\n'))
})

test('lists and maps on one line stay as they were written, with blanks inside or without', async () => {
  const dense = text.replaceAll('{ ', '{').replaceAll(' }', '}').replace('# ours', '# ours\n  labels: {tier: [a, b]}')
  const { text: written } = await adopted(known({ 'EthereumStake/team-a/validator-1': ['st_1'] }), dense)
  expect(written).toBe(dense.replace('amountEth: "32"\n', 'amountEth: "32"\n  adopt:\n    stakeId: st_1\n'))
})

describe('is left as it is', () => {
  test.each<[string, StakesNamed, string, RegExp]>([
    ['one that nobody has made', known({}), 'new', /knows no stake of EthereumStake\/team-a\/validator-1/],
    ['one of several', known({ 'EthereumStake/team-a/validator-1': ['st_1', 'st_2'] }), 'unclear', /several: st_1, st_2/],
    ['one of a network that is not configured', known({ 'EthereumStake/team-a/validator-1': undefined }), 'unclear', /no network hoodi/],
  ])('%s', async (_what, named, is, says) => {
    const found = await adopted(named)
    expect(found.is[0]).toBe(is)
    expect(found.says).toMatch(says)
    expect(found.text).toBe(text)
  })
})

test('a manifest without a namespace is of the one that is named', async () => {
  const asked: string[] = []
  await adopted(async ({ reference }) => {
    asked.push(reference)
    return []
  }, 'apiVersion: staking.dev/v1alpha1\nkind: EthereumStake\nmetadata: { name: a }\nspec: { network: hoodi }\n')
  expect(asked).toEqual(['EthereumStake/default/a'])
})

test('what is no YAML is told with file and line', () => {
  expect(() => readManifests('a: [\nb', 'bad.yaml', 'default')).toThrow(/^bad\.yaml is not YAML \(line \d\)$/)
})

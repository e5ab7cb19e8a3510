import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { untilEstablished } from '../../cluster/apply.ts'
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts'

/** What people get from a real API server when they apply a SolanaStake: it is taken, or the message says what to do. */
let cluster: ControlPlane
beforeAll(async () => {
  cluster = await startControlPlane()
  await cluster.kubectlOk(['apply', '-f', new URL('../../../crds', import.meta.url).pathname])
  await untilEstablished(cluster)
})
afterAll(async () => {
  await cluster?.stop()
})

const address = '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T'
const other = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG'
let count = 0
const manifest = (spec: object, name = `sol-${++count}`) => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind: 'SolanaStake',
  metadata: { name, namespace: 'default' },
  spec: {
    network: 'devnet',
    amountLamports: '5000000000',
    stakeAuthority: { signer: 'payer' },
    withdrawAuthority: { signer: 'cold' },
    ...spec,
  },
})
const apply = (object: unknown) => cluster.kubectl(['apply', '-f', '-'], { input: JSON.stringify(object) })
const patch = (name: string, spec: unknown) => cluster.kubectl(['patch', 'solstake', name, '--type=merge', '-p', JSON.stringify({ spec })])

test.each([
  { what: '5 SOL', spec: {} },
  { what: 'what no cluster takes today, as far as the API server can tell', spec: { amountLamports: '100000' } },
  { what: 'all lamports of 64 bits', spec: { amountLamports: '18446744073709551615' } },
  {
    what: 'everything',
    spec: { voteAccount: address, destination: other, maxPriorityFeeLamports: '0', suspend: true, desiredState: 'Inactive' },
  },
  { what: 'a stake to adopt', spec: { adopt: { stakeId: '0123456789abcdef0123456789abcdef' } } },
])('with $what it is taken', async ({ spec }) => {
  expect(await apply(manifest(spec))).toMatchObject({ code: 0 })
})

test.each([
  { what: 'no money', spec: { amountLamports: '0' }, says: 'must be a whole number of lamports such as "5000000000" (5 SOL)' },
  { what: 'SOL', spec: { amountLamports: '5.5' }, says: 'must be a whole number of lamports' },
  { what: 'a sign', spec: { amountLamports: '-5' }, says: 'must be a whole number of lamports' },
  { what: 'an exponent', spec: { amountLamports: '5e9' }, says: 'must be a whole number of lamports' },
  { what: 'white space', spec: { amountLamports: '5 ' }, says: 'must be a whole number of lamports' },
  { what: 'nothing', spec: { amountLamports: '' }, says: 'spec.amountLamports' },
  { what: 'a number for text', spec: { amountLamports: 5_000_000_000 }, says: 'must be of type string' },
  { what: 'SOL for lamports', spec: { amountLamports: '5' }, says: 'must be at least 100000 lamports: it is in lamports' },
  { what: 'many SOL for lamports', spec: { amountLamports: '99999' }, says: '5 SOL is "5000000000"' },
  { what: 'more than 64 bits', spec: { amountLamports: '18446744073709551616' }, says: 'must be at most 18446744073709551615 lamports' },
  { what: 'a vote account that is not base58', spec: { voteAccount: `0${address.slice(1)}` }, says: 'must be a Solana address in base58' },
  { what: 'an Ethereum destination', spec: { destination: `0x${'1'.repeat(40)}` }, says: 'must be a Solana address in base58' },
  ...[
    ['the system program', '11111111111111111111111111111111'],
    ['the stake program', 'Stake11111111111111111111111111111111111111'],
    ['a token program', 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'],
    ['a sysvar', 'SysvarC1ock11111111111111111111111111111111'],
    ['the incinerator', '1nc1nerator11111111111111111111111111111111'],
  ].map(([what, destination]) => ({
    what: `${what} as its destination`,
    spec: { destination },
    says: 'is a program, a sysvar or the incinerator: money that goes there is lost',
  })),
  { what: 'no withdraw authority', spec: { withdrawAuthority: undefined }, says: 'spec.withdrawAuthority: Required value' },
  { what: 'a state that is none', spec: { desiredState: 'Gone' }, says: 'supported values: "Active", "Inactive", "Withdrawn"' },
  { what: 'a fee in words', spec: { maxPriorityFeeLamports: 'low' }, says: 'must be a whole number of lamports such as "10000"' },
  { what: 'a field that is mistyped', spec: { voteAcount: address }, says: 'unknown field "spec.voteAcount"' },
])('with $what it is refused, and told why', async ({ spec, says }) => {
  const { code, stderr } = await apply(manifest(spec))
  expect(code).not.toBe(0)
  expect(stderr).toContain(says)
})

describe('later', () => {
  test.each([
    { what: 'the amount', change: { amountLamports: '6000000000' }, says: 'amountLamports cannot be changed' },
    { what: 'the network', change: { network: 'mainnet-beta' }, says: 'network cannot be changed' },
    { what: 'the stake authority', change: { stakeAuthority: { signer: 'x' } }, says: 'stakeAuthority.signer cannot be changed' },
    { what: 'the withdraw authority', change: { withdrawAuthority: { signer: 'x' } }, says: 'withdrawAuthority.signer cannot be changed' },
    { what: 'the vote account', change: { voteAccount: other }, says: 'voteAccount cannot be changed, added or removed' },
    { what: 'the vote account, by leaving it out', change: { voteAccount: null }, says: 'voteAccount cannot be changed, added or removed' },
    { what: 'the destination', change: { destination: other }, says: 'destination cannot be changed, added or removed' },
  ])('$what cannot be changed', async ({ change, says }) => {
    const object = manifest({ voteAccount: address })
    await apply(object)
    const { code, stderr } = await patch(object.metadata.name, change)
    expect(code).not.toBe(0)
    expect(stderr).toContain(says)
  })

  test('desiredState only goes forward; a stake can be adopted, suspended, and pay another fee', async () => {
    const { metadata } = manifest({})
    await apply(manifest({}, metadata.name))
    const { name } = metadata
    const back = 'desiredState only goes forward: Active, Inactive, Withdrawn'
    for (const change of [
      { adopt: { stakeId: 's1' } },
      { suspend: true },
      { maxPriorityFeeLamports: '20000' },
      { desiredState: 'Inactive' },
    ])
      expect(await patch(name, change), JSON.stringify(change)).toMatchObject({ code: 0 })
    expect((await patch(name, { desiredState: 'Active' })).stderr).toContain(back)
    expect((await patch(name, { desiredState: null })).stderr).toContain(back)
    expect(await patch(name, { desiredState: 'Withdrawn' })).toMatchObject({ code: 0 })
    expect((await patch(name, { desiredState: 'Inactive' })).stderr).toContain(back)
    expect(await patch(name, { adopt: null })).toMatchObject({ code: 0 })
  })

  test('it is explained, and found by network, signers and desired state', async () => {
    const object = manifest({ network: 'chosen', desiredState: 'Inactive' })
    await apply(object)
    expect(await cluster.kubectlOk(['explain', 'solstake.spec'])).not.toContain('<no description>')
    const selector = 'spec.network=chosen,spec.stakeAuthority.signer=payer,spec.withdrawAuthority.signer=cold,spec.desiredState=Inactive'
    expect(await cluster.kubectlOk(['get', 'solstake', '--field-selector', selector, '-o', 'name'])).toBe(
      `solanastake.staking.dev/${object.metadata.name}\n`,
    )
  })
})

const handOver = (spec: object) => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind: 'SolanaStakeAuthorization',
  metadata: { name: `hand-over-${++count}`, namespace: 'default' },
  spec: { stakeRef: { name: 'one' }, ...spec },
})

test.each([
  { what: 'to a signer', spec: { stakeAuthority: { signer: 'next' } } },
  { what: 'both, to signers', spec: { stakeAuthority: { signer: 'next' }, withdrawAuthority: { signer: 'cold-2' } } },
  { what: 'to an address that is confirmed', spec: { withdrawAuthority: { address }, acceptUnproven: true } },
])('a hand-over $what is taken', async ({ spec }) => {
  expect(await apply(handOver(spec))).toMatchObject({ code: 0 })
})

test.each([
  { what: 'to nobody', spec: {}, says: 'must have stakeAuthority, withdrawAuthority or both' },
  { what: 'to neither signer nor address', spec: { stakeAuthority: {} }, says: 'must have either signer or address' },
  { what: 'to both of them', spec: { stakeAuthority: { signer: 'a', address } }, says: 'must have either signer or address' },
  { what: 'to an address that nobody confirms', spec: { stakeAuthority: { address } }, says: 'must be true where an address is named' },
  {
    what: 'to a program',
    spec: { withdrawAuthority: { address: 'Stake11111111111111111111111111111111111111' }, acceptUnproven: true },
    says: 'nobody can sign for it',
  },
])('a hand-over $what is refused, and the message says why', async ({ spec, says }) => {
  const { code, stderr } = await apply(handOver(spec))
  expect(code).not.toBe(0)
  expect(stderr).toContain(says)
})

test('to whom it is handed over cannot be changed', async () => {
  const made = handOver({ stakeAuthority: { signer: 'next' } })
  expect(await apply(made)).toMatchObject({ code: 0 })
  const { stderr } = await cluster.kubectl([
    ...['patch', 'solauth', made.metadata.name, '--type=merge', '-p', '{"spec":{"stakeAuthority":{"signer":"thief"}}}'],
  ])
  expect(stderr).toContain('create another SolanaStakeAuthorization under another name')
})

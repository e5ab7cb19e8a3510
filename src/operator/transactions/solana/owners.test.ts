import { describe, expect, test } from 'vitest'
import { testAddress } from '../../../chains/solana/testing.ts'
import { createSolanaWorld, GENESIS, KEY, NETWORK, payer, type SolanaOperator, type SolanaWorld } from '../../testing/solana-world.ts'

/** Who signs a Solana step, on which cluster, and what may become of both while it is open. */

const lives = { SolanaStake: 'Active', SolanaDeactivation: 'Inactive', SolanaWithdrawal: 'Withdrawn' } as const
type Purpose = keyof typeof lives
const purposes = Object.keys(lives) as Purpose[]
const stepOf = (operator: SolanaOperator, purpose: Purpose) => operator.records(KEY).find(({ spec }) => spec.purpose === purpose)
const signatures = (world: SolanaWorld) => world.keys.signed.map(({ keyName, bytes }) => `${keyName} ${Buffer.from(bytes).toString('hex')}`)

/** A world in which this step has been sent, and is in no block yet. */
async function sent(purpose: Purpose): Promise<{ world: SolanaWorld; operator: SolanaOperator & { visitSigner(name: string): unknown } }> {
  const world = createSolanaWorld()
  world.addSigners()
  world.addStake()
  const operator = world.start()
  const before = { SolanaStake: [], SolanaDeactivation: ['Active'], SolanaWithdrawal: ['Active', 'Inactive'] } as const
  for (const desiredState of before[purpose]) {
    world.editSpec({ desiredState })
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
  }
  world.editSpec({ desiredState: lives[purpose] })
  await world.visit(operator)
  expect(stepOf(operator, purpose)?.status, world.explain()).toMatchObject({ state: 'Open', attempts: [{ kind: 'Call' }] })
  return { world, operator }
}
const confirm = (world: SolanaWorld, name: string) =>
  world.signers.edit(name, (signer) => ({
    ...signer,
    metadata: { ...signer.metadata, annotations: { 'staking.dev/confirm-delete': name } },
  }))
const isGone = (world: SolanaWorld, name = 'payer') => world.signers.get(name) === undefined

const changes: { readonly what: string; readonly change: (world: SolanaWorld) => void }[] = [
  {
    what: 'the signer is deleted and made again with another key',
    change(world) {
      world.signers.vanish('payer')
      world.keys.mount('payer', 4)
      world.addSigner('payer', testAddress(4))
    },
  },
  { what: 'the signer is gone', change: (world) => world.signers.vanish('payer') },
  {
    what: 'its signer has another address',
    change(world) {
      world.keys.mount('payer', 4)
      world.signers.edit('payer', (signer) => ({ ...signer, spec: { ...signer.spec, address: testAddress(4) } }))
    },
  },
  {
    what: "the network's name is given to another cluster, and its own to none",
    change: ({ networks }) => networks.set(NETWORK, testAddress(97)),
  },
  {
    what: "the network's name is given to another cluster, and its own has another name",
    change({ networks }) {
      networks.set(NETWORK, testAddress(97))
      networks.set('before', GENESIS)
    },
  },
]

describe('while its transaction is under way', () => {
  test.each(changes.flatMap((row) => purposes.flatMap((purpose) => [false, true].map((forgotten) => ({ ...row, purpose, forgotten })))))(
    '$what: nothing else is signed for $purpose, and the old one is followed to its end (forgotten by the nodes: $forgotten)',
    async ({ purpose, change, forgotten }) => {
      const { world, operator: first } = await sent(purpose)
      const [attempt] = stepOf(first, purpose)?.status?.attempts ?? []
      const signed = signatures(world)
      if (forgotten) world.cluster.forget()
      change(world)
      const operator = world.start()
      for (let n = 0; n < 4; n++) {
        await world.visit(operator)
        world.cluster.settle()
      }
      if (forgotten) {
        world.cluster.expire()
        for (let n = 0; n < 3; n++) await world.visit(operator)
      }
      // The same bytes may be signed again, to be sent again; nothing else is.
      expect(new Set(signatures(world))).toEqual(new Set(signed))
      // Everything is as it was before.
      world.networks.clear()
      world.networks.set(NETWORK, GENESIS)
      world.keys.mount('payer', 1)
      if (!isGone(world)) world.signers.vanish('payer')
      world.addSigner('payer', payer)
      await world.settle(world.start())
      expect(world.ready(), world.explain()).toBe(true)
      expect(stepOf(world.start(), purpose)?.status).toMatchObject(
        forgotten ? { closed: [{ by: 'Expired' }], outcome: { is: 'Landed' } } : { outcome: { is: 'Landed', hash: attempt?.hash } },
      )
      const isOut = purpose === 'SolanaWithdrawal'
      world.assertMoney({ funded: 1, withdrawn: isOut ? 1 : 0 })
    },
  )

  test.each(
    purposes.flatMap((purpose) =>
      (purpose === 'SolanaWithdrawal' ? ['payer', 'withdrawer'] : ['payer']).map((name) => ({ purpose, name })),
    ),
  )('the deletion of $name waits until $purpose is settled; its lane shows what is open', async ({ purpose, name }) => {
    const { world, operator } = await sent(purpose)
    await operator.visitSigner(name)
    expect(world.signers.get(name)?.status?.lanes).toMatchObject([{ network: NETWORK, open: 1, waiting: 0 }])
    // That the stake is its alone to get at is confirmed; what may land is waited for all the same.
    confirm(world, name)
    world.signers.remove(name)
    for (let n = 0; n < 3; n++) {
      await operator.visitSigner(name)
      expect(world.signers.get(name)?.metadata.deletionTimestamp).toBeDefined()
      world.clock.advance(60_000)
    }
    world.cluster.settle()
    await world.visit(operator)
    await operator.visitSigner(name)
    expect(isGone(world, name)).toBe(true)
    expect(stepOf(operator, purpose)?.status?.outcome?.is).toBe('Landed')
  })

  test('the deletion of its signer waits though the nodes forget it, and ends once it has expired on every node: nothing else is signed', async () => {
    const { world, operator } = await sent('SolanaStake')
    await operator.visitSigner('payer')
    world.cluster.forget()
    world.cluster.state.forgetful = true
    world.signers.remove('payer')
    const signed = new Set(signatures(world))
    world.cluster.state.secondAt = world.cluster.height()
    world.cluster.expire()
    for (let n = 0; n < 3; n++) {
      await world.visit(operator)
      await operator.visitSigner('payer')
    }
    expect(isGone(world)).toBe(false)
    world.cluster.state.secondAt = undefined
    await world.visit(operator)
    await operator.visitSigner('payer')
    expect(isGone(world)).toBe(true)
    expect(stepOf(operator, 'SolanaStake')?.status?.closed).toMatchObject([{ by: 'Expired' }])
    expect(new Set(signatures(world))).toEqual(signed)
    world.assertMoney({ funded: 0, withdrawn: 0 })
  })

  test('it is held though its network is configured no more, and its lane is still shown', async () => {
    const { world } = await sent('SolanaStake')
    world.networks.clear()
    const operator = world.start()
    await operator.visitSigner('payer')
    expect(world.signers.get('payer')?.status?.lanes).toMatchObject([{ network: NETWORK, open: 1, waiting: 0 }])
    world.signers.remove('payer')
    await operator.visitSigner('payer')
    expect(isGone(world)).toBe(false)
  })

  test.each(purposes)(
    'a signer goes at once once %s is settled and its key is not needed, and so does one that only waits',
    async (purpose) => {
      const { world, operator } = await sent(purpose)
      await operator.visitSigner('payer')
      await world.settle(operator)
      await operator.visitSigner('withdrawer')
      for (const name of ['payer', 'withdrawer']) {
        world.signers.remove(name)
        await operator.visitSigner(name)
        // As long as the stake holds money, its keys alone can get at it.
        expect(isGone(world, name)).toBe(purpose === 'SolanaWithdrawal')
        if (purpose === 'SolanaWithdrawal') continue
        confirm(world, name)
        await operator.visitSigner(name)
        expect(isGone(world, name)).toBe(true)
      }
    },
  )
})

test("a settled stake whose network's name is given to another cluster is not told to be withdrawn, and nothing of it is signed there", async () => {
  const { world } = await sent('SolanaStake')
  await world.settle(world.start())
  expect(world.ready(), world.explain()).toBe(true)
  const signed = signatures(world)
  world.networks.set(NETWORK, testAddress(97))
  const operator = world.start()
  world.annotate({ 'staking.dev/reconcile-at': '1' })
  for (let n = 0; n < 3; n++) await world.visit(operator)
  expect(world.status().protocol?.status).toBe('Active')
  world.editSpec({ desiredState: 'Withdrawn' })
  for (let n = 0; n < 3; n++) await world.visit(operator)
  expect(world.stalled(), world.explain()).toBe('WrongChain')
  expect(operator.records(KEY).map(({ spec }) => spec.purpose)).toEqual(['SolanaStake'])
  expect(signatures(world)).toEqual(signed)
})

test('a record that passes on twice tells of those alone whom something was signed for, and each attempt whose it is', async () => {
  const { world } = await sent('SolanaWithdrawal')
  const operator = world.start()
  const { stakeId = '' } = world.status()
  const withdrawalOf = (key: string) => operator.records(key).find(({ spec }) => spec.purpose === 'SolanaWithdrawal')
  const { name = '' } = withdrawalOf(KEY)?.metadata ?? {}
  world.cluster.forget()
  world.cluster.expire()
  world.stakes.vanish(KEY)
  await operator.visitRecord(name)
  const [second, third] = ['team-a/second', 'team-a/third']
  const adopted = { adopt: { stakeId }, desiredState: 'Withdrawn' } as const
  world.keys.break('withdrawer', 'missing')
  world.addStake(adopted, second)
  await world.settle(operator, { key: second, rounds: 6 })
  expect(withdrawalOf(second)?.spec, world.explain(second)).toMatchObject({ generation: 1, earlier: [{ generation: 0 }] })
  world.stakes.vanish(second)
  world.keys.mend('withdrawer')
  world.addStake(adopted, third)
  await world.settle(operator, { key: third })
  expect(world.ready(third), world.explain(third)).toBe(true)
  expect(withdrawalOf(third)).toMatchObject({
    spec: { generation: 2, earlier: [{ generation: 0, owner: { name: 'stake-1' } }] },
    status: { attempts: [{ generation: 0 }, { generation: 2 }], outcome: { is: 'Landed' } },
  })
  world.assertMoney({ funded: 1, withdrawn: 1 })
})

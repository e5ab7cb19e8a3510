import { describe, expect, test } from 'vitest'
import { decodeBase58 } from '../../../chains/solana/base58.ts'
import { SolanaError } from '../../../chains/solana/chain.ts'
import { decodeInstruction } from '../../../chains/solana/instructions.ts'
import { testAddress } from '../../../chains/solana/testing.ts'
import { findCondition } from '../../../resources/conditions.ts'
import { REQUESTED_BY_ANNOTATION } from '../../../resources/meta.ts'
import { readPlan } from '../../../resources/plan.ts'
import type { SolanaStakeAuthorizationSpec } from '../../../resources/solana-stake-authorization.ts'
import { type StakingTransaction, type StakingTransactionStatus, stakingTransaction } from '../../../resources/staking-transaction.ts'
import { Halt } from '../../engine/verdict.ts'
import type { KubeObject } from '../../kube/objects.ts'
import { misfortune } from '../../testing/misfortune.ts'
import type { Around } from '../../testing/mortal.ts'
import { readyStake } from '../../testing/solana-stories.ts'
import { AMOUNT, KEY, payer, type SolanaWorld, withdrawer } from '../../testing/solana-world.ts'
import { seededRandom } from '../../testing/test-clock.ts'
import { nameBySpec } from '../../transactions/names.ts'

const HAND_OVER = 'team-a/hand-over'
const nextPayer = testAddress(5)
const nextWithdrawer = testAddress(6)
const both: Partial<SolanaStakeAuthorizationSpec> = {
  stakeAuthority: { signer: 'payer-2' },
  withdrawAuthority: { signer: 'withdrawer-2' },
}
type Operator = ReturnType<SolanaWorld['start']>

/** A stake that is Ready, and two more signers with keys. */
async function twoPairs(policy: object = {}): Promise<{ world: SolanaWorld; operator: Operator; account: string }> {
  const { world, account } = await readyStake()
  for (const name of ['payer', 'withdrawer']) world.editPolicy({ allowedSuccessors: [nextPayer, nextWithdrawer] }, name)
  for (const [name, number] of [
    ['payer-2', 5],
    ['withdrawer-2', 6],
  ] as const) {
    world.keys.mount(name, number)
    world.addSigner(name, testAddress(number), policy)
    world.cluster.fund(testAddress(number), 10n ** 9n)
  }
  world.cluster.settle()
  return { world, operator: world.start(), account }
}

const statusOf = (world: SolanaWorld, key = HAND_OVER) => world.authorizations.get(key)?.status
const readyOf = (world: SolanaWorld, key = HAND_OVER) => findCondition(statusOf(world, key)?.conditions, 'Ready')
const says = (world: SolanaWorld, key = HAND_OVER) => `${readyOf(world, key)?.status} ${readyOf(world, key)?.reason}`

async function visit(operator: Operator, key = HAND_OVER): Promise<void> {
  try {
    await operator.visitAuthorization(key)
  } catch (error) {
    if (!(error instanceof Halt)) throw error
  }
}
/** Visits, and makes blocks, by turns, until it is Ready or ended. */
async function settle(world: SolanaWorld, operator: Operator, key = HAND_OVER, rounds = 10): Promise<void> {
  for (let round = 0; round < rounds && readyOf(world, key)?.status !== 'True' && !operator.killed; round++) {
    await visit(operator, key)
    world.cluster.settle()
    world.clock.advance(60_000)
  }
}
/** The hand-overs that landed, by role, and whether each succeeded. */
const handOvers = (world: SolanaWorld): readonly string[] =>
  world.cluster
    .landed()
    .flatMap(({ message, failure }) =>
      message.instructions
        .map(decodeInstruction)
        .flatMap((one) =>
          one.kind === 'authorize-staker' || one.kind === 'authorize-withdrawer'
            ? [`${one.kind} ${one.to}${failure === undefined ? '' : ' failed'}`]
            : [],
        ),
    )
const bothDone = [`authorize-staker ${nextPayer}`, `authorize-withdrawer ${nextWithdrawer}`]
const keysSince = (world: SolanaWorld, from: number): readonly string[] =>
  [...new Set(world.keys.signed.slice(from).map(({ keyName }) => keyName))].toSorted()

/** The stake goes its way with whoever has its authorities. */
async function withdrawn(world: SolanaWorld, operator: Operator): Promise<void> {
  for (const desiredState of ['Inactive', 'Withdrawn'] as const) {
    world.editSpec({ desiredState })
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
  }
}

describe('the authorities of a stake are handed over', () => {
  test('both at once, by one transaction that the new keys sign too; then the new keys alone deactivate and withdraw it', async () => {
    const { world, operator } = await twoPairs()
    world.addAuthorization(both)
    const before = world.keys.signed.length
    await settle(world, operator)
    expect(says(world), JSON.stringify(statusOf(world))).toBe('True Succeeded')
    expect(statusOf(world)).toMatchObject({
      phase: 'HandedOver',
      from: { stakeAuthority: payer, withdrawAuthority: withdrawer },
      to: { stakeAuthority: nextPayer, withdrawAuthority: nextWithdrawer },
      transaction: { state: 'Confirmed', attempt: 1 },
    })
    expect(handOvers(world)).toEqual(bothDone)
    expect(keysSince(world, before)).toEqual(['payer', 'payer-2', 'withdrawer', 'withdrawer-2'])

    // The stake takes it for what it is, and nothing of the old keys is needed any more.
    await world.visit(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status()).toMatchObject({
      stakeAuthority: nextPayer,
      withdrawAuthority: nextWithdrawer,
      handOver: { stakeSigner: 'payer-2', withdrawSigner: 'withdrawer-2' },
    })
    for (const name of ['payer', 'withdrawer']) {
      world.keys.break(name, 'missing')
      world.signers.vanish(name)
    }
    const then = world.keys.signed.length
    await withdrawn(world, operator)
    expect(keysSince(world, then)).toEqual(['payer-2', 'withdrawer-2'])
    expect(world.cluster.balance(nextWithdrawer)).toBe(10n ** 9n + AMOUNT)
    // The staking API still knows one stake, and has made none of these.
    expect(world.service.stakes()).toHaveLength(1)
  })

  test('a signer whose stakes were handed over is not needed any more; the new one is', async () => {
    const { world, operator } = await twoPairs()
    const needed = async (name: string) => {
      await operator.visitSigner(name)
      return findCondition(world.signers.get(name)?.status?.conditions, 'KeyNeeded')?.reason
    }
    expect(await needed('withdrawer')).toBe('ControlsStakes')
    world.addAuthorization(both)
    await settle(world, operator)
    await world.visit(operator)
    expect([await needed('payer'), await needed('withdrawer')]).toEqual(['Settled', 'Settled'])
    expect([await needed('payer-2'), await needed('withdrawer-2')]).toEqual(['ControlsStakes', 'ControlsStakes'])
  })

  test('the stake authority alone, by its own key: the withdraw key can stay offline', async () => {
    const { world, operator } = await twoPairs()
    world.keys.break('withdrawer', 'missing')
    world.addAuthorization({ stakeAuthority: { signer: 'payer-2' } })
    const before = world.keys.signed.length
    await settle(world, operator)
    expect(says(world), JSON.stringify(statusOf(world))).toBe('True Succeeded')
    expect(keysSince(world, before)).toEqual(['payer', 'payer-2'])
    await world.visit(operator)
    expect(world.status()).toMatchObject({ stakeAuthority: nextPayer, withdrawAuthority: withdrawer })
  })

  test('a stake key that is lost is replaced by the withdraw authority', async () => {
    const { world, operator } = await twoPairs()
    world.keys.break('payer', 'missing')
    world.addAuthorization({ stakeAuthority: { signer: 'payer-2' } })
    await settle(world, operator)
    expect(says(world), JSON.stringify(statusOf(world))).toBe('True Succeeded')
    expect(handOvers(world)).toEqual([`authorize-staker ${nextPayer}`])
  })

  test('and back again, and on to a third, each by a resource of its own', async () => {
    const { world, operator } = await twoPairs()
    for (const [name, signer] of [
      ['one', 'payer-2'],
      ['two', 'payer'],
      ['three', 'payer-2'],
    ] as const) {
      world.editPolicy({ allowedSuccessors: [payer] }, 'payer-2')
      world.addAuthorization({ stakeAuthority: { signer } }, `team-a/${name}`)
      await settle(world, operator, `team-a/${name}`)
      expect(says(world, `team-a/${name}`)).toBe('True Succeeded')
      await world.visit(operator)
      expect(world.status().handOver?.stakeSigner).toBe(signer)
      expect(world.stalled()).toBe('')
    }
    expect(handOvers(world)).toHaveLength(3)
    await withdrawn(world, operator)
  })

  test.each<[string, Partial<SolanaStakeAuthorizationSpec>, string, readonly string[]]>([
    ['to one new key', { stakeAuthority: { signer: 'payer-2' }, withdrawAuthority: { signer: 'payer-2' } }, nextPayer, ['payer-2']],
    ['to the key that has the stake authority', { withdrawAuthority: { signer: 'payer' } }, payer, ['payer']],
    ['to each other', { stakeAuthority: { signer: 'withdrawer' }, withdrawAuthority: { signer: 'payer' } }, payer, ['payer', 'withdrawer']],
  ])('%s, and it is withdrawn by that', async (_what, spec, home, signers) => {
    const { world, operator } = await twoPairs()
    for (const name of ['payer', 'withdrawer']) world.editPolicy({ allowedSuccessors: [nextPayer, payer, withdrawer] }, name)
    world.addAuthorization(spec)
    await settle(world, operator)
    expect(says(world), JSON.stringify(statusOf(world))).toBe('True Succeeded')
    await world.visit(operator)
    expect(world.status().withdrawAuthority, world.explain()).toBe(home)
    const [then, before] = [world.keys.signed.length, world.cluster.balance(home)]
    await withdrawn(world, operator)
    expect(keysSince(world, then)).toEqual(signers)
    expect(world.cluster.balance(home) - before).toBeGreaterThan(AMOUNT - 100_000n)
  })

  test('a stake key that was stolen and is not mounted any more signs nothing of it, though its signer is there', async () => {
    const { world, operator } = await twoPairs()
    world.keys.break('payer', 'missing')
    const before = world.keys.signed.length
    world.addAuthorization(both)
    await settle(world, operator)
    expect(says(world), JSON.stringify(statusOf(world))).toBe('True Succeeded')
    expect(keysSince(world, before)).toEqual(['payer-2', 'withdrawer', 'withdrawer-2'])
  })

  test('what is so already is not signed for', async () => {
    const { world, operator } = await twoPairs()
    const before = world.keys.signed.length
    world.addAuthorization({ stakeAuthority: { signer: 'payer' } })
    await settle(world, operator)
    expect(says(world)).toBe('True Succeeded')
    expect(world.keys.signed).toHaveLength(before)
  })

  test('an expired one is made anew, with another blockhash', async () => {
    const { world, operator } = await twoPairs()
    world.cluster.state.forgetful = true
    world.addAuthorization(both)
    await visit(operator)
    world.cluster.expire()
    world.cluster.state.forgetful = false
    await settle(world, operator)
    expect(says(world)).toBe('True Succeeded')
    expect(statusOf(world)?.transaction?.attempt).toBe(2)
    expect(handOvers(world)).toEqual(bothDone)
  })
})

describe('what is in flight ends first', () => {
  test('a deactivation that was sent holds the hand-over until it has landed', async () => {
    const { world, operator } = await twoPairs()
    world.editSpec({ desiredState: 'Inactive' })
    await world.visit(operator)
    world.addAuthorization(both)
    await visit(operator)
    expect(says(world)).toBe('False WaitingForHandOver')
    expect(handOvers(world)).toEqual([])
    world.cluster.settle()
    await world.visit(operator)
    await settle(world, operator)
    expect(says(world)).toBe('True Succeeded')
    expect(world.cluster.landed().every(({ failure }) => failure === undefined)).toBe(true)
  })

  test('a hand-over that was sent holds the steps of its stake, which then go on with the new key', async () => {
    const { world, operator } = await twoPairs()
    world.addAuthorization(both)
    await visit(operator)
    world.editSpec({ desiredState: 'Inactive' })
    await world.visit(operator)
    expect(world.condition('Ready')?.reason, world.explain()).toBe('WaitingForHandOver')
    await settle(world, operator)
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.cluster.landed().every(({ failure }) => failure === undefined)).toBe(true)
  })

  test('a step whose attempts have all expired goes on under the new key', async () => {
    const { world, operator } = await twoPairs()
    world.cluster.state.forgetful = true
    world.editSpec({ desiredState: 'Inactive' })
    await world.visit(operator)
    world.cluster.expire()
    world.cluster.state.forgetful = false
    // It is suspended before it is made again, and so waits.
    world.editSpec({ suspend: true })
    await world.visit(operator)
    world.editSpec({ suspend: false, desiredState: 'Inactive' })
    world.keys.break('payer', 'missing')
    world.addAuthorization({ stakeAuthority: { signer: 'payer-2' } })
    await settle(world, operator)
    expect(says(world), JSON.stringify(statusOf(world))).toBe('True Succeeded')
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
  })
})

describe('handed over twice at once, to different keys', () => {
  test.each([1, 2])('by two leaders: the log and the chain agree on who has it, who goes on with it (seed %i)', async (seed) => {
    const { world } = await twoPairs()
    const third = testAddress(8)
    world.keys.mount('withdrawer-3', 8)
    world.addSigner('withdrawer-3', third, { allowedSuccessors: [nextWithdrawer] })
    for (const name of ['withdrawer', 'withdrawer-2']) world.editPolicy({ allowedSuccessors: [third, nextWithdrawer] }, name)
    const keys = ['team-a/one', 'team-a/two'] as const
    world.addAuthorization({ withdrawAuthority: { signer: 'withdrawer-2' } }, keys[0])
    world.addAuthorization({ withdrawAuthority: { signer: 'withdrawer-3' } }, keys[1])
    const random = seededRandom(7100 + seed)
    const leaders = [world.start(), world.start()]
    const areReady = () => keys.every((key) => readyOf(world, key)?.status === 'True')
    for (let round = 0; round < 40 && !areReady(); round++) {
      for (const { caches } of leaders) {
        if (round < 20 && random() < 0.5) caches.log.frozen = true
        else caches.log.thaw()
      }
      if (round < 20 && random() < 0.2) world.cluster.expire()
      await Promise.all(leaders.flatMap((leader) => keys.map((key) => visit(leader, key))))
      world.cluster.produce(1)
      if (round % 3 === 2) world.cluster.settle()
      world.clock.advance(60_000)
    }
    expect(areReady(), keys.map((key) => JSON.stringify(statusOf(world, key))).join('\n')).toBe(true)
    const landed = handOvers(world).filter((one) => !one.endsWith('failed'))
    expect(landed.toSorted()).toEqual([`authorize-withdrawer ${nextWithdrawer}`, `authorize-withdrawer ${third}`].toSorted())
    const last = landed.at(-1)?.split(' ')[1]
    const next = world.start()
    await world.visit(next)
    expect(world.status().withdrawAuthority, world.explain()).toBe(last)
    await withdrawn(world, next)
    expect(world.cluster.balance(last ?? '')).toBeGreaterThanOrEqual(AMOUNT)
  })
})

describe('who may', () => {
  const refused: readonly {
    what: string
    spec?: Partial<SolanaStakeAuthorizationSpec>
    key?: string
    prepare?: (world: SolanaWorld) => void
    says: string
  }[] = [
    {
      what: 'of a stake of another namespace',
      key: 'team-b/hand-over',
      says: 'False WaitingForStake',
    },
    { what: 'of no stake', spec: { stakeRef: { name: 'none' } }, says: 'False WaitingForStake' },
    {
      what: 'by a withdraw signer whose policy names no successor',
      prepare: (world) => world.editPolicy({ allowedSuccessors: undefined }, 'withdrawer'),
      says: 'False SuccessorNotAllowed',
    },
    {
      what: 'by a stake signer whose policy names no successor',
      prepare: (world) => world.editPolicy({ allowedSuccessors: [] }, 'payer'),
      says: 'False SuccessorNotAllowed',
    },
    {
      what: 'to an allowed destination that is no successor',
      prepare: (world) =>
        world.editPolicy({ allowedSuccessors: [nextPayer], allowedWithdrawalAddresses: [withdrawer, nextWithdrawer] }, 'withdrawer'),
      says: 'False SuccessorNotAllowed',
    },
    {
      what: 'to a stranger, whoever confirms it',
      spec: { withdrawAuthority: { address: testAddress(66) as never }, acceptUnproven: true },
      says: 'False SuccessorNotAllowed',
    },
    {
      what: 'by a policy with successors that cannot be read',
      prepare: (world) => world.editPolicy({ allowedSuccessors: 'any' }, 'withdrawer'),
      says: 'False PolicyUnreadable',
    },
    {
      what: 'to another signer of the same key, whose policy asks for no approval',
      prepare: (world) => {
        world.editPolicy({ approval: { count: 1, kinds: ['SolanaWithdrawal'], by: [{ user: 'olga' }] } }, 'withdrawer')
        world.addSigner('its-twin', withdrawer)
      },
      spec: { withdrawAuthority: { signer: 'its-twin' } },
      says: 'False SuccessorNotAllowed',
    },
    { what: 'only planned', spec: { mode: 'Plan' }, says: 'False Planned' },
    { what: 'of a stake that is only planned', prepare: (world) => void world.editSpec({ mode: 'Plan' }), says: 'False Planned' },
    {
      what: 'to a signer that does not admit the namespace',
      prepare: (world) => world.editPolicy({ allowedNamespaces: { names: ['team-b'] } }, 'withdrawer-2'),
      says: 'False NamespaceNotAllowed',
    },
    {
      what: 'by a signer that admits the namespace no more',
      prepare: (world) => world.editPolicy({ allowedNamespaces: {} }, 'withdrawer'),
      says: 'False NamespaceNotAllowed',
    },
    {
      what: 'to a signer whose destinations do not admit where the stake goes',
      prepare: (world) => world.editPolicy({ allowedWithdrawalAddresses: [withdrawer] }, 'withdrawer-2'),
      says: 'False WithdrawalAddressNotAllowed',
    },
    { what: 'to a signer without a key', prepare: (world) => world.keys.break('withdrawer-2', 'missing'), says: 'False KeyMissing' },
    {
      what: 'to a signer with another key than it declares',
      prepare: (world) => world.keys.mount('withdrawer-2', 7),
      says: 'False KeyAddressMismatch',
    },
    { what: 'to no signer', spec: { withdrawAuthority: { signer: 'nobody' } }, says: 'False SignerNotFound' },
    {
      what: 'to an Ethereum signer',
      prepare: (world) => world.editSigner({ chain: 'Ethereum' }, 'withdrawer-2'),
      says: 'False WrongChain',
    },
    {
      what: 'suspended by its signer',
      prepare: (world) => world.editSigner({ suspend: true }, 'withdrawer'),
      says: 'False SignerSuspended',
    },
    {
      what: 'to a suspended signer',
      prepare: (world) => world.editSigner({ suspend: true }, 'payer-2'),
      says: 'False SignerSuspended',
    },
    { what: 'suspended itself', spec: { suspend: true }, says: 'False Suspended' },
    { what: 'of a suspended stake', prepare: (world) => void world.editSpec({ suspend: true }), says: 'False Suspended' },
    {
      what: 'to an address that nobody has confirmed',
      spec: { withdrawAuthority: { address: nextWithdrawer } },
      says: 'False InvalidSpec',
    },
    {
      what: 'to the stake account itself',
      prepare: (world) => {
        const address = world.status().stakeAccount ?? ''
        world.authorizations.edit(HAND_OVER, (one) => ({
          ...one,
          spec: { ...one.spec, withdrawAuthority: { address: address as never }, acceptUnproven: true },
        }))
        world.editPolicy({ allowedSuccessors: [address] }, 'withdrawer')
      },
      says: 'False InvalidSpec',
    },
    {
      what: 'to a program',
      spec: { withdrawAuthority: { address: 'Stake11111111111111111111111111111111111111' as never }, acceptUnproven: true },
      prepare: (world) => world.editPolicy({ allowedSuccessors: ['Stake11111111111111111111111111111111111111', nextPayer] }, 'withdrawer'),
      says: 'False InvalidSpec',
    },
    {
      what: 'to text that is no address',
      spec: { withdrawAuthority: { address: '1'.repeat(44) as never }, acceptUnproven: true },
      says: 'False InvalidSpec',
    },
  ]
  test.each(refused)('nothing is signed $what', async ({ spec = {}, key = HAND_OVER, prepare, says: expected }) => {
    const { world, operator } = await twoPairs()
    const before = world.keys.signed.length
    world.addAuthorization({ ...both, ...spec }, key)
    prepare?.(world)
    for (let round = 0; round < 3; round++) {
      await visit(operator, key)
      world.cluster.settle()
      world.clock.advance(60_000)
    }
    expect(says(world, key), JSON.stringify(statusOf(world, key))).toBe(expected)
    expect(world.keys.signed).toHaveLength(before)
    expect(handOvers(world)).toEqual([])
  })

  test('nothing is signed while the operator is suspended', async () => {
    const { world, operator } = await twoPairs()
    operator.state.leaseAnnotations = { 'staking.dev/suspend': 'true' }
    const before = world.keys.signed.length
    world.addAuthorization(both)
    await visit(operator)
    expect(says(world)).toBe('False OperatorSuspended')
    expect(world.keys.signed).toHaveLength(before)
  })

  test('policy taken back while the watch is silent: nothing is sent', async () => {
    const { world, operator } = await twoPairs()
    operator.caches.signers.frozen = true
    world.editPolicy({ allowedSuccessors: [] }, 'withdrawer')
    world.addAuthorization(both)
    await settle(world, operator, HAND_OVER, 3)
    expect(says(world)).toBe('False SuccessorNotAllowed')
    world.cluster.settle()
    expect(handOvers(world)).toEqual([])
  })

  test('a lockup: only its custodian could', async () => {
    const { world, operator, account } = await twoPairs()
    world.cluster.edit(account, (data) => data.writeBigInt64LE(4_000_000_000n, 76))
    world.cluster.settle()
    world.addAuthorization(both)
    await visit(operator)
    expect(says(world)).toBe('False LockupInForce')
    expect(handOvers(world)).toEqual([])
  })
})

describe('where a policy asks for an approval', () => {
  const by = [{ user: 'bob' }]
  const asks = { by, count: 1, validFor: '7d' }
  test.each(['withdrawer', 'withdrawer-2'])('of %s, nothing is signed before, and the plan names the new authorities', async (name) => {
    const { world, operator } = await twoPairs()
    world.editPolicy({ approval: { ...asks, kinds: ['SolanaAuthorization'] } }, name)
    world.addAuthorization(both, HAND_OVER, { annotations: { [REQUESTED_BY_ANNOTATION]: 'alice' } })
    const before = world.keys.signed.length
    await settle(world, operator, HAND_OVER, 3)
    expect(says(world), JSON.stringify(statusOf(world))).toBe('False ApprovalRequired')
    expect(world.keys.signed).toHaveLength(before)
    const plan = readPlan(statusOf(world)?.plan)
    if (plan === undefined) throw new Error('there is no plan')
    expect(plan).toMatchObject({ purpose: 'SolanaAuthorization', newStakeAuthority: nextPayer, newWithdrawAuthority: nextWithdrawer })
    world.approvals.approve(plan, 'alice')
    await settle(world, operator, HAND_OVER, 2)
    expect(handOvers(world)).toEqual([])
    world.approvals.approve(plan, 'bob')
    await settle(world, operator)
    expect(says(world), JSON.stringify(statusOf(world))).toBe('True Succeeded')
    expect(statusOf(world)?.plan).toBeUndefined()
  })
})

test('where withdrawals have to be approved, so has a hand-over of the withdraw authority, and one of the stake authority has not', async () => {
  const { world, operator } = await twoPairs()
  const approval = { by: [{ user: 'bob' }], count: 1, validFor: '7d', kinds: ['SolanaWithdrawal'] }
  for (const name of ['payer', 'withdrawer']) world.editPolicy({ approval }, name)
  const made = { annotations: { [REQUESTED_BY_ANNOTATION]: 'alice' } }
  world.addAuthorization({ stakeAuthority: { signer: 'payer-2' } }, 'team-a/stake', made)
  await settle(world, operator, 'team-a/stake')
  expect(says(world, 'team-a/stake'), JSON.stringify(statusOf(world, 'team-a/stake'))).toBe('True Succeeded')
  world.addAuthorization({ withdrawAuthority: { signer: 'withdrawer-2' } }, HAND_OVER, made)
  await settle(world, operator, HAND_OVER, 3)
  expect(says(world)).toBe('False ApprovalRequired')
  expect(handOvers(world)).toEqual([`authorize-staker ${nextPayer}`])
})

test.each([
  ['stake', { stakeAuthority: { signer: 'payer-2' } }],
  ['withdraw', { withdrawAuthority: { signer: 'withdrawer-2' } }],
] as const)(
  'where deactivations have to be approved, so has a hand-over of the %s authority, whose new key may be asked for none',
  async (_role, spec) => {
    const { world, operator } = await twoPairs()
    const approval = { by: [{ user: 'bob' }], count: 1, validFor: '7d', kinds: ['SolanaDeactivation'] }
    for (const name of ['payer', 'withdrawer']) world.editPolicy({ approval }, name)
    world.addAuthorization(spec, HAND_OVER, { annotations: { [REQUESTED_BY_ANNOTATION]: 'alice' } })
    await settle(world, operator, HAND_OVER, 3)
    expect(says(world)).toBe('False ApprovalRequired')
    expect(handOvers(world)).toEqual([])
  },
)

describe('only planned', () => {
  test('it is verified and shown, and nothing is written or signed; applied, it is done once', async () => {
    const { world, operator } = await twoPairs()
    const before = world.keys.signed.length
    world.addAuthorization({ ...both, mode: 'Plan' })
    await settle(world, operator, HAND_OVER, 3)
    expect(statusOf(world)).toMatchObject({ phase: 'Planned', to: { withdrawAuthority: nextWithdrawer } })
    expect(readPlan(statusOf(world)?.plan)).toMatchObject({
      purpose: 'SolanaAuthorization',
      newStakeAuthority: nextPayer,
      newWithdrawAuthority: nextWithdrawer,
    })
    expect(operator.authorizationRecords(HAND_OVER)).toEqual([])
    expect(world.keys.signed).toHaveLength(before)
    world.authorizations.edit(HAND_OVER, (one) => ({ ...one, spec: { ...one.spec, mode: 'Apply' } }))
    await settle(world, operator)
    expect(says(world), JSON.stringify(statusOf(world))).toBe('True Succeeded')
    expect(statusOf(world)?.plan).toBeUndefined()
    expect(handOvers(world)).toEqual(bothDone)
  })

  test('set to Plan at any call of its life, it is handed over once or not at all, and once in the end', {
    tags: 'whole',
    timeout: 60_000,
  }, async () => {
    let calls = 0
    const counting =
      (tell: (count: number) => void): Around =>
      (point) =>
        void (/^before (\w+\.mergePatch|\w+\.create|chain\.sendTransaction|keys\.signMessage)/.test(point) && tell(++calls))
    const life = await twoPairs()
    life.world.addAuthorization(both)
    await settle(life.world, life.world.start(counting(() => {})))
    const all = calls
    expect(all).toBeGreaterThan(8)
    let unsigned = 0
    for (let at = 1; at <= all; at++) {
      const { world } = await twoPairs()
      world.addAuthorization(both)
      calls = 0
      const operator = world.start(
        counting((count) => {
          if (count === at) world.authorizations.edit(HAND_OVER, (one) => ({ ...one, spec: { ...one.spec, mode: 'Plan' } }))
        }),
      )
      await settle(world, operator, HAND_OVER, 3)
      if (handOvers(world).length === 0) unsigned += 1
      world.authorizations.edit(HAND_OVER, (one) => ({ ...one, spec: { ...one.spec, mode: 'Apply' } }))
      world.cluster.expire()
      await settle(world, world.start())
      expect(says(world), `at call ${at}: ${JSON.stringify(statusOf(world))}`).toBe('True Succeeded')
      expect(handOvers(world), `at call ${at}`).toEqual(bothDone)
    }
    expect(unsigned).toBeGreaterThan(2)
  })
})

describe('to an address that no signer has', () => {
  test('confirmed, it is done, and the operator signs nothing more for the stake; a signer of that key has it go on', async () => {
    const { world, operator } = await twoPairs()
    world.signers.vanish('withdrawer-2')
    world.addAuthorization({ withdrawAuthority: { address: nextWithdrawer }, acceptUnproven: true })
    await settle(world, operator)
    expect(says(world), JSON.stringify(statusOf(world))).toBe('True Succeeded')
    await world.visit(operator)
    expect(world.ready(), world.explain()).toBe(true)
    const before = world.keys.signed.length
    world.editSpec({ desiredState: 'Withdrawn' })
    await world.settle(operator)
    expect(world.stalled()).toBe('AuthorityHandedOver')
    expect(world.keys.signed).toHaveLength(before)

    world.addSigner('withdrawer-2', nextWithdrawer)
    world.addAuthorization({ withdrawAuthority: { signer: 'withdrawer-2' } }, 'team-a/known')
    await settle(world, operator, 'team-a/known')
    expect(says(world, 'team-a/known'), JSON.stringify(statusOf(world, 'team-a/known'))).toBe('True Succeeded')
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.cluster.balance(nextWithdrawer)).toBe(10n ** 9n + AMOUNT)
  })
})

describe('where the stake authority is with an address that no signer has', () => {
  async function givenAway() {
    const { world, operator, account } = await twoPairs()
    world.editPolicy({ allowedSuccessors: [testAddress(9), nextPayer] }, 'payer')
    world.addAuthorization({ stakeAuthority: { address: testAddress(9) as never }, acceptUnproven: true }, 'team-a/away')
    await settle(world, operator, 'team-a/away')
    expect(says(world, 'team-a/away')).toBe('True Succeeded')
    world.editSpec({ desiredState: 'Withdrawn' })
    await world.settle(operator)
    expect(world.stalled()).toBe('AuthorityHandedOver')
    expect(world.condition('Stalled')?.message).toMatch(
      /only the withdraw authority withdraws it\. To have the operator go on, create a SolanaStakeAuthorization/,
    )
    return { world, operator, account, before: world.keys.signed.length }
  }

  test('the withdraw authority takes it back, and pays for that; then the stake is withdrawn', async () => {
    const { world, operator, before } = await givenAway()
    world.addAuthorization({ stakeAuthority: { signer: 'payer-2' } }, 'team-a/back')
    await settle(world, operator, 'team-a/back')
    expect(says(world, 'team-a/back'), JSON.stringify(statusOf(world, 'team-a/back'))).toBe('True Succeeded')
    expect(statusOf(world, 'team-a/back')).toMatchObject({ from: { stakeAuthority: testAddress(9) }, to: { stakeAuthority: nextPayer } })
    expect(keysSince(world, before)).toEqual(['payer-2', 'withdrawer'])
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.cluster.balance(withdrawer)).toBeGreaterThan(AMOUNT)
  })

  test('not to a signer that the policy of the withdraw authority does not name', async () => {
    const { world, operator, before } = await givenAway()
    world.editPolicy({ allowedSuccessors: [] }, 'withdrawer')
    world.addAuthorization({ stakeAuthority: { signer: 'payer-2' } }, 'team-a/back')
    await settle(world, operator, 'team-a/back', 3)
    expect(says(world, 'team-a/back')).toBe('False SuccessorNotAllowed')
    expect(world.keys.signed).toHaveLength(before)
  })

  test('what was replaced past the operator is taken in, and nothing is signed', async () => {
    const { world, operator, account, before } = await givenAway()
    world.cluster.edit(account, (data) => data.set(decodeBase58(nextPayer) ?? [], 12))
    world.cluster.settle()
    world.addAuthorization({ stakeAuthority: { signer: 'payer-2' } }, 'team-a/back')
    await settle(world, operator, 'team-a/back')
    expect(says(world, 'team-a/back'), JSON.stringify(statusOf(world, 'team-a/back'))).toBe('True Succeeded')
    expect(world.keys.signed).toHaveLength(before)
  })
})

test('of a stake that is held for its money while it is deleted, it says the way out, which is one', async () => {
  const { world, operator } = await twoPairs()
  const { stakeId = '' } = world.status()
  world.stakes.remove(KEY)
  await world.visit(operator)
  world.addAuthorization(both)
  await settle(world, operator, HAND_OVER, 2)
  expect(says(world)).toBe('False Deleting')
  const [namespace, name = ''] = KEY.split('/')
  expect(readyOf(world)?.message).toContain(
    `kubectl annotate solanastake ${name} -n ${namespace} staking.dev/confirm-delete=${name}. Then create it anew under this name with spec.adopt.stakeId: ${stakeId}`,
  )
  world.annotate({ 'staking.dev/confirm-delete': name })
  await world.visit(operator)
  expect(world.stakes.get(KEY)).toBeUndefined()
  world.addStake({ adopt: { stakeId } })
  await world.settle(operator)
  await settle(world, operator)
  expect(says(world), JSON.stringify(statusOf(world))).toBe('True Succeeded')
  expect(handOvers(world)).toEqual(bothDone)
  await world.settle(operator)
  await withdrawn(world, operator)
})

describe('what others do', () => {
  test('an authority that was changed past the operator is told and not trusted, by the stake and by a hand-over', async () => {
    const { world, operator, account } = await twoPairs()
    const before = world.keys.signed.length
    world.cluster.edit(account, (data) => data.set(Buffer.alloc(32, 9), 44))
    world.cluster.settle()
    world.addAuthorization(both)
    await visit(operator)
    expect(says(world)).toBe('False AuthorityChanged')
    expect(world.keys.signed).toHaveLength(before)
  })

  test('what somebody writes to status is put right, and decides nothing', async () => {
    const { world, operator } = await twoPairs()
    world.addAuthorization(both)
    world.authorizations.edit(HAND_OVER, (one) => ({
      ...one,
      status: {
        stakeAccount: testAddress(40),
        to: { withdrawAuthority: testAddress(41) },
        transaction: { attempt: 1, state: 'Confirmed', slot: 3, landedSignature: '2'.repeat(80) },
      } as never,
    }))
    world.editStatus((status) => ({ ...status, handOver: { withdrawSigner: 'withdrawer-2', slot: 1 }, withdrawAuthority: nextWithdrawer }))
    await world.visit(operator)
    expect(world.status().handOver).toBeUndefined()
    await settle(world, operator)
    await visit(operator)
    await settle(world, operator)
    expect(handOvers(world), JSON.stringify(statusOf(world))).toEqual(bothDone)
    expect(statusOf(world)).toMatchObject({ to: { withdrawAuthority: nextWithdrawer } })
  })

  test('the signer that it goes to is made again with another key meanwhile: nothing else is signed', async () => {
    const { world, operator } = await twoPairs()
    // Even where the other key might have it.
    world.editPolicy({ allowedSuccessors: [nextWithdrawer, testAddress(7)] }, 'withdrawer')
    world.cluster.state.forgetful = true
    world.addAuthorization(both)
    await visit(operator)
    world.signers.vanish('withdrawer-2')
    world.keys.mount('withdrawer-2', 7)
    world.addSigner('withdrawer-2', testAddress(7))
    world.cluster.expire()
    world.cluster.state.forgetful = false
    const before = world.keys.signed.length
    for (let round = 0; round < 4; round++) {
      await visit(operator)
      world.cluster.settle()
    }
    expect(says(world)).toBe('False SignerChanged')
    expect(world.keys.signed).toHaveLength(before)
  })
})

describe('deleted', () => {
  test('before anything was signed, it goes at once', async () => {
    const { world, operator } = await twoPairs()
    world.addAuthorization({ ...both, suspend: true })
    await visit(operator)
    world.authorizations.remove(HAND_OVER)
    await visit(operator)
    expect(world.authorizations.get(HAND_OVER)).toBeUndefined()
  })

  test('in flight, it stays until that is certain, and what landed counts', async () => {
    const { world, operator } = await twoPairs()
    world.addAuthorization(both)
    await visit(operator)
    world.authorizations.remove(HAND_OVER)
    await visit(operator)
    expect(readyOf(world)?.message).toContain('may still land')
    for (let round = 0; round < 4 && world.authorizations.get(HAND_OVER) !== undefined; round++) {
      world.cluster.settle()
      await visit(operator)
    }
    expect(world.authorizations.get(HAND_OVER)).toBeUndefined()
    await world.visit(operator)
    expect(world.status()).toMatchObject({ withdrawAuthority: nextWithdrawer })
    await withdrawn(world, operator)
  })

  test('its record stays as long as the stake holds money, whoever deletes it', async () => {
    const { world, operator } = await twoPairs()
    world.addAuthorization(both)
    await settle(world, operator)
    const [record] = operator.authorizationRecords(HAND_OVER)
    const name = record?.metadata.name ?? ''
    world.authorizations.remove(HAND_OVER)
    await visit(operator)
    expect(world.authorizations.get(HAND_OVER)).toBeUndefined()
    const records = world.collection<never>(stakingTransaction)
    records.remove(name)
    await operator.visitRecord(name)
    expect(records.get(name), 'the record').toBeDefined()
    await withdrawn(world, operator)
    world.cluster.expire()
    await operator.visitRecord(name)
    expect(records.get(name)).toBeUndefined()
  })
})

describe('ended and restored', () => {
  const changes = /^(before|after) (\w+\.mergePatch|\w+\.create|chain\.sendTransaction|keys\.signMessage)/
  const endAt = (fatal: number): Around => {
    let passed = 0
    return (point, operator) => {
      if (changes.test(point) && passed++ === fatal) operator.kill()
    }
  }
  async function live(world: SolanaWorld, operator: Operator): Promise<void> {
    await settle(world, operator)
    if (operator.killed) return
    expect(says(world), JSON.stringify(statusOf(world))).toBe('True Succeeded')
    for (const desiredState of ['Inactive', 'Withdrawn'] as const) {
      if (world.stakes.get(KEY)?.spec.desiredState === 'Active' || desiredState === 'Withdrawn') world.editSpec({ desiredState })
      await world.settle(operator)
      if (operator.killed) return
      expect(world.ready(), world.explain()).toBe(true)
    }
  }

  test('at every point: it is handed over once, and the money is where the new key says', { tags: 'whole', timeout: 120_000 }, async () => {
    const points: string[] = []
    let handedOverAt = 0
    {
      const { world } = await twoPairs()
      world.addAuthorization(both)
      const operator = world.start((point) => void (changes.test(point) && points.push(point)))
      await settle(world, operator)
      handedOverAt = points.length
      await live(world, operator)
    }
    expect(handedOverAt).toBeGreaterThan(10)
    expect(points.length).toBeGreaterThan(handedOverAt + 10)
    // Once it is handed over, the steps of the stake are like any other's: every third point shows that they go on under the new key.
    for (let fatal = 0; fatal < points.length; fatal += fatal < handedOverAt ? 1 : 3) {
      const { world } = await twoPairs()
      world.addAuthorization(both)
      try {
        await live(world, world.start(endAt(fatal)))
        await live(world, world.start())
        expect(handOvers(world)).toEqual(bothDone)
        expect(world.cluster.landed().every(({ failure }) => failure === undefined)).toBe(true)
        expect(world.cluster.balance(nextWithdrawer)).toBe(10n ** 9n + AMOUNT)
      } catch (error) {
        throw new Error(`after an end at ${points[fatal]}`, { cause: error })
      }
    }
  })

  test('its record is lost with etcd after it landed: the chain says that it is done, and nothing is signed again', async () => {
    const { world, operator } = await twoPairs()
    world.addAuthorization(both)
    await settle(world, operator)
    const [record] = operator.authorizationRecords(HAND_OVER)
    world.collection<never>(stakingTransaction).vanish(record?.metadata.name ?? '')
    const before = world.keys.signed.length
    const next = world.start()
    // Until its resource is looked at, the stake tells of it and signs nothing.
    await settle(world, next)
    await visit(next)
    world.editStatus((status) => ({ ...status }))
    await world.visit(next)
    expect(world.keys.signed).toHaveLength(before)
    expect(handOvers(world)).toEqual(bothDone)
    expect(world.status()).toMatchObject({ withdrawAuthority: nextWithdrawer })
    await withdrawn(world, next)
  })

  test('a cluster that is made anew from Git adopts the stake, and takes the hand-over in: nothing is signed', async () => {
    const { world, operator } = await twoPairs()
    world.addAuthorization(both)
    await settle(world, operator)
    const { stakeId = '' } = world.status()
    const records = world.collection<never>(stakingTransaction)
    for (const record of records.list() as readonly { metadata: { name: string } }[]) records.vanish(record.metadata.name)
    world.stakes.vanish(KEY)
    world.authorizations.vanish(HAND_OVER)
    // Of the old signers the objects, without their keys.
    for (const name of ['payer', 'withdrawer']) world.keys.break(name, 'missing')
    const before = world.keys.signed.length
    const next = world.start()
    world.addStake({ adopt: { stakeId } })
    await world.visit(next)
    expect(world.stalled()).toBe('AuthorityChanged')
    world.addAuthorization(both)
    for (let round = 0; round < 4; round++) {
      await world.visit(next)
      await visit(next)
    }
    await world.settle(next)
    expect(says(world), JSON.stringify(statusOf(world))).toBe('True Succeeded')
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.keys.signed).toHaveLength(before)
    await withdrawn(world, next)
    expect(world.cluster.balance(nextWithdrawer)).toBe(10n ** 9n + AMOUNT)
  })

  test('handed over and back, and the log lost: the old hand-over is not done once more before somebody has looked', async () => {
    const { world, operator } = await twoPairs()
    world.editPolicy({ allowedSuccessors: [withdrawer] }, 'withdrawer-2')
    const there = { withdrawAuthority: { signer: 'withdrawer-2' } }
    const back = { withdrawAuthority: { signer: 'withdrawer' } }
    world.addAuthorization(there, 'team-a/there')
    await settle(world, operator, 'team-a/there')
    world.addAuthorization(back, 'team-a/back')
    await settle(world, operator, 'team-a/back')
    const done = [`authorize-withdrawer ${nextWithdrawer}`, `authorize-withdrawer ${withdrawer}`]
    expect(handOvers(world)).toEqual(done)
    const { stakeId = '' } = world.status()
    const records = world.collection<never>(stakingTransaction)
    for (const record of records.list() as readonly { metadata: { name: string } }[]) records.vanish(record.metadata.name)
    world.stakes.vanish(KEY)
    for (const key of ['team-a/there', 'team-a/back']) world.authorizations.vanish(key)

    const next = world.start()
    world.addStake({ adopt: { stakeId } })
    world.addAuthorization(there, 'team-a/there')
    world.addAuthorization(back, 'team-a/back')
    await world.settle(next)
    for (const key of ['team-a/back', 'team-a/there']) await settle(world, next, key, 4)
    expect(says(world, 'team-a/back')).toBe('True Succeeded')
    expect(says(world, 'team-a/there'), JSON.stringify(statusOf(world, 'team-a/there'))).toBe('False HandedOverBefore')
    expect(handOvers(world)).toEqual(done)
    await world.visit(next)
    expect(world.ready(), world.explain()).toBe(true)

    // Somebody has looked, and wants it.
    const [record] = next.authorizationRecords('team-a/there')
    world.collection<KubeObject>(stakingTransaction).edit(record?.metadata.name ?? '', (one) => ({
      ...one,
      metadata: { ...one.metadata, annotations: { 'staking.dev/allow-remakes': '1' } },
    }))
    await settle(world, next, 'team-a/there')
    expect(says(world, 'team-a/there')).toBe('True Succeeded')
    await world.visit(next)
    await withdrawn(world, next)
    expect(world.cluster.balance(nextWithdrawer)).toBe(10n ** 9n + AMOUNT)
  })

  const noAnswer = () => new SolanaError('unavailable', 'no answer')
  test.each([1, 2, 3, 4])(
    'whatever befalls two leaders, it is handed over once and withdrawn by the new key (seed %i)',
    { tags: 'whole', timeout: 60_000 },
    async (seed) => {
      const { world } = await twoPairs()
      world.addAuthorization(both)
      const random = seededRandom(7000 + seed)
      const log: string[] = []
      const around = misfortune({ random, log, most: 60, ends: 0.005, fails: 0.02, ofChain: noAnswer })
      const leaders = [world.start(around), world.start(around)]
      const isOver = () => world.ready() && world.status().phase === 'Withdrawn'
      for (let round = 0; round < 200 && !isOver(); round++) {
        const calm = round > 80
        world.cluster.state.forgetful = !calm && random() < 0.2
        if (!calm && random() < 0.1) world.cluster.forget()
        if (!calm && random() < 0.1) world.cluster.expire()
        if (!calm && random() < 0.05) world.authorizations.edit(HAND_OVER, ({ status: _lost, ...one }) => one)
        if (!calm && random() < 0.05) world.editStatus(() => undefined)
        for (const { caches } of leaders) {
          if (!calm && random() < 0.1) caches.log.frozen = true
          else caches.log.thaw()
        }
        await Promise.all(
          leaders.flatMap((leader) => [
            leader.visit(KEY).catch(() => undefined),
            leader.visitAuthorization(HAND_OVER).catch(() => undefined),
          ]),
        )
        for (const [index, leader] of leaders.entries()) if (leader.killed) leaders[index] = world.start(around)
        world.cluster.produce(1)
        world.clock.advance(60_000)
        if (round === 2) world.editSpec({ desiredState: 'Inactive' })
        const { phase } = world.status()
        if (phase === 'Activating' || phase === 'Deactivating') world.cluster.nextEpoch()
        if (readyOf(world)?.status === 'True' && phase === 'Inactive') world.editSpec({ desiredState: 'Withdrawn' })
      }
      try {
        expect(isOver(), `${world.explain()} ${JSON.stringify(statusOf(world))}`).toBe(true)
        expect(handOvers(world).filter((one) => !one.endsWith('failed'))).toEqual(bothDone)
        expect(world.cluster.balance(nextWithdrawer)).toBe(10n ** 9n + AMOUNT)
      } catch (error) {
        throw new Error(`seed ${seed}: ${(error as Error).message}\n${log.join('\n')}`)
      }
    },
  )
})

const ofOther = { hash: 'x'.repeat(88), kind: 'Call', lastValidBlockHeight: 1_000_000, sinceSlot: 0, at: '2030-01-01T00:00:00Z' } as const

test.each<{ what: string; status: StakingTransactionStatus }>([
  {
    what: 'was handed over',
    status: { state: 'Landed', attempts: [ofOther], outcome: { is: 'Landed', hash: ofOther.hash, blockNumber: 1 } },
  },
  { what: 'may be handed over', status: { state: 'Open', attempts: [ofOther] } },
])('a hand-over whose stake of before $what does not hand over the one that has its name now', async ({ status }) => {
  const { world, operator } = await twoPairs()
  world.keys.break('withdrawer-2', 'missing')
  world.addAuthorization(both)
  await visit(operator)
  expect(says(world)).toBe('False KeyMissing')
  const [record] = operator.authorizationRecords(HAND_OVER)
  if (record === undefined) throw new Error('no record was made')
  const spec = { ...record.spec, subject: testAddress(77) }
  world.collection<StakingTransaction & KubeObject>(stakingTransaction).create({ metadata: { name: nameBySpec(spec) }, spec, status })
  world.keys.mend('withdrawer-2')
  for (let look = 0; look < 3; look++) {
    await operator.visitRecord(record.metadata.name)
    world.cluster.settle()
    world.clock.advance(60_000)
  }
  expect(handOvers(world)).toEqual([])
  // Deleted, it stays until nothing of either may land.
  world.authorizations.remove(HAND_OVER)
  await visit(operator)
  expect(world.authorizations.get(HAND_OVER) === undefined).toBe(status.outcome !== undefined)
})

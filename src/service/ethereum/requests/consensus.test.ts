import { describe, expect, test } from 'vitest'
import {
  type BeaconChain,
  BeaconError,
  type BeaconSpec,
  type BeaconValidator,
  type PendingPartialWithdrawal,
  type StateAt,
  type WithdrawalView,
} from '../../../chains/ethereum/beacon.ts'
import { ChainError, type ContractReads, type EthereumChain, type Hex } from '../../../chains/ethereum/chain.ts'
import type { KnownPlace, QueueReads } from '../../../chains/ethereum/request-queue.ts'
import { encodeRequestCalldata, type LoggedRequest, type ValidatorRequest } from '../../../chains/ethereum/requests.ts'
import { createContractQueue } from '../../../chains/ethereum/testing.ts'
import { gwei } from '../../../lib/amounts.ts'
import { judgeRequest } from './consensus.ts'
import { finalWith, type Verdict } from './verdict.ts'

const never = new AbortController().signal
const source: Hex = '0x52908400098527886e0f7030069857d2e4169ee7'
const pubkey: Hex = `0x${'ab'.repeat(48)}`
const spec: BeaconSpec = {
  slotDurationMs: 12_000,
  slotsPerEpoch: 32,
  shardCommitteePeriod: 256,
  minValidatorWithdrawabilityDelay: 256,
  maxSeedLookahead: 4,
  minActivationBalanceGwei: gwei(32_000_000_000n),
  maxEffectiveBalanceElectraGwei: gwei(2_048_000_000_000n),
  pendingPartialWithdrawalsLimit: 1_000,
  depositChainId: 1,
  depositContractAddress: source,
}
const validator: BeaconValidator = {
  index: 7,
  pubkey,
  status: 'active_ongoing',
  balanceGwei: gwei(40_000_000_000n),
  effectiveBalanceGwei: gwei(40_000_000_000n),
  withdrawalCredentials: `0x02${'00'.repeat(11)}${source.slice(2)}`,
  slashed: false,
  activationEligibilityEpoch: 1,
  activationEpoch: 5,
  exitEpoch: undefined,
  withdrawableEpoch: undefined,
}
const view = (more: { validator?: Partial<BeaconValidator>; queue?: PendingPartialWithdrawal[] } = {}): WithdrawalView => ({
  slot: 0,
  block: { slot: 0, root: '0x' },
  epoch: 1_000,
  validator: { ...validator, ...more.validator },
  pendingPartialWithdrawals: more.queue ?? [],
  pendingConsolidations: [],
})
const exiting = view({ validator: { status: 'active_exiting', exitEpoch: 1_005, withdrawableEpoch: 1_261 } })
const queued = (amount: bigint, withdrawableEpoch = 1_300) =>
  view({ queue: [{ validatorIndex: 7, amountGwei: gwei(amount), withdrawableEpoch }] })
const exit: ValidatorRequest = { kind: 'exit', pubkey }
const withdrawal: ValidatorRequest = { kind: 'withdrawal', pubkey, amountGwei: gwei(3_000_000_000n) }

/** The block is that of slot 32000, in epoch 1000. */
const slot = 32_000
const rootAt = (at: number): Hex => `0xbb${at.toString(16).padStart(62, '0')}`
const blockHash = (number: bigint): Hex => `0x${number.toString(16).padStart(64, '0')}`
const transactionHash: Hex = `0x${'77'.repeat(32)}`
const log = (logged: LoggedRequest, hash: Hex = `0x${'88'.repeat(32)}`) => ({
  topics: [],
  data: `${logged.source}${encodeRequestCalldata(logged.request).slice(2)}` as Hex,
  transactionHash: hash,
})
const strangers = (count: number): LoggedRequest[] =>
  Array.from({ length: count }, () => ({
    source: `0x${'cc'.repeat(20)}` as const,
    request: { kind: 'exit', pubkey: `0x${'cd'.repeat(48)}` as const },
  }))

interface Given {
  readonly sender?: Hex
  readonly stateAt: (at: StateAt) => WithdrawalView
  /** Requests of block 9 before and after ours; block 9 is that of `slot`, and each later block is a slot later. */
  readonly ahead?: readonly LoggedRequest[]
  readonly behind?: readonly LoggedRequest[]
  readonly latest?: bigint
  readonly storage?: 'not kept' | 'never moves' | 'refused'
  /** Nodes keep the states of so many latest blocks. */
  readonly keeps?: bigint
  readonly known?: KnownPlace
  readonly gloasForkEpoch?: number
  readonly missed?: readonly number[]
  /** Slots that have another block by the time their state is read. */
  readonly reorganised?: readonly number[]
  readonly head?: number
  /** The execution block that the beacon chain's block of a slot names, where it names another than the execution layer has there, or none. */
  readonly names?: (at: number) => Hex | undefined
  /** Slots in which the beacon nodes have no block, though the execution layer has. */
  readonly lacks?: readonly number[]
  /** Withdrawals of this validator by its owner, as the contract logged them; `ours` is this one. Default: this one alone. */
  readonly logs?: readonly (bigint | 'ours')[]
}

async function judge(request: ValidatorRequest, given: Given) {
  const { stateAt, sender = source, latest = 1_000n, missed = [] } = given
  const ours: LoggedRequest = { source: sender, request }
  const inBlock = [...(given.ahead ?? []), ours, ...(given.behind ?? [])]
  const queue = createContractQueue()
  queue.block(9n, inBlock)
  const asked: StateAt[] = []
  const unused = () => Promise.reject(new Error('not called'))
  const beacon: BeaconChain = {
    network: 'devnet',
    spec: async () => ({ ...spec, gloasForkEpoch: given.gloasForkEpoch }),
    genesis: async () => ({ genesisTime: 1_000, genesisValidatorsRoot: '0x', genesisForkVersion: '0x' }),
    head: unused,
    validators: unused,
    depositView: unused,
    pendingDeposits: unused,
    standing: unused,
    executionOf: async ({ slot: at }) => {
      const named = given.names === undefined ? undefined : given.names(at)
      return { carries: named, confirms: named }
    },
    blockAt: async (at) => {
      if (at > (given.head ?? slot + 100)) throw new BeaconError('behind', `slot ${at} is ahead`)
      return missed.includes(at) ? undefined : { slot: at, root: rootAt(at) }
    },
    withdrawalView: async (_pubkey, at) => {
      asked.push(at)
      const last = at === 'head' || at === 'finalized' ? slot + 100 : at
      if (given.lacks?.includes(last)) return { ...stateAt(at), block: { slot: last - 1, root: rootAt(last - 1) } }
      return { ...stateAt(at), block: { slot: last, root: given.reorganised?.includes(last) ? `0x${'ee'.repeat(32)}` : rootAt(last) } }
    },
  }
  const reads: ContractReads & QueueReads = {
    call: unused,
    blockTime: async () => 1_000 + slot * 12,
    blockAt: async (at) => {
      const number = typeof at === 'bigint' ? at : BigInt(at)
      if (number > latest) return undefined
      return { number, hash: blockHash(number), parentHash: blockHash(number - 1n), timestamp: 1_000 + (slot + Number(number - 9n)) * 12 }
    },
    storageAt: async (_address, slots, hash) => {
      if (given.storage === 'refused') throw new ChainError('unavailable', 'the node cannot answer now')
      if (given.storage === 'not kept') return undefined
      if (given.storage === 'never moves') return slots.map((at) => (at === 3n && BigInt(hash) >= 9n ? 1n : 0n))
      if (given.keeps !== undefined && BigInt(hash) <= latest - given.keeps) return undefined
      return queue.storageAfter(BigInt(hash), slots)
    },
    logsIn: async (_address, hash) =>
      BigInt(hash) === 9n ? inBlock.map((one) => log(one, one === ours ? transactionHash : undefined)) : [],
    countLogs: async (_address, from) => (from <= 9n ? inBlock.length : 0),
  }
  const mined = { logged: ours, blockNumber: 9n, blockHash: blockHash(9n), transactionHash, latest, known: given.known }
  const requestLogs: EthereumChain['requestLogs'] = async () =>
    (given.logs ?? ['ours']).map((amount, number) => ({
      amountGwei: amount !== 'ours' ? amount : request.kind === 'exit' ? 0n : request.amountGwei,
      transactionHash: amount === 'ours' ? transactionHash : (`0x${number.toString(16).padStart(64, '0')}` as const),
      blockNumber: 9n,
      blockHash: blockHash(9n),
    }))
  return { verdict: await judgeRequest({ beacon, reads, requestLogs }, mined, never), asked }
}
const paidOf = (verdict: Verdict): bigint | undefined => (verdict.status === 'accepted' ? verdict.payment?.amountGwei : undefined)
const changesAt = (from: number, after: WithdrawalView) => (at: StateAt) => (typeof at === 'number' && at >= from ? after : view())
const notKept = (head: WithdrawalView) => (at: StateAt) => {
  if (at === 'head') return head
  throw new BeaconError('state-not-kept', 'gone')
}
const stranger: Hex = `0x${'11'.repeat(20)}`

describe('a mined request', () => {
  test.each([
    { what: 'an exit', request: exit, after: exiting, reason: /epoch 1005.*1261/, paid: { withdrawableEpoch: 1_261 } },
    {
      what: 'a withdrawal',
      request: withdrawal,
      after: queued(3_000_000_000n),
      reason: /^3000000000 gwei can be paid from epoch 1300 on$/,
      paid: { payment: { amountGwei: 3_000_000_000n, withdrawableEpoch: 1_300 } },
    },
    {
      what: 'a withdrawal of less',
      request: withdrawal,
      after: queued(2_000_000_000n),
      reason: /^2000000000 gwei of the 3000000000 gwei that were asked for/,
      paid: { payment: { amountGwei: 2_000_000_000n, withdrawableEpoch: 1_300 } },
    },
  ])('is accepted when the state of its block shows it: $what', async ({ request, after, reason, paid }) => {
    const { verdict, asked } = await judge(request, { stateAt: changesAt(slot, after) })
    expect(verdict).toEqual({ status: 'accepted', reason: expect.stringMatching(reason), judgedAt: 9n, judgedBy: blockHash(9n), ...paid })
    expect(asked).toEqual([slot - 1, slot])
  })

  test('is dropped with the rule that it broke', async () => {
    const { verdict } = await judge(exit, { stateAt: () => view(), sender: stranger })
    expect(verdict).toEqual({
      status: 'dropped',
      rules: ['sender-not-withdrawal-address'],
      reason: expect.stringMatching(/^sender-not-withdrawal-address: .*0x1111/),
      judgedAt: 9n,
      judgedBy: blockHash(9n),
    })
  })

  test('that nothing came of, against no rule, is pending and never dropped', async () => {
    const { verdict } = await judge(exit, { stateAt: () => view() })
    expect(verdict).toEqual({ status: 'pending', cannotTell: true, reason: expect.stringContaining('neither an effect nor a rule') })
  })

  test.each([
    { code: 'behind' as const, expected: {} },
    { code: 'unavailable' as const, expected: { reason: expect.stringContaining('no answer') } },
    { code: 'wrong-network' as const, expected: { reason: expect.stringContaining('no answer') } },
  ])('is pending while the beacon chain is $code', async ({ code, expected }) => {
    const stateAt = () => {
      throw new BeaconError(code, 'no answer')
    }
    expect((await judge(exit, { stateAt })).verdict).toEqual({ status: 'pending', askAgain: true, cannotTell: true, ...expected })
  })

  test('is pending while the execution layer gives no answer', async () => {
    const { verdict } = await judge(exit, { stateAt: changesAt(slot, exiting), storage: 'refused' })
    expect(verdict).toEqual({ status: 'pending', askAgain: true, cannotTell: true, reason: expect.stringContaining('cannot answer now') })
  })
})

describe("in the contract's queue", () => {
  test('behind 140 others, a request waits for its turn, and is judged by the state of the block whose turn it is', async () => {
    const given = { ahead: strangers(140), stateAt: changesAt(slot + 8, exiting) }
    for (const latest of [9n, 16n]) {
      const { verdict, asked } = await judge(exit, { ...given, latest })
      expect(verdict).toEqual({
        status: 'pending',
        reason: expect.stringContaining('its turn is block 17'),
        place: { position: 140n, turn: 17n },
      })
      expect(asked).toEqual([])
    }
    const { verdict, asked } = await judge(exit, { ...given, latest: 17n })
    expect(verdict).toMatchObject({ status: 'accepted', judgedAt: 17n })
    expect(asked).toEqual([slot + 7, slot + 8])
  })

  test.each([2_100, 6_000])(
    'behind %i others its turn is after the states of its own block are gone, and it is judged then',
    async (others) => {
      const turn = 9n + BigInt(Math.floor(others / 16))
      const given = { ahead: strangers(others), keeps: 128n, stateAt: changesAt(slot + Number(turn - 9n), exiting) }
      const first = await judge(exit, { ...given, latest: 9n })
      expect(first.verdict).toMatchObject({ status: 'pending', place: { position: BigInt(others), turn } })
      const known = first.verdict.status === 'pending' ? first.verdict.place : undefined
      for (const latest of [turn - 1n, turn, turn + 100n]) {
        const { verdict } = await judge(exit, { ...given, latest, ...(known === undefined ? {} : { known }) })
        expect(verdict).toMatchObject(latest < turn ? { status: 'pending', place: known } : { status: 'accepted', judgedAt: turn })
      }
      // Also once the states of its turn are gone, by the slot of the block whose turn it was.
      const late = await judge(exit, { ...given, latest: turn + 1_000n, ...(known === undefined ? {} : { known }) })
      expect(late.verdict).toMatchObject({ status: 'accepted', judgedAt: turn })
    },
  )

  test('that was not seen until the states of its own block were gone, its place is told by what was logged after it', async () => {
    const given = { ahead: strangers(6_000), behind: strangers(50), keeps: 128n, stateAt: () => view() }
    const turn = 9n + 6_000n / 16n
    const { verdict, asked } = await judge(exit, { ...given, latest: 200n })
    expect(verdict).toMatchObject({ status: 'pending', place: { position: 6_000n, turn } })
    expect(asked).toEqual([])
    // When it has passed unseen, the states are asked, and nothing is concluded from their silence.
    expect((await judge(exit, { ...given, latest: turn + 2n })).verdict).toMatchObject({ status: 'pending', cannotTell: true })
  })

  test('a rule that it breaks while it waits says nothing: its turn counts', async () => {
    const young = view({ validator: { activationEpoch: 990 } })
    const { verdict } = await judge(exit, { ahead: strangers(140), stateAt: () => young, latest: 10n })
    expect(verdict.status).toBe('pending')
  })

  test('of two equal withdrawals of a validator in one turn, each is told its own', async () => {
    const ours: LoggedRequest = { source, request: withdrawal }
    const stateAt = changesAt(
      slot,
      view({
        validator: { balanceGwei: gwei(36_000_000_000n) },
        queue: [3n, 1n].map((eth) => ({ validatorIndex: 7, amountGwei: gwei(eth * 1_000_000_000n), withdrawableEpoch: 1_300 })),
      }),
    )
    expect(paidOf((await judge(withdrawal, { stateAt, behind: [ours] })).verdict)).toBe(3_000_000_000n)
    expect(paidOf((await judge(withdrawal, { stateAt, ahead: [ours] })).verdict)).toBe(1_000_000_000n)
  })

  test('of two equal withdrawals of a validator in neighbouring blocks, each is told its own', async () => {
    const ours: LoggedRequest = { source, request: withdrawal }
    const entry = (amountGwei: bigint) => ({ validatorIndex: 7, amountGwei: gwei(amountGwei), withdrawableEpoch: 1_300 })
    const stateAt = (at: StateAt) => {
      const queue = typeof at !== 'number' || at < slot ? [] : at === slot ? [entry(3_000_000_000n)] : [entry(3_000_000_000n), entry(1n)]
      return view({ queue })
    }
    expect(paidOf((await judge(withdrawal, { stateAt, behind: [...strangers(15), ours] })).verdict)).toBe(3_000_000_000n)
    const second = await judge(withdrawal, { stateAt, ahead: [ours, ...strangers(15)] })
    expect(second.verdict).toMatchObject({ payment: { amountGwei: 1n }, judgedAt: 10n })
  })

  test('that never moves, as on a chain without system calls, the states after its block are looked at', async () => {
    const seen = await judge(exit, { storage: 'never moves', stateAt: changesAt(slot + 3, exiting) })
    expect(seen.verdict).toMatchObject({ status: 'accepted' })
    const none = await judge(exit, { storage: 'never moves', stateAt: () => view() })
    expect(none.verdict).toEqual({ status: 'pending', cannotTell: true, reason: expect.stringContaining('8 slots') })
    expect(none.asked).toHaveLength(9)
  })

  test('an effect that is found some slots later is final when so many more blocks are', async () => {
    const { verdict } = await judge(exit, { storage: 'never moves', stateAt: changesAt(slot + 3, exiting) })
    expect(verdict.status === 'pending' ? undefined : finalWith(verdict)).toBe(12n)
    const next = await judge(exit, { storage: 'never moves', gloasForkEpoch: 1_000, stateAt: changesAt(slot + 3, exiting) })
    expect(next.verdict.status === 'pending' ? undefined : finalWith(next.verdict)).toBe(12n)
    const known = await judge(exit, { gloasForkEpoch: 1_000, stateAt: changesAt(slot + 1, exiting) })
    expect(known.verdict.status === 'pending' ? undefined : finalWith(known.verdict)).toBe(10n)
  })
})

describe('from Gloas on', () => {
  const gloas = { gloasForkEpoch: 1_000 }
  test('it is judged by the next block, whatever is missed between', async () => {
    const { verdict, asked } = await judge(exit, { ...gloas, missed: [slot + 1, slot + 2], stateAt: changesAt(slot + 3, exiting) })
    expect(verdict).toMatchObject({ status: 'accepted', judgedAt: 9n, processedBy: { slot: slot + 3, root: rootAt(slot + 3) } })
    expect(asked).toEqual([slot + 2, slot + 3])
  })
  test('it is judged anew when another block has come in the place of the next one', async () => {
    const { verdict } = await judge(exit, { ...gloas, reorganised: [slot + 1], stateAt: changesAt(slot + 1, exiting) })
    expect(verdict).toEqual({ status: 'pending', askAgain: true, cannotTell: true })
  })
  test.each([
    { what: 'the queue is not known', storage: 'not kept' as const },
    { what: 'the chain makes no system calls', storage: 'never moves' as const },
  ])('it is judged by the next block also where $what', async ({ storage }) => {
    const missed = Array.from({ length: 20 }, (_, number) => slot + 1 + number)
    const { verdict, asked } = await judge(exit, { ...gloas, storage, missed, stateAt: changesAt(slot + 21, exiting) })
    expect(verdict).toMatchObject({ status: 'accepted', processedBy: { slot: slot + 21, root: rootAt(slot + 21) } })
    expect(asked).toEqual([slot + 20, slot + 21])
  })
  test('a rule of its own slot says nothing where the next block is of another epoch, also on a chain without system calls', async () => {
    const stateAt = (at: StateAt) =>
      at === slot + 1
        ? { ...view({ validator: { activationEpoch: 745, exitEpoch: 1_006 } }), epoch: 1_001 }
        : view({ validator: { activationEpoch: 745 } })
    expect((await judge(exit, { ...gloas, storage: 'never moves', stateAt })).verdict.status).toBe('accepted')
  })
  test('of two withdrawals of a validator in neighbouring blocks, each is told by the block that processes it', async () => {
    const ours: LoggedRequest = { source, request: withdrawal }
    const entry = (amountGwei: bigint) => ({ validatorIndex: 7, amountGwei: gwei(amountGwei), withdrawableEpoch: 1_300 })
    // Block 9 is of `slot`, and processed in the next one; block 10 is of that, and processed two slots later, as one is missed.
    const stateAt = (at: StateAt) => {
      const since = typeof at === 'number' ? at - slot : -1
      return view({ queue: since < 1 ? [] : since < 3 ? [entry(3_000_000_000n)] : [entry(3_000_000_000n), entry(1n)] })
    }
    const first = await judge(withdrawal, { ...gloas, missed: [slot + 2], stateAt, behind: [...strangers(15), ours] })
    expect(first.verdict).toMatchObject({ payment: { amountGwei: 3_000_000_000n }, judgedAt: 9n, processedBy: { slot: slot + 1 } })
    const second = await judge(withdrawal, { ...gloas, missed: [slot + 2], stateAt, ahead: [ours, ...strangers(15)] })
    expect(second.verdict).toMatchObject({ payment: { amountGwei: 1n }, judgedAt: 10n, processedBy: { slot: slot + 3 } })
  })
  test('it waits for the next block', async () => {
    const { verdict } = await judge(exit, { ...gloas, missed: [slot + 1], head: slot + 1, stateAt: () => view() })
    expect(verdict).toEqual({ status: 'pending', askAgain: true, cannotTell: true })
  })
  test('its age is that of the epoch which processes it', async () => {
    const old = view({ validator: { activationEpoch: 745, exitEpoch: 1_006 } })
    const young = view({ validator: { activationEpoch: 745 } })
    const stateAt = (at: StateAt) => (at === slot + 1 ? { ...old, epoch: 1_001 } : young)
    expect((await judge(exit, { ...gloas, stateAt })).verdict.status).toBe('accepted')
  })
  test('a block of the fork before is judged by its own state', async () => {
    const { verdict, asked } = await judge(exit, { gloasForkEpoch: 1_001, stateAt: changesAt(slot, exiting) })
    expect(verdict.status).toBe('accepted')
    expect(asked).toEqual([slot - 1, slot])
  })
})

describe('of a beacon node that may follow another chain than the nodes of the execution layer', () => {
  const another: Hex = `0x${'fe'.repeat(32)}`
  const forks = [
    { fork: 'the forks before Gloas', more: {}, at: slot },
    { fork: 'Gloas', more: { gloasForkEpoch: 1_000 }, at: slot + 1 },
  ]
  const ways = [{}, { storage: 'not kept' as const }, { storage: 'never moves' as const }]
  test.each(forks)('the states say nothing where its block names another execution block ($fork)', async ({ more, at }) => {
    for (const way of ways) {
      for (const after of [exiting, view({ validator: { slashed: true, exitEpoch: 900 } })]) {
        const { verdict } = await judge(exit, { ...more, ...way, stateAt: changesAt(at, after), names: () => another })
        expect(verdict).toEqual({
          ...{ status: 'pending', askAgain: true, cannotTell: true },
          reason: expect.stringContaining('on another fork'),
        })
      }
    }
  })
  test.each(forks)('they count where it names the very one ($fork)', async ({ more, at }) => {
    const names = (asked: number) => (asked === at ? blockHash(9n) : another)
    expect((await judge(exit, { ...more, stateAt: changesAt(at, exiting), names })).verdict).toMatchObject({ status: 'accepted' })
  })
  test('what its head shows of a request whose states are gone says nothing either, where it names a block that the execution layer lacks', async () => {
    for (const { head, request } of [
      { head: exiting, request: exit },
      { head: queued(3_000_000_000n), request: withdrawal },
      { head: view({ validator: { withdrawalCredentials: `0x00${'00'.repeat(31)}` } }), request: exit },
    ]) {
      for (const way of [{}, { storage: 'not kept' as const }]) {
        const lost = await judge(request, { ...way, stateAt: notKept(head), names: () => another })
        expect(lost.verdict).toEqual({
          status: 'pending',
          askAgain: true,
          cannotTell: true,
          reason: expect.stringContaining('on another fork'),
        })
        const same = await judge(request, { ...way, stateAt: notKept(head), names: () => blockHash(500n) })
        expect(same.verdict.reason).toContain('any more')
      }
    }
  })
  test('they say nothing where it has no block in the slot of the execution block', async () => {
    for (const way of ways) {
      const { verdict } = await judge(exit, { ...way, stateAt: () => view(), sender: stranger, lacks: [slot] })
      expect(verdict).toMatchObject({ status: 'pending', reason: expect.stringContaining('has no block at slot 32000') })
    }
  })
})

describe('a mined request whose states are gone', () => {
  const gone = [{ storage: undefined }, { storage: 'not kept' as const }]
  test.each([
    { what: 'an exit that is under way', request: exit, head: exiting, status: 'accepted' },
    { what: 'a withdrawal that waits to be paid', request: withdrawal, head: queued(3_000_000_000n), status: 'accepted' },
    { what: 'a withdrawal that is not there any more', request: withdrawal, head: view(), status: 'pending' },
    { what: 'a withdrawal beside an older one', request: withdrawal, head: queued(3_000_000_000n, 1_200), status: 'pending' },
    { what: 'one from another address', request: exit, sender: stranger, head: view(), status: 'dropped' },
  ])('is told by the head, or not at all: $what', async ({ request, head, status, sender = source }) => {
    for (const { storage } of gone) {
      const { verdict } = await judge(request, { stateAt: notKept(head), sender, ...(storage === undefined ? {} : { storage }) })
      expect(verdict).toMatchObject({ status, reason: expect.stringContaining('any more') })
    }
  })

  const eth = 1_000_000_000n
  const entries = (...epochs: number[]) =>
    view({ queue: epochs.map((withdrawableEpoch) => ({ validatorIndex: 7, amountGwei: gwei(3n * eth), withdrawableEpoch })) })
  test.each([
    { what: 'one waits, and two of the same amount were made', head: entries(1_300), logs: ['ours', 3n * eth] as const, paid: undefined },
    {
      what: 'one waits, and another of more may have been cut to it',
      head: entries(1_300),
      logs: [5n * eth, 'ours'] as const,
      paid: undefined,
    },
    { what: 'two wait, and only one was made lately', head: entries(1_300, 1_301), logs: ['ours'] as const, paid: undefined },
    { what: 'one waits, and no node shows the log', head: entries(1_300), logs: [] as const, paid: undefined },
    { what: 'two wait, and two were made: the first', head: entries(1_300, 1_301), logs: ['ours', 3n * eth] as const, paid: 1_300 },
    { what: 'two wait, and two were made: the second', head: entries(1_300, 1_301), logs: [3n * eth, 'ours'] as const, paid: 1_301 },
    { what: 'one waits, and others are smaller, or exits', head: entries(1_300), logs: [2n * eth, 0n, 'ours'] as const, paid: 1_300 },
    { what: 'one waits that began before it', head: entries(1_260), logs: ['ours'] as const, paid: undefined },
  ])('is not taken for another of the same amount: $what', async ({ head, logs, paid }) => {
    for (const { storage } of gone) {
      const { verdict } = await judge(withdrawal, { stateAt: notKept(head), logs, ...(storage === undefined ? {} : { storage }) })
      expect(verdict).toMatchObject(
        paid === undefined ? { status: 'pending', cannotTell: true } : { status: 'accepted', payment: { withdrawableEpoch: paid } },
      )
    }
  })

  test('is not taken for another of the same amount where only the queue of the contract is gone', async () => {
    const given = { storage: 'not kept' as const, stateAt: changesAt(slot + 1, queued(3n * eth)) }
    expect((await judge(withdrawal, given)).verdict).toMatchObject({ status: 'accepted' })
    expect((await judge(withdrawal, { ...given, logs: ['ours', 3n * eth] })).verdict).toMatchObject({ status: 'pending', cannotTell: true })
  })

  test.each([
    { what: 'that was under way before it', more: { exitEpoch: 1_004 }, expected: { status: 'dropped', rules: ['already-exiting'] } },
    { what: 'that may be its own', more: { exitEpoch: 1_005 }, expected: { status: 'accepted' } },
    { what: 'by a slashing before it', more: { exitEpoch: 1_004, slashed: true }, expected: { status: 'dropped', rules: ['slashed'] } },
    { what: 'by a slashing, or its own', more: { exitEpoch: 1_005, slashed: true }, expected: { status: 'pending', cannotTell: true } },
  ])('an exit is told from one $what', async ({ more, expected }) => {
    const head = view({ validator: { status: 'active_exiting', withdrawableEpoch: 1_300, ...more } })
    for (const { storage } of gone)
      expect((await judge(exit, { stateAt: notKept(head), ...(storage === undefined ? {} : { storage }) })).verdict).toMatchObject(expected)
  })

  test('an exit of another than the owner is dropped, though the validator exits', async () => {
    const { verdict } = await judge(exit, { stateAt: notKept(exiting), sender: stranger })
    expect(verdict).toMatchObject({ status: 'dropped', rules: expect.arrayContaining(['sender-not-withdrawal-address']) })
  })

  test('an exit that did not begin is never dropped without a rule, though the queue has passed it for sure', async () => {
    const given = { stateAt: notKept(view()) }
    expect((await judge(exit, given)).verdict).toMatchObject({
      status: 'pending',
      cannotTell: true,
      reason: expect.stringContaining("so by which rule can't be told"),
    })
    expect((await judge(exit, { ...given, storage: 'not kept' })).verdict).toMatchObject({ status: 'pending', cannotTell: true })
    const young = view({ validator: { activationEpoch: 990 } })
    expect((await judge(exit, { stateAt: notKept(young) })).verdict.reason).toMatch(/^too-young/)
    expect((await judge(exit, { stateAt: notKept(young), storage: 'not kept' })).verdict.status).toBe('pending')
  })
})

import { type BeaconBlock, type BeaconChain, BeaconError, type WithdrawalView } from '../../../chains/ethereum/beacon.ts'
import { type RequestOutcome, requestOutcome } from '../../../chains/ethereum/beacon-outcome.ts'
import { slotAt } from '../../../chains/ethereum/beacon-time.ts'
import {
  type BlockHash,
  ChainError,
  type ContractReads,
  type EthereumChain,
  type Hash,
  type Hex,
  type Pubkey,
} from '../../../chains/ethereum/chain.ts'
import { maxMissedSlots, processingSlot } from '../../../chains/ethereum/processing-slot.ts'
import {
  type ChainBlock,
  type HandedOn,
  type KnownPlace,
  maxBlocksBack,
  placeInQueue,
  type QueueReads,
} from '../../../chains/ethereum/request-queue.ts'
import { type LoggedRequest, maxRequestsPerBlock } from '../../../chains/ethereum/requests.ts'
import { sameHex } from '../../../lib/hex.ts'
import { type Alike, byHead } from './consensus-by-head.ts'
import { cannotTell, type Decided, droppedBy, type Seen, type Verdict } from './verdict.ts'

export interface MinedRequest {
  readonly logged: LoggedRequest
  readonly blockNumber: bigint
  readonly blockHash: BlockHash
  readonly transactionHash: Hash
  /** The latest block of the execution layer that is known. */
  readonly latest: bigint
  /** Its place in the queue as it was told before, of this very block. */
  readonly known?: KnownPlace | undefined
}

/** What a judgement reads. */
export interface JudgeAccess {
  readonly beacon: BeaconChain
  readonly reads: ContractReads & QueueReads
  readonly requestLogs: EthereumChain['requestLogs']
}

/** Where the queue can't be read, so many slots are looked at. */
const maxSlots = 8

/**
 * Judges a mined request by the state of the beacon chain that processed it. Until the contract's queue has handed the request on, and that state is there,
 * it is pending. It is dropped only by a rule that it broke in that state. Never throws a BeaconError or ChainError: what can't be told is pending, and
 * says why.
 */
export async function judgeRequest(access: JudgeAccess, mined: MinedRequest, signal: AbortSignal): Promise<Verdict> {
  const { reads } = access
  try {
    const place = await placeInQueue(reads, mined, signal)
    switch (place.is) {
      case 'handed on':
        return by(place.block.hash, await byProcessingState(access, mined, place, signal))
      case 'waiting':
        return {
          status: 'pending',
          reason: `it waits in the queue of the EIP-7002 contract, which hands on ${maxRequestsPerBlock} requests a block: its turn is block ${place.turn}`,
          place: { position: place.position, turn: place.turn },
        }
      case 'reorganised':
        return { status: 'pending', askAgain: true }
      case 'unexpected':
        return cannotTell('the queue of the EIP-7002 contract does not move as EIP-7002 says, so it is not known which block handed it on')
      case 'no queue':
        return by(mined.blockHash, await byLooking(access, mined, { queue: 'none' }, signal))
      case 'not kept':
        return by(
          place.block?.hash ?? mined.blockHash,
          await byLooking(access, mined, { queue: place.passed ? 'passed' : 'unknown', block: place.block }, signal),
        )
    }
  } catch (error) {
    // A beacon node shows a block a moment after the node of the execution layer: nothing to tell anybody.
    if (error instanceof BeaconError && error.code === 'behind') return { status: 'pending', askAgain: true, cannotTell: true }
    if (error instanceof BeaconError) return { ...cannotTell(`the beacon chain can't be asked: ${error.message}`), askAgain: true }
    if (error instanceof ChainError) return { ...cannotTell(`the execution layer can't be asked: ${error.message}`), askAgain: true }
    throw error
  }
}

const nothingFor = (slot: number): Verdict =>
  cannotTell(`the beacon chain has no block in ${maxMissedSlots} slots after slot ${slot}, which it waits for`)

/** @throws BeaconError where the state is not that of the block which was found: the chain was reorganised meanwhile, and it is looked at again. */
function assertState({ block }: WithdrawalView, expected: BeaconBlock | undefined): void {
  if (expected !== undefined && block.root !== expected.root)
    throw new BeaconError('behind', `the beacon chain was reorganised at slot ${expected.slot} while a request was judged`)
}

/**
 * A beacon node may follow another chain than the nodes of the execution layer: a state of the slot is then not that of the block which was handed on. From Gloas
 * on, it is the next block that says which one it processes.
 * @throws BeaconError `disagreement`. Nothing where no beacon node serves blocks
 */
async function assertSameChain(
  beacon: Pick<BeaconChain, 'executionOf'>,
  { slot, after, confirmedBy, hash }: { slot: number; after: WithdrawalView; confirmedBy: BeaconBlock | undefined; hash: Hex },
  signal: AbortSignal,
): Promise<void> {
  const isMissed = confirmedBy === undefined && after.block.slot !== slot
  const execution = isMissed ? undefined : await beacon.executionOf(confirmedBy ?? after.block, signal)
  const named = confirmedBy === undefined ? execution?.carries : execution?.confirms
  if (!isMissed && (named === undefined || sameHex(named, hash))) return
  throw new BeaconError(
    'disagreement',
    `the beacon chain has ${isMissed ? 'no block' : `the execution block ${named}`} at slot ${slot}, and the nodes of the execution layer have ${hash}: one of them is on another fork, or behind`,
  )
}

/** The state at the head of the beacon chain, where the chain of the execution layer has the block that it names. @throws BeaconError `disagreement` */
async function headOf({ beacon, reads }: JudgeAccess, pubkey: Pubkey, signal: AbortSignal): Promise<WithdrawalView> {
  const head = await beacon.withdrawalView(pubkey, 'head', signal)
  const execution = await beacon.executionOf(head.block, signal)
  const named = execution?.carries ?? execution?.confirms
  const block = named === undefined ? undefined : await reads.blockAt(named, signal)
  const canonical = block === undefined ? undefined : await reads.blockAt(block.number, signal)
  if (named === undefined || (canonical !== undefined && sameHex(canonical.hash, named))) return head
  throw new BeaconError(
    'disagreement',
    `the head of the beacon chain, at slot ${head.block.slot}, names the execution block ${named}, which the nodes of the execution layer don't have in their chain: one of them is on another fork, or behind`,
  )
}

const processedBy = (block: BeaconBlock | undefined, verdict: Decided): Decided =>
  block === undefined ? verdict : { ...verdict, processedBy: block }

const by = (judgedBy: Hex, verdict: Verdict): Verdict => (verdict.status === 'pending' ? verdict : { ...verdict, judgedBy })

async function byProcessingState(access: JudgeAccess, mined: MinedRequest, place: HandedOn, signal: AbortSignal): Promise<Verdict> {
  const { beacon } = access
  const { logged } = mined
  const { pubkey } = logged.request
  const { block, batch, index } = place
  const [genesis, spec] = await Promise.all([beacon.genesis(signal), beacon.spec(signal)])
  const slot = slotAt(genesis, spec, block.timestamp)
  if (slot < 0) return cannotTell(`block ${block.number} is older than the beacon chain's genesis`)
  try {
    const processing = await processingSlot(beacon, spec, slot, signal)
    if (processing === undefined) return nothingFor(slot)
    const { slot: at, confirmedBy } = processing
    const [before, after] = await Promise.all([
      beacon.withdrawalView(pubkey, Math.max(0, at - 1), signal),
      beacon.withdrawalView(pubkey, at, signal),
    ])
    assertState(after, confirmedBy)
    await assertSameChain(beacon, { slot: at, after, confirmedBy, hash: block.hash }, signal)
    const outcome = requestOutcome({ logged, spec, before, after, batch, index })
    if (outcome.status === 'not shown') {
      return cannotTell(
        `block ${block.number} handed it on, and the states around slot ${at} show neither an effect nor a rule that it breaks`,
      )
    }
    return processedBy(confirmedBy, verdictOf(outcome, logged, block.number))
  } catch (error) {
    if (!(error instanceof BeaconError) || error.code !== 'state-not-kept') throw error
    const head = await headOf(access, pubkey, signal)
    return byHead({ head, spec, logged, slot, passed: true, judgedAt: block.number, alike: () => alikeOf(access, mined, signal) })
  }
}

/**
 * Without the queue: whether the states after the request's block show an effect. On a chain without system calls (anvil) a rule that it breaks there is
 * told too; elsewhere it may still wait for its turn, and the rules of another time are not its own.
 */
async function byLooking(
  access: JudgeAccess,
  mined: MinedRequest,
  { queue, block }: { readonly queue: 'none' | 'passed' | 'unknown'; readonly block?: ChainBlock | undefined },
  signal: AbortSignal,
): Promise<Verdict> {
  const { beacon, reads } = access
  const { logged, blockNumber } = mined
  const { pubkey } = logged.request
  const alike = () => alikeOf(access, mined, signal)
  // From the block whose turn it was, where that is known.
  const judgedAt = block?.number ?? blockNumber
  const seconds = block?.timestamp ?? (await reads.blockTime(blockNumber, signal))
  const [genesis, spec] = await Promise.all([beacon.genesis(signal), beacon.spec(signal)])
  const slot = slotAt(genesis, spec, seconds)
  if (slot < 0) return cannotTell(`block ${blockNumber} is older than the beacon chain's genesis`)
  try {
    const processing = await processingSlot(beacon, spec, slot, signal)
    if (processing === undefined) return nothingFor(slot)
    const { slot: first, confirmedBy } = processing
    let before = await beacon.withdrawalView(pubkey, Math.max(0, first - 1), signal)
    for (let at = first; at < first + maxSlots; at += 1) {
      const after = await beacon.withdrawalView(pubkey, at, signal)
      if (at === first) {
        assertState(after, confirmedBy)
        await assertSameChain(beacon, { slot: at, after, confirmedBy, hash: block?.hash ?? mined.blockHash }, signal)
      }
      const outcome = requestOutcome({ logged, spec, before, after })
      if (outcome.status !== 'not shown' && (queue === 'none' || isOurs(outcome, logged))) {
        // Another one of the same amount may have had its turn here.
        if (queue !== 'none' && logged.request.kind === 'withdrawal' && (await alike()).count !== 1) break
        const found = processedBy(confirmedBy && after.block, verdictOf(outcome, logged, judgedAt))
        return at === first ? found : { ...found, slotsLater: at - first }
      }
      before = after
    }
  } catch (error) {
    if (!(error instanceof BeaconError) || error.code !== 'state-not-kept') throw error
  }
  if (queue === 'none') {
    return cannotTell(`nothing came of it in ${maxSlots} slots, and the states show no rule that it breaks`)
  }
  const head = await headOf(access, pubkey, signal)
  return byHead({ head, spec, logged, slot, passed: queue === 'passed', judgedAt, alike })
}

/**
 * The validator's withdrawals, as the contract logged them, that may have made an entry of this one's amount: of as much or more, since one is cut to what is
 * available. Those of two days before are counted: an older one has its entry still only where exits wait for longer than that.
 */
async function alikeOf(
  { requestLogs }: JudgeAccess,
  { logged, blockNumber, transactionHash }: MinedRequest,
  signal: AbortSignal,
): Promise<Alike> {
  const { request, source } = logged
  const asked = request.kind === 'withdrawal' ? request.amountGwei : 0n
  const fromBlock = blockNumber > maxBlocksBack ? blockNumber - maxBlocksBack : 0n
  const logs = await requestLogs({ sender: source, pubkey: request.pubkey, fromBlock }, signal)
  const alike = logs.filter(({ amountGwei }) => amountGwei > 0n && amountGwei >= asked)
  return {
    count: alike.length,
    rank: alike.findIndex((log) => sameHex(log.transactionHash, transactionHash) && log.amountGwei === asked),
  }
}

/** An effect that may be another request's is none: a cut withdrawal looks like a smaller one. */
const isOurs = (outcome: RequestOutcome, { request }: LoggedRequest): boolean =>
  outcome.status === 'accepted' && (outcome.kind === 'exit' || (request.kind === 'withdrawal' && outcome.amountGwei === request.amountGwei))

function verdictOf(outcome: Seen, { request }: LoggedRequest, judgedAt: bigint): Decided {
  if (outcome.status === 'dropped') return droppedBy(outcome.broken, judgedAt)
  const { withdrawableEpoch } = outcome
  if (outcome.kind === 'exit') {
    const { exitEpoch } = outcome
    return {
      status: 'accepted',
      judgedAt,
      ...(withdrawableEpoch === undefined ? {} : { withdrawableEpoch }),
      reason: `the validator exits in epoch ${exitEpoch}${withdrawableEpoch === undefined ? '' : `, and its balance can be paid from epoch ${withdrawableEpoch} on`}`,
    }
  }
  const asked = request.kind === 'withdrawal' ? request.amountGwei : outcome.amountGwei
  const less = outcome.amountGwei < asked ? ` of the ${asked} gwei that were asked for, as no more was available` : ''
  return {
    status: 'accepted',
    judgedAt,
    reason: `${outcome.amountGwei} gwei${less} can be paid from epoch ${outcome.withdrawableEpoch} on`,
    payment: { amountGwei: outcome.amountGwei, withdrawableEpoch: outcome.withdrawableEpoch },
  }
}

import { BeaconError, type BeaconSpec, type WithdrawalView } from '../../../chains/ethereum/beacon.ts'
import { type RequestOutcome, requestOutcome } from '../../../chains/ethereum/beacon-outcome.ts'
import { slotAt } from '../../../chains/ethereum/beacon-time.ts'
import type { LoggedRequest } from '../../../chains/ethereum/requests.ts'
import type { ValidatorAccess } from '../networks.ts'

/** What the consensus layer made of a request that is mined. */
export interface Verdict {
  readonly status: 'pending' | 'accepted' | 'dropped'
  readonly reason?: string
  /** With `pending`: the beacon chain may tell more before the execution layer has another block. */
  readonly askAgain?: true
}

/** The contract hands on 16 requests a block: one behind a long queue is judged some slots later. So many are looked at. */
const maxSlots = 8
const maxReason = 1024

/**
 * Judges a mined request by the states of the beacon chain around its block. Never throws a BeaconError: what can't be told is pending, and says why.
 */
export async function judgeRequest(
  { beacon, reads }: ValidatorAccess,
  mined: { readonly logged: LoggedRequest; readonly blockNumber: bigint },
  signal: AbortSignal,
): Promise<Verdict> {
  const { logged, blockNumber } = mined
  const { pubkey } = logged.request
  const seconds = await reads.blockTime(blockNumber, signal)
  try {
    const [genesis, spec] = await Promise.all([beacon.genesis(signal), beacon.spec(signal)])
    const slot = slotAt(genesis, spec, seconds)
    if (slot < 0) return { status: 'pending', reason: `block ${blockNumber} is older than the beacon chain's genesis` }
    try {
      let before = await beacon.withdrawalView(pubkey, Math.max(0, slot - 1), signal)
      for (let at = slot; at < slot + maxSlots; at += 1) {
        const after = await beacon.withdrawalView(pubkey, at, signal)
        const outcome = requestOutcome({ logged, spec, before, after })
        // Neither taken nor against a rule: it waits in the contract's queue.
        if (outcome.status === 'accepted' || outcome.broken.length > 0) return verdictOf(outcome, logged)
        before = after
      }
      return { status: 'dropped', reason: `nothing came of it in ${maxSlots} slots, and the states show no rule that it breaks` }
    } catch (error) {
      if (!(error instanceof BeaconError) || error.code !== 'state-not-kept') throw error
      return byHead(await beacon.withdrawalView(pubkey, 'head', signal), spec, logged, slot)
    }
  } catch (error) {
    if (!(error instanceof BeaconError)) throw error
    // A beacon node shows a block a moment after the node of the execution layer: nothing to tell anybody.
    if (error.code === 'behind') return { status: 'pending', askAgain: true }
    return { status: 'pending', reason: `the beacon chain can't be asked: ${error.message}`.slice(0, maxReason), askAgain: true }
  }
}

/** The states around the block are gone. What the head shows settles an exit, and a withdrawal that still waits to be paid. */
function byHead(head: WithdrawalView, spec: BeaconSpec, logged: LoggedRequest, slot: number): Verdict {
  const { validator } = head
  const { request } = logged
  const gone = `the beacon nodes don't keep the state at slot ${slot} any more`
  if (request.kind === 'exit') {
    // No exit is ever taken back.
    if (validator?.exitEpoch === undefined)
      return { status: 'dropped', reason: `the validator is not exiting in epoch ${head.epoch}; ${gone}` }
    return { status: 'accepted', reason: `the validator's exit is in epoch ${validator.exitEpoch}; ${gone}` }
  }
  const waiting = head.pendingPartialWithdrawals.find(
    ({ validatorIndex, amountGwei, withdrawableEpoch }) =>
      validatorIndex === validator?.index &&
      amountGwei === request.amountGwei &&
      withdrawableEpoch >= Math.floor(slot / spec.slotsPerEpoch) + spec.minValidatorWithdrawabilityDelay,
  )
  if (waiting !== undefined) return { status: 'accepted', reason: `it is paid after epoch ${waiting.withdrawableEpoch}; ${gone}` }
  return { status: 'pending', reason: `${gone}, so what became of the request can't be told: configure one that does (an archive node)` }
}

function verdictOf(outcome: RequestOutcome, { request }: LoggedRequest): Verdict {
  if (outcome.status === 'dropped') {
    return {
      status: 'dropped',
      reason: outcome.broken
        .map(({ code, message }) => `${code}: ${message}`)
        .join('; ')
        .slice(0, maxReason),
    }
  }
  if (outcome.kind === 'exit') {
    const { exitEpoch, withdrawableEpoch } = outcome
    return {
      status: 'accepted',
      reason: `the validator exits in epoch ${exitEpoch}${withdrawableEpoch === undefined ? '' : `, and its balance can be paid from epoch ${withdrawableEpoch} on`}`,
    }
  }
  const asked = request.kind === 'withdrawal' ? request.amountGwei : outcome.amountGwei
  const less = outcome.amountGwei < asked ? ` of the ${asked} gwei that were asked for, as no more was available` : ''
  return { status: 'accepted', reason: `${outcome.amountGwei} gwei${less} can be paid from epoch ${outcome.withdrawableEpoch} on` }
}

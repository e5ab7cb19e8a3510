import type { BeaconSpec, WithdrawalView } from '../../../chains/ethereum/beacon.ts'
import { epochOf } from '../../../chains/ethereum/beacon-time.ts'
import type { LoggedRequest } from '../../../chains/ethereum/requests.ts'
import { exitBroken, type RuleCode, withdrawalAddressOf, withdrawalBroken } from '../../../chains/ethereum/withdrawal-rules.ts'
import { sameHex } from '../../../lib/hex.ts'
import { cannotTell, droppedBy, type Verdict } from './verdict.ts'

/** A request from another address than the validator's was never taken, and never will be: an address in credentials can't be changed. */
const brokenAlways: ReadonlySet<RuleCode> = new Set(['sender-not-withdrawal-address'])
/** What holds of these now held at every earlier time: validators and their credentials only go one way, and epochs too. */
const brokenBefore: ReadonlySet<RuleCode> = new Set([
  ...brokenAlways,
  'unknown-validator',
  'credentials-not-execution',
  'credentials-not-compounding',
  'too-young',
])

/** Requests of one validator that may have made the same entry of the beacon chain's queue, in order; this one is at `rank`, -1 where no node shows it. */
export interface Alike {
  readonly count: number
  readonly rank: number
}

/**
 * The states around the block that processed a request are gone. What the head shows settles an exit, a withdrawal that still waits to be paid, and a
 * request against a rule that the head still shows. A withdrawal that waits is this request's only where as many wait as requests may have made them: another of
 * the same amount looks the same.
 */
export async function byHead(given: {
  readonly head: WithdrawalView
  readonly spec: BeaconSpec
  readonly logged: LoggedRequest
  /** Of the request's block. */
  readonly slot: number
  /** The contract's queue has handed it on for sure. */
  readonly passed: boolean
  readonly judgedAt: bigint
  readonly alike: () => Promise<Alike>
}): Promise<Verdict> {
  const { head, spec, logged, slot, passed, judgedAt } = given
  const { validator } = head
  const { request } = logged
  const gone = `the beacon nodes don't keep the state at slot ${slot} any more`
  const isOwners = sameHex(logged.source, withdrawalAddressOf(validator?.withdrawalCredentials ?? '0x') ?? '0x')
  // What begins in an epoch is not over before that and the lookahead (consensus-specs, compute_activation_exit_epoch).
  const earliestExit = epochOf(slot, spec) + 1 + spec.maxSeedLookahead
  const exitEpoch = isOwners ? validator?.exitEpoch : undefined
  if (request.kind === 'exit' && exitEpoch !== undefined) {
    if (exitEpoch < earliestExit) {
      const [broken, ...others] = exitBroken({ ...head, spec }).filter(({ code }) => code === 'already-exiting' || code === 'slashed')
      if (broken !== undefined) return { ...droppedBy([broken, ...others], judgedAt, `; ${gone}`), inferred: true }
    }
    if (validator?.slashed === true) {
      return cannotTell(
        `the validator was slashed and leaves in epoch ${exitEpoch}; ${gone}, so whether it was exiting before can't be told`,
      )
    }
    return { status: 'accepted', judgedAt, inferred: true, reason: `the validator's exit is in epoch ${exitEpoch}; ${gone}` }
  }
  if (request.kind === 'withdrawal' && isOwners) {
    const waiting = head.pendingPartialWithdrawals.filter(
      ({ validatorIndex, amountGwei, withdrawableEpoch }) =>
        validatorIndex === validator?.index &&
        amountGwei === request.amountGwei &&
        withdrawableEpoch >= earliestExit + spec.minValidatorWithdrawabilityDelay,
    )
    if (waiting.length > 0) {
      const { count, rank } = await given.alike()
      const own = count === waiting.length ? waiting[rank] : undefined
      if (own === undefined) {
        return cannotTell(
          `${waiting.length} of this validator's withdrawals of ${request.amountGwei} gwei wait to be paid, and ${count} requests may have made them; ${gone}, so whether one is this request's can't be told`,
        )
      }
      const { amountGwei, withdrawableEpoch } = own
      return {
        status: 'accepted',
        judgedAt,
        inferred: true,
        reason: `it is paid after epoch ${withdrawableEpoch}; ${gone}`,
        payment: { amountGwei, withdrawableEpoch },
      }
    }
  }
  const rules = { ...head, spec, sender: logged.source }
  const [broken, ...others] = (request.kind === 'exit' ? exitBroken(rules) : withdrawalBroken(rules, request.amountGwei)).filter(
    ({ code }) => (passed ? brokenBefore : brokenAlways).has(code),
  )
  if (broken !== undefined) return { ...droppedBy([broken, ...others], judgedAt, `; ${gone}`), inferred: true }
  if (request.kind === 'exit' && passed) {
    // No exit is ever taken back, so one that was handed on and never began was against a rule of its time; which one, nobody can tell any more.
    return cannotTell(
      `the contract's queue has handed the exit on, and the validator is not exiting in epoch ${head.epoch}; ${gone}, so by which rule can't be told: configure one that does (an archive node), and look at the validator before anything is asked again`,
    )
  }
  return cannotTell(`${gone}, so what became of the request can't be told: configure one that does (an archive node)`)
}

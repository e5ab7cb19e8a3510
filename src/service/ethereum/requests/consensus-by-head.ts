import type { BeaconSpec, WithdrawalView } from '../../../chains/ethereum/beacon.ts'
import { epochOf } from '../../../chains/ethereum/beacon-time.ts'
import type { LoggedRequest } from '../../../chains/ethereum/requests.ts'
import { exitBroken, type RuleCode, withdrawalBroken } from '../../../chains/ethereum/withdrawal-rules.ts'
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

/**
 * The states around the block that processed a request are gone. What the head shows settles an exit, a withdrawal that still waits to be paid, and a
 * request against a rule that the head still shows.
 */
export function byHead(given: {
  readonly head: WithdrawalView
  readonly spec: BeaconSpec
  readonly logged: LoggedRequest
  /** Of the request's block. */
  readonly slot: number
  /** The contract's queue has handed it on for sure. */
  readonly passed: boolean
  readonly judgedAt: bigint
}): Verdict {
  const { head, spec, logged, slot, passed, judgedAt } = given
  const { validator } = head
  const { request } = logged
  const gone = `the beacon nodes don't keep the state at slot ${slot} any more`
  if (request.kind === 'exit' && validator?.exitEpoch !== undefined) {
    return { status: 'accepted', judgedAt, reason: `the validator's exit is in epoch ${validator.exitEpoch}; ${gone}` }
  }
  if (request.kind === 'withdrawal') {
    const waiting = head.pendingPartialWithdrawals.find(
      ({ validatorIndex, amountGwei, withdrawableEpoch }) =>
        validatorIndex === validator?.index &&
        amountGwei === request.amountGwei &&
        withdrawableEpoch >= epochOf(slot, spec) + spec.minValidatorWithdrawabilityDelay,
    )
    if (waiting !== undefined) {
      const { amountGwei, withdrawableEpoch } = waiting
      return {
        status: 'accepted',
        judgedAt,
        reason: `it is paid after epoch ${withdrawableEpoch}; ${gone}`,
        payment: { amountGwei, withdrawableEpoch },
      }
    }
  }
  const rules = { ...head, spec, sender: logged.source }
  const [broken, ...others] = (request.kind === 'exit' ? exitBroken(rules) : withdrawalBroken(rules, request.amountGwei)).filter(
    ({ code }) => (passed ? brokenBefore : brokenAlways).has(code),
  )
  if (broken !== undefined) return droppedBy([broken, ...others], judgedAt, `; ${gone}`)
  if (request.kind === 'exit' && passed) {
    // No exit is ever taken back, so one that was handed on and never began was against a rule of its time; which one, nobody can tell any more.
    return cannotTell(
      `the contract's queue has handed the exit on, and the validator is not exiting in epoch ${head.epoch}; ${gone}, so by which rule can't be told: configure one that does (an archive node), and look at the validator before anything is asked again`,
    )
  }
  return cannotTell(`${gone}, so what became of the request can't be told: configure one that does (an archive node)`)
}

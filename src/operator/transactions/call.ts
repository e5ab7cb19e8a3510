import type { FeeMarket } from '../../chains/ethereum/fees.ts'
import { formatWeiAsGwei, type Wei, wei } from '../../lib/amounts.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import type { AttemptApproval, TransactionAttempt } from '../../resources/staking-transaction.ts'
import { wait } from '../engine/verdict.ts'
import type { KeyError } from '../ports.ts'
import { approvalOf } from './approvals.ts'
import { answering, type Delivery } from './delivery.ts'
import { createFoundWatch } from './found.ts'
import { standingOf } from './hindrance.ts'
import type { Admission } from './kind.ts'
import type { Standing } from './memory.ts'
import type { LaneDeps, Moment } from './moment.ts'
import { feesFor, feesOf, highestFees, isBelowBaseFee, isTooCheap } from './price.ts'
import { mayAttempt, openAttempts, PATIENCE_MS } from './protocol.ts'
import { createRivals } from './rivals.ts'
import { giveWay, type SignedAttempt, withoutKey } from './signing.ts'
import { type RecordObject, recordOf } from './store.ts'
import { createTelling } from './telling.ts'

export type Calls = ReturnType<typeof createCalls>

/** Sends the call of a record under its place, again where a node lacks it, at a higher price where it waits too long. */
export function createCalls(deps: LaneDeps, { lacking, isShown, send, record, waitedMs, mayBumpNow }: Delivery) {
  const { memory, signing, clock } = deps
  const tell = createTelling(deps)
  const followed = createFoundWatch(clock)
  const rivals = createRivals(deps)

  /** Tells the staking API, reads owner and signer past the cache where it was never sent from here, and sends. */
  async function sendCall(
    moment: Moment,
    of: RecordObject,
    attempt: TransactionAttempt,
    signer: StakingSigner,
    nodes: readonly number[],
  ): Promise<void> {
    const known = memory.of(of)
    const kind = deps.kindOf(of)
    const key = attempt.hash.toLowerCase()
    if (!known.told.has(key) && (await tell(of, attempt, moment.signal))) known.told.add(key)
    const raw = await signing.again(of, signer, attempt, moment.signal).catch(giveWay(known))
    if (!known.sent.has(key)) {
      const chainTime = (): number => moment.blockSeconds
      const now = await deps.approvals.within(of, await kind.mayBeSigned(of, true, moment.signal), chainTime, moment.signal)
      // Taken back, it is not sent. What was sent before may land anyway: the approval is not asked for again, but for one that a higher cap has.
      if (!wasBroadcast(of, attempt)) await deps.approvals.assertApproved(of, now.approvable, chainTime, moment.signal)
      // What was sent before, by whoever led, stays within its limit, whatever that is now.
      if (known.freshPlace) await deps.limiter.assertStill(moment, of, now.signer)
      // The caps too are those of now.
      assertWithinCap(attempt, now.feeCap)
      await kind.value(of, now, moment.signal)
      await rivals.assertStillNone(of, moment.signal)
    }
    await send(moment, of, attempt, raw, nodes)
  }

  /** The price is above all that it may pay, and was for a while: a peak of a few blocks is waited for, however long it waits already. */
  function isPricedOut(market: FeeMarket, of: RecordObject, attempt: TransactionAttempt, cap: Wei): boolean {
    const known = memory.of(of)
    const isTooDear = isBelowBaseFee(feesOf(attempt), market) && feesFor(market, cap, highestFees(openAttempts(recordOf(of)))) === undefined
    known.tooDearSince = isTooDear ? (known.tooDearSince ?? clock.monotonicMs()) : undefined
    return known.tooDearSince !== undefined && clock.monotonicMs() - known.tooDearSince >= PATIENCE_MS
  }

  /** A version under this nonce, of the same approval where there is any, was handed to a node, or is shown by one. */
  const wasBroadcast = (of: RecordObject, { approval }: TransactionAttempt): boolean =>
    openAttempts(recordOf(of)).some(
      (one) =>
        one.kind === 'Call' &&
        (one.found === true || (memory.of(of).sent.has(one.hash.toLowerCase()) && one.approval?.planHash === approval?.planHash)),
    )

  /** @throws Halt, or a port's error, where the call can't be sent now */
  async function driveCall(moment: Moment, of: RecordObject, admission: Admission): Promise<void> {
    const attempt = current(of)
    const { nonce } = attempt ?? {}
    if (attempt === undefined || nonce === undefined) throw new Error(`StakingTransaction ${of.metadata.name} has a place and no attempt`)
    const known = memory.of(of)
    const kind = deps.kindOf(of)
    const market = await moment.market()
    const fees = feesOf(attempt)
    if (attempt.found !== true) {
      assertWithinCap(attempt, admission.feeCap)
      const { value, least } = await kind.value(of, admission, moment.signal)
      const isShort = BigInt(attempt.valueWei ?? '0') < least
      const isLate = waitedMs(of, attempt) > moment.network.bumpAfterMs && isTooCheap(fees, market)
      if (isPricedOut(market, of, attempt, admission.feeCap)) throw tooDear(admission.feeCap, attempt.hash)
      const isWanted =
        isShort || isLate || known.isUnderpriced || (isBelowBaseFee(fees, market) && !known.sent.has(attempt.hash.toLowerCase()))
      const isDue = isWanted && mayBumpNow(moment, of)
      if (isDue || !isWanted) known.unsigned = undefined
      if (isDue) {
        // A node may have what it refused: no version is made while one does that would do.
        const next = feesFor(market, admission.feeCap, highestFees(openAttempts(recordOf(of))))
        known.isCapped = next === undefined || mayAttempt(recordOf(of), 'Call') !== 'yes'
        if (next === undefined || known.isCapped) {
          if (isShort || (isBelowBaseFee(fees, market) && !known.sent.has(attempt.hash.toLowerCase())))
            throw tooDear(admission.feeCap, attempt.hash)
        } else {
          known.bumpedAt = clock.monotonicMs()
          const version = {
            kind: 'Call' as const,
            nonce,
            gas: BigInt(attempt.gas ?? '0'),
            fees: next,
            valueWei: isShort ? value : wei(BigInt(attempt.valueWei ?? '0')),
          }
          const signed = await signing.version(of, admission.signer, version, moment.signal).catch(withoutKey(known))
          if (signed !== undefined) {
            const approved = approvedAs(signed, admission.approval ?? approvalOf(of))
            const written = await record(moment, of, approved)
            known.isUnderpriced = false
            await sendCall(moment, written, approved.attempt, admission.signer, answering(moment))
            return sentSoFar(moment, written, approved.attempt)
          }
        }
      }
      // What pays too little would be sent in vain.
      if (isShort && known.unsigned !== undefined) return memory.stand(of, unsignedStanding(known.unsigned, isDue))
      // A node that drops what can't be mined at this price would be handed it at every poll: it gets it when the price has fallen.
      const isHopeless = isBelowBaseFee(fees, market) && known.sent.has(attempt.hash.toLowerCase())
      const nodes = isHopeless ? [] : await lacking(moment, of, attempt)
      if (nodes.length > 0) await sendCall(moment, of, attempt, admission.signer, nodes)
      else if (!known.sent.has(attempt.hash.toLowerCase()) && (await isShown(moment, attempt))) known.sent.add(attempt.hash.toLowerCase())
      if (known.unsigned !== undefined) return memory.stand(of, unsignedStanding(known.unsigned, isDue))
    } else {
      known.unsigned = undefined
      followed.assertGoesOn(known, moment, attempt)
    }
    sentSoFar(moment, of, attempt)
  }

  const sentSoFar = (moment: Moment, of: RecordObject, attempt: TransactionAttempt): void =>
    memory.stand(of, memory.of(of).disputed ?? sentStanding(moment, attempt))

  return { driveCall, sendCall, sentSoFar }
}

/** The version that is sent: the newest. */
const current = (record: RecordObject): TransactionAttempt | undefined =>
  openAttempts(recordOf(record)).findLast(({ kind }) => kind === 'Call')

/** ▸ A key that was not asked in this look may sign by now: what it signs first is the version that is wanted, once that is due, and no cancel. @throws KeyError */
function unsignedStanding(unsigned: KeyError, wasAsked: boolean): Standing {
  if (wasAsked) throw unsigned
  return standingOf(unsigned)
}

function sentStanding({ network, counts }: Moment, { hash, nonce = 0 }: TransactionAttempt): Standing {
  const isBehind = counts.latest < nonce
  return {
    kind: 'wait',
    reason: isBehind ? 'WaitingForNonce' : 'AwaitingFinality',
    message: isBehind
      ? `Transaction ${hash} (nonce ${nonce}) was sent and waits for an earlier transaction of the same signer: kubectl get stx shows which.`
      : `Transaction ${hash} was sent; waiting until it is mined and its block is final.`,
    afterMs: network.config.pollIntervalMs,
  }
}

/** With by which approvals it was signed. */
const approvedAs = ({ attempt, raw }: SignedAttempt, approval: AttemptApproval | undefined): SignedAttempt => ({
  raw,
  attempt: { ...attempt, ...(approval === undefined ? {} : { approval }) },
})

/** @throws Halt where the cap was lowered below what it pays */
function assertWithinCap(attempt: TransactionAttempt, cap: Wei): void {
  const { maxFeePerGas } = feesOf(attempt)
  if (maxFeePerGas > cap)
    throw wait(
      'FeeTooHigh',
      `Transaction ${attempt.hash} pays up to ${formatWeiAsGwei(maxFeePerGas)} gwei per gas, and maxFeePerGasGwei (of this resource or of the signer's policy) was lowered below that. Raise it again to let it go.`,
      30_000,
    )
}

const tooDear = (cap: Wei, hash: string) =>
  wait(
    'FeeTooHigh',
    `Transaction ${hash} is too cheap to be mined now, and a replacement would cost more than the cap of ${formatWeiAsGwei(cap)} gwei per gas. It goes on when the price falls, or when maxFeePerGasGwei is raised. If others wait behind it, it is cancelled and made again later.`,
    12_000,
  )

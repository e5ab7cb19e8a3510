import { wei } from '../../lib/amounts.ts'
import type { TransactionAttempt } from '../../resources/staking-transaction.ts'
import { wait } from '../engine/verdict.ts'
import { KeyError } from '../ports.ts'
import { answering, type Delivery } from './delivery.ts'
import { standingOf } from './hindrance.ts'
import type { Standing } from './memory.ts'
import type { LaneDeps, Moment } from './moment.ts'
import { feeCap } from './policy.ts'
import { cancelCap, feesFor, feesOf, highestFees, isTooCheap } from './price.ts'
import { mayAttempt, openAttempts } from './protocol.ts'
import { giveWay } from './signing.ts'
import { type RecordObject, recordOf } from './store.ts'

/** Sends 0 wei to the signer itself under the place of a call that can't go, and what replaces that where it is too cheap. */
export function createCancel(deps: LaneDeps, { lacking, send, record, waitedMs, mayBumpNow }: Delivery) {
  const { store, memory, signing, clock } = deps

  async function driveCancel(moment: Moment, of: RecordObject): Promise<void> {
    const nonce = of.status?.place
    if (nonce === undefined) return
    const signer = signing.signerOf(moment.lane, of.spec.signer)
    const cap = cancelCap(feeCap(signer, undefined))
    const market = await moment.market()
    const attempts = openAttempts(recordOf(of))
    const newest = attempts.findLast(({ kind }) => kind === 'Cancel')
    const isLate = newest !== undefined && isTooCheap(feesOf(newest), market) && waitedMs(of, newest) > moment.network.bumpAfterMs
    const known = memory.of(of)
    if (
      (newest === undefined || isLate || known.isUnderpriced) &&
      mayAttempt(recordOf(of), 'Cancel') === 'yes' &&
      (newest === undefined || mayBumpNow(moment, of))
    ) {
      const fees = feesFor(market, cap, highestFees(attempts))
      known.isCapped = fees === undefined
      if (fees === undefined && newest === undefined)
        throw wait(
          'FeeTooHigh',
          `Nonce ${nonce} is to be cancelled, and gas costs more than twice the signer's maxFeePerGasGwei. It goes on when the price falls or the policy's cap is raised.`,
          12_000,
        )
      if (fees !== undefined) {
        known.bumpedAt = clock.monotonicMs()
        const signed = await signing
          .version(of, signer, { kind: 'Cancel', nonce, gas: 0n, fees, valueWei: wei(0n) }, moment.signal)
          .catch(async (error: unknown) => {
            // The last one goes on though its signer is away, as far as its signature stands in the log.
            if (error instanceof KeyError && newest?.signature !== undefined) await sendAgain(moment, of, newest)
            throw error
          })
        known.isUnderpriced = false
        const written = await record(moment, of, signed)
        await send(moment, written, signed.attempt, signed.raw, answering(moment))
        return
      }
    }
    if (newest !== undefined) await sendAgain(moment, of, newest)
  }

  /** Hands a cancel to the nodes that lack it. */
  async function sendAgain(moment: Moment, of: RecordObject, cancel: TransactionAttempt): Promise<void> {
    const nodes = await lacking(moment, of, cancel)
    if (nodes.length === 0) return
    const signer = signing.signerOf(moment.lane, of.spec.signer)
    const raw = await signing.again(of, signer, cancel, moment.signal).catch(giveWay(memory.of(of), 'Cancel'))
    await send(moment, of, cancel, raw, nodes)
  }

  /** Sends the cancel. `because`: what keeps the call back, which a person should know before anything else. */
  async function cancel(moment: Moment, of: RecordObject, because: Standing | undefined): Promise<void> {
    try {
      await driveCancel(moment, of)
      const now = store.record(of.metadata.name) ?? of
      if (because === undefined) cancelStands(moment, now)
      else memory.stand(now, because)
    } catch (error) {
      moment.signal.throwIfAborted()
      const why = standingOf(error)
      // What keeps the lane from moving is what a person must see first.
      memory.stand(of, why)
    }
  }

  function cancelStands({ network }: Moment, of: RecordObject): void {
    const { disputed } = memory.of(of)
    if (disputed !== undefined) {
      memory.stand(of, disputed)
      return
    }
    const cancel = openAttempts(recordOf(of)).findLast(({ kind }) => kind === 'Cancel')
    memory.stand(of, {
      kind: 'wait',
      reason: 'Cancelling',
      message: `Nonce ${of.status?.place} is being cancelled by transaction ${cancel?.hash ?? ''}, so that others can go on. Once that is final it is decided whether this is sent again.`,
      afterMs: network.config.pollIntervalMs,
    })
  }

  return cancel
}

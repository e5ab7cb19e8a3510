import { ChainError } from '../../chains/ethereum/chain.ts'
import type { Fees } from '../../chains/ethereum/fees.ts'
import { formatWeiAsGwei, type Wei } from '../../lib/amounts.ts'
import { ALLOW_REMAKES_ANNOTATION, DISREGARD_SUBMISSION_ANNOTATION } from '../../resources/meta.ts'
import type { AttemptApproval } from '../../resources/staking-transaction.ts'
import { retry, stall, wait } from '../engine/verdict.ts'
import type { Admission } from './kind.ts'
import type { LaneDeps, Moment } from './moment.ts'
import { assertOwnName, recordFull } from './owner.ts'
import { feesFor, standsARise } from './price.ts'
import { backsOffUntil, hasRoomForPlace, mayTakePlace, remakesOf, testimony } from './protocol.ts'
import type { Recall } from './recall.ts'
import { createRivals } from './rivals.ts'
import { type RecordObject, recordOf } from './store.ts'

/** A record that may be signed for, at a known price: all that it needs is a place. */
export interface Ready {
  readonly record: RecordObject
  readonly admission: Admission
  readonly fees: Fees
  readonly gas: bigint
  readonly value: Wei
  /** By which approvals, where its signer's policy asks for any. */
  readonly approval: AttemptApproval | undefined
}

/** Asks everything that can refuse a record before it takes a place. */
export function createPreparation(
  deps: Pick<LaneDeps, 'kindOf' | 'importingFor' | 'approvals' | 'signing' | 'memory' | 'clock'>,
  { followsClaim, follow }: Recall,
) {
  const rivals = createRivals(deps)
  const allowedRemakes = ({ metadata }: RecordObject): number => {
    const text = metadata.annotations?.[ALLOW_REMAKES_ANNOTATION] ?? ''
    return /^[0-9]{1,2}$/.test(text) ? Number(text) : 0
  }

  /** Everything but the place. @throws Halt, or a port's error, where it can't be made now */
  async function prepare(moment: Moment, record: RecordObject): Promise<Ready | undefined> {
    const { signal, lane } = moment
    const kind = deps.kindOf(record)
    switch (mayTakePlace(recordOf(record), allowedRemakes(record))) {
      case 'settled':
      case 'has-place':
        return undefined
      case 'too-many-remakes':
        throw stall(
          'RemadeTooOften',
          `The nonces of StakingTransaction ${record.metadata.name} were used ${record.status?.closed?.length} times without doing what it is for (see its status.closed). It is not made again before somebody has looked: kubectl annotate stx ${record.metadata.name} ${ALLOW_REMAKES_ANNOTATION}=${(record.status?.closed?.length ?? 0) + 1} lets it go on.`,
        )
      case 'yes':
    }
    assertOwnName(record)
    const importing = deps.importingFor(record)
    if (importing !== undefined) throw importing
    const from = backsOffUntil(recordOf(record))
    if (from !== undefined && moment.final < from)
      throw wait(
        'Cancelling',
        `It was cancelled ${remakesOf(recordOf(record)).cancelled} times, since it could not be sent while others waited behind it. It is made again from block ${from} on.`,
        moment.network.config.pollIntervalMs,
      )
    // Before anything that its owner or a policy says: what was sent is followed, whoever may still sign.
    if (await followsClaim(moment, record)) return undefined
    if (!hasRoomForPlace(recordOf(record))) throw recordFull(record)
    const admission = await kind.mayBeSigned(record, false, signal)
    const overtaken = await rivals.look(record, signal)
    if (overtaken !== undefined) throw overtaken
    const approval = await deps.approvals.assertApproved(record, admission.approvable, () => moment.blockSeconds, signal)
    const { value } = await kind.value(record, admission, signal)
    const market = await moment.market()
    const fees = feesFor(market, admission.feeCap, undefined)
    if (fees === undefined || !standsARise(fees, market))
      throw wait(
        'FeeTooHigh',
        `A gas unit costs more now than the cap of ${formatWeiAsGwei(admission.feeCap)} gwei allows with room for a rise. It goes on when the price falls, or when maxFeePerGasGwei (of this resource or the signer's policy) is raised.`,
        12_000,
      )
    const gas = await gasOf(moment, record, value)
    await deps.signing.assertCanSign(admission.signer, signal)
    // The last look before a place is taken, the first and each later one.
    const witness = testimony(
      recordOf(record),
      lane,
      await kind.witnesses(record, signal),
      record.metadata.annotations?.[DISREGARD_SUBMISSION_ANNOTATION],
    )
    switch (witness.is) {
      case 'none':
        return { record, admission, fees, gas, value, approval }
      case 'follow':
        await follow(moment, record, witness.transaction)
        return undefined
      case 'unknown-submission':
        throw stall(
          'UnknownSubmission',
          `The staking API was told of transaction ${witness.hash} for this, and no RPC node knows it. It may still land, so nothing else is signed. When you are certain that it never will: kubectl annotate stx ${record.metadata.name} ${DISREGARD_SUBMISSION_ANNOTATION}=${witness.hash}`,
        )
      case 'done-elsewhere':
        throw stall(
          'DoneElsewhere',
          `Transaction ${witness.hash} was made for this by somebody else, or by another key. Nothing is signed. Look at it on a block explorer.`,
        )
    }
  }

  async function gasOf({ chain, lane, signal }: Moment, record: RecordObject, valueWei: Wei): Promise<bigint> {
    const kind = deps.kindOf(record)
    const call = record.spec.call
    if (call === undefined) throw new Error(`StakingTransaction ${record.metadata.name} has no call`)
    let estimate: bigint
    try {
      estimate = await chain.estimateGas({ from: lane.address, to: call.to, data: call.data, valueWei }, signal)
    } catch (error) {
      if (error instanceof ChainError && error.code === 'reverted' && kind.remakeAfterRevert)
        throw retry(
          'Retrying',
          `${kind.what} would be reverted now, most likely since the contract's fee has just risen. It is tried again.`,
        )
      // What is missing is told by the lane, which knows what else is bound.
      if (!(error instanceof ChainError) || error.code !== 'insufficient-funds') throw error
      estimate = 100_000n
    }
    const storage = await chain.storageGas(signal)
    const gas = kind.gasLimit(estimate, storage)
    if (gas > kind.maxGas(storage))
      throw stall(
        'VerificationFailed',
        `${kind.what} would cost ${estimate} gas, far more than it does: the contract at ${call.to} is another one. Nothing was signed.`,
      )
    return gas
  }

  return prepare
}

import { readRequestFee, withFeeHeadroom } from '../../../chains/ethereum/requests.ts'
import { formatWeiAsGwei, type Wei, wei } from '../../../lib/amounts.ts'
import { sameHex } from '../../../lib/hex.ts'
import { Halt, retry, stall, wait } from '../../engine/verdict.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { pubkeyOf } from '../../transactions/ethereum-texts.ts'
import type { Admission, TransactionKind } from '../../transactions/kind.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import { doneInstead, isSigned } from '../../transactions/owner.ts'
import { closedOf } from '../../transactions/protocol.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import { requestPlan } from './plan.ts'
import { newestCall, type RequestRecords } from './records.ts'
import { calldataOf } from './request-type.ts'
import type { RequestService } from './service.ts'
import type { RequestOrder } from './steps.ts'
import type { RequestTargets } from './target.ts'
import type { Turns } from './turn.ts'

/** A fee above the cap, for people, so that a message doesn't change with every block while it falls: its order of magnitude. */
const leastOf = (fee: Wei, cap: Wei): Wei => {
  const magnitude = fee === 1n ? wei(0n) : wei(10n ** BigInt((fee - 1n).toString().length - 1))
  return magnitude > cap ? magnitude : cap
}

const lowerOf = (cap: Wei, other: Wei | undefined): Wei => (other !== undefined && other < cap ? other : cap)

/** A version that the contract would revert is not sent: the next one carries more. */
async function assertPaysFee(record: RecordObject, network: EthereumNetwork, signal: AbortSignal): Promise<void> {
  const attempt = newestCall(record)
  if (attempt === undefined) return
  const { feeWei } = await readRequestFee(network.chain, signal)
  if (BigInt(attempt.valueWei ?? '0') < feeWei)
    throw retry(
      'Retrying',
      `The EIP-7002 contract's fee has risen above what transaction ${attempt.hash} carries. It is not sent: another version under the same nonce carries more.`,
    )
}

/** ▸ That its resource has asked for nothing else: on another chain that had the network's name, or of another validator that its stake had. @throws Halt */
async function assertAsksOnce(record: RecordObject, log: TransactionLog, fresh: boolean, signal: AbortSignal): Promise<void> {
  const before = await doneInstead(log, record, fresh, signal)
  if (before === undefined) return
  const { kind, namespace, name } = record.spec.owner
  throw stall(
    'AlreadyRequested',
    `StakingTransaction ${before.metadata.name} is what ${kind} ${namespace}/${name} asks for. It asks once: ${record.metadata.name} is not signed. To ask for it too, create another resource.`,
  )
}

/** Whether a request may be signed now, by whom, and what it pays. */
export function createRequestAdmission(
  log: TransactionLog,
  targets: RequestTargets,
  records: RequestRecords,
  service: RequestService,
  turns: Turns,
): Pick<TransactionKind, 'mayBeSigned' | 'overtaken' | 'value'> {
  const { networkOf, admittedSigner, capOf, feeCapOf, targetOf, isNamed, assertOwned, assertMaySend } = targets
  const { networkOfRecord, typeOfRecord, askedBy, orderOfRecord, requestOfRecord } = records

  /** The validator of the spec and of the record are one, by what the cluster says and, before it takes a place, by the staking API too. */
  async function assertSameValidator(order: RequestOrder, { metadata, spec }: RecordObject, isFirst: boolean, signal: AbortSignal) {
    const target = isFirst ? await targetOf(order, new Map(), signal) : undefined
    const same =
      target === undefined
        ? isNamed(order, spec.chainId, spec.subject)
        : networkOf(target.network).config.chainId === spec.chainId && sameHex(target.pubkey, spec.subject)
    if (!same)
      throw stall(
        'VerificationFailed',
        `StakingTransaction ${metadata.name} is for validator ${spec.subject} on ${spec.network}, and spec.validator means another one now. Nothing is signed. Find out why.`,
      )
    if (target?.withdrawalAddress !== undefined && !sameHex(target.withdrawalAddress, spec.from))
      throw stall(
        'SignerNotWithdrawalAddress',
        `Only the validator's withdrawal address ${target.withdrawalAddress} may ask for this, and the transaction was made for ${spec.from}. Nothing is signed.`,
      )
  }

  async function mayBeSigned(record: RecordObject, fresh: boolean, signal: AbortSignal): Promise<Admission> {
    const { order, metadata: asking } = await askedBy(record, fresh, signal)
    const type = typeOfRecord(record)
    const { spec, metadata } = record
    await assertAsksOnce(record, log, fresh, signal)
    // A former owner has had its answer: it asks no more by itself.
    if (closedOf(recordOf(record)).some(({ owner }) => owner?.originUid === spec.owner.originUid))
      throw stall(
        'AlreadyRequested',
        `${spec.owner.kind} ${spec.owner.namespace}/${spec.owner.name} has asked before, and the consensus layer has dropped that. To ask again, create another resource.`,
      )
    const network = networkOfRecord(record)
    if (network.config.chainId !== spec.chainId)
      throw stall(
        'WrongChain',
        `The request's transaction was made for chain id ${spec.chainId}, and network ${spec.network} has chain id ${network.config.chainId} now. It is followed where it was made; nothing is signed.`,
      )
    const isFirst = record.status?.place === undefined
    const signer = await admittedSigner(order, signal, { fresh, isSigned: isSigned(record) })
    if (!sameHex(signer.spec.address, spec.from))
      throw stall(
        'SignerChanged',
        `StakingSigner ${signer.metadata.name} has address ${signer.spec.address} now, and the transaction was made for ${spec.from}. It is followed to its end; nothing is signed with another key before.`,
      )
    await assertSameValidator(order, record, isFirst, signal)
    const validator = { network: network.config.name, pubkey: pubkeyOf(record) }
    if (isFirst || fresh) await assertOwned(order, signer, validator, new Map(), signal)
    const { call } = spec
    const data = calldataOf(type, order, pubkeyOf(record))
    if (call === undefined || !sameHex(call.to, type.contract) || !sameHex(call.data, data) || call.valueWei !== undefined)
      throw stall(
        'VerificationFailed',
        `StakingTransaction ${metadata.name} does not ask for what the spec says: ${type.words(order)}. Nothing is signed. Find out who changed it.`,
      )
    // What was sent is not asked after once more: it can't be cancelled any more, and a staking API that is away holds up nothing.
    if (isFirst || fresh) {
      const body = await requestOfRecord(record, signal)
      if (body?.status === 'cancelled') throw cancelled(body.requestId)
      if (body !== undefined) {
        service.verify(body, { order, validator, requestId: spec.apiId ?? '' }, network, signer)
        assertMaySend(signer, body.unsignedTransaction.from)
      }
      await turns.assertTurn(order, validator, record, metadata.name, signal)
    }
    if (fresh) await assertPaysFee(record, network, signal)
    const feeCap = capOf(signer, undefined)
    const plan = requestPlan(spec, { uid: asking.uid, feeCap, requestFeeCap: feeCapOf(signer, order.maxRequestFeeGwei) })
    return { signer, feeCap, approvable: { plan, signers: [signer], metadata: asking } }
  }

  /** Others ask for something of this validator, and the owner doesn't, or may not: what is in flight makes room. */
  async function overtaken(record: RecordObject, signal: AbortSignal): Promise<Halt | undefined> {
    const validator = { network: networkOfRecord(record).config.name, pubkey: pubkeyOf(record) }
    if (record.status?.place === undefined) return undefined
    if (turns.rivals(record, validator).length === 0) return undefined
    try {
      await value(record, await mayBeSigned(record, false, signal), signal)
      return undefined
    } catch (error) {
      if (error instanceof Halt && (error.verdict.kind === 'stall' || error.verdict.kind === 'wait')) return error
      return undefined
    }
  }

  /** What the contract is to be paid: its fee with headroom, within the cap. @throws Halt where the fee, or what was written down, is above the cap */
  async function value(record: RecordObject, { signer, valueCap }: Admission, signal: AbortSignal): Promise<{ value: Wei; least: Wei }> {
    const { chain, config } = networkOfRecord(record)
    const { maxRequestFeeGwei } = await orderOfRecord(record, false, signal)
    const cap = lowerOf(feeCapOf(signer, maxRequestFeeGwei), valueCap)
    const attempt = newestCall(record)
    const written = wei(BigInt(attempt?.valueWei ?? '0'))
    if (written > cap)
      throw wait(
        'RequestFeeTooHigh',
        `Transaction ${attempt?.hash} pays ${formatWeiAsGwei(written)} gwei to the EIP-7002 contract, and the cap of ${formatWeiAsGwei(cap)} gwei (maxRequestFeeGwei of this resource or of the signer's policy) is below that. Raise it to let it go.`,
        config.pollIntervalMs,
      )
    const { feeWei: fee } = await readRequestFee(chain, signal)
    if (fee > cap)
      throw wait(
        'RequestFeeTooHigh',
        `The EIP-7002 contract asks for more than ${formatWeiAsGwei(leastOf(fee, cap))} gwei for a request now, and the cap is ${formatWeiAsGwei(cap)} gwei. It goes on when the fee falls, or when maxRequestFeeGwei (of this resource or the signer's policy) is raised.`,
        config.pollIntervalMs,
      )
    return { value: lowerOf(withFeeHeadroom(fee), cap), least: fee }
  }

  return { mayBeSigned, overtaken, value }
}

export const cancelled = (requestId: string) =>
  stall(
    'RequestCancelled',
    `Request ${requestId} was cancelled at the staking API. Nothing was sent. To ask again, delete this resource and create it anew.`,
  )

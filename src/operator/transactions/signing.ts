import type { Hash, Hex, UnsignedTransaction } from '../../chains/ethereum/chain.ts'
import type { Fees } from '../../chains/ethereum/fees.ts'
import { type Wei, wei } from '../../lib/amounts.ts'
import type { Clock } from '../../lib/clock.ts'
import { sameHex } from '../../lib/hex.ts'
import { inSpan } from '../../lib/tracing.ts'
import { timestamp } from '../../resources/conditions.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import type { TransactionAttempt } from '../../resources/staking-transaction.ts'
import { Halt, stall } from '../engine/verdict.ts'
import { type EthereumKeys, KeyError } from '../ports.ts'
import { addressOf } from './ethereum-texts.ts'
import type { RecordMemory } from './memory.ts'
import type { LaneId } from './names.ts'
import { assertNotSuspended } from './policy.ts'
import { CANCEL_GAS, feesOf } from './price.ts'
import { spanOf } from './span.ts'
import type { RecordObject } from './store.ts'
import { joined, unsigned } from './unsigned.ts'

/** A signed version: its record, and the bytes. */
export interface SignedAttempt {
  readonly attempt: TransactionAttempt & { readonly hash: Hash; readonly nonce: number }
  readonly raw: Hex
}

/**
 * The bytes of a version are nowhere: it was signed by a mounted key that is a remote one now. Another version has to take its place; where none fits within the
 * cap (`isFinal`), a cancel has to.
 */
export class UnrepeatableError extends Halt {
  readonly lost: string
  readonly isFinal: boolean
  constructor(lost: string, { outlook, isFinal }: { readonly outlook: string; readonly isFinal: boolean }) {
    super({ kind: 'stall', reason: 'VerificationFailed', message: `${lost} ${outlook}`, recheck: true })
    this.lost = lost
    this.isFinal = isFinal
  }
}

/** Has another version made in place of one that can't be sent again. @throws the error */
export const giveWay =
  (known: Pick<RecordMemory, 'isUnderpriced' | 'isCapped'>, kind: TransactionAttempt['kind'] = 'Call') =>
  (error: unknown): never => {
    if (!(error instanceof UnrepeatableError)) throw error
    known.isUnderpriced = true
    if (!known.isCapped) throw error
    throw new UnrepeatableError(error.lost, { outlook: noneFits[kind], isFinal: true })
  }
const noneFits = {
  Call: "No other version under this nonce fits within maxFeePerGasGwei: the nonce is cancelled, for twice as much at most, and it is made again. It is not cancelled once maxFeePerGasGwei (of this resource and of the signer's policy) is an eighth above what it pays.",
  Cancel:
    "No other version under this nonce fits within twice the maxFeePerGasGwei of the signer's policy: raise that by an eighth or more.",
} as const

/** Remembers that the key could not sign: what it has signed before goes on. @throws any other error */
export const withoutKey =
  (known: { unsigned: KeyError | undefined }) =>
  (error: unknown): undefined => {
    if (!(error instanceof KeyError)) throw error
    known.unsigned = error
    return undefined
  }

export type Signing = ReturnType<typeof createSigning>

/**
 * Versions of a record's transaction, built from the record alone. A mounted key signs deterministically (RFC 6979), so that the same record gives the same
 * bytes, and these are stored nowhere. A remote signer may sign in another way each time: its signature stands in the attempt.
 */
export function createSigning(deps: {
  readonly keys: EthereumKeys
  readonly clock: Clock
  readonly signers: () => Iterable<StakingSigner>
  /** Throws unless this process may act now. */
  readonly assertMayAct: () => void
}) {
  /** The signer whose key belongs to the lane. @throws Halt where there is none any more */
  function signerOf(lane: LaneId, preferred: string | undefined): StakingSigner {
    const candidates = [...deps.signers()].filter(({ spec }) => spec.chain === 'Ethereum' && sameHex(spec.address, lane.address))
    const signer = candidates.find(({ metadata }) => metadata.name === preferred) ?? candidates[0]
    if (signer === undefined)
      throw stall(
        'SignerNotFound',
        `No StakingSigner has the address ${lane.address} any more. What was sent from it is still followed; to cancel or replace it, create a StakingSigner with this address and its key.`,
      )
    return signer
  }

  /** Right before a call is signed, and before a nonce is taken for it. @throws Halt (SignerSuspended) */
  const assertMaySign = ({ metadata }: StakingSigner): void => assertNotSuspended(deps.signers(), metadata.name)

  /** @param record whose transaction it is; undefined for a filler */
  const sign = (signer: StakingSigner, transaction: UnsignedTransaction, signal: AbortSignal, record?: RecordObject) =>
    inSpan(
      'sign',
      () => ({
        ...spanOf(record),
        attributes: { ...spanOf(record).attributes, 'staking.signer': signer.metadata.name, 'staking.nonce': transaction.nonce },
      }),
      async () => {
        deps.assertMayAct()
        return deps.keys.signTransaction(signer.spec.keyName, addressOf(signer), transaction, signal)
      },
    )

  async function version(
    record: RecordObject,
    signer: StakingSigner,
    of: {
      readonly kind: TransactionAttempt['kind']
      readonly nonce: number
      readonly gas: bigint
      readonly fees: Fees
      readonly valueWei: Wei
    },
    signal: AbortSignal,
  ): Promise<SignedAttempt> {
    if (of.kind === 'Call') assertMaySign(signer)
    const transaction = unsigned(record, of.kind, of.nonce, of.gas, of.fees, of.valueWei)
    const { raw, hash, signature } = await sign(signer, transaction, signal, record)
    return {
      raw,
      attempt: {
        hash,
        ...(signature === undefined ? {} : { signature }),
        kind: of.kind,
        nonce: of.nonce,
        gas: transaction.gas.toString(),
        maxFeePerGasWei: of.fees.maxFeePerGas.toString(),
        maxPriorityFeePerGasWei: of.fees.maxPriorityFeePerGas.toString(),
        valueWei: transaction.valueWei.toString(),
        namespace: record.spec.owner.namespace,
        at: timestamp(deps.clock.now()),
      },
    }
  }

  /** The bytes of a version that stands in the record. @throws Halt where the key gives others, or may not sign */
  async function again(record: RecordObject, signer: StakingSigner, attempt: TransactionAttempt, signal: AbortSignal): Promise<Hex> {
    const { nonce, gas, valueWei, kind, hash } = attempt
    if (nonce === undefined) throw new Error(`attempt ${hash} has no nonce`)
    if (kind === 'Call') assertMaySign(signer)
    const transaction = unsigned(record, kind, nonce, BigInt(gas ?? '0'), feesOf(attempt), wei(BigInt(valueWei ?? '0')))
    if (attempt.signature !== undefined) deps.assertMayAct()
    const stored = attempt.signature === undefined ? undefined : await joined(transaction, addressOf(signer), attempt.signature)
    if (stored !== undefined && sameHex(stored.hash, hash)) return stored.raw
    const changed = `StakingTransaction ${record.metadata.name} has the hash ${hash} for nonce ${nonce}`
    if (attempt.signature !== undefined)
      throw stall(
        'VerificationFailed',
        `${changed}, and what it says of that transaction, with its signature, is another one: somebody changed it. Nothing is sent. Compare it with a backup.`,
      )
    const signed = await sign(signer, transaction, signal, record)
    if (sameHex(signed.hash, hash)) return signed.raw
    throw signed.signature === undefined
      ? stall(
          'VerificationFailed',
          `${changed}, and signing what it says gives another one: somebody changed it. Nothing is sent. Compare it with a backup.`,
        )
      : new UnrepeatableError(
          `${changed} of a mounted key, and its signer's key is a remote one now, which signs in another way: it can't be sent again.`,
          { outlook: 'It is followed, and replaced by another version under this nonce.', isFinal: false },
        )
  }

  /** Before a nonce is taken that nobody could sign for. @throws KeyError where the signer can't be asked now */
  const assertCanSign = async ({ spec }: StakingSigner, signal: AbortSignal): Promise<void> => {
    await deps.keys.probe?.(spec.keyName, signal)
  }

  /** 0 wei from the lane's address to itself. */
  async function filler(
    lane: LaneId,
    signer: StakingSigner,
    nonce: number,
    fees: Fees,
    signal: AbortSignal,
  ): Promise<{ readonly raw: Hex; readonly hash: Hash }> {
    return sign(
      signer,
      { chainId: lane.chainId, to: addressOf(signer), data: '0x', valueWei: wei(0n), nonce, gas: CANCEL_GAS, ...fees },
      signal,
    )
  }

  return { signerOf, version, again, filler, assertCanSign, assertMaySign }
}

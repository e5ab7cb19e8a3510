import type { Hash, Hex, UnsignedTransaction } from '../../chains/ethereum/chain.ts'
import type { Fees } from '../../chains/ethereum/fees.ts'
import { type Wei, wei } from '../../lib/amounts.ts'
import type { Clock } from '../../lib/clock.ts'
import { sameHex } from '../../lib/hex.ts'
import { inSpan } from '../../lib/tracing.ts'
import { timestamp } from '../../resources/conditions.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import type { TransactionAttempt } from '../../resources/staking-transaction.ts'
import { stall } from '../engine/verdict.ts'
import type { EthereumKeys } from '../ports.ts'
import { addressOf, senderOf } from './ethereum-texts.ts'
import type { LaneId } from './names.ts'
import { CANCEL_GAS, feesOf } from './price.ts'
import { spanOf } from './span.ts'
import type { RecordObject } from './store.ts'

/** A signed version: its record, and the bytes, which are never stored. */
export interface SignedAttempt {
  readonly attempt: TransactionAttempt & { readonly hash: Hash; readonly nonce: number }
  readonly raw: Hex
}

export type Signing = ReturnType<typeof createSigning>

/** Versions of a record's transaction, built from the record alone and signed deterministically (RFC 6979): the same record gives the same bytes. */
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

  function unsigned(
    record: RecordObject,
    kind: TransactionAttempt['kind'],
    nonce: number,
    gas: bigint,
    fees: Fees,
    valueWei: Wei,
  ): UnsignedTransaction {
    const { chainId, call } = record.spec
    if (chainId === undefined || call === undefined) throw new Error(`StakingTransaction ${record.metadata.name} has no call`)
    return kind === 'Cancel'
      ? { chainId, to: senderOf(record), data: '0x', valueWei: wei(0n), nonce, gas: CANCEL_GAS, ...fees }
      : { chainId, to: call.to, data: call.data, valueWei, nonce, gas, ...fees }
  }

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
    const transaction = unsigned(record, of.kind, of.nonce, of.gas, of.fees, of.valueWei)
    const { raw, hash } = await sign(signer, transaction, signal, record)
    return {
      raw,
      attempt: {
        hash,
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

  /** The bytes of a version that stands in the record. @throws Halt where the key gives others */
  async function again(record: RecordObject, signer: StakingSigner, attempt: TransactionAttempt, signal: AbortSignal): Promise<Hex> {
    const { nonce, gas, valueWei, kind, hash } = attempt
    if (nonce === undefined) throw new Error(`attempt ${hash} has no nonce`)
    const transaction = unsigned(record, kind, nonce, BigInt(gas ?? '0'), feesOf(attempt), wei(BigInt(valueWei ?? '0')))
    const signed = await sign(signer, transaction, signal, record)
    if (!sameHex(signed.hash, hash))
      throw stall(
        'VerificationFailed',
        `StakingTransaction ${record.metadata.name} has the hash ${hash} for nonce ${nonce}, and signing what it says gives another one: somebody changed it. Nothing is sent. Compare it with a backup.`,
      )
    return signed.raw
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

  return { signerOf, version, again, filler }
}

import { createHash } from 'node:crypto'
import { keccak256 } from 'viem'
import { depositDataRoot, encodeDepositCalldata } from '../src/chains/ethereum/deposit.ts'
import { gwei } from '../src/lib/amounts.ts'
import { lowerCase } from '../src/lib/chain-types.ts'
import { ethereumStakeStatus } from '../src/operator/kinds/ethereum-stake/status.ts'
import { placeName, transactionName } from '../src/operator/transactions/names.ts'
import { timestamp } from '../src/resources/conditions.ts'
import type { EthereumStake, EthereumStakeStatus } from '../src/resources/ethereum-stake.ts'
import { FINALIZER, ORIGIN_ANNOTATION, RECORD_FINALIZER } from '../src/resources/meta.ts'
import { AMOUNT_ETH, blockHash, CHAIN_ID, DEPOSIT_CONTRACT, NETWORK, PAYER, SIGNER, WITHDRAWAL_ADDRESS } from './network.ts'

/** A text that is the same for the same seed and unlike any other. */
const hex = (bytes: number, seed: string): `0x${string}` => {
  let digits = ''
  for (let part = 0; digits.length < bytes * 2; part++) digits += createHash('sha256').update(`${seed} ${part}`).digest('hex')
  return `0x${digits.slice(0, bytes * 2)}`
}

const stakeIdOf = (index: number): string => `f1ee7${index.toString(16).padStart(27, '0')}`
export const settledPubkey = (stakeId: string): `0x${string}` => hex(48, `pubkey ${stakeId}`)

const uidOf = (index: number): string => {
  const digits = createHash('sha256').update(`uid ${index}`).digest('hex')
  return [8, 4, 4, 4, 12].map((length, at, all) => digits.slice(at * 4, at * 4 + (all[at] ?? length))).join('-')
}

/** What is created: a stake of a fleet whose namespace is there. Names and places are of the size that they have in clusters. */
export function settledStake(index: number, namespace: string) {
  const name = `validator-${String(index).padStart(5, '0')}`
  return {
    apiVersion: 'staking.dev/v1alpha1',
    kind: 'EthereumStake',
    metadata: {
      name,
      namespace,
      finalizers: [FINALIZER],
      annotations: { [ORIGIN_ANNOTATION]: `${uidOf(index)}/${namespace}/${name}` },
    },
    spec: {
      network: NETWORK,
      amountEth: AMOUNT_ETH,
      withdrawalAddress: WITHDRAWAL_ADDRESS,
      credentialsType: 'Compounding',
      signer: SIGNER,
    },
  } as const
}

const unrootedDeposit = (index: number) => ({
  pubkey: settledPubkey(stakeIdOf(index)),
  withdrawalCredentials: `0x02${'00'.repeat(11)}${WITHDRAWAL_ADDRESS.slice(2).toLowerCase()}` as const,
  amountGwei: gwei(32_000_000_000n),
  signature: hex(96, `signature ${index}`),
})

const depositOf = (index: number) => {
  const deposit = unrootedDeposit(index)
  return { ...deposit, depositDataRoot: depositDataRoot(deposit) }
}

/** The deposit of a stake of the fleet, which its chain shows under nonce `index`. */
export function fleetDeposit(index: number) {
  const deposit = depositOf(index)
  return { ...deposit, hash: hex(32, `transaction ${index}`), data: encodeDepositCalldata(deposit) }
}

/** The record of that deposit as the operator leaves it. `uid` is its resource's origin. */
export function settledRecord(index: number, namespace: string) {
  const { data, hash, pubkey } = fleetDeposit(index)
  const { name } = settledStake(index, namespace).metadata
  const at = '2026-01-01T00:00:00Z'
  return {
    object: {
      apiVersion: 'staking.dev/v1alpha1',
      kind: 'StakingTransaction',
      metadata: { name: transactionName({ purpose: 'Deposit', chainId: CHAIN_ID, pubkey }), finalizers: [RECORD_FINALIZER] },
      spec: {
        chain: 'Ethereum',
        network: NETWORK,
        chainId: CHAIN_ID,
        purpose: 'Deposit',
        subject: pubkey,
        amount: '32 ETH',
        apiId: stakeIdOf(index),
        owner: { kind: 'EthereumStake', namespace, name, originUid: uidOf(index) },
        generation: 0,
        signer: SIGNER,
        from: PAYER,
        call: { to: DEPOSIT_CONTRACT, data, valueWei: '32000000000000000000' },
      },
    },
    status: {
      state: 'Landed',
      place: index,
      attempts: [
        {
          hash,
          kind: 'Call',
          nonce: index,
          generation: 0,
          gas: '72000',
          maxFeePerGasWei: '3000000000',
          maxPriorityFeePerGasWei: '1000000000',
          valueWei: '32000000000000000000',
          at,
        },
      ],
      outcome: { is: 'Landed', nonce: index, hash, blockNumber: index + 1, blockHash: blockHash(index + 1) },
    },
  } as const
}

/** The highest place of the lane: the only one that stays once all are final. `uid` is its record's. */
export function lastPlace(index: number, { name, uid }: { readonly name: string; readonly uid: string }) {
  const lane = { chainId: CHAIN_ID, address: lowerCase(PAYER) }
  return {
    apiVersion: 'staking.dev/v1alpha1',
    kind: 'SignerNonce',
    metadata: { name: placeName(lane, index) },
    spec: { ...lane, nonce: index, transaction: { name, uid, generation: 0 } },
  }
}

/** The status as the operator itself leaves it behind an active validator. */
export function settledStatus(index: number, generation: number, now: Date): EthereumStakeStatus {
  const stakeId = stakeIdOf(index)
  const { pubkey, withdrawalCredentials, amountGwei, signature, depositDataRoot: root } = depositOf(index)
  const { hash, data } = fleetDeposit(index)
  const evidence: EthereumStakeStatus = {
    stakeId,
    depositData: { pubkey, withdrawalCredentials, amountGwei: amountGwei.toString(), signature, depositDataRoot: root },
    verifiedRoot: root,
    transaction: {
      chainId: CHAIN_ID,
      from: PAYER,
      to: DEPOSIT_CONTRACT,
      valueWei: '32000000000000000000',
      dataHash: keccak256(data),
      hash,
      nonce: index,
      gas: '72000',
      maxFeePerGasWei: '3000000000',
      maxPriorityFeePerGasWei: '1000000000',
      preparedAt: timestamp(new Date(now.getTime() + 2_000)),
      state: 'Confirmed',
      broadcastHash: hash,
      reportedHash: hash,
      minedHash: hash,
      blockNumber: index + 1,
      blockHash: blockHash(index + 1),
    },
    consensus: { status: 'Accepted' },
    validator: { pubkey, index: String(Number.parseInt(stakeId.slice(-8), 16)), status: 'active_ongoing' },
  }
  const resource = { ...settledStake(index, ''), metadata: { name: '', uid: '', resourceVersion: '', generation } }
  const stake = resource as EthereumStake
  // Said as it comes to be known: each condition has a time of its own.
  const { stakeId: id, depositData, verifiedRoot, transaction, ...active } = evidence
  const known: readonly (readonly [number, EthereumStakeStatus])[] = [
    [0, { stakeId: id, depositData }],
    [1_000, { verifiedRoot }],
    [3_000, { transaction: { ...transaction, state: 'Broadcast' } as typeof transaction }],
    [900_000, { transaction }],
    [72_000_000, active],
  ]
  let status: EthereumStakeStatus = {}
  for (const [at, [afterMs, more]] of known.entries()) {
    const progress = at < 3 ? ({ at: 'step', step: 'Transaction' } as const) : ({ at: 'settled' } as const)
    status = ethereumStakeStatus(stake, { ...status, ...more }, progress, new Date(now.getTime() + afterMs))
  }
  return status
}

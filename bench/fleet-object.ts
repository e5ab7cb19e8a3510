import { createHash } from 'node:crypto'
import { ethereumStakeStatus } from '../src/operator/kinds/ethereum-stake/status.ts'
import type { EthereumStake, EthereumStakeStatus } from '../src/resources/ethereum-stake.ts'
import { FINALIZER, ORIGIN_ANNOTATION } from '../src/resources/meta.ts'
import { AMOUNT_ETH, CHAIN_ID, DEPOSIT_CONTRACT, NETWORK, PAYER, SIGNER, WITHDRAWAL_ADDRESS } from './network.ts'

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

/** The status as the operator itself leaves it behind an active validator. */
export function settledStatus(index: number, generation: number, now: Date): EthereumStakeStatus {
  const stakeId = stakeIdOf(index)
  const pubkey = settledPubkey(stakeId)
  const root = hex(32, `root ${index}`)
  const hash = hex(32, `transaction ${index}`)
  const evidence: EthereumStakeStatus = {
    stakeId,
    depositData: {
      pubkey,
      withdrawalCredentials: `0x02${'00'.repeat(11)}${WITHDRAWAL_ADDRESS.slice(2).toLowerCase()}`,
      amountGwei: '32000000000',
      signature: hex(96, `signature ${index}`),
      depositDataRoot: root,
    },
    verifiedRoot: root,
    transaction: {
      chainId: CHAIN_ID,
      from: PAYER,
      to: DEPOSIT_CONTRACT,
      valueWei: '32000000000000000000',
      dataHash: hex(32, `calldata ${index}`),
      hash,
      nonce: index,
      gas: '72000',
      maxFeePerGasWei: '3000000000',
      maxPriorityFeePerGasWei: '1000000000',
      preparedAt: '2026-01-01T00:00:00Z',
      state: 'Confirmed',
      broadcastHash: hash,
      reportedHash: hash,
      minedHash: hash,
      blockNumber: 20_000_000 + index,
      blockHash: hex(32, `block ${index}`),
    },
    validator: { pubkey, index: String(Number.parseInt(stakeId.slice(-8), 16)), status: 'active_ongoing' },
  }
  const resource = { ...settledStake(index, ''), metadata: { name: '', uid: '', resourceVersion: '', generation } }
  return ethereumStakeStatus(resource as EthereumStake, evidence, { at: 'settled' }, now)
}

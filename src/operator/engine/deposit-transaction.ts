import { keccak256 } from 'viem'
import type { Address, ChainHead, EthereumChain, Hex, UnsignedTransaction } from '../../chains/ethereum/chain.ts'
import { bumpFees, type Fees, priceTransaction } from '../../chains/ethereum/fees.ts'
import { formatWeiAsGwei, gweiToWei, type Wei, wei } from '../../lib/amounts.ts'
import { timestamp } from '../../resources/conditions.ts'
import type { StakeTransaction, TransactionAttempt } from '../../resources/ethereum-stake.ts'
import type { InFlight, StakingSigner } from '../../resources/staking-signer.ts'
import type { EthereumNetwork } from '../ports.ts'
import { attemptsOf, type DepositPlan, type InFlightDeposit, STAKE_STEP } from '../sagas/ethereum-stake.ts'
import { sameAddress } from '../sagas/policy.ts'
import { stall, wait } from '../sagas/verdict.ts'
import { calldataOf, type DepositEvidence, equalHex, fieldsOf } from './deposit-evidence.ts'
import type { DepositRequests, EthereumStakeDeps } from './deposit-request.ts'

/** A deposit costs some 60,000 gas; an estimate far above that is not a deposit. */
export const MAX_DEPOSIT_GAS = 1_000_000n

/** The deposit's transaction: built, priced, signed and replaced under its nonce. */
export type DepositTransactions = ReturnType<typeof createDepositTransactions>

export function createDepositTransactions(
  deps: EthereumStakeDeps,
  { admittedSigner, capOf }: DepositRequests,
  { verifyFields }: DepositEvidence,
) {
  const { clock, keys, ledger } = deps

  function unsigned(
    plan: DepositPlan,
    network: EthereumNetwork,
    attempt: { nonce: number; gas: bigint; maxFeePerGas: Wei; maxPriorityFeePerGas: Wei },
  ): UnsignedTransaction {
    const { amountGwei } = fieldsOf(plan)
    return {
      chainId: network.config.chainId,
      to: network.config.depositContractAddress,
      data: calldataOf(plan),
      valueWei: gweiToWei(amountGwei),
      ...attempt,
    }
  }

  async function sign(signer: StakingSigner, transaction: UnsignedTransaction, signal: AbortSignal) {
    deps.assertMayAct()
    return keys.signTransaction(signer.spec.keyName, signer.spec.address as Address, transaction, signal)
  }

  const priceOf = async (chain: EthereumChain, cap: Wei, signal: AbortSignal): Promise<Fees> => {
    const [head, tip] = await Promise.all([chain.head(signal), chain.priorityFee(signal)])
    const price = priceTransaction({ market: { baseFeePerGas: head.baseFeePerGas, priorityFeePerGas: tip }, cap })
    if (price.kind === 'wait') throw tooDear(cap)
    return { maxFeePerGas: price.maxFeePerGas, maxPriorityFeePerGas: price.maxPriorityFeePerGas }
  }

  const tooDear = (cap: Wei) =>
    wait(
      'FeeTooHigh',
      `A gas unit costs more than the cap of ${formatWeiAsGwei(cap)} gwei allows now. It goes on when the price falls, or when maxFeePerGasGwei (of this resource or the signer's policy) is raised.`,
      12_000,
    )

  const recordOf = (plan: DepositPlan, network: EthereumNetwork, signer: StakingSigner, entry: InFlight): StakeTransaction => {
    const transaction = unsigned(plan, network, {
      nonce: entry.nonce,
      gas: BigInt(entry.gas),
      maxFeePerGas: wei(BigInt(entry.maxFeePerGasWei)),
      maxPriorityFeePerGas: wei(BigInt(entry.maxPriorityFeePerGasWei)),
    })
    const earlier = (entry.earlierHashes ?? []).map((hash) => ({
      hash,
      nonce: entry.nonce,
      gas: entry.gas,
      maxFeePerGasWei: '0',
      maxPriorityFeePerGasWei: '0',
      preparedAt: entry.recordedAt,
    }))
    return {
      chainId: transaction.chainId,
      from: signer.spec.address,
      to: transaction.to,
      valueWei: transaction.valueWei.toString(),
      dataHash: keccak256(transaction.data),
      hash: entry.hash,
      nonce: entry.nonce,
      gas: entry.gas,
      maxFeePerGasWei: entry.maxFeePerGasWei,
      maxPriorityFeePerGasWei: entry.maxPriorityFeePerGasWei,
      preparedAt: entry.recordedAt,
      ...(earlier.length === 0 ? {} : { replaced: earlier }),
      state: 'Prepared',
    }
  }

  /** Compares what status says of the transaction with what it must be. @returns the transaction rebuilt from spec, deposit data and network. */
  function rebuilt(deposit: InFlightDeposit, network: EthereumNetwork, signer: StakingSigner): UnsignedTransaction {
    const { transaction } = deposit
    const expected = unsigned(deposit, network, {
      nonce: transaction.nonce,
      gas: BigInt(transaction.gas),
      maxFeePerGas: wei(BigInt(transaction.maxFeePerGasWei)),
      maxPriorityFeePerGas: wei(BigInt(transaction.maxPriorityFeePerGasWei)),
    })
    const wrong: string[] = []
    if (transaction.chainId !== expected.chainId) wrong.push('chainId')
    if (!sameAddress(transaction.to, expected.to)) wrong.push('to')
    if (transaction.valueWei !== expected.valueWei.toString()) wrong.push('valueWei')
    if (transaction.dataHash !== keccak256(expected.data)) wrong.push('dataHash')
    if (!sameAddress(transaction.from, signer.spec.address)) wrong.push('from')
    if (expected.gas > MAX_DEPOSIT_GAS) wrong.push('gas')
    if (wrong.length > 0) throw forged(wrong.map((field) => `transaction.${field}`).join(', '))
    return expected
  }

  const forged = (what: string) => {
    deps.onRefusal?.('VerificationFailed')
    return stall(
      'VerificationFailed',
      `status.${what} is not what spec, deposit data and the signer's ledger say: somebody changed it. Nothing was signed. Put the right value back, or remove status.transaction: it is made again from the ledger, under the same nonce.`,
    )
  }

  /**
   * The signed bytes of the current version, checked on every side: policy, deposit data, ledger, hash. Where the ledger has a newer version (its
   * write was the last thing that happened), that one: status follows first.
   */
  async function signedAgain(deposit: InFlightDeposit, network: EthereumNetwork, signal: AbortSignal) {
    const signer = await admittedSigner(deposit.request, signal)
    verifyFields(deposit, network)
    const transaction = rebuilt(deposit, network, signer)
    const entry = await ledger.claim(deposit.request.signer, network.config.name, deposit.request.origin.uid, STAKE_STEP)
    if (entry === undefined) {
      const holder = ledger.holder(deposit.request.signer, network.config.name, transaction.nonce)
      if (holder === undefined) throw forged('transaction')
      throw wait(
        'WaitingForNonce',
        `Nonce ${transaction.nonce} was given to another transaction while this one was stopped. Once that one is final, this one gets a new nonce.`,
        network.config.pollIntervalMs,
      )
    }
    if (entry.nonce !== transaction.nonce) throw forged('transaction.nonce')
    if (!equalHex(entry.hash, deposit.transaction.hash)) {
      if (entry.earlierHashes?.some((hash) => equalHex(hash, deposit.transaction.hash)))
        return { is: 'behind', attempt: attemptIn(entry) } as const
      throw forged('transaction.hash')
    }
    // The hash covers them, and yet: what status says alone is not even signed.
    if (deposit.transaction.gas !== entry.gas) throw forged('transaction.gas')
    if (deposit.transaction.maxFeePerGasWei !== entry.maxFeePerGasWei) throw forged('transaction.maxFeePerGasWei')
    if (deposit.transaction.maxPriorityFeePerGasWei !== entry.maxPriorityFeePerGasWei) throw forged('transaction.maxPriorityFeePerGasWei')
    if (transaction.maxFeePerGas > capOf(signer, deposit.maxFeePerGasGwei)) {
      throw wait(
        'FeeTooHigh',
        `The prepared transaction pays up to ${formatWeiAsGwei(transaction.maxFeePerGas)} gwei per gas, and maxFeePerGasGwei (of this resource or of the signer's policy) was lowered below that. Raise it again to let it go.`,
        30_000,
      )
    }
    const signed = await sign(signer, transaction, signal)
    if (!equalHex(signed.hash, deposit.transaction.hash)) throw forged('transaction')
    return { is: 'signed', signer, transaction, raw: signed.raw } as const
  }

  const attemptIn = (entry: InFlight): TransactionAttempt => ({
    hash: entry.hash,
    nonce: entry.nonce,
    gas: entry.gas,
    maxFeePerGasWei: entry.maxFeePerGasWei,
    maxPriorityFeePerGasWei: entry.maxPriorityFeePerGasWei,
    preparedAt: timestamp(clock.now()),
  })

  /** A version of the transaction that pays at least 10 % more, recorded in the ledger. */
  async function bump(deposit: InFlightDeposit, network: EthereumNetwork, signal: AbortSignal): Promise<TransactionAttempt> {
    const current = await signedAgain(deposit, network, signal)
    if (current.is === 'behind') return current.attempt
    const { signer, transaction } = current
    const [head, tip] = await Promise.all([network.chain.head(signal), network.chain.priorityFee(signal)])
    const cap = capOf(signer, deposit.maxFeePerGasGwei)
    const bumped = bumpFees({ previous: transaction, market: { baseFeePerGas: head.baseFeePerGas, priorityFeePerGas: tip }, cap })
    if (bumped.kind !== 'fees') {
      throw wait(
        'FeeTooHigh',
        `Transaction ${deposit.transaction.hash} is too cheap to be mined now, and a replacement would cost more than the cap of ${formatWeiAsGwei(cap)} gwei per gas. It goes on when the price falls, or when maxFeePerGasGwei is raised.`,
        network.config.pollIntervalMs,
      )
    }
    const fees: Fees = { maxFeePerGas: bumped.maxFeePerGas, maxPriorityFeePerGas: bumped.maxPriorityFeePerGas }
    const next: UnsignedTransaction = { ...transaction, ...fees }
    const signed = await sign(signer, next, signal)
    const entry = await ledger.replace(deposit.request.signer, network.config.name, deposit.request.origin.uid, STAKE_STEP, {
      gas: next.gas,
      ...fees,
      hash: signed.hash,
    })
    return attemptIn(entry)
  }

  /** The nonce was used at finality, and by none of ours. The count is read first and the hashes after it, from a node that has come as far. */
  async function nonceIsLost(deposit: InFlightDeposit, network: EthereumNetwork, signal: AbortSignal): Promise<boolean> {
    const { chain } = network
    const before = await chain.head(signal)
    if (!(await nonceIsUsed(deposit, network, signal))) return false
    for (const attempt of attemptsOf(deposit.transaction))
      if ((await chain.receipt(attempt.hash as Hex, signal)) !== undefined) return false
    // A deposit by this signer, in whatever transaction, may be ours. One by anybody else doesn't keep a nonce that is gone.
    const own = [deposit.transaction.from, deps.signers.get(deposit.request.signer)?.spec.address]
    for (const { transactionHash } of await chain.depositsFor(deposit.depositData.pubkey as Hex, signal)) {
      const payer = (await chain.transaction(transactionHash, signal))?.from
      if (payer === undefined || own.some((address) => address !== undefined && sameAddress(address, payer))) return false
    }
    const after = await chain.head(signal)
    return after.final >= before.final
  }

  async function nonceIsUsed({ transaction }: InFlightDeposit, { chain }: EthereumNetwork, signal: AbortSignal): Promise<boolean> {
    return (await chain.transactionCount(transaction.from as Address, 'final', signal)) > transaction.nonce
  }

  return { unsigned, sign, priceOf, recordOf, forged, signedAgain, bump, nonceIsLost, nonceIsUsed }
}

export function isTooCheap({ transaction }: InFlightDeposit, head: ChainHead): boolean {
  return BigInt(transaction.maxFeePerGasWei) < head.baseFeePerGas + BigInt(transaction.maxPriorityFeePerGasWei)
}

const max = (a: Wei, b: Wei): Wei => (a > b ? a : b)
/** Fees that replace those of another transaction under its nonce, at the market's price or above; undefined where the cap is in the way. */
export function over(previous: Fees, price: Fees, cap: Wei): Fees | undefined {
  const floor = bumpFees({ previous, market: { baseFeePerGas: wei(0n), priorityFeePerGas: price.maxPriorityFeePerGas }, cap })
  if (floor.kind !== 'fees') return undefined
  return {
    maxFeePerGas: max(price.maxFeePerGas, floor.maxFeePerGas),
    maxPriorityFeePerGas: max(price.maxPriorityFeePerGas, floor.maxPriorityFeePerGas),
  }
}
export const feesOf = (entry: InFlight): Fees => ({
  maxFeePerGas: wei(BigInt(entry.maxFeePerGasWei)),
  maxPriorityFeePerGas: wei(BigInt(entry.maxPriorityFeePerGasWei)),
})

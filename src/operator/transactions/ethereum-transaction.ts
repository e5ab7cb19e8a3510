import { keccak256 } from 'viem'
import {
  type Address,
  ChainError,
  type ChainHead,
  type ChainReceipt,
  type ChainTransaction,
  type EthereumChain,
  type Hex,
  type UnsignedTransaction,
} from '../../chains/ethereum/chain.ts'
import { bumpFees, type Fees, priceTransaction } from '../../chains/ethereum/fees.ts'
import { formatWeiAsGwei, type Wei, wei } from '../../lib/amounts.ts'
import { sameHex } from '../../lib/hex.ts'
import { timestamp } from '../../resources/conditions.ts'
import type { EthereumTransaction, TransactionAttempt } from '../../resources/ethereum-transaction.ts'
import type { InFlight, StakingSigner } from '../../resources/staking-signer.ts'
import { type Halt, stall, wait } from '../engine/verdict.ts'
import type { EthereumNetwork } from '../ports.ts'
import type { EthereumDeps, EthereumSigners } from './ethereum-signer.ts'
import { attemptsOf, type Found, type InFlightPlan, type Replaced, type TransactionPlan } from './transaction-evidence.ts'

/** What is particular to the one transaction that a kind of resource sends: what it is, what must hold of it, how it is known on the chain. */
export interface TransactionKind<Plan extends TransactionPlan> {
  /** As a sentence begins with it: `The deposit`. */
  readonly what: string
  /** `the deposit contract`. */
  readonly contract: string
  /** The step that it belongs to, in the signer's ledger. */
  readonly stepOf: (plan: Plan) => string
  /** The validator that it is about. */
  readonly pubkeyOf: (plan: Plan) => string
  /** The gas limit for a node's estimate, and the one above which it can't be what it should be. */
  readonly gasLimit: (estimate: bigint) => bigint
  readonly maxGas: bigint
  /** Everything that must hold at every signature besides its bytes, and the signer as it stands now. @throws Halt */
  readonly admit: (plan: Plan, network: EthereumNetwork, signal: AbortSignal) => Promise<StakingSigner>
  /** The call, rebuilt from spec and network; with the recorded value only where spec doesn't say one. */
  readonly callOf: (
    plan: Plan,
    network: EthereumNetwork,
    recorded: Wei,
  ) => { readonly to: Address; readonly data: Hex; readonly valueWei: Wei }
  /** What must be seen once more when a nonce was given and the ledger read. @throws Halt */
  readonly lastLook: (plan: Plan, network: EthereumNetwork, signal: AbortSignal) => Promise<void>
  /** Looks whether it was done by this transaction in a version that status knows, or by one that it doesn't (any more). */
  readonly findLanded: (
    inFlight: InFlightPlan<Plan>,
    network: EthereumNetwork,
    signal: AbortSignal,
  ) => Promise<{ readonly landed: ChainTransaction | undefined; readonly outcome: Found | undefined }>
  /** Its nonce is used and none of its versions is in the chain: whether it may have been used by one of ours all the same. */
  readonly mayHaveLanded: (inFlight: InFlightPlan<Plan>, network: EthereumNetwork, signal: AbortSignal) => Promise<boolean>
  /** The value that it needs now, where what it carries is not enough any more; left out where the spec says the value. @throws Halt where it is too much */
  readonly neededValue?: (inFlight: InFlightPlan<Plan>, network: EthereumNetwork, signal: AbortSignal) => Promise<Wei | undefined>
  /** Whether a receipt shows that it did what it was for, and what to say where a final one doesn't. */
  readonly madeBy: (receipt: ChainReceipt, inFlight: InFlightPlan<Plan>, network: EthereumNetwork) => boolean
  readonly notMade: (receipt: ChainReceipt) => Halt
}

export type EthereumTransactions<Plan extends TransactionPlan> = ReturnType<typeof createEthereumTransactions<Plan>>

/** The transaction of a kind: built, priced, given a nonce, signed, and replaced under its nonce. */
export function createEthereumTransactions<Plan extends TransactionPlan>(
  deps: EthereumDeps,
  { capOf }: Pick<EthereumSigners, 'capOf'>,
  kind: TransactionKind<Plan>,
) {
  const { clock, keys, ledger } = deps
  type InFlightTransaction = InFlightPlan<Plan>

  function unsigned(
    plan: Plan,
    network: EthereumNetwork,
    recorded: Wei,
    attempt: { nonce: number; gas: bigint; maxFeePerGas: Wei; maxPriorityFeePerGas: Wei },
  ): UnsignedTransaction {
    const { to, data, valueWei } = kind.callOf(plan, network, recorded)
    const { nonce, gas, maxFeePerGas, maxPriorityFeePerGas } = attempt
    return { chainId: network.config.chainId, to, data, valueWei, nonce, gas, maxFeePerGas, maxPriorityFeePerGas }
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

  /** Gives it a nonce: signed, and recorded in the ledger. What the ledger has for this resource already comes back as it is. */
  async function reserve(plan: Plan, network: EthereumNetwork, signer: StakingSigner, value: Wei, signal: AbortSignal): Promise<InFlight> {
    const { origin, signer: signerName } = plan.request
    const cap = capOf(signer, plan.maxFeePerGasGwei)
    const { to, data, valueWei } = kind.callOf(plan, network, value)
    const fees = await priceOf(network.chain, cap, signal)
    let short: ChainError | undefined
    const estimate = await network.chain
      .estimateGas({ from: signer.spec.address as Address, to, data, valueWei }, signal)
      .catch((error: unknown) => {
        // The ledger knows the numbers, so it is let to say what is missing.
        if (!(error instanceof ChainError) || error.code !== 'insufficient-funds') throw error
        short = error
        return 100_000n
      })
    const gas = kind.gasLimit(estimate)
    if (gas > kind.maxGas)
      throw stall(
        'VerificationFailed',
        `${kind.what} would cost ${estimate} gas, far more than it does: the contract at ${to} is not ${kind.contract}. Nothing was signed.`,
      )
    const entry = await ledger.reserve({
      signer: signerName,
      network: network.config.name,
      chain: network.chain,
      request: {
        origin: origin.uid,
        kind: origin.kind,
        namespace: origin.namespace,
        name: origin.name,
        step: kind.stepOf(plan),
        pubkey: kind.pubkeyOf(plan),
      },
      valueWei,
      costWei: wei(valueWei + gas * fees.maxFeePerGas),
      build: async ({ nonce, displaces }) => {
        if (short !== undefined) throw short
        // The ledger was read after the first look: what has landed and been struck off in between is seen here.
        await kind.lastLook(plan, network, signal)
        const chosen = displaces === undefined ? fees : over(feesOf(displaces), fees, cap)
        if (chosen === undefined)
          throw wait(
            'FeeTooHigh',
            `Nonce ${nonce} was prepared before at a fee near the cap of ${formatWeiAsGwei(cap)} gwei, and a replacement must pay 10 % more. Raise maxFeePerGasGwei.`,
            30_000,
          )
        const signed = await sign(signer, unsigned(plan, network, valueWei, { nonce, gas, ...chosen }), signal)
        return { gas, ...chosen, hash: signed.hash }
      },
    })
    if (plan.superseded.some((attempt) => sameHex(attempt.hash, entry.hash)))
      throw wait(
        'WaitingForNonce',
        `Nonce ${entry.nonce} was used by another transaction, and the RPC nodes do not agree yet whether that is final.`,
        network.config.pollIntervalMs,
      )
    return entry
  }

  /** What status is to hold of a ledger's entry. */
  const recordOf = (plan: Plan, network: EthereumNetwork, signer: StakingSigner, entry: InFlight): EthereumTransaction => {
    const { to, data, valueWei } = kind.callOf(plan, network, wei(BigInt(entry.valueWei)))
    const earlier = (entry.earlierHashes ?? []).map((hash) => ({
      hash,
      nonce: entry.nonce,
      gas: entry.gas,
      maxFeePerGasWei: '0',
      maxPriorityFeePerGasWei: '0',
      preparedAt: entry.recordedAt,
    }))
    return {
      chainId: network.config.chainId,
      from: signer.spec.address,
      to,
      valueWei: valueWei.toString(),
      dataHash: keccak256(data),
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

  /** What can be said of a transaction that was found on the chain: its fees are not needed any more. */
  const recordOfLanded = (landed: ChainTransaction, plan: Plan, network: EthereumNetwork): EthereumTransaction => ({
    chainId: network.config.chainId,
    from: landed.from,
    to: kind.callOf(plan, network, landed.valueWei).to,
    valueWei: landed.valueWei.toString(),
    dataHash: keccak256(landed.data),
    nonce: landed.nonce,
    gas: '0',
    maxFeePerGasWei: '0',
    maxPriorityFeePerGasWei: '0',
    hash: landed.hash,
    preparedAt: timestamp(clock.now()),
    broadcastHash: landed.hash,
    state: 'Broadcast',
  })

  /** Compares what status says of the transaction with what it must be. @returns the transaction rebuilt from spec and network. */
  function rebuilt(inFlight: InFlightTransaction, network: EthereumNetwork, signer: StakingSigner): UnsignedTransaction {
    const { transaction } = inFlight
    const expected = unsigned(inFlight, network, wei(BigInt(transaction.valueWei)), {
      nonce: transaction.nonce,
      gas: BigInt(transaction.gas),
      maxFeePerGas: wei(BigInt(transaction.maxFeePerGasWei)),
      maxPriorityFeePerGas: wei(BigInt(transaction.maxPriorityFeePerGasWei)),
    })
    const wrong: string[] = []
    if (transaction.chainId !== expected.chainId) wrong.push('chainId')
    if (!sameHex(transaction.to, expected.to)) wrong.push('to')
    if (transaction.valueWei !== expected.valueWei.toString()) wrong.push('valueWei')
    if (transaction.dataHash !== keccak256(expected.data)) wrong.push('dataHash')
    if (!sameHex(transaction.from, signer.spec.address)) wrong.push('from')
    if (expected.gas > kind.maxGas) wrong.push('gas')
    if (wrong.length > 0) throw forged(wrong.map((field) => `transaction.${field}`).join(', '))
    return expected
  }

  const forged = (what: string) => {
    deps.onRefusal?.('VerificationFailed')
    return stall(
      'VerificationFailed',
      `status.${what} is not what the spec and the signer's ledger say: somebody changed it. Nothing was signed. Put the right value back, or remove status.transaction: it is made again from the ledger, under the same nonce.`,
    )
  }

  /**
   * The signed bytes of the current version, checked on every side: policy, spec, ledger, hash. Where the ledger has a newer version (its write was
   * the last thing that happened), that one: status follows first.
   */
  async function signedAgain(inFlight: InFlightTransaction, network: EthereumNetwork, signal: AbortSignal) {
    const { origin, signer: signerName } = inFlight.request
    const signer = await kind.admit(inFlight, network, signal)
    const transaction = rebuilt(inFlight, network, signer)
    const entry = await ledger.claim(signerName, network.config.name, origin, kind.stepOf(inFlight))
    if (entry === undefined) {
      const holder = ledger.holder(signerName, network.config.name, transaction.nonce)
      if (holder === undefined) throw forged('transaction')
      throw wait(
        'WaitingForNonce',
        `Nonce ${transaction.nonce} was given to another transaction while this one was stopped. Once that one is final, this one gets a new nonce.`,
        network.config.pollIntervalMs,
      )
    }
    if (entry.nonce !== transaction.nonce) throw forged('transaction.nonce')
    if (entry.pubkey !== undefined && !sameHex(entry.pubkey, kind.pubkeyOf(inFlight))) throw forged('transaction')
    if (!sameHex(entry.hash, inFlight.transaction.hash)) {
      if (entry.earlierHashes?.some((hash) => sameHex(hash, inFlight.transaction.hash)))
        return { is: 'behind', ...replacedBy(entry) } as const
      throw forged('transaction.hash')
    }
    // The hash covers them, and yet: what status says alone is not even signed.
    for (const field of ['valueWei', 'gas', 'maxFeePerGasWei', 'maxPriorityFeePerGasWei'] as const)
      if (inFlight.transaction[field] !== entry[field]) throw forged(`transaction.${field}`)
    if (transaction.maxFeePerGas > capOf(signer, inFlight.maxFeePerGasGwei)) {
      throw wait(
        'FeeTooHigh',
        `The prepared transaction pays up to ${formatWeiAsGwei(transaction.maxFeePerGas)} gwei per gas, and maxFeePerGasGwei (of this resource or of the signer's policy) was lowered below that. Raise it again to let it go.`,
        30_000,
      )
    }
    const signed = await sign(signer, transaction, signal)
    if (!sameHex(signed.hash, inFlight.transaction.hash)) throw forged('transaction')
    return { is: 'signed', signer, transaction, raw: signed.raw } as const
  }

  const replacedBy = (entry: InFlight): Omit<Replaced, 'is'> => ({
    attempt: {
      hash: entry.hash,
      nonce: entry.nonce,
      gas: entry.gas,
      maxFeePerGasWei: entry.maxFeePerGasWei,
      maxPriorityFeePerGasWei: entry.maxPriorityFeePerGasWei,
      preparedAt: timestamp(clock.now()),
    } satisfies TransactionAttempt,
    valueWei: entry.valueWei,
  })

  /** A version of the transaction that pays at least 10 % more per gas, and carries another value where it needs one; recorded in the ledger. */
  async function bump(
    inFlight: InFlightTransaction,
    network: EthereumNetwork,
    value: Wei | undefined,
    signal: AbortSignal,
  ): Promise<Replaced> {
    const { origin, signer: signerName } = inFlight.request
    const current = await signedAgain(inFlight, network, signal)
    if (current.is === 'behind') return { is: 'replaced', attempt: current.attempt, valueWei: current.valueWei }
    const { signer, transaction } = current
    const [head, tip] = await Promise.all([network.chain.head(signal), network.chain.priorityFee(signal)])
    const cap = capOf(signer, inFlight.maxFeePerGasGwei)
    const bumped = bumpFees({ previous: transaction, market: { baseFeePerGas: head.baseFeePerGas, priorityFeePerGas: tip }, cap })
    if (bumped.kind !== 'fees') {
      throw wait(
        'FeeTooHigh',
        `Transaction ${inFlight.transaction.hash} ${value === undefined ? 'is too cheap to be mined now' : 'carries too little now'}, and a replacement would cost more than the cap of ${formatWeiAsGwei(cap)} gwei per gas. It goes on when the price falls, or when maxFeePerGasGwei is raised.`,
        network.config.pollIntervalMs,
      )
    }
    const fees: Fees = { maxFeePerGas: bumped.maxFeePerGas, maxPriorityFeePerGas: bumped.maxPriorityFeePerGas }
    const valueWei = kind.callOf(inFlight, network, value ?? transaction.valueWei).valueWei
    const next: UnsignedTransaction = { ...transaction, ...fees, valueWei }
    const signed = await sign(signer, next, signal)
    const entry = await ledger.replace(signerName, network.config.name, origin, kind.stepOf(inFlight), {
      gas: next.gas,
      ...fees,
      hash: signed.hash,
      valueWei,
    })
    return { is: 'replaced', ...replacedBy(entry) }
  }

  /** The nonce was used at finality, and by none of ours. The count is read first and the hashes after it, from a node that has come as far. */
  async function nonceIsLost(inFlight: InFlightTransaction, network: EthereumNetwork, signal: AbortSignal): Promise<boolean> {
    const { chain } = network
    const before = await chain.head(signal)
    if (!(await nonceIsUsed(inFlight, network, signal))) return false
    for (const attempt of attemptsOf(inFlight.transaction))
      if ((await chain.receipt(attempt.hash as Hex, signal)) !== undefined) return false
    if (await kind.mayHaveLanded(inFlight, network, signal)) return false
    const after = await chain.head(signal)
    return after.final >= before.final
  }

  async function nonceIsUsed(inFlight: InFlightTransaction, { chain }: EthereumNetwork, signal: AbortSignal): Promise<boolean> {
    return (await chain.transactionCount(senderOf(inFlight), 'final', signal)) > inFlight.transaction.nonce
  }

  /** Whose nonces tell of it: the signer's, whatever status says. Those of another address may be used up to any number. */
  const senderOf = ({ request, transaction }: InFlightTransaction): Address =>
    (deps.signers.get(request.signer)?.spec.address ?? transaction.from) as Address

  return { reserve, recordOf, recordOfLanded, forged, signedAgain, bump, nonceIsLost, nonceIsUsed, senderOf }
}

export function isTooCheap({ transaction }: InFlightPlan, head: ChainHead): boolean {
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
const feesOf = (entry: InFlight): Fees => ({
  maxFeePerGas: wei(BigInt(entry.maxFeePerGasWei)),
  maxPriorityFeePerGas: wei(BigInt(entry.maxPriorityFeePerGasWei)),
})

import { ChainError, type ChainErrorCode, type ChainReceipt, type Hex } from '../../chains/ethereum/chain.ts'
import { sameHex } from '../../lib/hex.ts'
import { Halt, wait } from '../engine/verdict.ts'
import { type Visit, WATCH_ONLY } from '../engine/visit.ts'
import type { EthereumNetwork } from '../ports.ts'
import type { EthereumDeps } from './ethereum-signer.ts'
import { type EthereumTransactions, isTooCheap, type TransactionKind } from './ethereum-transaction.ts'
import { attemptsOf, type BroadcastOutcome, type ConfirmOutcome, type InFlightPlan, type TransactionPlan } from './transaction-evidence.ts'

/** The node has it, or another version of its nonce: Confirm finds out which, at finality. */
const elsewhere: ReadonlySet<ChainErrorCode> = new Set(['already-known', 'nonce-too-low'])
const tooLittle: ReadonlySet<ChainErrorCode> = new Set(['replacement-underpriced', 'underpriced'])

/** From a transaction that stands in status to its final outcome: sent, sent again, made dearer, and found wherever it went. */
export function createTransactionFlow<Plan extends TransactionPlan>(
  deps: EthereumDeps,
  kind: TransactionKind<Plan>,
  { signedAgain, bump, nonceIsLost, nonceIsUsed, senderOf, forged }: EthereumTransactions<Plan>,
) {
  const { clock, ledger } = deps
  type InFlightTransaction = InFlightPlan<Plan>

  async function broadcast(inFlight: InFlightTransaction, network: EthereumNetwork, signal: AbortSignal): Promise<BroadcastOutcome> {
    const { transaction } = inFlight
    const sent: BroadcastOutcome = { is: 'sent', broadcastHash: transaction.hash }
    // It was sent before, and how that went was never written down. Also where it reverted.
    for (const attempt of attemptsOf(transaction)) if ((await network.chain.receipt(attempt.hash as Hex, signal)) !== undefined) return sent
    const { landed, outcome } = await kind.findLanded(inFlight, network, signal)
    if (landed !== undefined) return outcome ?? sent
    if (await nonceIsLost(inFlight, network, signal)) return { is: 'superseded' }
    const signed = await signedAgain(inFlight, network, signal)
    if (signed.is === 'behind') return { is: 'replaced', attempt: signed.attempt, valueWei: signed.valueWei }
    const value = await kind.neededValue?.(inFlight, network, signal).catch((error: unknown) => {
      // Nobody waits behind a nonce whose transaction is not sent before a price falls.
      if (transaction.broadcastHash === undefined && error instanceof Halt && error.verdict.kind === 'wait')
        ledger.release(inFlight.request.signer, network.config.name, inFlight.request.origin, kind.stepOf(inFlight))
      throw error
    })
    if (value !== undefined) return bump(inFlight, network, value, signal)
    deps.assertMayAct()
    try {
      await network.chain.broadcast(signed.raw, signal)
    } catch (error) {
      if (!(error instanceof ChainError)) throw error
      if (tooLittle.has(error.code)) return bump(inFlight, network, undefined, signal)
      if (!elsewhere.has(error.code)) throw error
    }
    return sent
  }

  async function confirm(
    inFlight: InFlightTransaction,
    network: EthereumNetwork,
    visit: Visit,
    signal: AbortSignal,
  ): Promise<ConfirmOutcome> {
    const { chain, config } = network
    const { transaction, request } = inFlight
    const head = await chain.head(signal)
    for (const attempt of attemptsOf(transaction).toReversed()) {
      const receipt = await chain.receipt(attempt.hash as Hex, signal)
      if (receipt === undefined) continue
      if (receipt.blockNumber > head.final) {
        throw wait(
          'AwaitingFinality',
          `Transaction ${attempt.hash} is in block ${receipt.blockNumber}; waiting until that block is final.`,
          config.pollIntervalMs,
        )
      }
      return outcomeOf(inFlight, network, receipt, signal)
    }
    if (await nonceIsLost(inFlight, network, signal)) {
      // Nothing is made in its place: the resource is not to be held for it.
      if (visit.get(WATCH_ONLY) === true)
        await ledger.strike(request.signer, config.name, request.origin, kind.stepOf(inFlight), transaction.nonce)
      return { is: 'superseded' }
    }
    if (await nonceIsUsed(inFlight, network, signal)) {
      // By none that status knows, and yet what it was for is done: by ours in a version that status has lost, or by somebody else.
      const { outcome } = await kind.findLanded(inFlight, network, signal)
      if (outcome !== undefined) return outcome
    }
    if (visit.get(WATCH_ONLY) !== true) {
      try {
        const outcome = (await nurse(inFlight, network, signal)) ?? (await hasten(inFlight, network, signal))
        if (outcome !== undefined) return outcome
      } catch (error) {
        // What keeps it from being sent again doesn't keep it from landing: the watch goes on as often as before.
        if (error instanceof Halt && error.verdict.kind === 'stall')
          throw new Halt({ ...error.verdict, recheck: true, recheckAfterMs: config.pollIntervalMs })
        throw error
      }
    }
    throw wait(
      'AwaitingFinality',
      `Transaction ${transaction.hash} was sent; waiting until it is mined and its block is final.`,
      config.pollIntervalMs,
    )
  }

  async function outcomeOf(
    inFlight: InFlightTransaction,
    network: EthereumNetwork,
    receipt: ChainReceipt,
    signal: AbortSignal,
  ): Promise<ConfirmOutcome> {
    const mined = { minedHash: receipt.hash, blockNumber: Number(receipt.blockNumber), blockHash: receipt.blockHash }
    if (!receipt.success) {
      // "Nothing was made" is said of this very transaction only, not of whatever somebody wrote into status.
      const transaction = await network.chain.transaction(receipt.hash, signal)
      if (transaction === undefined)
        throw wait(
          'AwaitingFinality',
          `Transaction ${receipt.hash} was reverted; it is looked at once more.`,
          network.config.pollIntervalMs,
        )
      const { data } = kind.callOf(inFlight, network, transaction.valueWei)
      if (!sameHex(transaction.data, data) || transaction.nonce !== inFlight.transaction.nonce) throw forged('transaction.hash')
      return { is: 'reverted', ...mined }
    }
    if (!kind.madeBy(receipt, inFlight, network)) throw kind.notMade(receipt)
    return { is: 'confirmed', ...mined }
  }

  /** Sends the same bytes again when the node has forgotten them: only after another look whether what it is for was done. */
  async function nurse(inFlight: InFlightTransaction, network: EthereumNetwork, signal: AbortSignal): Promise<ConfirmOutcome | undefined> {
    if ((await network.chain.transaction(inFlight.transaction.hash as Hex, signal)) !== undefined) return undefined
    const { landed, outcome } = await kind.findLanded(inFlight, network, signal)
    if (landed !== undefined) return outcome
    const signed = await signedAgain(inFlight, network, signal)
    if (signed.is === 'behind') return { is: 'replaced', attempt: signed.attempt, valueWei: signed.valueWei }
    const value = await kind.neededValue?.(inFlight, network, signal)
    if (value !== undefined) return bump(inFlight, network, value, signal)
    deps.assertMayAct()
    try {
      await network.chain.broadcast(signed.raw, signal)
    } catch (error) {
      if (!(error instanceof ChainError) || !(elsewhere.has(error.code) || tooLittle.has(error.code))) throw error
    }
    return undefined
  }

  /** Makes it dearer where it waits too long for its price, or would be reverted for its value; says so where it waits for others. */
  async function hasten(inFlight: InFlightTransaction, network: EthereumNetwork, signal: AbortSignal): Promise<ConfirmOutcome | undefined> {
    const { transaction, request } = inFlight
    const { chain, config } = network
    const waited = clock.now().getTime() - Date.parse(transaction.preparedAt) > network.bumpAfterMs
    if (!waited && kind.neededValue === undefined) return undefined
    const latest = await chain.transactionCount(senderOf(inFlight), 'latest', signal)
    if (latest === transaction.nonce) {
      const value = await kind.neededValue?.(inFlight, network, signal)
      if (value !== undefined) return bump(inFlight, network, value, signal)
    }
    if (!waited) return undefined
    // A higher fee would not help: an earlier nonce is what it waits for.
    if (latest < transaction.nonce)
      throw wait(
        'WaitingForNonce',
        `Transaction ${transaction.hash} (nonce ${transaction.nonce}) was sent and waits for nonce ${latest} of the same signer. The ledger in StakingSigner ${request.signer} says whose that is; if it was given up, the next transaction of this signer uses it.`,
        config.pollIntervalMs,
      )
    return isTooCheap(inFlight, await chain.head(signal)) ? bump(inFlight, network, undefined, signal) : undefined
  }

  return { broadcast, confirm }
}

import type { ChainTransaction, Hex } from '../../../chains/ethereum/chain.ts'
import {
  decodeRequestLog,
  encodeRequestCalldata,
  RequestEncodingError,
  readRequestFee,
  type ValidatorRequest,
  withdrawalRequestContract,
  withFeeHeadroom,
} from '../../../chains/ethereum/requests.ts'
import { formatWeiAsGwei, type Wei, wei } from '../../../lib/amounts.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { stall, wait } from '../../engine/verdict.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { createEthereumTransactions, type TransactionKind } from '../../transactions/ethereum-transaction.ts'
import { createTransactionFlow } from '../../transactions/ethereum-transaction-flow.ts'
import { hashesOf } from '../../transactions/ledger.ts'
import { attemptsOf } from '../../transactions/transaction-evidence.ts'
import { isGone, type RequestService } from './service.ts'
import { type InFlightSend, requestStep, type SendPlan } from './steps.ts'
import type { RequestTargets, ValidatorRequestDeps } from './target.ts'

/** A request costs some 100,000 gas: three slots of the contract's queue, its counters, a log. Far above that it is not one. */
const MAX_REQUEST_GAS = 1_000_000n
/** EIP-2929, EIP-2200: what a slot costs more when it is new. The node's estimate may have met slots that were used before, and the block finds new ones. */
const NEW_SLOT = 17_100n
const QUEUE_SLOTS = 4n
export const requestGasLimit = (estimate: bigint): bigint => (estimate * 12n) / 10n + QUEUE_SLOTS * NEW_SLOT

/** A fee above the cap, for people, so that a message doesn't change with every block while it falls: its order of magnitude. */
const leastOf = (fee: Wei, cap: Wei): Wei => {
  const magnitude = fee === 1n ? wei(0n) : wei(10n ** BigInt((fee - 1n).toString().length - 1))
  return magnitude > cap ? magnitude : cap
}

/** The request's transaction: what it is, what it pays, and how it is known again, since no contract tells who asked for what before. */
export function createRequestTransactions(deps: ValidatorRequestDeps, targets: RequestTargets, service: RequestService) {
  const { ledger } = deps
  const { capOf, feeCapOf, requestOf, admittedSigner } = targets

  const entryOf = ({ request }: SendPlan, network: EthereumNetwork) =>
    ledger.find(request.signer, network.config.name, request.origin, requestStep(request.origin.kind))

  /** What the contract is to be paid: its fee with headroom, within the cap. @throws Halt where the fee alone is above the cap */
  async function dueOf(
    plan: SendPlan,
    network: EthereumNetwork,
    signer: StakingSigner,
    signal: AbortSignal,
  ): Promise<{ fee: Wei; value: Wei }> {
    const { feeWei: fee } = await readRequestFee(network.chain, signal)
    const cap = feeCapOf(signer, plan.maxRequestFeeGwei)
    if (fee > cap)
      throw wait(
        'RequestFeeTooHigh',
        `The EIP-7002 contract asks for more than ${formatWeiAsGwei(leastOf(fee, cap))} gwei for a request now, and the cap is ${formatWeiAsGwei(cap)} gwei. It goes on when the fee falls, or when maxRequestFeeGwei (of this resource or the signer's policy) is raised.`,
        network.config.pollIntervalMs,
      )
    const roomy = withFeeHeadroom(fee)
    return { fee, value: roomy < cap ? roomy : cap }
  }

  /**
   * Versions of the transaction beside those in status: the ledger's and, where the nonce is used, what the staking API was told. Those that status
   * calls superseded too: only the chain says whether they landed.
   */
  async function otherHashes(inFlight: InFlightSend, network: EthereumNetwork, signal: AbortSignal): Promise<readonly string[]> {
    const { transaction, request, requestId } = inFlight
    const entry = entryOf(inFlight, network)
    const used = (await network.chain.transactionCount(transactions.senderOf(inFlight), 'latest', signal)) > transaction.nonce
    const told = used
      ? await service.read(request, request, requestId, network, signal).then(
          (body) => body.transaction.hash,
          (error: unknown) => {
            if (isGone(error)) return undefined
            throw error
          },
        )
      : undefined
    const known = attemptsOf(transaction).map(({ hash }) => hash.toLowerCase())
    return [...(entry === undefined ? [] : hashesOf(entry)), ...(told === undefined ? [] : [told])].filter(
      (hash) => !known.includes(hash.toLowerCase()),
    )
  }

  /** A transaction that makes this very request: sent by the signer, to the contract, with this calldata. */
  const isThis = (transaction: ChainTransaction, plan: SendPlan, signer: string): boolean =>
    sameHex(transaction.from, signer) &&
    transaction.to !== undefined &&
    sameHex(transaction.to, withdrawalRequestContract) &&
    sameHex(transaction.data, encodeRequestCalldata(requestOf(plan.request, plan.request.pubkey)))

  async function findLanded(inFlight: InFlightSend, network: EthereumNetwork, signal: AbortSignal) {
    for (const hash of await otherHashes(inFlight, network, signal)) {
      if ((await network.chain.receipt(hash as Hex, signal)) === undefined) continue
      const landed = await network.chain.transaction(hash as Hex, signal)
      if (
        landed === undefined ||
        !isThis(landed, inFlight, deps.signers.get(inFlight.request.signer)?.spec.address ?? inFlight.transaction.from)
      )
        continue
      // The one in status must not be sent any more: it would ask a second time. Others may use its nonce.
      const { request, transaction } = inFlight
      if (landed.nonce !== transaction.nonce && entryOf(inFlight, network)?.nonce !== landed.nonce)
        ledger.release(request.signer, network.config.name, request.origin, requestStep(request.origin.kind))
      return { landed, outcome: { is: 'found', transaction: transactions.recordOfLanded(landed, inFlight, network) } as const }
    }
    return { landed: undefined, outcome: undefined }
  }

  /** Whether another request of this validator has this transaction: status may have been forged with it. */
  const isAnothers = (hash: string, { request: { network, pubkey, origin } }: SendPlan): boolean =>
    [...deps.requestsOn({ network, pubkey })].some(
      ({ kind, metadata, status }) =>
        (kind !== origin.kind || metadata.namespace !== origin.namespace || metadata.name !== origin.name) &&
        status?.transaction !== undefined &&
        attemptsOf(status.transaction).some((attempt) => sameHex(attempt.hash, hash)),
    )

  const kind: TransactionKind<SendPlan> = {
    what: 'The request',
    contract: 'the EIP-7002 contract',
    stepOf: ({ request }) => requestStep(request.origin.kind),
    pubkeyOf: ({ request }) => request.pubkey,
    gasLimit: requestGasLimit,
    maxGas: MAX_REQUEST_GAS,
    async admit(plan, network, signal) {
      const signer = await admittedSigner(plan.request, signal)
      // The staking API was asked before it was made; that it is away now keeps nothing from being sent again.
      if (plan.request.network !== network.config.name || !targets.isNamed(plan.request, plan.request))
        throw transactions.forged('validator')
      const { transaction } = plan as Partial<InFlightSend>
      const cap = feeCapOf(signer, plan.maxRequestFeeGwei)
      if (transaction !== undefined && BigInt(transaction.valueWei) > cap)
        throw wait(
          'RequestFeeTooHigh',
          `The prepared transaction pays ${formatWeiAsGwei(wei(BigInt(transaction.valueWei)))} gwei to the EIP-7002 contract, and the cap of ${formatWeiAsGwei(cap)} gwei (maxRequestFeeGwei of this resource or of the signer's policy) is below that. Raise it to let it go.`,
          network.config.pollIntervalMs,
        )
      return signer
    },
    callOf: ({ request }, _network, recorded) => ({
      to: withdrawalRequestContract,
      data: encodeRequestCalldata(requestOf(request, request.pubkey)),
      valueWei: recorded,
    }),
    lastLook: async () => {},
    findLanded,
    mayHaveLanded: async (inFlight, network, signal) => {
      for (const hash of await otherHashes(inFlight, network, signal))
        if ((await network.chain.receipt(hash as Hex, signal)) !== undefined) return true
      return false
    },
    async neededValue(inFlight, network, signal) {
      const signer = await admittedSigner(inFlight.request, signal)
      const { fee, value } = await dueOf(inFlight, network, signer, signal)
      return fee > BigInt(inFlight.transaction.valueWei) ? value : undefined
    },
    madeBy(receipt, inFlight, network) {
      const { request, transaction } = inFlight
      const wanted = requestOf(request, request.pubkey)
      const entry = entryOf(inFlight, network)
      return (
        sameHex(receipt.from, deps.signers.get(request.signer)?.spec.address ?? transaction.from) &&
        (entry === undefined ? !isAnothers(receipt.hash, inFlight) : hashesOf(entry).some((hash) => sameHex(hash, receipt.hash))) &&
        receipt.logs.some((log) => sameHex(log.address, withdrawalRequestContract) && isRequest(log, wanted, receipt.from))
      )
    },
    notMade: (receipt) =>
      stall(
        'RequestMissing',
        `Transaction ${receipt.hash} is final in block ${receipt.blockNumber}, but it did not make this request. Look at it on a block explorer, and find out who changed status.transaction.`,
      ),
  }
  const transactions = createEthereumTransactions(deps, { capOf }, kind)
  return { ...transactions, ...createTransactionFlow(deps, kind, transactions), dueOf, isThis }
}

function isRequest(log: Parameters<typeof decodeRequestLog>[0], wanted: ValidatorRequest, sender: string): boolean {
  try {
    const { source, request } = decodeRequestLog(log)
    const amountOf = (of: ValidatorRequest): bigint => (of.kind === 'exit' ? 0n : of.amountGwei)
    return sameHex(source, sender) && sameHex(request.pubkey, wanted.pubkey) && amountOf(request) === amountOf(wanted)
  } catch (error) {
    if (error instanceof RequestEncodingError) return false
    throw error
  }
}

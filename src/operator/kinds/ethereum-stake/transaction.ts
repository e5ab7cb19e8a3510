import type { Hex } from '../../../chains/ethereum/chain.ts'
import { depositGasLimit } from '../../../chains/ethereum/deposit-gas.ts'
import { gweiToWei } from '../../../lib/amounts.ts'
import { sameHex } from '../../../lib/hex.ts'
import { conflict, stall } from '../../engine/verdict.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { createEthereumTransactions, type TransactionKind } from '../../transactions/ethereum-transaction.ts'
import { createTransactionFlow } from '../../transactions/ethereum-transaction-flow.ts'
import { STAKE_STEP } from '../../transactions/ledger.ts'
import { attemptsOf } from '../../transactions/transaction-evidence.ts'
import { calldataOf, type DepositEvidence, fieldsOf, paysDeposit } from './evidence.ts'
import type { DepositRequests, EthereumStakeDeps } from './request.ts'
import type { DepositPlan, InFlightDeposit } from './steps.ts'

/** A deposit costs some 60,000 gas; an estimate far above that is not a deposit. */
const MAX_DEPOSIT_GAS = 1_000_000n

/** The deposit's transaction: what it is, and that the deposit contract's history tells of every deposit whoever made it. */
export function createDepositTransactions(
  deps: EthereumStakeDeps,
  { admittedSigner, capOf }: DepositRequests,
  { verifyFields, ownDeposit }: DepositEvidence,
) {
  const { ledger, signers } = deps

  /** Looks for the deposit on the chain, made by this transaction in a version that status knows, or by one that it doesn't (any more). */
  async function foundOnChain(deposit: InFlightDeposit, network: EthereumNetwork, signal: AbortSignal) {
    const { transaction, request } = deposit
    const attempts = attemptsOf(transaction).map((attempt) => attempt.hash.toLowerCase())
    const known = new Set([...attempts, ...deposit.superseded.map((attempt) => attempt.hash.toLowerCase())])
    const landed = await ownDeposit(deposit, network, known, signers.get(request.signer)?.spec.address ?? transaction.from, signal)
    if (landed === undefined || attempts.includes(landed.hash.toLowerCase())) return { landed, outcome: undefined }
    // The one in status must not be sent any more: it would be a second deposit. Others may use its nonce.
    if (landed.nonce !== transaction.nonce) ledger.release(request.signer, network.config.name, request.origin, STAKE_STEP)
    return { landed, outcome: { is: 'found', transaction: transactions.recordOfLanded(landed, deposit, network) } as const }
  }

  const kind: TransactionKind<DepositPlan> = {
    what: 'The deposit',
    contract: 'the deposit contract',
    stepOf: () => STAKE_STEP,
    pubkeyOf: ({ depositData }) => depositData.pubkey,
    gasLimit: depositGasLimit,
    maxGas: MAX_DEPOSIT_GAS,
    async admit(plan, network, signal) {
      const signer = await admittedSigner(plan.request, signal)
      verifyFields(plan, network)
      return signer
    },
    callOf: (plan, network) => ({
      to: network.config.depositContractAddress,
      data: calldataOf(plan),
      valueWei: gweiToWei(fieldsOf(plan).amountGwei),
    }),
    async lastLook({ depositData }, network, signal) {
      if ((await network.chain.depositsFor(depositData.pubkey as Hex, signal)).length > 0) throw conflict()
    },
    findLanded: foundOnChain,
    async mayHaveLanded({ transaction, request, depositData }, { chain }, signal) {
      // A deposit by this signer, in whatever transaction, may be ours. One by anybody else doesn't keep a nonce that is gone.
      const own = [transaction.from, signers.get(request.signer)?.spec.address]
      for (const { transactionHash } of await chain.depositsFor(depositData.pubkey as Hex, signal)) {
        const payer = (await chain.transaction(transactionHash, signal))?.from
        if (payer === undefined || own.some((address) => address !== undefined && sameHex(address, payer))) return true
      }
      return false
    },
    madeBy: paysDeposit,
    notMade: (receipt) =>
      stall(
        'DepositMissing',
        `Transaction ${receipt.hash} is final in block ${receipt.blockNumber}, but it did not make this deposit. Look at it on a block explorer.`,
      ),
  }
  const transactions = createEthereumTransactions(deps, { capOf }, kind)
  return { ...transactions, ...createTransactionFlow(deps, kind, transactions) }
}

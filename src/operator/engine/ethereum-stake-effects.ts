import { type Address, ChainError, type ChainReceipt, type Hex } from '../../chains/ethereum/chain.ts'
import { depositGasLimit } from '../../chains/ethereum/deposit-gas.ts'
import { type ClaimedDeposit, type ClaimedTransaction, verifyDeposit } from '../../chains/ethereum/verify-deposit.ts'
import { formatWeiAsGwei, gweiToWei, wei } from '../../lib/amounts.ts'
import type { EthereumNetwork } from '../ports.ts'
import {
  attemptsOf,
  type BroadcastOutcome,
  type ConfirmOutcome,
  type EthereumStakeEffects,
  type InFlightDeposit,
  STAKE_STEP,
} from '../sagas/ethereum-stake.ts'
import { conflict, Halt, stall, wait } from '../sagas/verdict.ts'
import { calldataOf, createDepositEvidence, equalHex, evidenceOf, fieldsOf, paysDeposit } from './deposit-evidence.ts'
import { createDepositRequests, type EthereumStakeDeps } from './deposit-request.ts'
import { createDepositTransactions, feesOf, isTooCheap, MAX_DEPOSIT_GAS, over } from './deposit-transaction.ts'
import { type Visit, WATCH_ONLY } from './visit.ts'

/** Performs one effect. `visit` lives for one reconcile: what the service said in it need not be asked twice. */
export type Perform<Effects> = {
  readonly [Name in keyof Effects]: (
    args: Effects[Name] extends { args: infer A } ? A : never,
    visit: Visit,
    signal: AbortSignal,
  ) => Promise<Effects[Name] extends { result: infer R } ? R : never>
}

/** The effects of an EthereumStake's saga: everything that it does to the world. */
export function createEthereumStakeEffects(deps: EthereumStakeDeps): Perform<EthereumStakeEffects> {
  const { clock, ledger } = deps
  const requests = createDepositRequests(deps)
  const evidence = createDepositEvidence(deps, requests)
  const transactions = createDepositTransactions(deps, requests, evidence)
  const { networkOf, addressOf, capOf, admittedSigner, serviceStake, expectedOf } = requests
  const { refuse, verifyFields, ownDeposit, recordOfLanded, foundOnChain } = evidence
  const { unsigned, sign, priceOf, recordOf, forged, signedAgain, bump, nonceIsLost, nonceIsUsed } = transactions

  return {
    async createStake(request, visit, signal) {
      networkOf(request.network)
      addressOf(request)
      await admittedSigner(request, signal)
      deps.assertMayAct()
      const body = await serviceStake(request, visit, signal)
      return evidenceOf(body)
    },

    async verifyDeposit({ request, stakeId, depositData, tentative }, visit, signal) {
      const network = networkOf(request.network)
      const body = await serviceStake(request, visit, signal)
      const given = body.depositData
      const same =
        body.stakeId === stakeId &&
        equalHex(given.pubkey, depositData.pubkey) &&
        equalHex(given.signature, depositData.signature) &&
        equalHex(given.withdrawalCredentials, depositData.withdrawalCredentials) &&
        given.amountGwei.toString() === depositData.amountGwei &&
        equalHex(given.depositDataRoot, depositData.depositDataRoot)
      // Of a service that lied before and now tells the truth, the truth is taken: nothing stands on the lie yet.
      if (!same && !tentative)
        throw stall(
          'VerificationFailed',
          `status.stakeId or status.depositData is not what the staking API gave for this resource. Nothing was signed. Remove status.stakeId and status.depositData: they are read again.`,
        )
      const mismatches = verifyDeposit({
        expected: expectedOf(request, network),
        depositData: given as ClaimedDeposit,
        unsignedTransaction: body.unsignedTransaction as ClaimedTransaction,
      })
      const adopted = request.adoptStakeId !== undefined
      refuse(
        [
          ...mismatches,
          ...(request.network === body.network ? [] : [{ code: 'network', message: 'the network is another' }]),
          // A service that mixes stakes up must not have one resource shown as paid by the deposit of another.
          ...(adopted || body.externalReference === undefined || body.externalReference === request.externalReference
            ? []
            : [{ code: 'reference', message: 'the stake belongs to another resource: its external reference is another' }]),
        ],
        adopted ? `Stake ${body.stakeId}` : "The staking API's answer",
        adopted ? 'AdoptionMismatch' : 'VerificationFailed',
      )
      return { verifiedRoot: given.depositDataRoot, ...evidenceOf(body) }
    },

    async prepareDeposit(plan, visit, signal) {
      const network = networkOf(plan.request.network)
      const signer = await admittedSigner(plan.request, signal)
      const body = await serviceStake(plan.request, visit, signal)
      if (body.stakeId !== plan.stakeId || !equalHex(body.depositData.pubkey, plan.depositData.pubkey)) {
        throw stall(
          'VerificationFailed',
          'status.stakeId is not the stake that the staking API has for this resource: somebody changed it. Nothing was signed. Remove status.stakeId and status.depositData: they are read again.',
        )
      }
      verifyFields(plan, network)
      if (plan.request.adoptStakeId !== undefined && deps.otherHolder(plan.stakeId, plan.request.origin))
        throw stall('AdoptionMismatch', `Stake ${plan.stakeId} belongs to another resource of this cluster already.`)
      const known = new Set(plan.superseded.map((attempt) => attempt.hash.toLowerCase()))
      const landed = await ownDeposit(plan, network, known, signer.spec.address, signal)
      if (landed !== undefined) {
        // Lost status, a rebuilt cluster or an adopted stake: the deposit was made. It is written down as it stands on the chain, or better:
        // as the ledger has it, so that it can be sent again after a reorg.
        const { signer: name, origin } = plan.request
        const entry = await ledger.claim(name, network.config.name, origin.uid, STAKE_STEP)
        if (entry !== undefined && equalHex(entry.hash, landed.hash))
          return { ...recordOf(plan, network, signer, entry), broadcastHash: landed.hash, state: 'Broadcast' }
        if (entry !== undefined && entry.nonce !== landed.nonce) ledger.release(name, network.config.name, origin.uid, STAKE_STEP)
        return recordOfLanded(landed, network)
      }
      const cap = capOf(signer, plan.maxFeePerGasGwei)
      const call = {
        from: signer.spec.address as Address,
        to: network.config.depositContractAddress,
        data: calldataOf(plan),
        valueWei: gweiToWei(fieldsOf(plan).amountGwei),
      }
      const fees = await priceOf(network.chain, cap, signal)
      let short: ChainError | undefined
      const estimate = await network.chain.estimateGas(call, signal).catch((error: unknown) => {
        // The ledger knows the numbers, so it is let to say what is missing.
        if (!(error instanceof ChainError) || error.code !== 'insufficient-funds') throw error
        short = error
        return 100_000n
      })
      const gas = depositGasLimit(estimate)
      if (gas > MAX_DEPOSIT_GAS)
        throw stall(
          'VerificationFailed',
          `The deposit would cost ${estimate} gas, far more than a deposit does: the contract at ${call.to} is not the deposit contract. Nothing was signed.`,
        )
      const entry = await ledger.reserve({
        signer: plan.request.signer,
        network: network.config.name,
        chain: network.chain,
        request: {
          origin: plan.request.origin.uid,
          kind: plan.request.origin.kind,
          namespace: plan.request.origin.namespace,
          name: plan.request.origin.name,
          step: STAKE_STEP,
          pubkey: plan.depositData.pubkey,
        },
        valueWei: call.valueWei,
        costWei: wei(call.valueWei + gas * fees.maxFeePerGas),
        build: async ({ nonce, displaces }) => {
          if (short !== undefined) throw short
          // The ledger was read after the first look at the deposits: what has landed and been struck off in between is seen here.
          if ((await network.chain.depositsFor(plan.depositData.pubkey as Hex, signal)).length > 0) throw conflict()
          const chosen = displaces === undefined ? fees : over(feesOf(displaces), fees, cap)
          if (chosen === undefined)
            throw wait(
              'FeeTooHigh',
              `Nonce ${nonce} was prepared before at a fee near the cap of ${formatWeiAsGwei(cap)} gwei, and a replacement must pay 10 % more. Raise maxFeePerGasGwei.`,
              30_000,
            )
          const signed = await sign(signer, unsigned(plan, network, { nonce, gas, ...chosen }), signal)
          return { gas, ...chosen, hash: signed.hash }
        },
      })
      if (plan.superseded.some((attempt) => equalHex(attempt.hash, entry.hash)))
        throw wait(
          'WaitingForNonce',
          `Nonce ${entry.nonce} was used by another transaction, and the RPC nodes do not agree yet whether that is final.`,
          network.config.pollIntervalMs,
        )
      return recordOf(plan, network, signer, entry)
    },

    async broadcastDeposit(deposit, _visit, signal) {
      const network = networkOf(deposit.request.network)
      const { transaction } = deposit
      const sent: BroadcastOutcome = { is: 'sent', broadcastHash: transaction.hash }
      // It was sent before, and how that went was never written down. Also where it reverted: that leaves no deposit.
      for (const attempt of attemptsOf(transaction))
        if ((await network.chain.receipt(attempt.hash as Hex, signal)) !== undefined) return sent
      const { landed, outcome } = await foundOnChain(deposit, network, signal)
      if (landed !== undefined) return outcome ?? sent
      if (await nonceIsLost(deposit, network, signal)) return { is: 'superseded' }
      const signed = await signedAgain(deposit, network, signal)
      if (signed.is === 'behind') return { is: 'replaced', attempt: signed.attempt }
      deps.assertMayAct()
      try {
        await network.chain.broadcast(signed.raw, signal)
      } catch (error) {
        if (!(error instanceof ChainError)) throw error
        switch (error.code) {
          case 'already-known':
            break
          case 'nonce-too-low':
            // Used by one of ours or by another: Confirm finds out, at finality.
            break
          case 'replacement-underpriced':
          case 'underpriced':
            return { is: 'replaced', attempt: await bump(deposit, network, signal) }
          default:
            throw error
        }
      }
      return sent
    },

    async reportDeposit({ network, stakeId, hash }, _visit, signal) {
      await networkOf(network).api.submitEthereumStake(stakeId, hash as Hex, signal)
      return { reportedHash: hash }
    },

    async confirmDeposit(deposit, visit, signal): Promise<ConfirmOutcome> {
      const network = networkOf(deposit.request.network)
      const { chain, config } = network
      const head = await chain.head(signal)
      for (const attempt of attemptsOf(deposit.transaction).toReversed()) {
        const receipt = await chain.receipt(attempt.hash as Hex, signal)
        if (receipt === undefined) continue
        if (receipt.blockNumber > head.final) {
          throw wait(
            'AwaitingFinality',
            `Transaction ${attempt.hash} is in block ${receipt.blockNumber}; waiting until that block is final.`,
            config.pollIntervalMs,
          )
        }
        return outcomeOf(deposit, network, receipt, signal)
      }
      if (await nonceIsLost(deposit, network, signal)) {
        // Nothing is made in its place: the resource is not to be held for it.
        if (visit.get(WATCH_ONLY) === true)
          await ledger.strike(deposit.request.signer, config.name, deposit.request.origin.uid, STAKE_STEP, deposit.transaction.nonce)
        return { is: 'superseded' }
      }
      if (await nonceIsUsed(deposit, network, signal)) {
        // By none that status knows, and yet there is a deposit for this validator: ours in a version that status has lost, or somebody else's.
        const { outcome } = await foundOnChain(deposit, network, signal)
        if (outcome !== undefined) return outcome
      }
      if (visit.get(WATCH_ONLY) !== true) {
        try {
          const outcome = await nurse(deposit, network, signal)
          if (outcome !== undefined) return outcome
          const waited = clock.now().getTime() - Date.parse(deposit.transaction.preparedAt)
          if (waited > network.bumpAfterMs) {
            const latest = await chain.transactionCount(deposit.transaction.from as Address, 'latest', signal)
            // A higher fee would not help: an earlier nonce is what it waits for.
            if (latest < deposit.transaction.nonce)
              throw wait(
                'WaitingForNonce',
                `Transaction ${deposit.transaction.hash} (nonce ${deposit.transaction.nonce}) was sent and waits for nonce ${latest} of the same signer. The ledger in StakingSigner ${deposit.request.signer} says whose that is; if it was given up, the next stake of this signer uses it.`,
                config.pollIntervalMs,
              )
            if (isTooCheap(deposit, await chain.head(signal))) return { is: 'replaced', attempt: await bump(deposit, network, signal) }
          }
        } catch (error) {
          // What keeps it from being sent again doesn't keep it from landing: the watch goes on as often as before.
          if (error instanceof Halt && error.verdict.kind === 'stall')
            throw new Halt({ ...error.verdict, recheck: true, recheckAfterMs: config.pollIntervalMs })
          throw error
        }
      }
      throw wait(
        'AwaitingFinality',
        `Transaction ${deposit.transaction.hash} was sent; waiting until it is mined and its block is final.`,
        config.pollIntervalMs,
      )
    },
  }

  async function outcomeOf(
    deposit: InFlightDeposit,
    network: EthereumNetwork,
    receipt: ChainReceipt,
    signal: AbortSignal,
  ): Promise<ConfirmOutcome> {
    const mined = { minedHash: receipt.hash, blockNumber: Number(receipt.blockNumber), blockHash: receipt.blockHash }
    if (!receipt.success) {
      // "No stake was made" is said of the deposit itself only, not of whatever transaction somebody wrote into status.
      const transaction = await network.chain.transaction(receipt.hash, signal)
      if (transaction === undefined)
        throw wait(
          'AwaitingFinality',
          `Transaction ${receipt.hash} was reverted; it is looked at once more.`,
          network.config.pollIntervalMs,
        )
      if (!equalHex(transaction.data, calldataOf(deposit)) || transaction.nonce !== deposit.transaction.nonce)
        throw forged('transaction.hash')
      return { is: 'reverted', ...mined }
    }
    if (!paysDeposit(receipt, deposit, network))
      throw stall(
        'DepositMissing',
        `Transaction ${receipt.hash} is final in block ${receipt.blockNumber}, but it did not make this deposit. Look at it on a block explorer.`,
      )
    return { is: 'confirmed', ...mined }
  }

  /** Sends the same bytes again when the node has forgotten them: only after another look whether the deposit was made. */
  async function nurse(deposit: InFlightDeposit, network: EthereumNetwork, signal: AbortSignal): Promise<ConfirmOutcome | undefined> {
    if ((await network.chain.transaction(deposit.transaction.hash as Hex, signal)) !== undefined) return undefined
    const { landed, outcome } = await foundOnChain(deposit, network, signal)
    if (landed !== undefined) return outcome
    const signed = await signedAgain(deposit, network, signal)
    if (signed.is === 'behind') return { is: 'replaced', attempt: signed.attempt }
    deps.assertMayAct()
    try {
      await network.chain.broadcast(signed.raw, signal)
    } catch (error) {
      if (
        !(error instanceof ChainError) ||
        !['already-known', 'nonce-too-low', 'replacement-underpriced', 'underpriced'].includes(error.code)
      )
        throw error
    }
    return undefined
  }
}

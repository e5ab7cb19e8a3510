import type { Hex } from '../../../chains/ethereum/chain.ts'
import { type ClaimedDeposit, type ClaimedTransaction, verifyDeposit } from '../../../chains/ethereum/verify-deposit.ts'
import { gweiToWei } from '../../../lib/amounts.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { Perform } from '../../engine/step.ts'
import { stall } from '../../engine/verdict.ts'
import { STAKE_STEP } from '../../transactions/ledger.ts'
import { createDepositEvidence, evidenceOf, fieldsOf } from './evidence.ts'
import { createDepositRequests, type EthereumStakeDeps } from './request.ts'
import type { EthereumStakeEffects } from './steps.ts'
import { createDepositTransactions } from './transaction.ts'

/** The effects of an EthereumStake's saga: everything that it does to the world. */
export function createEthereumStakeEffects(deps: EthereumStakeDeps): Perform<EthereumStakeEffects> {
  const { ledger } = deps
  const requests = createDepositRequests(deps)
  const evidence = createDepositEvidence(deps, requests)
  const { networkOf, addressOf, admittedSigner, serviceStake, expectedOf } = requests
  const { refuse, verifyFields, ownDeposit } = evidence
  const { reserve, recordOf, recordOfLanded, broadcast, confirm } = createDepositTransactions(deps, requests, evidence)

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
        sameHex(given.pubkey, depositData.pubkey) &&
        sameHex(given.signature, depositData.signature) &&
        sameHex(given.withdrawalCredentials, depositData.withdrawalCredentials) &&
        given.amountGwei.toString() === depositData.amountGwei &&
        sameHex(given.depositDataRoot, depositData.depositDataRoot)
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
      if (body.stakeId !== plan.stakeId || !sameHex(body.depositData.pubkey, plan.depositData.pubkey)) {
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
        const entry = await ledger.claim(name, network.config.name, origin, STAKE_STEP)
        if (entry !== undefined && sameHex(entry.hash, landed.hash))
          return { ...recordOf(plan, network, signer, entry), broadcastHash: landed.hash, state: 'Broadcast' }
        if (entry !== undefined && entry.nonce !== landed.nonce) ledger.release(name, network.config.name, origin, STAKE_STEP)
        return recordOfLanded(landed, plan, network)
      }
      const entry = await reserve(plan, network, signer, gweiToWei(fieldsOf(plan).amountGwei), signal)
      return recordOf(plan, network, signer, entry)
    },

    broadcastDeposit: (deposit, _visit, signal) => broadcast(deposit, networkOf(deposit.request.network), signal),

    async reportDeposit({ network, stakeId, hash }, _visit, signal) {
      await networkOf(network).api.submitEthereumStake(stakeId, hash as Hex, signal)
      return { reportedHash: hash }
    },

    confirmDeposit: (deposit, visit, signal) => confirm(deposit, networkOf(deposit.request.network), visit, signal),
  }
}

import { type EthereumStake, ethereumStake } from '../resources/ethereum-stake.ts'
import { signerNonce } from '../resources/signer-nonce.ts'
import { type SolanaStake, solanaStake } from '../resources/solana-stake.ts'
import { type SolanaStakeAuthorization, solanaStakeAuthorization } from '../resources/solana-stake-authorization.ts'
import { type StakingApproval, stakingApproval } from '../resources/staking-approval.ts'
import { type StakingSigner, stakingSigner } from '../resources/staking-signer.ts'
import { stakingTransaction } from '../resources/staking-transaction.ts'
import { type ValidatorExit, validatorExit } from '../resources/validator-exit.ts'
import { networkOfRequest } from '../resources/validator-request.ts'
import { askedGwei, type ValidatorWithdrawal, validatorWithdrawal } from '../resources/validator-withdrawal.ts'
import { KEPT } from './engine/kept.ts'
import { isConfirmed, isDone } from './kinds/ethereum-stake/status.ts'
import { isSettledAuthorization } from './kinds/solana-stake/authorization-kind.ts'
import { isSettledSolanaStake } from './kinds/solana-stake/kind.ts'
import { isFunded, isWithdrawn } from './kinds/solana-stake/steps.ts'
import { requestIndexers, stakesByValidator } from './kinds/validator-request/requests.ts'
import { isRequestSettled } from './kinds/validator-request/status.ts'
import type { KubeObject } from './kube/objects.ts'
import { type Collections, createSagaCollection } from './saga-collection.ts'
import { isSettledRecord, type PlaceObject, placeIndexers, type RecordObject, recordIndexers, recordRanks } from './transactions/store.ts'

/** What every instance of the operator has, leader or not: the caches of the kinds that it reconciles, by name. */
export type Caches = ReturnType<typeof createCaches>

export function createCaches(collection: Collections) {
  return {
    stakes: createSagaCollection<EthereumStake & KubeObject>(collection, {
      definition: ethereumStake,
      signersOf: ({ spec }) => [spec.signer],
      // Its transaction is final: it is looked at now and then, and nothing of it is signed.
      isSettled: ({ status }) => isConfirmed(status),
      networkOf: ({ spec }) => spec.network,
      amountOf: ({ spec }) => Math.round(Number(spec.amountEth) * 1e9),
      isSlashed: ({ status }) => status?.validator?.slashed === true,
      // EIP-7002: exits and withdrawals are asked for by the withdrawal address, as long as the validator holds anything. That it has left is the staking API's word.
      controlledBy: {
        withdrawalAddress: ({ spec, status }) => (isConfirmed(status) && !isDone(status) ? spec.withdrawalAddress : undefined),
      },
      indexers: { stakeId: byStakeId, validator: stakesByValidator, unconfirmed: byUnconfirmedAddress },
    }),
    exits: createSagaCollection<ValidatorExit & KubeObject>(collection, {
      definition: validatorExit,
      signersOf: ({ spec }) => [spec.signer],
      isSettled: ({ status }) => isRequestSettled(status),
      networkOf: (request) => networkOfRequest(request) ?? '',
      amountOf: () => 0,
      indexers: requestIndexers,
    }),
    withdrawals: createSagaCollection<ValidatorWithdrawal & KubeObject>(collection, {
      definition: validatorWithdrawal,
      signersOf: ({ spec }) => [spec.signer],
      isSettled: ({ status }) => isRequestSettled(status),
      networkOf: (request) => networkOfRequest(request) ?? '',
      amountOf: ({ spec }) => Number(askedGwei(spec)),
      indexers: requestIndexers,
    }),
    authorizations: createSagaCollection<SolanaStakeAuthorization & KubeObject>(collection, {
      definition: solanaStakeAuthorization,
      signersOf: ({ spec }) => [spec.stakeAuthority?.signer, spec.withdrawAuthority?.signer].filter((name) => name !== undefined),
      isSettled: isSettledAuthorization,
      networkOf: ({ status }) => status?.network ?? '',
      amountOf: () => 0,
      indexers: { stake: ({ metadata, spec }) => [`${metadata.namespace}/${spec.stakeRef.name}`] },
    }),
    solanaStakes: createSagaCollection<SolanaStake & KubeObject>(collection, {
      definition: solanaStake,
      // Those of the spec, or whom they have handed over to.
      signersOf: ({ spec, status }) => [
        ...new Set([
          status?.handOver?.stakeSigner ?? spec.stakeAuthority.signer,
          status?.handOver?.withdrawSigner ?? spec.withdrawAuthority.signer,
        ]),
      ],
      isSettled: isSettledSolanaStake,
      networkOf: ({ spec }) => spec.network,
      amountOf: ({ spec }) => Number(spec.amountLamports),
      controlledBy: {
        stakeAuthority: ({ status }) => (isFunded(status) && !isWithdrawn(status) ? status?.stakeAuthority : undefined),
        withdrawAuthority: ({ status }) => (isFunded(status) && !isWithdrawn(status) ? status?.withdrawAuthority : undefined),
      },
      indexers: { stakeId: byStakeId },
    }),
    approvals: collection<StakingApproval & KubeObject>(stakingApproval, { kept: KEPT, indexers: { plan: byPlan } }),
    signers: collection<StakingSigner & KubeObject>(stakingSigner, { kept: KEPT }),
    records: collection<RecordObject>(stakingTransaction, {
      kept: KEPT,
      indexers: recordIndexers,
      ranks: recordRanks,
      isSettled: isSettledRecord,
    }),
    places: collection<PlaceObject>(signerNonce, { kept: KEPT, indexers: placeIndexers }),
  }
}

/** Withdrawal addresses of deposits that are not final, as far as status says. What a definition of another version lets through may have none. */
const byUnconfirmedAddress = ({ spec, status }: EthereumStake): readonly string[] => {
  const { withdrawalAddress }: Partial<EthereumStake['spec']> = spec
  return withdrawalAddress === undefined || isConfirmed(status) ? [] : [withdrawalAddress.toLowerCase()]
}
const byPlan = ({ spec }: StakingApproval): readonly string[] => [spec.planHash]
const byStakeId = ({ status }: { readonly status?: { readonly stakeId?: string | undefined } }): readonly string[] =>
  status?.stakeId === undefined ? [] : [status.stakeId]

/** The collections whose resources ask for something to be signed, each of a kind: whoever goes through them all knows a new kind by this. */
export const sagasOf = ({ stakes, exits, withdrawals, solanaStakes, authorizations }: Pick<Caches, SagaName>) =>
  [stakes, exits, withdrawals, solanaStakes, authorizations] as const
export type SagaName = 'stakes' | 'exits' | 'withdrawals' | 'solanaStakes' | 'authorizations'

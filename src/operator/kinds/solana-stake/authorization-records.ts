import { solOf } from '../../../lib/amounts.ts'
import type { Plan } from '../../../resources/plan.ts'
import type { StakingTransactionSpec } from '../../../resources/staking-transaction.ts'
import type { Origin } from '../../engine/origin.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import { transactionName } from '../../transactions/names.ts'
import { planOf } from '../../transactions/plan.ts'
import type { RecordObject } from '../../transactions/store.ts'
import type { HandOver } from './authorization-wanted.ts'
import { furthestFirst } from './records.ts'

export const PURPOSE = 'SolanaAuthorization'

export const authorizationName = ({ paid, network }: HandOver, origin: Origin): string =>
  transactionName({
    purpose: PURPOSE,
    genesisHash: network.config.genesisHash,
    stakeAccount: paid.spec.subject,
    owner: { kind: origin.kind, namespace: origin.namespace, name: origin.name, originUid: origin.uid },
  })

/** What is to be written down before a hand-over is signed. */
export function authorizationSpec({ request, network, paid, parties, stake, withdraw }: HandOver, origin: Origin): StakingTransactionSpec {
  const { payer, withdrawer } = parties
  const isThere = payer.spec.address === parties.stakeAuthority
  return {
    chain: 'Solana',
    network: network.config.name,
    genesisHash: network.config.genesisHash,
    purpose: PURPOSE,
    subject: paid.spec.subject,
    amount: `${solOf(request.amountLamports)} SOL`,
    ...(paid.spec.apiId === undefined ? {} : { apiId: paid.spec.apiId }),
    owner: { kind: origin.kind, namespace: origin.namespace, name: origin.name, originUid: origin.uid },
    generation: 0,
    signer: payer.metadata.name,
    from: parties.feePayer,
    handOver: {
      from: {
        ...(stake === undefined
          ? {}
          : { stakeAuthority: { address: parties.stakeAuthority, ...(isThere ? { signer: payer.metadata.name } : {}) } }),
        ...(withdraw === undefined ? {} : { withdrawAuthority: { address: parties.withdrawAuthority, signer: withdrawer.metadata.name } }),
      },
      to: {
        ...(stake === undefined ? {} : { stakeAuthority: stake.authority }),
        ...(withdraw === undefined ? {} : { withdrawAuthority: withdraw.authority }),
      },
    },
  }
}

/** What a hand-over does, as it was verified. `spec`: what its record says, or would say. `uid`: of the resource. */
export const authorizationPlan = (spec: StakingTransactionSpec, { parties, feeCap }: HandOver, uid: string): Plan =>
  planOf(spec, {
    uid,
    withdrawSigner: parties.withdrawer.metadata.name,
    withdrawAuthority: parties.withdrawAuthority,
    maxPriorityFeeLamports: feeCap,
  })

/** The record of a resource, by its place and its origin: the one that has come furthest. */
export const ownAuthorization = (
  log: Pick<TransactionLog, 'ofOwner'>,
  owner: { readonly kind: string; readonly namespace: string; readonly name: string; readonly uid: string | undefined },
): RecordObject | undefined =>
  log
    .ofOwner(owner)
    .filter(({ spec }) => spec.purpose === PURPOSE && (owner.uid === undefined || spec.owner.originUid === owner.uid))
    .toSorted(furthestFirst)[0]

import { solOf } from '../../../lib/amounts.ts'
import type { SolanaTransaction } from '../../../resources/solana-stake.ts'
import type { StakingTransactionSpec, TransactionPurpose } from '../../../resources/staking-transaction.ts'
import type { SolanaNetwork } from '../../ports.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import { transactionName } from '../../transactions/names.ts'
import { showsLanding, solanaMirror } from '../../transactions/solana/mirror.ts'
import { liveAttempts } from '../../transactions/solana/rules.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import type { ActionKind, SolanaPlan, StakeTerms } from './steps.ts'

export const purposes = { stake: 'SolanaStake', deactivation: 'SolanaDeactivation', withdrawal: 'SolanaWithdrawal' } as const
export const purposeOf = (kind: ActionKind): (typeof purposes)[ActionKind] => purposes[kind]
const kindsOf: ReadonlyMap<TransactionPurpose, ActionKind> = new Map(
  (Object.keys(purposes) as ActionKind[]).map((kind) => [purposes[kind], kind]),
)
export function actionOf({ spec, metadata }: RecordObject): ActionKind {
  const kind = kindsOf.get(spec.purpose)
  if (kind === undefined) throw new Error(`StakingTransaction ${metadata.name} is for no step of a Solana stake`)
  return kind
}

/** One step of one stake account: whoever else wants to take it finds this name taken. */
export const stepName = (genesisHash: string, stakeAccount: string, kind: ActionKind): string =>
  transactionName({ purpose: purposes[kind], genesisHash, stakeAccount })

/** What is to be written down before a step is signed. */
export const stepSpec = (
  { request, kind }: SolanaPlan,
  terms: StakeTerms,
  { config }: SolanaNetwork,
  signer: string = request.stakeSigner,
): StakingTransactionSpec => {
  const { origin } = request
  return {
    chain: 'Solana',
    network: config.name,
    genesisHash: config.genesisHash,
    purpose: purposes[kind],
    subject: terms.stakeAccount,
    amount: `${solOf(request.amountLamports)} SOL`,
    apiId: terms.stakeId,
    owner: { kind: origin.kind, namespace: origin.namespace, name: origin.name, originUid: origin.uid },
    generation: 0,
    signer,
    from: terms.stakeAuthority,
  }
}

type Owner = { readonly kind: string; readonly namespace: string; readonly name: string; readonly uid: string | undefined }
/** Something of it was signed, or it has landed. */
export const isBegun = ({ status }: RecordObject): boolean => status?.outcome !== undefined || (status?.attempts ?? []).length > 0
/** Something of it may land. */
export const isLive = (record: RecordObject): boolean => record.status?.outcome === undefined && liveAttempts(recordOf(record)).length > 0
const rank = (record: RecordObject): number => (record.status?.outcome !== undefined ? 3 : isLive(record) ? 2 : isBegun(record) ? 1 : 0)
/** In the order of how far they have come. */
export const furthestFirst = (a: RecordObject, b: RecordObject): number => rank(b) - rank(a)

export type OwnSteps = Readonly<Partial<Record<ActionKind, RecordObject>>>

/** The records of a resource's steps, by its place and its origin; without an origin, by its place alone. All are of the account that is paid, if one is. */
export function ownSteps(log: Pick<TransactionLog, 'ofOwner'>, owner: Owner): OwnSteps {
  const own = log
    .ofOwner(owner)
    .filter(({ spec }) => spec.chain === 'Solana' && (owner.uid === undefined || spec.owner.originUid === owner.uid))
    .toSorted(furthestFirst)
  const stake = own.find(({ spec }) => spec.purpose === purposes.stake)
  const of = (kind: ActionKind) =>
    own.find(({ spec }) => spec.purpose === purposes[kind] && (stake === undefined || spec.subject === stake.spec.subject))
  const deactivation = of('deactivation')
  const withdrawal = of('withdrawal')
  return {
    ...(stake === undefined ? {} : { stake }),
    ...(deactivation === undefined ? {} : { deactivation }),
    ...(withdrawal === undefined ? {} : { withdrawal }),
  }
}

/** What status shows of a step, as the log knows it now. `shown`: what it shows so far. */
export const mirrored = (
  log: Pick<TransactionLog, 'wasSent'>,
  record: RecordObject,
  shown: SolanaTransaction | undefined,
): SolanaTransaction | undefined => solanaMirror({ record, wasSent: (hash) => log.wasSent(record, hash) }, shown)

/** The same for status. What has landed is held in the cache without its attempts: where status shows something else, it is still to be read, and mirrored anew. */
export function shownOf(
  log: Pick<TransactionLog, 'wasSent'>,
  record: RecordObject | undefined,
  before: SolanaTransaction | undefined,
): SolanaTransaction | undefined {
  if (record === undefined) return undefined
  if (record.status?.outcome === undefined) return mirrored(log, record, before)
  return before !== undefined && showsLanding(before, record) ? before : unread(before)
}

/** It has landed, and status does not show that yet. */
const unread = (before: SolanaTransaction | undefined): SolanaTransaction => ({
  attempt: before?.attempt ?? 0,
  ...(before?.reportedSignature === undefined ? {} : { reportedSignature: before.reportedSignature }),
  state: 'Broadcast',
})

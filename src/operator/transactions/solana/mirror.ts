import type { EarlierAttempt, SolanaTransaction } from '../../../resources/solana-stake.ts'
import type { ClosedPlace, StakingTransaction, TransactionAttempt } from '../../../resources/staking-transaction.ts'

/** What a resource's status shows of one of its transactions: a mirror of the record, for people. Nothing about money is read from it. */
export interface SolanaMirrorSource {
  readonly record: Pick<StakingTransaction, 'status'>
  /** Whether an attempt was handed to a node, as far as this process knows. */
  readonly wasSent: (hash: string) => boolean
}

/** Earlier attempts that status shows; the record has them all. */
const SHOWN = 32

/** The mirror of a record; undefined while nothing of it was ever signed, and nothing has landed. */
export function solanaMirror(
  { record, wasSent }: SolanaMirrorSource,
  before: SolanaTransaction | undefined,
): SolanaTransaction | undefined {
  const { attempts = [], closed = [], outcome } = record.status ?? {}
  const numbered = attempts.map((attempt, index) => ({ attempt, number: index + 1, end: closed.find(({ nonce }) => nonce === index) }))
  const landed = outcome === undefined ? undefined : numbered.find(({ attempt }) => attempt.hash === outcome.hash)
  const current = landed ?? numbered.at(-1)
  if (current === undefined && outcome === undefined) return undefined
  const earlier = numbered
    .filter((one) => one !== current)
    .flatMap(shown)
    .slice(-SHOWN)
  const { hash = '' } = current?.attempt ?? {}
  const isSent =
    current !== undefined && (outcome !== undefined || current.end !== undefined || wasSent(hash) || before?.broadcastSignature === hash)
  return {
    attempt: current?.number ?? 0,
    ...(current === undefined ? {} : detailsOf(current.attempt)),
    ...(earlier.length === 0 ? {} : { earlier }),
    ...(isSent ? { broadcastSignature: hash } : {}),
    ...(before?.reportedSignature === undefined ? {} : { reportedSignature: before.reportedSignature }),
    ...(outcome === undefined ? stateOf(current?.end, isSent) : { state: 'Confirmed' as const, slot: outcome.blockNumber }),
    ...(outcome === undefined || outcome.hash === '' ? {} : { landedSignature: outcome.hash }),
  }
}

const detailsOf = ({ hash, apiId, lastValidBlockHeight, sinceSlot, at }: TransactionAttempt) => ({
  signature: hash,
  ...(apiId === undefined ? {} : { txId: apiId }),
  ...(lastValidBlockHeight === undefined ? {} : { lastValidBlockHeight }),
  ...(sinceSlot === undefined ? {} : { preparedAtSlot: sinceSlot }),
  preparedAt: at,
})

const stateOf = (end: ClosedPlace | undefined, isSent: boolean) => {
  if (end === undefined) return { state: isSent ? ('Broadcast' as const) : ('Prepared' as const) }
  if (end.by === 'Expired') return { state: 'Expired' as const }
  return {
    state: 'Failed' as const,
    landedSignature: end.hash,
    slot: end.blockNumber,
    ...(end.failure === undefined ? {} : { failure: end.failure }),
  }
}

function shown({
  attempt,
  number,
  end,
}: {
  attempt: TransactionAttempt
  number: number
  end: ClosedPlace | undefined
}): readonly EarlierAttempt[] {
  if (attempt.hash === '') return []
  return [{ signature: attempt.hash, attempt: number, outcome: end === undefined || end.by === 'Expired' ? 'Expired' : 'Failed' }]
}

/** Whether a mirror shows the outcome of a record that has one. */
export const showsLanding = (mirror: SolanaTransaction, { status }: Pick<StakingTransaction, 'status'>): boolean => {
  const outcome = status?.outcome
  return (
    outcome !== undefined &&
    mirror.state === 'Confirmed' &&
    mirror.slot === outcome.blockNumber &&
    (mirror.landedSignature ?? '') === outcome.hash
  )
}

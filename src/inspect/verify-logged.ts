import type { Hash, Pubkey } from '../chains/ethereum/chain.ts'
import { sameHex } from '../lib/hex.ts'
import { readOrigin } from '../operator/engine/origin.ts'
import { definitionOf } from '../operator/saga-collection.ts'
import { hashIn } from '../operator/transactions/ethereum-texts.ts'
import { transactionName } from '../operator/transactions/names.ts'
import type { EthereumStake } from '../resources/ethereum-stake.ts'
import { type StakingTransaction, stakingTransaction, type TransactionAttempt } from '../resources/staking-transaction.ts'
import type { Cluster } from './cluster.ts'
import { type Verdict, verdict } from './verdict.ts'

/** What the transaction log has of the deposit that a stake's status shows, and the versions of it that may be in a block: what landed, or all from the latest on. */
export interface Logged {
  readonly verdict: Verdict
  /** Undefined where the log does not say. */
  readonly versions?: readonly { readonly hash: Hash }[]
}

const RULE = 'transaction log'
const unknown = (says: string): Logged => ({ verdict: verdict(RULE, 'unknown', says) })
const broken = (says: string): Logged => ({ verdict: verdict(RULE, false, says) })

/**
 * Whether a deposit is this stake's. Status may be that of another stake which was paid the same to the same address, since tenants can write it; the log is
 * the operator's, and has one deposit for a key. @throws InspectError
 */
export async function lookUpLogged(
  cluster: Pick<Cluster, 'get'>,
  { metadata, status }: EthereumStake,
  { pubkey, chainId }: { readonly pubkey: Pubkey; readonly chainId: number },
  signal: AbortSignal,
): Promise<Logged> {
  const name = transactionName({ purpose: 'Deposit', chainId, pubkey })
  const record = await cluster.get<StakingTransaction>(definitionOf(stakingTransaction), { name }, signal)
  if (record === 'forbidden')
    return unknown(
      'you may not read StakingTransactions, and a status alone does not say whose deposit it shows: the chart’s ClusterRole staking-operator-signers allows it',
    )
  if (record === 'absent')
    return unknown(
      `there is no StakingTransaction ${name}, and a status alone does not say whose deposit it shows: ask who runs the operator`,
    )
  const { kind, namespace, name: of, originUid } = record.spec.owner
  const origin = readOrigin('EthereumStake', metadata)
  const isPlace = kind === 'EthereumStake' && namespace === metadata.namespace && of === metadata.name
  if (!isPlace || originUid !== (origin.is === 'own' ? origin.origin.uid : metadata.uid))
    return broken(
      `StakingTransaction ${name} has this deposit for ${isPlace ? 'an earlier resource of this name' : `${kind} ${namespace}/${of}`}: this stake’s status shows what another one has paid`,
    )
  const { outcome, attempts = [], closed = [] } = record.status ?? {}
  const calls = attempts.flatMap((attempt) => (attempt.kind === 'Call' ? [hashIn(attempt)] : []))
  const shown = status?.transaction?.hash
  if (shown !== undefined && ![...calls, ...(outcome === undefined ? [] : [hashIn(outcome)])].some((hash) => sameHex(hash, shown)))
    return broken(`StakingTransaction ${name} does not have transaction ${shown}, which this stake’s status shows`)
  const versions = (outcome === undefined ? calls.toReversed() : [hashIn(outcome)]).map((hash) => ({ hash }))
  switch (outcome?.is) {
    case 'FrontRun':
      return {
        ...broken(
          `StakingTransaction ${name} has it as FrontRun: somebody else’s deposit came before it, and gave the key their withdrawal credentials`,
        ),
        versions,
      }
    case 'Reverted':
      return { ...broken(`StakingTransaction ${name} has it as Reverted: nothing was deposited`), versions }
  }
  // Of a place that is closed nothing lands any more. It may be made again under another.
  const isClosed = ({ nonce }: TransactionAttempt): boolean => closed.some((one) => one.nonce === nonce)
  const last = closed.at(-1)
  if (last !== undefined && outcome === undefined && attempts.every(isClosed))
    return {
      ...unknown(
        `StakingTransaction ${name} has nothing of it that can still land: nonce ${last.nonce} was used by ${last.hash} (${last.by}). The stake’s conditions say whether it is made again`,
      ),
      versions,
    }
  return { verdict: verdict(RULE, true, `StakingTransaction ${name} has it for this stake`), versions }
}

import { decodeDepositCalldata } from '../../../chains/ethereum/deposit.ts'
import type { EthereumStakeBody } from '../../../contract/schemas/ethereum-stake.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { EthereumStake, EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import { isDeletionConfirmed } from '../../../resources/meta.ts'
import type { Deletion } from '../../engine/deletion.ts'
import type { ObservationIntervals, SagaKind } from '../../engine/saga-kind.ts'
import type { Networks } from '../../ports.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import { shows } from '../../transactions/mirror.ts'
import { mirrored } from '../../transactions/mirrored.ts'
import { networkGone } from '../../transactions/network-gone.ts'
import { isBegun, recordOfDeleted } from '../../transactions/owner.ts'
import { openAttempts } from '../../transactions/protocol.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import { cancelFirst, decideDeletion, type LoggedDeposit } from './deletion.ts'
import { createStakeLook } from './made-again.ts'
import { ownDeposit } from './records.ts'
import { ethereumStakeStatus, isConfirmed, isDone, isEarning, wasSlashed } from './status.ts'
import { type EthereumStakeEffects, type EthereumStakeView, ethereumStakeSteps, undoStake } from './steps.ts'
import { createUnlogged } from './unlogged.ts'

/** EthereumStake for the engine: the saga with what the engine must know besides. */
export function ethereumStakeKind(deps: {
  readonly log: TransactionLog
  readonly networks: Networks
  readonly intervals: ObservationIntervals
  /** Whether an exit of this validator was accepted, by its public key. */
  readonly exitAccepted?: (pubkey: string) => boolean
}): SagaKind<EthereumStake, EthereumStakeStatus, EthereumStakeView, EthereumStakeEffects> {
  const { log, networks, intervals } = deps
  const { chainHas, unseen, hasPaid } = createUnlogged({ log, networks })
  const look = createStakeLook({ log })

  /** The record of this resource, by its place and its origin; without an origin, by its place alone. */
  const recordFor = ({ metadata }: EthereumStake, uid: string | undefined): RecordObject | undefined =>
    ownDeposit(log, { kind: 'EthereumStake', namespace: metadata.namespace ?? '', name: metadata.name, uid })

  return {
    kind: 'EthereumStake',
    steps: () => ethereumStakeSteps,
    cancel: undoStake,
    statusOf: (resource) => resource.status,
    isSuspended: (resource) => resource.spec.suspend === true,
    view: (resource, origin, status) => ({ origin, spec: resource.spec, status, uid: resource.metadata.uid }),
    say: ethereumStakeStatus,
    hasSigned: ({ transaction }) => transaction !== undefined,
    passing: ['Pending', 'Created', 'Prepared', 'Confirming'],
    warnings: ['WithdrawalAddressIsContract'],

    mirror(resource, status, origin) {
      const record = recordFor(resource, origin?.uid)
      const adopts = resource.spec.adopt?.stakeId
      const isBound = record !== undefined && isBegun(record)
      const isOther = isBound && status.depositData !== undefined && !isOf(record, status)
      if (isOther || (!isBound && adopts !== undefined && status.stakeId !== undefined && status.stakeId !== adopts)) {
        // Somebody wrote another stake there, or spec.adopt names another: it is read again, and verified again.
        const { transaction: _t, stakeId: _s, depositData: _d, verifiedRoot: _v, plan: _p, ...kept } = status
        return kept
      }
      // What was lost is read again at the staking API, by the log's own word.
      if (record?.status?.outcome !== undefined && record.spec.apiId !== undefined && status.stakeId === undefined)
        return { ...status, stakeId: record.spec.apiId }
      const { transaction, ...rest } = status
      if (record === undefined) return transaction === undefined ? status : rest
      // What landed is held in the cache without its versions: where status shows something else, it is read and mirrored anew.
      if (record.status?.outcome !== undefined) return transaction === undefined || shows(transaction, record) ? status : rest
      const next = mirrored(log, record, transaction)
      return next === undefined ? (transaction === undefined ? status : rest) : { ...status, transaction: next }
    },

    async decideDeletion(resource, status, origin, signal) {
      const record = recordOfDeleted((uid) => recordFor(resource, uid), resource.metadata, origin)
      const seen = logged(record)
      const decision = decideDeletion(resource, status, seen)
      /** A copy cancels nothing, nor one whose network is gone from the configuration: they go. */
      const released = (as: LoggedDeposit, then: Deletion): Deletion =>
        origin === undefined || networks.ethereum(resource.spec.network) === undefined ? then : cancelFirst(resource, status, as, then)
      if (decision.do !== 'release' || isDeletionConfirmed(resource)) return released(seen, decision)
      // Made, and nothing was signed for it: it may be younger than a log that was lost, and the chain says whether money is there.
      if (record !== undefined) {
        const onChain: LoggedDeposit = seen.is === 'idle' ? await hasPaid(resource, record, signal) : seen
        return onChain.is === 'none' ? released(seen, decision) : released(onChain, decideDeletion(resource, status, onChain))
      }
      if (status.depositData === undefined) {
        const found = await unseen(resource, signal)
        return released(found, decideDeletion(resource, status, found))
      }
      // What a resource elsewhere has paid holds that one: this one only asked to adopt it. Its own record is its own under any origin.
      const records = log.ofSubject(status.depositData.pubkey)
      if (records.length > 0 && records.every(({ spec: { owner } }) => !isPlaceOf(owner, resource))) return decision
      // The log has nothing of it, and may have been set back: the chain says whether money of it is there.
      const shown = await chainHas(resource, status.depositData, signal)
      // One that it has made is cancelled before it goes, which the staking API refuses once it was told of it; of one that was adopted, it is asked that here.
      const onChain = shown.is === 'none' && resource.spec.adopt !== undefined ? await unseen(resource, signal) : shown
      return released(onChain, decideDeletion(resource, status, onChain))
    },

    observeEvery: (status) => {
      if (!isConfirmed(status) || isDone(status)) return undefined
      // What moves is looked at more often: it becomes active, or it leaves.
      const isMoving = !isEarning(status) || deps.exitAccepted?.(status.depositData?.pubkey ?? '') === true
      return isMoving ? intervals.activatingMs : intervals.settledMs
    },

    async observe(resource, status, signal) {
      const network = networks.ethereum(resource.spec.network)
      if (network === undefined) throw networkGone(resource.spec.network)
      if (status.stakeId === undefined || status.depositData === undefined) return status
      const record = recordFor(resource, undefined)
      // Ready is what is there: what landed is looked up again, and followed anew where it is gone.
      if (record !== undefined && (await log.recheck(record, network.chain, signal)).status?.outcome === undefined) {
        const { transaction: _gone, ...rest } = status
        return rest
      }
      const { stakeId, validator, consensus } = await look(status.stakeId, resource, record, network, signal)
      const { pubkey } = status.depositData
      // What the service says of another validator is no news of this one.
      if (validator.pubkey.toLowerCase() !== pubkey.toLowerCase()) return status
      const decided = consensusOf(consensus)
      const { consensus: _before, ...undecided } = status
      return {
        ...undecided,
        stakeId,
        ...(decided === undefined ? {} : { consensus: decided }),
        validator: {
          pubkey,
          status: validator.status,
          ...(validator.index === undefined ? {} : { index: String(validator.index) }),
          ...(wasSlashed(validator.status, status.validator) ? { slashed: true } : {}),
        },
      }
    },
  }
}

/** What was made of the deposit, by the staking API's word: its code for the rule, and none of its text. */
function consensusOf(said: EthereumStakeBody['consensus']): EthereumStakeStatus['consensus'] {
  if (said === undefined || said.status === 'pending') return undefined
  if (said.status === 'accepted') return { status: 'Accepted' }
  const [, rule] = /^([a-z][a-z0-9-]{0,63}): /.exec(said.reason ?? '') ?? []
  return { status: 'Dropped', ...(rule === undefined ? {} : { rule }) }
}

const isPlaceOf = (owner: { readonly namespace: string; readonly name: string }, { metadata }: EthereumStake): boolean =>
  owner.namespace === metadata.namespace && owner.name === metadata.name

/** Whether status shows the stake that the record pays. Of one that has landed the cache holds no call: its validator and its stake are compared. */
function isOf({ spec }: RecordObject, { stakeId, depositData }: EthereumStakeStatus): boolean {
  if (depositData === undefined || !sameHex(depositData.pubkey, spec.subject)) return false
  if (spec.apiId !== undefined && stakeId !== undefined && stakeId !== spec.apiId) return false
  if (spec.call === undefined) return true
  const paid = decodeDepositCalldata(spec.call.data)
  return (
    sameHex(depositData.withdrawalCredentials, paid.withdrawalCredentials) &&
    sameHex(depositData.signature, paid.signature) &&
    sameHex(depositData.depositDataRoot, paid.depositDataRoot) &&
    `${depositData.amountGwei}000000000` === spec.call.valueWei
  )
}

function logged(record: RecordObject | undefined): LoggedDeposit {
  if (record === undefined) return { is: 'none' }
  const { outcome, place } = record.status ?? {}
  if (outcome !== undefined) return outcome.is === 'Reverted' ? { is: 'reverted' } : { is: 'landed', pubkey: record.spec.subject }
  if (place === undefined) return { is: 'idle' }
  return { is: 'open', hash: openAttempts(recordOf(record)).at(-1)?.hash ?? '', nonce: place }
}

import { sameHex } from '../../lib/hex.ts'
import type { ShownPlan } from '../../resources/plan.ts'
import type { StakingTransactionSpec, TransactionAttempt, TransactionOwner } from '../../resources/staking-transaction.ts'
import { conflict, stall } from '../engine/verdict.ts'
import type { LaneChain } from './chain-port.ts'
import type { Memory, Standing } from './memory.ts'
import { isSameOwner, notedOwner } from './noted-owner.ts'
import { attemptsOf, closedOf, mayBeHandedOver, reopened, withDropped } from './protocol.ts'
import { type RecordObject, recordOf, type TransactionStore } from './store.ts'

/** What a kind asks of the log. It makes records and reads them; only the log's own controller signs. */
export interface TransactionLog {
  find(name: string): RecordObject | undefined
  /** Past the cache. */
  read(name: string, signal: AbortSignal): Promise<RecordObject | undefined>
  /** Every record of a resource, by its kind, namespace and name. */
  ofOwner(owner: Pick<TransactionOwner, 'kind' | 'namespace' | 'name'>): readonly RecordObject[]
  /** Every record of the resource of this one, as they stood when it was written last, or later. */
  beside(record: RecordObject, signal: AbortSignal): Promise<readonly RecordObject[]>
  /** Every record about a validator or stake account. */
  ofSubject(subject: string): readonly RecordObject[]
  /**
   * Makes the record, or finds it. One whose owner is gone, or whose signer has another address now, passes over where nothing of it can land.
   * `givesWay`: whether an owner that is still there has no more use for it now, as for one that is suspended. Asked only where it may pass.
   * @throws Halt where it belongs to another resource, or asks for something else
   */
  ensure(
    name: string,
    spec: StakingTransactionSpec,
    signal: AbortSignal,
    givesWay?: (record: RecordObject) => Promise<boolean>,
  ): Promise<RecordObject>
  /**
   * Its landing came to nothing by the consensus layer's own decision: the record may pass to another resource.
   * @returns the record as it then is; undefined where it may not
   */
  drop(record: RecordObject, hash: string, signal: AbortSignal): Promise<RecordObject | undefined>
  /** The staking API has what has landed under another id now. @returns the record as it then is */
  renamed(record: RecordObject, apiId: string, signal: AbortSignal): Promise<RecordObject>
  /**
   * Attempts of a Solana record that was never begun, which somebody else knows of: they are followed from now on. Nothing is changed where it has begun.
   * @returns the record as it then is
   */
  witness(record: RecordObject, attempts: readonly TransactionAttempt[], signal: AbortSignal): Promise<RecordObject>
  /** What a record without an outcome waits for, as this process has seen. */
  standing(name: string): Standing | undefined
  /** What of a record has to be approved, as far as this process knows; null for nothing, undefined where it was not asked. */
  planOf(record: RecordObject): ShownPlan | null | undefined
  /** Whether a version was handed to a node, as far as this process knows. */
  wasSent(record: RecordObject, hash: string): boolean
  /** Whether the staking API was told of a version, as far as this process knows. */
  wasTold(record: RecordObject, hash: string): boolean
  /**
   * Looks again whether what landed is still there: a reorg beyond a numeric depth opens the record anew, under the same nonce.
   * @returns the record as it then is
   */
  recheck(record: RecordObject, chain: Pick<LaneChain, 'trace'>, signal: AbortSignal): Promise<RecordObject>
}

const hasLanded = ({ status }: Pick<RecordObject, 'status'>): boolean => status?.outcome?.is === 'Landed'

export function createTransactionLog(deps: {
  readonly store: TransactionStore
  readonly memory: Memory
  /** Past the cache: whether the resource of this origin is still there. */
  readonly ownerExists: (owner: TransactionOwner, signal: AbortSignal) => Promise<boolean>
  readonly assertMayAct: () => void
}): TransactionLog {
  const { store, memory } = deps

  /** What a record must say for a resource to follow it: everything but who it is for and who signs. */
  function assertSameCall(record: RecordObject, wanted: StakingTransactionSpec): void {
    const { spec } = record
    const wrong = [
      spec.purpose === wanted.purpose ? [] : ['purpose'],
      spec.chain === wanted.chain && spec.chainId === wanted.chainId && spec.genesisHash === wanted.genesisHash ? [] : ['chain'],
      sameHex(spec.subject, wanted.subject) || spec.subject === wanted.subject ? [] : ['subject'],
      spec.call === undefined ||
      (wanted.call !== undefined &&
        sameHex(spec.call.to, wanted.call.to) &&
        sameHex(spec.call.data, wanted.call.data) &&
        spec.call.valueWei === wanted.call.valueWei)
        ? []
        : ['call'],
    ].flat()
    if (wrong.length > 0)
      throw stall(
        'VerificationFailed',
        `StakingTransaction ${record.metadata.name} has been made for this before, with another ${wrong.join(', ')} than the spec and the staking API ask for now. Nothing else is signed. Find out which of them has changed.`,
      )
  }

  async function handOver(record: RecordObject, wanted: StakingTransactionSpec, signal: AbortSignal): Promise<RecordObject> {
    const { owner, signer, from, network, apiId } = wanted
    const passed = { owner, ...(apiId === undefined ? {} : { apiId }), ...notedOwner(record) }
    deps.assertMayAct()
    // ▸ What has landed was paid by the key that has paid it: its lane and its limits go by that, whose signer ever shows it.
    if (hasLanded(record)) return store.writeSpec(record, passed, signal)
    return store.writeSpec(record, { ...passed, signer, from, network, generation: record.spec.generation + 1 }, signal)
  }

  return {
    find: store.record,
    read: store.read,
    ofOwner: store.recordsOf,
    beside: store.recordsBeside,
    ofSubject: store.recordsAbout,
    standing: memory.standing,
    planOf: (record) => memory.find(record)?.plan,
    wasSent: (record, hash) => memory.find(record)?.sent.has(hash.toLowerCase()) === true,
    wasTold: (record, hash) => memory.find(record)?.told.has(hash.toLowerCase()) === true,

    async witness(record, attempts, signal) {
      if (attempts.length === 0 || attemptsOf(recordOf(record)).length > 0 || record.status?.outcome !== undefined) return record
      deps.assertMayAct()
      const { generation } = record.spec
      const followed = attempts.map((attempt) => ({ ...attempt, generation }))
      return store.writeStatus(record, { ...record.status, state: 'Open', attempts: followed }, signal)
    },

    async drop(record, hash, signal) {
      deps.assertMayAct()
      const status = withDropped(recordOf(record), record.spec.owner, hash)
      return status && store.writeStatus(record, status, signal)
    },

    async renamed(record, apiId, signal) {
      if (record.status?.outcome === undefined) throw new Error(`${record.metadata.name} has no outcome`)
      deps.assertMayAct()
      return store.writeSpec(record, { apiId }, signal)
    },

    async ensure(name, spec, signal, givesWay) {
      const existing = store.record(name)
      if (existing === undefined) deps.assertMayAct()
      let record = existing ?? (await store.create(name, spec, signal))
      assertSameCall(record, spec)
      const isOwn = isSameOwner(record.spec.owner, spec.owner)
      const isSameRequest = spec.apiId === undefined || spec.apiId === record.spec.apiId
      const isSameSigner = hasLanded(record) || (sameHex(record.spec.from, spec.from) && record.spec.signer === spec.signer)
      if (isOwn && isSameSigner && isSameRequest) return record
      // Somebody else's, or from before the signer had this address: only the API server's own answer counts.
      const fresh = await store.read(name, signal)
      if (fresh === undefined) throw conflict()
      record = fresh
      // ▸ A landing that was dropped stays with the limits of the key that has signed it.
      const isCounted = closedOf(recordOf(record)).some(({ by }) => by === 'Dropped') && !sameHex(record.spec.from, spec.from)
      const mayPass = mayBeHandedOver(recordOf(record)) && !isCounted
      if (isSameOwner(record.spec.owner, spec.owner)) return mayPass ? handOver(record, spec, signal) : record
      const { kind, namespace, name: ownerName } = record.spec.owner
      const isTaken = (await deps.ownerExists(record.spec.owner, signal)) && !(mayPass && (await givesWay?.(record)) === true)
      // What has landed is only shown: nothing of it is signed for whoever takes it over. ▸ But whose the money is goes by it: it stays in its namespace.
      const isElsewhere = hasLanded(record) && namespace !== spec.owner.namespace
      if (isTaken || isElsewhere || !(hasLanded(record) || mayPass))
        throw stall(
          'AdoptionMismatch',
          `StakingTransaction ${name} does this for ${kind} ${namespace}/${ownerName}${isTaken ? '' : isElsewhere ? ', which is gone; it can be adopted in that namespace alone' : isCounted ? `, which is gone, and ${record.spec.from} has signed for it before: only a StakingSigner of that address can ask for it again` : ', which is gone, and it may have landed or may still land'}. It is done once, so nothing is signed for this resource. See kubectl get stx ${name}.`,
        )
      return handOver(record, spec, signal)
    },

    async recheck(record, chain, signal) {
      const { outcome } = record.status ?? {}
      if (outcome === undefined) return record
      // The lane has seen it final a moment ago, and woke the owner, who now looks for the first time.
      if (memory.wasJustConcluded(record)) return record
      const hash = outcome.hash as `0x${string}`
      const trace = await chain.trace([hash], signal)
      const { final, mined, disagreement, silent, known } = trace
      if (final !== undefined && sameHex(final.blockHash, outcome.blockHash ?? final.blockHash)) return record
      // It is gone, or elsewhere. What one node doesn't show, or what nodes disagree about, proves nothing.
      const isGone = final === undefined && mined === undefined && known.size === 0
      if (disagreement !== undefined || (isGone && silent.length > 0)) return record
      return store.writeStatus(record, reopened(recordOf(record)), signal)
    },
  }
}

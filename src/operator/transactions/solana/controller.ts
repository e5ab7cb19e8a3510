import { SolanaError } from '../../../chains/solana/chain.ts'
import { jitter } from '../../../lib/clock.ts'
import { RECORD_FINALIZER } from '../../../resources/meta.ts'
import { classify } from '../../engine/classify.ts'
import { wait } from '../../engine/verdict.ts'
import type { Result } from '../../kube/controller.ts'
import { Priority } from '../../kube/queue.ts'
import type { SolanaNetwork } from '../../ports.ts'
import { createFinalityWatch } from '../finality.ts'
import { createHolding, isBeingDeleted } from '../held.ts'
import type { Standing } from '../memory.ts'
import { attemptsOf, closedOf } from '../protocol.ts'
import { type RecordObject, recordOf } from '../store.ts'
import { allowedBy, latestOf, type Moment, type SolanaLogDeps } from './attempt.ts'
import { createConclusions } from './conclusions.ts'
import { conclude, isSettled, liveAttempts, undone } from './rules.ts'

/** How long a record waits whose cause somebody must mend, in ms, unless a change wakes it. */
const STALLED_MS = 60_000
/** Solana makes blocks all the time: only time tells that its finality has stopped. */
const stillnessOf = ({ config }: SolanaNetwork, slot: bigint): string =>
  ` The final slot of ${config.name} has been ${slot} for more than 30 minutes: the cluster makes none, or its RPC nodes don't show it. It goes on when that moves.`
/** How often a record that somebody deletes is looked at, in ms, once it has its outcome. */
const HELD_MS = 60_000
/** What is concluded in one look leads to another conclusion: closed, then made anew. */
const MAX_CONCLUSIONS = 3

/**
 * Looks at one Solana record, by its name: what landed is concluded, what may land is sent again, and what is proven dead on every node is made anew. All
 * decisions are `rules.ts`'s; each attempt is written, fenced, before it is sent.
 */
export function createSolanaLog(deps: SolanaLogDeps): (name: string, signal: AbortSignal) => Promise<Result> {
  const { store, memory } = deps
  const act = createConclusions(deps)
  const { claim, hold, tellClaim } = createHolding(deps)
  const finality = createFinalityWatch(deps.clock)

  /** What is waited for in vain, as finality itself has stopped, is told as that: in the condition, and once to whoever owns the key that pays. */
  function withStillness(record: RecordObject, network: SolanaNetwork, verdict: Standing, slot: bigint | undefined): Standing {
    if (slot === undefined || verdict.kind !== 'wait' || verdict.reason !== 'AwaitingFinality') return verdict
    const { config } = network
    if (!finality.standsStill(config.genesisHash, slot, slot)) return verdict
    const still = { ...verdict, reason: 'NoFinality' as const, message: verdict.message + stillnessOf(network, slot) }
    if (finality.isNews(`${config.genesisHash}/${record.spec.from}`, slot))
      for (const signer of deps.signers())
        if (signer.spec.chain === 'Solana' && signer.spec.address === record.spec.from)
          deps.onAlarm?.(signer, config.name, {
            reason: 'NoFinality',
            message: `The final slot of ${config.name} has been ${slot} for more than 30 minutes, and transactions of ${record.spec.from} wait for a later one. Nothing is concluded before: look at the cluster's finality and at the RPC nodes.`,
          })
    return still
  }

  /** A deactivation that landed and was undone by somebody: done again once a person says so. */
  async function again(moment: Moment, record: RecordObject): Promise<RecordObject | undefined> {
    const full = (await store.read(record.metadata.name, moment.signal)) ?? record
    const since = BigInt(full.status?.outcome?.blockNumber ?? 0)
    const isUndone = moment.looks.every((look) => look !== undefined && !look.done && look.slot > since)
    if (full.status?.outcome?.is !== 'Landed' || !isUndone || !mayBeUndone(full)) return undefined
    return store.writeStatus(full, undone(recordOf(full)), moment.signal)
  }

  /** @param sees told of the last final slot that any node shows */
  async function work(given: RecordObject, network: SolanaNetwork, sees: (slot: bigint) => void, signal: AbortSignal): Promise<void> {
    let record: RecordObject | undefined = given
    for (let count = 0; count < MAX_CONCLUSIONS && record !== undefined; count++) {
      const moment: Moment = await momentOf(deps, record, network, signal)
      sees(latestOf(moment.looks))
      record =
        record.status?.outcome === undefined
          ? await act(moment, record, conclude(recordOf(record), moment.looks, moment.kind.step(record)))
          : await again(moment, record)
    }
  }

  /**
   * ▸ A record that somebody deletes goes once no resource needs it and nothing of it can land: without it the step would be done once more. Of another
   * that waits, whether anybody waits for it is told.
   */
  async function letGo(name: string, network: SolanaNetwork | undefined, signal: AbortSignal): Promise<void> {
    const known = store.record(name)
    if (known === undefined) return
    try {
      if (!isBeingDeleted(known)) return await tellClaim(known, signal)
      // The cache holds what has landed without its attempts.
      const record = await store.read(name, signal)
      if (record === undefined || !isBeingDeleted(record)) return
      const why =
        (await claim(record, signal)) ??
        deps.kindOf(record).keeps?.(record) ??
        (await openEnd(deps, record, network, signal)) ??
        (await deps.countedUntil(record, network, signal))
      if (why !== undefined) return await hold(record, why, signal)
      await store.releaseRecord(record, signal)
      memory.forget(record)
      deps.onPruned?.(record.spec.network, record.spec.purpose)
    } catch (error) {
      signal.throwIfAborted()
      // What can't be proven now is looked at again.
      if (classify(error).kind === 'conflict') await store.read(name, signal)
    }
  }

  return async function reconcile(name, signal): Promise<Result> {
    const record = store.record(name)
    if (record?.spec.chain !== 'Solana') return { kind: 'done' }
    if (record.status?.outcome !== undefined && !mayBeUndone(record) && !isBeingDeleted(record)) return { kind: 'done' }
    const network = deps.network(record.spec.genesisHash ?? '')
    let slot: bigint | undefined
    try {
      if (network === undefined)
        throw wait(
          'ChainUnavailable',
          `The operator's networks file has no network with genesis ${record.spec.genesisHash} any more, where StakingTransaction ${name} was made. It is followed to its end once there is one.`,
          30_000,
        )
      if (record.status?.outcome === undefined || mayBeUndone(record))
        await work(
          record,
          network,
          (seen) => {
            slot = seen
          },
          signal,
        )
    } catch (error) {
      signal.throwIfAborted()
      const verdict = classify(error)
      if (verdict.kind === 'conflict') {
        await store.read(name, signal)
        return { kind: 'wait', afterMs: jitter(50, deps.random, 0.5), priority: Priority.high }
      }
      memory.stand(store.record(name) ?? record, network === undefined ? verdict : withStillness(record, network, verdict, slot))
    }
    await letGo(name, network, signal)
    const now = store.record(name)
    if (now === undefined) return { kind: 'done' }
    if (now.status?.outcome !== undefined)
      return isBeingDeleted(now) ? { kind: 'wait', afterMs: jitter(HELD_MS, deps.random), priority: Priority.low } : { kind: 'done' }
    const standing = memory.standing(name)
    const poll = network?.config.pollIntervalMs ?? 30_000
    // What keeps it from being sent doesn't keep it from landing: what may land is watched as often as ever.
    if (liveAttempts(recordOf(now)).length > 0 || standing === undefined)
      return { kind: 'wait', afterMs: jitter(poll, deps.random), priority: Priority.high }
    const after = standing.kind === 'stall' ? (standing.recheckAfterMs ?? STALLED_MS) : (standing.afterMs ?? 0)
    const priority = standing.kind === 'stall' ? Priority.low : Priority.high
    return { kind: 'wait', afterMs: jitter(Math.max(after, poll), deps.random), priority }
  }
}

/** Why something of a record may land, or may be looked for; undefined where it is over, on every node. */
async function openEnd(
  deps: Pick<SolanaLogDeps, 'kindOf'>,
  record: RecordObject,
  network: SolanaNetwork | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (attemptsOf(recordOf(record)).length === 0 && record.status?.outcome === undefined) return undefined
  if (network === undefined)
    return `The operator's networks file has no network with genesis ${record.spec.genesisHash}, so that nothing is proven of it: add one, or remove the finalizer ${RECORD_FINALIZER} when you are certain that nothing of it can land.`
  const live = liveAttempts(recordOf(record)).at(-1)
  if (live === undefined) return undefined
  if (record.status?.outcome === undefined) return `Transaction ${live.attempt.hash} of it may still land.`
  const { looks } = await momentOf(deps, record, network, signal)
  return isSettled(recordOf(record), looks)
    ? undefined
    : `One of its transactions may still land, as far as the RPC nodes of ${network.config.name} show.`
}

/** What all nodes show of a record's account and attempts now. @throws SolanaError where none shows the account */
async function momentOf(
  { kindOf }: Pick<SolanaLogDeps, 'kindOf'>,
  record: RecordObject,
  network: SolanaNetwork,
  signal: AbortSignal,
): Promise<Moment> {
  const kind = kindOf(record)
  const looks = await network.chain.looks(
    record.spec.subject,
    attemptsOf(recordOf(record)).map(({ hash }) => hash),
    signal,
  )
  let unreadable: SolanaError | undefined
  const read = looks.map((look) => {
    try {
      return look && { ...look, done: kind.isDone(record, look) }
    } catch (error) {
      // A node whose account can't be read has given no answer.
      if (!(error instanceof SolanaError)) throw error
      unreadable = error
      return undefined
    }
  })
  if (read.every((look) => look === undefined))
    throw unreadable ?? new SolanaError('unavailable', 'no node shows the stake account as one can read it')
  return { network, kind, signal, looks: read }
}

const mayBeUndone = (record: RecordObject): boolean =>
  record.spec.purpose === 'SolanaDeactivation' && allowedBy(record) > closedOf(recordOf(record)).filter(({ by }) => by === 'Foreign').length

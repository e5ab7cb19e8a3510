import type { Clock } from '../../../lib/clock.ts'
import { jitter } from '../../../lib/clock.ts'
import { LANE_FINALIZER } from '../../../resources/meta.ts'
import type { StakingSigner, StakingSignerStatus } from '../../../resources/staking-signer.ts'
import { Halt } from '../../engine/verdict.ts'
import type { Result } from '../../kube/controller.ts'
import type { EventRecorder } from '../../kube/events.ts'
import type { Informer } from '../../kube/informer.ts'
import { sameJson } from '../../kube/merge-patch.ts'
import type { KubeObject } from '../../kube/objects.ts'
import { Priority } from '../../kube/queue.ts'
import type { SignerStore } from '../../transactions/signer-store.ts'
import type { SignerHold } from './hold.ts'
import { type SignerFacts, stakingSignerStatus } from './status.ts'

type Signer = StakingSigner & KubeObject

/** How often a status is written in which nothing but figures has moved, in ms: with many stakes they move all the time. */
const FIGURES_EVERY_MS = 5_000
/** What of a status is news at once. */
const withoutFigures = ({ lanes: _lanes, limits: _limits, balance: _balance, balanceReadAt: _at, ...news }: StakingSignerStatus) => news

export interface SignerReconcilerDeps {
  readonly store: SignerStore
  readonly informer: Pick<Informer<Signer>, 'get'>
  readonly facts: (signer: Signer, signal: AbortSignal) => Promise<SignerFacts>
  readonly hold: SignerHold
  readonly clock: Clock
  readonly events: Pick<EventRecorder, 'event'>
  /** How often a signer is looked at: key file, balance, nonces, in ms. */
  readonly intervalMs: number
  readonly onAlarm: (network: string, signer: string, reason: string) => void
  /** Takes over what an earlier version has signed. @returns ms after which it is tried again; undefined where nothing is left */
  readonly importSigner: (signer: StakingSigner, signal: AbortSignal) => Promise<number | undefined>
}

/** Looks after a signer's own conditions, and keeps a deleted one until what its key has signed is settled. */
export function createSignerReconciler(deps: SignerReconcilerDeps): (name: string, signal: AbortSignal) => Promise<Result> {
  const { store, informer, hold, clock } = deps
  /** When a signer's status was written last, in monotonic ms. */
  const writtenAt = new Map<string, number>()
  /** What people were told of a signer that its status doesn't say, as that was not written. */
  const toldUnwritten = new Map<string, StakingSignerStatus>()

  /** Ms until figures that are all the news may be written; 0 where they may be now, or where there is other news. */
  function figuresWaitMs({ metadata, status: before }: StakingSigner, after: StakingSignerStatus): number {
    if (before === undefined || sameJson(before, after) || !sameJson(withoutFigures(before), withoutFigures(after))) return 0
    const at = writtenAt.get(metadata.name)
    return at === undefined ? 0 : Math.max(0, at + FIGURES_EVERY_MS - clock.monotonicMs())
  }

  /** @returns undefined where somebody else wrote meanwhile: that is no failure */
  async function written(signer: StakingSigner, status: StakingSignerStatus, signal: AbortSignal): Promise<StakingSigner | undefined> {
    try {
      const now = await store.writeStatus(signer, status, signal)
      if (now !== signer) writtenAt.set(signer.metadata.name, clock.monotonicMs())
      return now
    } catch (error) {
      if (!(error instanceof Halt) || error.verdict.kind !== 'conflict') throw error
      await store.read(signer.metadata.name, signal)
      return undefined
    }
  }

  const condition = ({ status }: StakingSigner, type: string) => status?.conditions?.find((one) => one.type === type)

  /** What has changed for people, once, whether or not it is written. */
  function tell(known: Signer, now: Signer, { networks }: SignerFacts): void {
    const { name } = now.metadata
    const unwritten = toldUnwritten.get(name)
    const before = unwritten === undefined ? known : { ...known, status: unwritten }
    const elsewhere = condition(now, 'KeyUsedElsewhere')
    if (elsewhere?.status === 'True' && elsewhere.message !== condition(before, 'KeyUsedElsewhere')?.message) {
      deps.events.event(now, { type: 'Warning', reason: elsewhere.reason, action: 'Reconcile', note: elsewhere.message })
      deps.onAlarm(networks.find(({ foreign }) => foreign !== undefined)?.name ?? '', name, elsewhere.reason)
    }
    const funded = condition(now, 'Funded')
    const ready = condition(now, 'Ready')
    const was = condition(before, 'Ready')
    if (funded?.status === 'False' && funded.reason !== condition(before, 'Funded')?.reason && ready?.reason !== funded.reason)
      deps.events.event(now, { type: 'Warning', reason: funded.reason, action: 'Reconcile', note: funded.message })
    if (ready === undefined || (ready.status === was?.status && ready.reason === was.reason)) return
    deps.events.event(now, {
      type: ready.status === 'True' || ready.reason === 'Deleting' ? 'Normal' : 'Warning',
      reason: ready.status === 'True' ? 'Ready' : ready.reason,
      action: 'Reconcile',
      note: ready.message,
    })
    if (ready.reason === 'UnaccountedTransactions')
      deps.onAlarm(networks.find(({ unaccounted }) => unaccounted !== undefined)?.name ?? '', name, ready.reason)
  }

  return async (name, signal) => {
    const known = informer.get(name)
    if (known === undefined) {
      writtenAt.delete(name)
      toldUnwritten.delete(name)
      return { kind: 'done' }
    }
    const againMs = await deps.importSigner(known, signal)
    if (againMs !== undefined) return { kind: 'wait', afterMs: jitter(againMs), priority: Priority.high }
    const signer = await hold.settle(informer.get(name) ?? known, signal)
    if (signer === undefined) return { kind: 'done' }
    // Deleted, it is looked at until its lane is settled.
    if (signer.metadata.deletionTimestamp !== undefined && signer.metadata.finalizers?.includes(LANE_FINALIZER) !== true)
      return { kind: 'done' }
    const facts = await deps.facts(signer, signal)
    const current = informer.get(name) ?? signer
    const status = stakingSignerStatus(current, facts, clock.now())
    const waitMs = figuresWaitMs(current, status)
    if (waitMs > 0) return { kind: 'wait', afterMs: waitMs }
    const now = await written(current, status, signal).catch((error: unknown) => {
      // Whatever the API server makes of the status: somebody has to hear of it.
      if (!signal.aborted) {
        tell(current, { ...current, status }, facts)
        toldUnwritten.set(name, status)
      }
      throw error
    })
    if (now === undefined) return { kind: 'wait', afterMs: jitter(50, Math.random, 0.5) }
    tell(current, now, facts)
    toldUnwritten.delete(name)
    return { kind: 'wait', afterMs: jitter(deps.intervalMs) }
  }
}

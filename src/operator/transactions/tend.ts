import { Halt } from '../engine/verdict.ts'
import { KeyError } from '../ports.ts'
import { each } from './each.ts'
import { senderOf } from './ethereum-texts.ts'
import { hindranceOf, isHeldBack } from './hindrance.ts'
import { type LaneDeps, type Moment, nodesLacking, somebodyWaits } from './moment.ts'
import { type LaneId, laneKey, placeName } from './names.ts'
import { feeCap } from './policy.ts'
import { cancelCap, feesFor, isTooCheap } from './price.ts'
import { holesOf, isFilled, type Place, strayPlace, useOf } from './protocol.ts'
import { type RecordObject, recordOf } from './store.ts'

/** Numbers taken as fillers in one look. */
const HOLES_AT_ONCE = 50

/** Nobody can sign for it now, or may: those that wait behind it say why. What else there is to do in the lane is done. */
function leaveOpen(error: unknown): void {
  if (!(error instanceof Halt || error instanceof KeyError)) throw error
}

/** Keeps a lane without holes: takes numbers that are missing, and fills places that no transaction names with 0 wei to the signer itself. */
export function createTend(deps: LaneDeps) {
  const { store, memory, signing, clock } = deps

  /** False while people have stopped everything: what was sent is followed all the same. */
  function maySend(): boolean {
    try {
      deps.assertMayAct()
      return true
    } catch (error) {
      if (error instanceof Halt && error.verdict.kind === 'wait') return false
      throw error
    }
  }

  async function fill(moment: Moment, nonce: number): Promise<void> {
    if (!maySend()) return
    const { lane, chain, counts, network, signal } = moment
    const key = placeName(lane, nonce)
    const signer = signing.signerOf(lane, undefined)
    const market = await moment.market()
    const sent = memory.fillers.get(key)
    const lacking = nodesLacking(counts, nonce)
    const isLate = sent !== undefined && isTooCheap(sent.fees, market) && clock.monotonicMs() - sent.at > network.bumpAfterMs
    if (sent !== undefined && !isLate) {
      if (lacking.length > 0) await chain.send(sent.raw, lacking, signal)
      return
    }
    const fees = feesFor(market, cancelCap(feeCap(signer, undefined)), sent?.fees)
    if (fees === undefined) return
    deps.assertMayAct()
    const { raw, hash } = await signing.filler(lane, signer, nonce, fees, signal)
    deps.assertMayAct()
    deps.onPoint?.('before send', key)
    const answers = await chain.send(raw, 'all', signal)
    deps.onPoint?.('after send', key)
    // A node that holds another version wants more than that: the next one outbids this.
    memory.fillers.set(key, { hash, raw, fees, at: answers.some(({ is }) => is === 'taken') ? clock.monotonicMs() : 0 })
  }

  /** The record that a place was taken for, where it uses this lane. ▸ As it is in the store: a cache that lags makes fillers of places that are in use. */
  async function ownerOf({ nonce, transaction }: Place, lane: LaneId, signal: AbortSignal): Promise<RecordObject | undefined> {
    if (transaction?.name === undefined) return undefined
    const cached = store.record(transaction.name)
    if (cached?.metadata.uid === transaction.uid && cached.status?.place === nonce && cached.spec.generation === transaction.generation)
      return cached
    const record = await store.read(transaction.name, signal)
    if (record === undefined || record.metadata.uid !== transaction.uid) return undefined
    return laneKey({ chainId: record.spec.chainId ?? 0, address: senderOf(record) }) === laneKey(lane) ? record : undefined
  }

  return async function tend(moment: Moment): Promise<{ readonly isOpen: boolean }> {
    const { lane, counts, places, signal } = moment
    for (const nonce of holesOf(places, counts).slice(0, HOLES_AT_ONCE)) await store.takePlace(lane, nonce, undefined, signal)

    const now = clock.monotonicMs()
    const waits = (nonce: number) => somebodyWaits(moment, nonce, (record) => isHeldBack(memory.standing(record.metadata.name)))
    const named = new Set(store.liveIn(lane).flatMap(({ status }) => (status?.outcome === undefined ? (status?.place ?? []) : [])))
    const fillers: Place[] = []
    const all = store.placesIn(lane)
    const stray = strayPlace(all, counts) ?? Number.POSITIVE_INFINITY
    for (const place of all.values()) {
      if (place.nonce < counts.latest || place.nonce >= stray) continue
      const owner = await ownerOf(place, lane, signal)
      const known = owner === undefined ? undefined : memory.of(owner)
      const hindrance = hindranceOf(owner === undefined ? undefined : memory.standing(owner.metadata.name))
      if (known !== undefined) known.hinderedSince = hindrance === 'none' ? undefined : (known.hinderedSince ?? now)
      const hinderedMs = now - (known?.hinderedSince ?? now)
      if (
        isFilled(useOf(place, owner && recordOf(owner), named.has(place.nonce)), {
          hindrance,
          somebodyWaits: waits(place.nonce),
          hinderedMs,
        })
      )
        fillers.push(place)
    }
    await each(
      fillers.filter(({ nonce }) => waits(nonce)),
      8,
      ({ nonce }) => fill(moment, nonce).catch(leaveOpen),
    )
    for (const key of memory.fillers.keys())
      if (key.startsWith(placeName(lane, 0).slice(0, -1)) && Number(key.slice(key.lastIndexOf('-') + 1)) < counts.final)
        memory.fillers.delete(key)
    return { isOpen: fillers.length > 0 }
  }
}

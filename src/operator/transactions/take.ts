import type { StakingSigner } from '../../resources/staking-signer.ts'
import { classify } from '../engine/classify.ts'
import { type Halt, stall, wait } from '../engine/verdict.ts'
import { answering } from './delivery.ts'
import type { Drive } from './drive.ts'
import { each } from './each.ts'
import { forgottenBy } from './forgotten.ts'
import { affordable } from './funds.ts'
import { verdictOf } from './hindrance.ts'
import type { LaneDeps, Moment } from './moment.ts'
import { createPreparation, type Ready } from './preparation.ts'
import { feesOf } from './price.ts'
import { type KeyUse, type NextPlace, nextPlaces, withPlace } from './protocol.ts'
import { createRecall } from './recall.ts'
import { type RecordObject, recordOf } from './store.ts'

/** How many records are worked on at once: each costs a few requests to the API server. */
const AT_ONCE = 16

/** Gives places to the records of a lane that have none: after everything that can refuse them was asked, all of them in one look. */
export function createTake(deps: LaneDeps, { sendCall, sentSoFar }: Drive) {
  const { store, memory, signing } = deps
  const prepare = createPreparation(deps, createRecall(deps))

  /** Those whose signer stays until its lane is settled. */
  async function held(moment: Moment, ready: readonly Ready[]): Promise<readonly Ready[]> {
    const byName = Map.groupBy(ready, ({ admission }) => admission.signer.metadata.name)
    const kept: Ready[] = []
    for (const ofOne of byName.values()) {
      const [first] = ofOne
      if (first === undefined) continue
      const isHeld = await guarded(moment, first.record, async () => {
        await deps.holdSigner(first.admission.signer, moment.signal)
        return true
      })
      if (isHeld === true) kept.push(...ofOne)
    }
    return ready.filter((one) => kept.includes(one))
  }

  function keyUse(lane: Moment['lane']): KeyUse {
    const signer = signing.signerOf(lane, undefined)
    return { acknowledged: signer.spec.acknowledgedNonce, shared: signer.spec.policy.sharedKey === true }
  }

  /** Takes a place and names it, with the first attempt; tells; looks at owner and signer once more; sends. */
  async function enter(moment: Moment, { record, admission, fees, gas, value }: Ready, nonce: number, isResumed: boolean): Promise<void> {
    const { lane, signal } = moment
    const by = { ...recordOf(record), name: record.metadata.name }
    const place = await store.takePlace(lane, nonce, by, signal)
    // Another took it, or it stood there and the cache did not show it: the next look decides.
    if (!place.created && !isResumed) return
    if (place.transaction?.uid !== by.uid || place.transaction.generation !== by.generation) return
    const signed = await signing.version(record, admission.signer, { kind: 'Call', nonce, gas, fees, valueWei: value }, signal)
    const written = await store.writeStatus(record, withPlace(recordOf(record), nonce, signed.attempt), signal)
    const known = memory.of(written)
    known.freshPlace = true
    known.hinderedSince = undefined
    known.bumpedAt = deps.clock.monotonicMs()
    known.seenAt.set(signed.attempt.hash.toLowerCase(), deps.clock.monotonicMs())
    deps.onEvent?.(written, {
      is: 'attempt',
      kind: 'Call',
      hash: signed.attempt.hash,
      nonce,
      maxFeePerGasWei: feesOf(signed.attempt).maxFeePerGas.toString(),
    })
    await sendCall(moment, written, signed.attempt, admission.signer, answering(moment))
    sentSoFar(moment, written, signed.attempt)
  }

  /** What keeps one record back is its own affair: it is written down for its owner, and the others go on. */
  async function guarded<T>(moment: Moment, record: RecordObject, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      moment.signal.throwIfAborted()
      const found = classify(error)
      if (found.kind === 'conflict') await store.read(record.metadata.name, moment.signal)
      else memory.stand(store.record(record.metadata.name) ?? record, found)
      return undefined
    }
  }

  return async function take(moment: Moment): Promise<void> {
    const { lane, counts, signal } = moment
    const waiting = moment.records.filter(({ status }) => status?.place === undefined && status?.outcome === undefined)
    if (waiting.length === 0) return
    const prepared = (await each(waiting, AT_ONCE, (record) => guarded(moment, record, () => prepare(moment, record)))).flatMap(
      (one) => one ?? [],
    )
    const ready = await held(moment, await affordable(memory, moment, prepared))
    if (ready.length === 0) return

    // A place that was taken for a record which never came to name it is its own.
    const resumed = new Map<string, number>()
    const free: Ready[] = []
    for (const one of ready) {
      const forgotten = await forgottenBy(deps, moment, one.record)
      const [own] = forgotten
      if (own === undefined) free.push(one)
      else if (forgotten.length === 1 && own.mayGoOn) resumed.set(one.record.metadata.uid, own.nonce)
      else
        memory.stand(one.record, {
          kind: 'wait',
          reason: 'WaitingForNonce',
          message: `Nonce ${own.nonce} was taken for this before, and the log does not say what became of it. It is made again once every RPC node counts beyond that nonce.`,
          afterMs: moment.network.config.pollIntervalMs,
        })
    }
    const given = new Map<string, number>(resumed)
    if (free.length > 0) {
      const use = keyUse(lane)
      let next = nextPlaces(moment.places, counts, use, free.length)
      // The cache may lag behind the log (a new leader's does): nobody is alarmed before it was read afresh.
      if (next.is === 'unaccounted') next = nextPlaces(await store.readPlaces(lane, signal), counts, use, free.length)
      if (next.is === 'free') for (const [index, nonce] of next.nonces.entries()) given.set(free[index]?.record.metadata.uid ?? '', nonce)
      else for (const { record } of free) memory.stand(record, verdictOf(refusal(moment, next, signing.signerOf(lane, record.spec.signer))))
    }
    await each(ready, AT_ONCE, async (one) => {
      const nonce = given.get(one.record.metadata.uid)
      if (nonce !== undefined) await guarded(moment, one.record, () => enter(moment, one, nonce, resumed.has(one.record.metadata.uid)))
    })
  }
}

/** Why no place can be given out now. */
function refusal({ lane, network }: Moment, next: Exclude<NextPlace, { is: 'free' }>, signer: StakingSigner): Halt {
  const after = network.config.pollIntervalMs
  switch (next.is) {
    case 'unaccounted':
      return stall(
        'UnaccountedTransactions',
        `The chain shows ${next.count} transactions of ${lane.address} on ${network.config.name}, but the log of StakingSigner ${signer.metadata.name} knows of those below nonce ${next.from} only. Look at them: one may be a deposit that these manifests made before. Then set spec.acknowledgedNonce: ${next.count} (or policy.sharedKey: true where the key is used elsewhere on purpose).`,
      )
    case 'not-final':
      return wait(
        'WaitingForNonce',
        `Transactions of ${lane.address} on ${network.config.name} from nonce ${next.from} on are not in the log and not final yet: one may be what is about to be made once more. It goes on when they are final.`,
        after,
      )
    case 'hole':
      return wait(
        'WaitingForNonce',
        `Nonce ${next.nonce} of ${lane.address} on ${network.config.name} is missing in the log; it is filled first.`,
        after,
      )
  }
}

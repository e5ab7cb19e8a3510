import { timestamp } from '../../resources/conditions.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import { classify } from '../engine/classify.ts'
import { type Halt, stall, wait } from '../engine/verdict.ts'
import { answering } from './delivery.ts'
import type { Drive } from './drive.ts'
import { each } from './each.ts'
import { forgottenBy } from './forgotten.ts'
import { type Affordable, affordable } from './funds.ts'
import { isHeldBack, verdictOf } from './hindrance.ts'
import type { Room } from './limiter.ts'
import type { LaneDeps, Moment } from './moment.ts'
import { placeName } from './names.ts'
import { createPreparation, type Ready } from './preparation.ts'
import { feesOf } from './price.ts'
import { type KeyUse, MAX_HOLES, type NextPlace, nextPlaces, type Place, strayPlace, withPlace } from './protocol.ts'
import { createRecall } from './recall.ts'
import { type RecordObject, recordOf } from './store.ts'

/** How many records are worked on at once: each costs a few requests to the API server. */
const AT_ONCE = 16
/** Places that one look gives out at most: what was sent is to be seen to its end before all of a thousand others are. */
const MOST_IN_ONE_LOOK = 64

type Taken = Place & { readonly created: boolean }

/** Gives places to the records of a lane that have none: after everything that can refuse them was asked, all of them in one look. */
export function createTake(deps: LaneDeps, { sendCall, sentSoFar }: Drive) {
  const { store, memory, signing } = deps
  const prepare = createPreparation(deps, createRecall(deps))

  /** @throws Halt where its signer was suspended since it was asked: no nonce is spent on what would not be signed */
  const takePlace = async ({ lane, signal }: Moment, { record, admission }: Ready, nonce: number): Promise<Taken> => {
    signing.assertMaySign(admission.signer)
    return store.takePlace(lane, nonce, { ...recordOf(record), name: record.metadata.name }, signal)
  }

  /** Takes a place, or has one, and names it, with the first attempt; tells; looks at owner and signer once more; sends. */
  async function enter(
    moment: Moment,
    ready: Ready,
    { nonce, isResumed, taken }: { readonly nonce: number; readonly isResumed: boolean; readonly taken: Taken | undefined },
  ): Promise<void> {
    const { signal } = moment
    const { record, admission, fees, gas, value, approval } = ready
    const by = recordOf(record)
    const place = taken ?? (await takePlace(moment, ready, nonce))
    // Another took it, or it stood there and the cache did not show it: the next look decides.
    if (!place.created && !isResumed) return
    if (place.transaction?.uid !== by.uid || place.transaction.generation !== by.generation) return
    const signed = await signing.version(record, admission.signer, { kind: 'Call', nonce, gas, fees, valueWei: value }, signal)
    const written = await store.writeStatus(
      record,
      withPlace(recordOf(record), nonce, { ...signed.attempt, ...blockAt(moment), ...(approval === undefined ? {} : { approval }) }),
      signal,
    )
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

  /**
   * The first that may go, as many as one look takes, and the nonces that some of them go on with. Those that may not hold no other's turn: however many
   * there are, they are passed over.
   */
  async function firstReady(moment: Moment, room: Room, waiting: readonly RecordObject[]) {
    const prepared: Ready[] = []
    const resumed = new Map<string, number>()
    let ready: readonly Ready[] = []
    let left = waiting
    while (left.length > 0 && ready.length < MOST_IN_ONE_LOOK) {
      const next = left.slice(0, MOST_IN_ONE_LOOK - ready.length)
      left = left.slice(next.length)
      const found = await each(next, AT_ONCE, (record) => guarded(moment, record, () => prepare(moment, record)))
      for (const one of found) {
        if (one === undefined) continue
        const nonce = await takenBefore(deps, moment, one.record)
        if (nonce === undefined) continue
        if (nonce !== null) resumed.set(one.record.metadata.uid, nonce)
        prepared.push(one)
      }
      const paid = await affordable(memory, moment, prepared, room.pass())
      ready = await held(deps, guarded, moment, paid.ready)
      left = stillWorthAsking(deps, room.after(ready.map(({ record }) => record)), paid, left)
    }
    return { ready, resumed, isCut: left.length > 0 }
  }

  /** @returns whether others may go that this look had no time for */
  return async function take(moment: Moment): Promise<boolean> {
    const { lane } = moment
    const waiting = moment.records.filter(({ status }) => status?.place === undefined && status?.outcome === undefined)
    const room = await deps.limiter.look(moment)
    const inTurn = room.inTurn(waiting, ({ metadata }) => !isHeldBack(memory.standing(metadata.name)))
    const { ready, resumed, isCut } = await firstReady(moment, room, worthAsking(deps, room, inTurn))
    if (ready.length === 0) return false

    const uidOf = ({ record }: Ready): string => record.metadata.uid
    const free = ready.filter((one) => !resumed.has(uidOf(one)))
    const given = new Map<string, number>(resumed)
    if (free.length > 0) {
      const { next, isReadAgain } = await nextOf(deps, moment, free.length)
      // What a limit has room for was counted without the places that were read just now: it is counted anew.
      if (isReadAgain && room.isLimited && next.is === 'free') return true
      if (next.is === 'free') for (const [index, one] of free.entries()) given.set(uidOf(one), next.nonces[index] as number)
      else for (const { record } of free) memory.stand(record, verdictOf(refusal(moment, next, signing.signerOf(lane, record.spec.signer))))
    }
    const inOrder = room.isLimited ? await takeInOrder(guarded, takePlace, moment, free, given) : undefined
    const entered = await each(ready, MOST_IN_ONE_LOOK, async (one) => {
      const nonce = given.get(uidOf(one))
      const isResumed = resumed.has(uidOf(one))
      const taken = inOrder?.get(uidOf(one))
      if (nonce === undefined || (inOrder !== undefined && taken === undefined && !isResumed)) return undefined
      return guarded(moment, one.record, async () => {
        await enter(moment, one, { nonce, isResumed, taken })
        return true
      })
    })
    // Where none could, the next would fare no better now.
    return isCut && entered.includes(true)
  }
}

/** Does something for one record; what keeps that back is written down, and is nothing then. */
type Guarded = <T>(moment: Moment, record: RecordObject, work: () => Promise<T>) => Promise<T | undefined>

/** Those whose signer stays until its lane is settled. */
async function held(
  { holdSigner }: Pick<LaneDeps, 'holdSigner'>,
  guarded: Guarded,
  moment: Moment,
  ready: readonly Ready[],
): Promise<readonly Ready[]> {
  const byName = Map.groupBy(ready, ({ admission }) => admission.signer.metadata.name)
  const kept: Ready[] = []
  for (const ofOne of byName.values()) {
    const [first] = ofOne
    if (first === undefined) continue
    const isHeld = await guarded(moment, first.record, async () => {
      await holdSigner(first.admission.signer, moment.signal)
      return true
    })
    if (isHeld === true) kept.push(...ofOne)
  }
  return ready.filter((one) => kept.includes(one))
}

/**
 * ▸ Under a limit a place is the admission, and places are taken one after the other: the lowest number that has none, and none beyond one that somebody
 * else has. So whoever gets a number has seen every lower one, and has counted for whom each was taken, whichever leader that was.
 */
async function takeInOrder(
  guarded: Guarded,
  takePlace: (moment: Moment, ready: Ready, nonce: number) => Promise<Taken>,
  moment: Moment,
  ready: readonly Ready[],
  given: ReadonlyMap<string, number>,
): Promise<ReadonlyMap<string, Taken>> {
  const taken = new Map<string, Taken>()
  for (const one of ready) {
    const { record } = one
    const nonce = given.get(record.metadata.uid)
    if (nonce === undefined) continue
    const place = await guarded(moment, record, () => takePlace(moment, one, nonce))
    if (place?.created !== true) break
    taken.set(record.metadata.uid, place)
  }
  return taken
}

/**
 * Those that are asked whether they may go: all that a limit leaves room for, and of the others those that have their turn before one that fits, or wait for a
 * person. However many wait for a limit, nobody else is asked about them.
 */
function worthAsking(
  { memory, signers: all }: Pick<LaneDeps, 'memory' | 'signers'>,
  room: Pick<Room, 'isLimited' | 'over'>,
  waiting: readonly RecordObject[],
): readonly RecordObject[] {
  if (!room.isLimited) return waiting
  const signers = new Map([...all()].map((signer) => [signer.metadata.name, signer]))
  const over = waiting.map((record) => room.over(record, signers.get(record.spec.signer)))
  const lastThatFits = new Map<string, number>()
  for (const [index, { spec }] of waiting.entries()) if (over[index] === undefined) lastThatFits.set(spec.owner.namespace, index)
  return waiting.filter((record, index) => {
    const found = over[index]
    // Who waits for a person is asked as without a limit: it is not told to wait for room instead, nor what was done for it passed over.
    if (found === undefined || memory.standing(record.metadata.name)?.kind === 'stall') return true
    if ((lastThatFits.get(record.spec.owner.namespace) ?? -1) > index) return true
    memory.stand(record, verdictOf(found))
    return false
  })
}

/** The same of those that are left, once some are ready: for whom these have left no room, or no money, nobody is asked, since thousands may wait for it. */
function stillWorthAsking(
  deps: Pick<LaneDeps, 'memory' | 'signers'>,
  room: Pick<Room, 'isLimited' | 'over'>,
  { tooLittleFor }: Affordable,
  left: readonly RecordObject[],
): readonly RecordObject[] {
  const { memory } = deps
  return worthAsking(deps, room, left).filter((record) => {
    // What waits for something else besides is asked as before, and says that.
    const reason = memory.standing(record.metadata.name)?.reason ?? 'InsufficientFunds'
    const missing = reason === 'InsufficientFunds' ? tooLittleFor(record) : undefined
    if (missing !== undefined) memory.stand(record, verdictOf(missing))
    return missing === undefined
  })
}

/** The time of the chain, which a window of a limit goes by as well as by the clock. */
const blockAt = ({ blockSeconds }: Moment): { readonly blockAt?: string } =>
  blockSeconds === 0 ? {} : { blockAt: timestamp(new Date(blockSeconds * 1_000)) }

/** Which nonce was taken for a record before, and may be gone on with: null for none. Undefined where the log does not say what became of one. */
async function takenBefore(deps: LaneDeps, moment: Moment, record: RecordObject): Promise<number | null | undefined> {
  const forgotten = await forgottenBy(deps, moment, record)
  const [own] = forgotten
  if (own === undefined) return null
  // A place that was taken for a record which never came to name it is its own.
  if (forgotten.length === 1 && own.mayGoOn) return own.nonce
  deps.memory.stand(record, {
    kind: 'wait',
    reason: 'WaitingForNonce',
    message: `Nonce ${own.nonce} was taken for this before, and the log does not say what became of it. It is made again once every RPC node counts beyond that nonce.`,
    afterMs: moment.network.config.pollIntervalMs,
  })
  return undefined
}

/** The places that come next: by the cache, or read past it, since nobody is alarmed by a cache that lags behind the log (a new leader's does). */
async function nextOf(
  { store, signing }: Pick<LaneDeps, 'store' | 'signing'>,
  { lane, places, counts, signal }: Moment,
  wanted: number,
): Promise<{ readonly next: NextPlace; readonly isReadAgain: boolean }> {
  const use = keyUse(signing, lane)
  const next = nextPlaces(places, counts, use, wanted)
  if (next.is !== 'unaccounted') return { next, isReadAgain: false }
  return { next: nextPlaces(await store.readPlaces(lane, signal), counts, use, wanted), isReadAgain: true }
}

/** What the signer of a lane says about transactions of its key that the log does not know. */
function keyUse(signing: LaneDeps['signing'], lane: Moment['lane']): KeyUse {
  const signer = signing.signerOf(lane, undefined)
  return { acknowledged: signer.spec.acknowledgedNonce, shared: signer.spec.policy.sharedKey === true }
}

/** Why no place can be given out now. */
function refusal({ lane, network, places, counts }: Moment, next: Exclude<NextPlace, { is: 'free' }>, signer: StakingSigner): Halt {
  const after = network.config.pollIntervalMs
  switch (next.is) {
    case 'unaccounted':
      return stall(
        'UnaccountedTransactions',
        `The chain shows ${next.count} ${next.count === 1 ? 'transaction' : 'transactions'} of ${lane.address} on ${network.config.name}, but the log of StakingSigner ${signer.metadata.name} knows of those below nonce ${next.from} only. Look at them: one may be a deposit that these manifests made before. Then set spec.acknowledgedNonce: ${next.count} (or policy.sharedKey: true where the key is used elsewhere on purpose).`,
      )
    case 'not-final':
      return wait(
        'WaitingForNonce',
        `Transactions of ${lane.address} on ${network.config.name} from nonce ${next.from} on are not in the log and not final yet: one may be what is about to be made once more. It goes on when they are final.`,
        after,
      )
    case 'hole': {
      const stray = strayPlace(places, counts)
      if (stray !== undefined)
        return stall(
          'UnaccountedTransactions',
          `SignerNonce ${placeName(lane, stray)} is more than ${MAX_HOLES} numbers above what ${lane.address} has sent on ${network.config.name}: no lane has given it out, and nothing is signed beside it. Find out who made it. When you are certain that nothing of yours is under it: kubectl delete signernonce ${placeName(lane, stray)}`,
        )
      return wait(
        'WaitingForNonce',
        `Nonce ${next.nonce} of ${lane.address} on ${network.config.name} is missing in the log; it is filled first.`,
        after,
      )
    }
  }
}

import { ChainError, type Hex } from '../../chains/ethereum/chain.ts'
import type { Fees } from '../../chains/ethereum/fees.ts'
import { formatWeiAsEth, formatWeiAsGwei, type Wei } from '../../lib/amounts.ts'
import { sameHex } from '../../lib/hex.ts'
import { timestamp } from '../../resources/conditions.ts'
import { ALLOW_REMAKES_ANNOTATION, DISREGARD_SUBMISSION_ANNOTATION } from '../../resources/meta.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import type { TransactionClaim } from '../../resources/staking-transaction.ts'
import { classify } from '../engine/classify.ts'
import { type Halt, retry, stall, wait } from '../engine/verdict.ts'
import { isOver, openClaims } from './claims.ts'
import type { Drive } from './drive.ts'
import { each } from './each.ts'
import { forgottenBy } from './forgotten.ts'
import type { Admission } from './kind.ts'
import type { LaneDeps, Moment } from './moment.ts'
import { feesFor, feesOf, standsARise } from './price.ts'
import {
  backsOffUntil,
  type KeyUse,
  mayTakePlace,
  type NextPlace,
  nextPlaces,
  openAttempts,
  remakesOf,
  testimony,
  type WitnessedTransaction,
  withPlace,
} from './protocol.ts'
import { type RecordObject, recordOf } from './store.ts'

/** A record that may be signed for, at a known price: all that it needs is a place. */
interface Ready {
  readonly record: RecordObject
  readonly admission: Admission
  readonly fees: Fees
  readonly gas: bigint
  readonly value: Wei
}

/** How many records are worked on at once: each costs a few requests to the API server. */
const AT_ONCE = 16

/** Gives places to the records of a lane that have none: after everything that can refuse them was asked, all of them in one look. */
export function createTake(deps: LaneDeps, { sendCall, sentSoFar }: Drive) {
  const { store, memory, signing } = deps

  const allowedRemakes = ({ metadata }: RecordObject): number => {
    const text = metadata.annotations?.[ALLOW_REMAKES_ANNOTATION] ?? ''
    return /^[0-9]{1,2}$/.test(text) ? Number(text) : 0
  }

  /** Everything but the place. @throws Halt, or a port's error, where it can't be made now */
  async function prepare(moment: Moment, record: RecordObject): Promise<Ready | undefined> {
    const { signal, lane } = moment
    const kind = deps.kindOf(record)
    switch (mayTakePlace(recordOf(record), allowedRemakes(record))) {
      case 'settled':
      case 'has-place':
        return undefined
      case 'too-many-remakes':
        throw stall(
          'RemadeTooOften',
          `The nonces of StakingTransaction ${record.metadata.name} were used ${record.status?.closed?.length} times without doing what it is for (see its status.closed). It is not made again before somebody has looked: kubectl annotate stx ${record.metadata.name} ${ALLOW_REMAKES_ANNOTATION}=${(record.status?.closed?.length ?? 0) + 1} lets it go on.`,
        )
      case 'yes':
    }
    const from = backsOffUntil(recordOf(record))
    if (from !== undefined && moment.final < from)
      throw wait(
        'Cancelling',
        `It was cancelled ${remakesOf(recordOf(record)).cancelled} times, since it could not be sent while others waited behind it. It is made again from block ${from} on.`,
        moment.network.config.pollIntervalMs,
      )
    // Before anything that its owner or a policy says: what was sent is followed, whoever may still sign.
    if (await followsClaim(moment, record)) return undefined
    const admission = await kind.mayBeSigned(record, false, signal)
    const overtaken = await kind.overtaken(record, signal)
    if (overtaken !== undefined) throw overtaken
    const { value } = await kind.value(record, admission, signal)
    const market = await moment.market()
    const fees = feesFor(market, admission.feeCap, undefined)
    if (fees === undefined || !standsARise(fees, market))
      throw wait(
        'FeeTooHigh',
        `A gas unit costs more now than the cap of ${formatWeiAsGwei(admission.feeCap)} gwei allows with room for a rise. It goes on when the price falls, or when maxFeePerGasGwei (of this resource or the signer's policy) is raised.`,
        12_000,
      )
    const gas = await gasOf(moment, record, value)
    // The last look before a place is taken, the first and each later one.
    const witness = testimony(
      recordOf(record),
      lane,
      await kind.witnesses(record, signal),
      record.metadata.annotations?.[DISREGARD_SUBMISSION_ANNOTATION],
    )
    switch (witness.is) {
      case 'none':
        return { record, admission, fees, gas, value }
      case 'follow':
        await follow(moment, record, witness.transaction)
        return undefined
      case 'unknown-submission':
        throw stall(
          'UnknownSubmission',
          `The staking API was told of transaction ${witness.hash} for this, and no RPC node knows it. It may still land, so nothing else is signed. When you are certain that it never will: kubectl annotate stx ${record.metadata.name} ${DISREGARD_SUBMISSION_ANNOTATION}=${witness.hash}`,
        )
      case 'done-elsewhere':
        throw stall(
          'DoneElsewhere',
          `Transaction ${witness.hash} was made for this by somebody else, or by another key. Nothing is signed. Look at it on a block explorer.`,
        )
    }
  }

  async function gasOf({ chain, lane, signal }: Moment, record: RecordObject, valueWei: Wei): Promise<bigint> {
    const kind = deps.kindOf(record)
    const call = record.spec.call
    if (call === undefined) throw new Error(`StakingTransaction ${record.metadata.name} has no call`)
    let estimate: bigint
    try {
      estimate = await chain.estimateGas({ from: lane.address as Hex, to: call.to as Hex, data: call.data as Hex, valueWei }, signal)
    } catch (error) {
      if (error instanceof ChainError && error.code === 'reverted' && kind.remakeAfterRevert)
        throw retry(
          'Retrying',
          `${kind.what} would be reverted now, most likely since the contract's fee has just risen. It is tried again.`,
        )
      // What is missing is told by the lane, which knows what else is bound.
      if (!(error instanceof ChainError) || error.code !== 'insufficient-funds') throw error
      estimate = 100_000n
    }
    const storage = await chain.storageGas(signal)
    const gas = kind.gasLimit(estimate, storage)
    if (gas > kind.maxGas(storage))
      throw stall(
        'VerificationFailed',
        `${kind.what} would cost ${estimate} gas, far more than it does: the contract at ${call.to} is another one. Nothing was signed.`,
      )
    return gas
  }

  const disregardedIn = ({ metadata }: RecordObject): readonly string[] =>
    (metadata.annotations?.[DISREGARD_SUBMISSION_ANNOTATION] ?? '').toLowerCase().split(',')

  /** ▸ What an earlier version may have sent is looked for, hash by hash. @returns whether one was found and is followed @throws Halt while one may land */
  async function followsClaim(moment: Moment, record: RecordObject): Promise<boolean> {
    const { chain, lane, counts, network, signal } = moment
    const { call } = record.spec
    const claims = openClaims(recordOf(record), disregardedIn(record))
    const lost: TransactionClaim[] = []
    for (const one of claims) {
      const shown = one.hash === undefined ? undefined : await chain.transaction(one.hash as Hex, signal)
      if (shown === undefined) {
        if (!isOver(one, counts.finalEverywhere)) lost.push(one)
        continue
      }
      const isIts = shown.to !== undefined && sameHex(shown.to, call?.to ?? '') && sameHex(shown.data, call?.data ?? '')
      // Another one's: whoever wrote it into the status knows why.
      if (!isIts || !sameHex(shown.from, lane.address)) continue
      await follow(moment, record, { hash: shown.hash, from: shown.from, nonce: shown.nonce, sameCall: true })
      return true
    }
    const [first] = lost
    if (first === undefined) return false
    if (first.nonce !== undefined)
      throw wait(
        'WaitingForNonce',
        `An earlier version of the operator may have sent this under nonce ${first.nonce} of ${lane.address}. It is made again once every RPC node counts beyond that nonce and none shows it.`,
        network.config.pollIntervalMs,
      )
    throw stall(
      'UnknownSubmission',
      `An earlier version of the operator had transaction ${first.hash} for this in the resource's status, and no RPC node knows it. It may still land, so nothing else is signed. When you are certain that it never will: kubectl annotate stx ${record.metadata.name} ${DISREGARD_SUBMISSION_ANNOTATION}=${lost.flatMap(({ hash }) => hash ?? []).join(',')}`,
    )
  }

  /** ▸ A witness knows of a transaction that the record has lost: the record names its place again and follows it. */
  async function follow({ lane, signal }: Moment, record: RecordObject, { hash, nonce }: WitnessedTransaction): Promise<void> {
    await store.takePlace(lane, nonce, { ...recordOf(record), name: record.metadata.name }, signal)
    const at = timestamp(deps.clock.now())
    const written = await store.writeStatus(
      record,
      withPlace(recordOf(record), nonce, { hash, nonce, kind: 'Call', found: true, at }),
      signal,
    )
    memory.of(written).told.add(hash.toLowerCase())
    memory.of(written).sent.add(hash.toLowerCase())
    memory.stand(written, {
      kind: 'wait',
      reason: 'AwaitingFinality',
      message: `Transaction ${hash} (nonce ${nonce}) was made for this before, and this record had lost it. It is followed; nothing else is signed.`,
      afterMs: 2_000,
    })
  }

  /** Wei that open attempts may cost yet: value and highest possible fee of each. */
  const boundBy = ({ counts, records }: Moment): bigint =>
    records
      .filter(({ status }) => status?.place !== undefined && status.place >= counts.latest)
      .reduce((sum, record) => {
        const costs = openAttempts(recordOf(record)).map(
          ({ valueWei, gas, maxFeePerGasWei }) => BigInt(valueWei ?? '0') + BigInt(gas ?? '0') * BigInt(maxFeePerGasWei ?? '0'),
        )
        return sum + costs.reduce((most, cost) => (cost > most ? cost : most), 0n)
      }, 0n)

  /** Those that the balance pays for, in their order. The others are told what is missing. */
  async function affordable(moment: Moment, ready: readonly Ready[]): Promise<readonly Ready[]> {
    const { chain, lane, network, signal } = moment
    const balance = await chain.balance(lane.address as Hex, signal)
    let free = balance - boundBy(moment)
    return ready.filter(({ record, value, gas, fees }) => {
      const cost = value + gas * fees.maxFeePerGas
      if (free >= cost) {
        free -= cost
        return true
      }
      memory.stand(
        record,
        verdict(
          wait(
            'InsufficientFunds',
            `${lane.address} holds ${formatWeiAsEth(balance)} ETH on ${network.config.name}, and with what is in flight that does not cover ${formatWeiAsEth(value)} ETH and the highest possible fee. Fund the address: this goes on by itself.`,
            30_000,
          ),
        ),
      )
      return false
    })
  }

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

  const verdict = (halt: Halt) => {
    if (halt.verdict.kind === 'conflict') throw halt
    return halt.verdict
  }

  /** Takes a place and names it, with the first attempt; tells; looks at owner and signer once more; sends. */
  async function enter(moment: Moment, { record, admission, fees, gas, value }: Ready, nonce: number, isResumed: boolean): Promise<void> {
    const { lane, signal, counts } = moment
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
    const nodes = counts.nodes.flatMap((node, index) => (node === undefined ? [] : [index]))
    await sendCall(moment, written, signed.attempt, admission.signer, nodes)
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
    const ready = await held(moment, await affordable(moment, prepared))
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
      else for (const { record } of free) memory.stand(record, verdict(refusal(moment, next, signing.signerOf(lane, record.spec.signer))))
    }
    await each(ready, AT_ONCE, async (one) => {
      const nonce = given.get(one.record.metadata.uid)
      if (nonce !== undefined) await guarded(moment, one.record, () => enter(moment, one, nonce, resumed.has(one.record.metadata.uid)))
    })
  }
}

import { ChainError, type Hex, type Sent } from '../../chains/ethereum/chain.ts'
import type { FeeMarket } from '../../chains/ethereum/fees.ts'
import { StakingApiError } from '../../contract/client-error.ts'
import { formatWeiAsGwei, type Wei, wei } from '../../lib/amounts.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import type { TransactionAttempt } from '../../resources/staking-transaction.ts'
import { classify } from '../engine/classify.ts'
import { wait } from '../engine/verdict.ts'
import type { Admission } from './kind.ts'
import type { RecordMemory, Standing } from './memory.ts'
import { type LaneDeps, type Moment, nodesLacking, somebodyWaits } from './moment.ts'
import { feeCap } from './policy.ts'
import { cancelCap, feesFor, feesOf, highestFees, isBelowBaseFee, isTooCheap } from './price.ts'
import { attemptsOf, type Hindrance, isCancelling, mayAttempt, openAttempts, PATIENCE_MS, wish, withAttempt } from './protocol.ts'
import type { SignedAttempt } from './signing.ts'
import { type RecordObject, recordOf } from './store.ts'

/**
 * A refusal that an answer ends, or whoever runs the operator, and not the owner of the transaction: something does not answer, a key is being replaced,
 * a definition updated. It is given some time before the place is cancelled.
 */
const isPassing = (standing: Standing): boolean => standing.kind === 'retry' || passing.has(standing.reason)
const passing: ReadonlySet<Standing['reason']> = new Set<Standing['reason']>([
  'ServiceUnavailable',
  'ChainUnavailable',
  'HistorySyncing',
  'KeyMissing',
  'KeyMalformed',
  'KeyAddressMismatch',
  'OutdatedCRD',
  'Unauthorized',
])

/** What an error means for who waits. @throws what is a conflict, which concerns nobody but the writer */
export const standingOf = (error: unknown): Standing => {
  const verdict = classify(error)
  if (verdict.kind === 'conflict') throw error
  return verdict
}

export type Drive = ReturnType<typeof createDrive>

/** Sends what a record says under its place, again where a node lacks it, at a higher price where it waits too long; or its cancel, where it can't go. */
export function createDrive(deps: LaneDeps) {
  const { store, memory, signing, clock } = deps

  /** The version that is sent: the newest call, or the newest cancel once there is one. */
  const current = (record: RecordObject): TransactionAttempt | undefined => {
    const attempts = openAttempts(recordOf(record))
    return attempts.findLast(({ kind }) => kind === (isCancelling(recordOf(record)) ? 'Cancel' : 'Call'))
  }

  /** Nodes that have not got this version. Where a nonce has several, each node is asked: it may hold an older one. */
  async function lacking(
    { chain, counts, signal }: Moment,
    record: RecordObject,
    { hash, nonce }: TransactionAttempt,
  ): Promise<readonly number[]> {
    const bare = nodesLacking(counts, nonce ?? 0)
    const versions = openAttempts(recordOf(record))
    if (versions.length === 1) return bare
    const { lackedBy } = await chain.trace(
      versions.map((version) => version.hash as Hex),
      signal,
    )
    return [...new Set([...bare, ...(lackedBy.get(hash.toLowerCase() as Hex) ?? [])])]
  }

  /** Hands bytes to nodes. A node that refuses may have taken them anyway: that is looked up before anything is concluded from it. */
  async function send(
    moment: Moment,
    record: RecordObject,
    attempt: TransactionAttempt,
    raw: Hex,
    nodes: readonly number[],
  ): Promise<void> {
    const known = memory.of(record)
    deps.assertMayAct()
    deps.onPoint?.('before send', record.metadata.name)
    known.freshPlace = false
    const answers = await moment.chain.send(raw, nodes, moment.signal)
    deps.onPoint?.('after send', record.metadata.name)
    const taken = answers.filter((answer) => answer.is === 'taken').length
    if (taken > 0) {
      known.sent.add(attempt.hash.toLowerCase())
      known.isUnderpriced = false
      deps.onEvent?.(record, { is: 'sent', kind: attempt.kind, hash: attempt.hash, nonce: attempt.nonce ?? 0, nodes: taken })
      return
    }
    const { known: shown } = await moment.chain.trace([attempt.hash as Hex], moment.signal)
    if (shown.size > 0) {
      known.sent.add(attempt.hash.toLowerCase())
      return
    }
    refused(known, answers)
  }

  function refused(known: RecordMemory, answers: readonly Sent[]): void {
    const codes = answers.flatMap((answer) => (answer.is === 'refused' ? [answer.code] : []))
    if (codes.includes('nonce-too-low')) return
    if (codes.includes('replacement-underpriced') || codes.includes('underpriced')) {
      known.isUnderpriced = true
      return
    }
    const code = codes.find((one) => one !== 'unavailable') ?? codes[0]
    const said = answers.find((answer) => answer.is === 'refused' && answer.said !== undefined)
    if (code !== undefined)
      throw new ChainError(code, `no node took the transaction${said?.is === 'refused' && said.said !== undefined ? `: ${said.said}` : ''}`)
  }

  /** Writes a version down, fenced, before anything of it is sent. */
  async function record(moment: Moment, of: RecordObject, signed: SignedAttempt): Promise<RecordObject> {
    const written = await store.writeStatus(of, withAttempt(recordOf(of), signed.attempt), moment.signal)
    const { kind, hash, nonce, maxFeePerGasWei = '' } = signed.attempt
    memory.of(written).seenAt.set(hash.toLowerCase(), clock.monotonicMs())
    deps.onEvent?.(written, { is: 'attempt', kind, hash, nonce, maxFeePerGasWei })
    return written
  }

  /** How long a version has been waiting in this process, in ms of monotonic time. */
  function waitedMs(record: RecordObject, { hash }: TransactionAttempt): number {
    const { seenAt } = memory.of(record)
    const key = hash.toLowerCase()
    const at = seenAt.get(key) ?? clock.monotonicMs()
    seenAt.set(key, at)
    return clock.monotonicMs() - at
  }

  /** One bump a poll at most, whoever asks for it. */
  function mayBumpNow(moment: Moment, record: RecordObject): boolean {
    const { bumpedAt } = memory.of(record)
    return bumpedAt === undefined || clock.monotonicMs() - bumpedAt >= moment.network.config.pollIntervalMs * 0.9
  }

  // ---- the call

  /** Nothing is sent that the staking API was not told of. That it refuses a hash now is no reason to take another nonce at once: it is told again. */
  async function tell(of: RecordObject, { hash, nonce = 0 }: TransactionAttempt, signal: AbortSignal): Promise<void> {
    try {
      await deps.kindOf(of).tell(of, { hash: hash as Hex, from: of.spec.from as Hex, nonce }, signal)
    } catch (error) {
      if (!(error instanceof StakingApiError) || error.status !== 409) throw error
      throw wait(
        'ServiceUnavailable',
        `The staking API does not take transaction ${hash} for this now (409 ${error.code}). It is told again, and nothing is sent before.`,
        error.retryAfterMs ?? 12_000,
      )
    }
  }

  /** Tells the staking API, reads owner and signer past the cache where it was never sent from here, and sends. */
  async function sendCall(
    moment: Moment,
    of: RecordObject,
    attempt: TransactionAttempt,
    signer: StakingSigner,
    nodes: readonly number[],
  ): Promise<void> {
    const known = memory.of(of)
    const kind = deps.kindOf(of)
    const key = attempt.hash.toLowerCase()
    if (!known.told.has(key)) {
      await tell(of, attempt, moment.signal)
      known.told.add(key)
    }
    const raw = await signing.again(of, signer, attempt, moment.signal)
    if (!known.sent.has(key)) {
      const now = await kind.mayBeSigned(of, true, moment.signal)
      // The caps too are those of now.
      assertWithinCap(attempt, now.feeCap)
      await kind.value(of, now, moment.signal)
    }
    await send(moment, of, attempt, raw, nodes)
  }

  function assertWithinCap(attempt: TransactionAttempt, cap: Wei): void {
    const { maxFeePerGas } = feesOf(attempt)
    if (maxFeePerGas > cap)
      throw wait(
        'FeeTooHigh',
        `Transaction ${attempt.hash} pays up to ${formatWeiAsGwei(maxFeePerGas)} gwei per gas, and maxFeePerGasGwei (of this resource or of the signer's policy) was lowered below that. Raise it again to let it go.`,
        30_000,
      )
  }

  const tooDear = (cap: Wei, hash: string) =>
    wait(
      'FeeTooHigh',
      `Transaction ${hash} is too cheap to be mined now, and a replacement would cost more than the cap of ${formatWeiAsGwei(cap)} gwei per gas. It goes on when the price falls, or when maxFeePerGasGwei is raised. If others wait behind it, it is cancelled and made again later.`,
      12_000,
    )

  /** The price is above all that it may pay, and was for a while: a peak of a few blocks is waited for, however long it waits already. */
  function isPricedOut(market: FeeMarket, of: RecordObject, attempt: TransactionAttempt, cap: Wei): boolean {
    const known = memory.of(of)
    const isTooDear = isBelowBaseFee(feesOf(attempt), market) && feesFor(market, cap, highestFees(openAttempts(recordOf(of)))) === undefined
    known.tooDearSince = isTooDear ? (known.tooDearSince ?? clock.monotonicMs()) : undefined
    return known.tooDearSince !== undefined && clock.monotonicMs() - known.tooDearSince >= PATIENCE_MS
  }

  /** @throws Halt, or a port's error, where the call can't be sent now */
  async function driveCall(moment: Moment, of: RecordObject, admission: Admission): Promise<void> {
    const attempt = current(of)
    const { nonce } = attempt ?? {}
    if (attempt === undefined || nonce === undefined) throw new Error(`StakingTransaction ${of.metadata.name} has a place and no attempt`)
    const known = memory.of(of)
    const kind = deps.kindOf(of)
    const market = await moment.market()
    const fees = feesOf(attempt)
    if (attempt.found !== true) {
      assertWithinCap(attempt, admission.feeCap)
      const { value, least } = await kind.value(of, admission, moment.signal)
      const isShort = BigInt(attempt.valueWei ?? '0') < least
      const isLate = waitedMs(of, attempt) > moment.network.bumpAfterMs && isTooCheap(fees, market)
      if (isPricedOut(market, of, attempt, admission.feeCap)) throw tooDear(admission.feeCap, attempt.hash)
      if (
        (isShort || isLate || known.isUnderpriced || (isBelowBaseFee(fees, market) && !known.sent.has(attempt.hash.toLowerCase()))) &&
        mayBumpNow(moment, of)
      ) {
        // A node may have what it refused: no version is made while one does that would do.
        const next = feesFor(market, admission.feeCap, highestFees(openAttempts(recordOf(of))))
        if (next === undefined || mayAttempt(recordOf(of), 'Call') !== 'yes') {
          if (isShort || (isBelowBaseFee(fees, market) && !known.sent.has(attempt.hash.toLowerCase())))
            throw tooDear(admission.feeCap, attempt.hash)
        } else {
          known.bumpedAt = clock.monotonicMs()
          const signed = await signing.version(
            of,
            admission.signer,
            {
              kind: 'Call',
              nonce,
              gas: BigInt(attempt.gas ?? '0'),
              fees: next,
              valueWei: isShort ? value : wei(BigInt(attempt.valueWei ?? '0')),
            },
            moment.signal,
          )
          const written = await record(moment, of, signed)
          known.isUnderpriced = false
          const nodes = moment.counts.nodes.flatMap((node, index) => (node === undefined ? [] : [index]))
          await sendCall(moment, written, signed.attempt, admission.signer, nodes)
          return sentSoFar(moment, written, signed.attempt)
        }
      }
      // A node that drops what can't be mined at this price would be handed it at every poll: it gets it when the price has fallen.
      const isHopeless = isBelowBaseFee(fees, market) && known.sent.has(attempt.hash.toLowerCase())
      const nodes = isHopeless ? [] : await lacking(moment, of, attempt)
      if (nodes.length > 0) await sendCall(moment, of, attempt, admission.signer, nodes)
      else if (!isHopeless) known.sent.add(attempt.hash.toLowerCase())
    }
    sentSoFar(moment, of, attempt)
  }

  function sentSoFar({ network, counts }: Moment, of: RecordObject, { hash, nonce = 0 }: TransactionAttempt): void {
    const { disputed } = memory.of(of)
    if (disputed !== undefined) {
      memory.stand(of, disputed)
      return
    }
    const isBehind = counts.latest < nonce
    memory.stand(of, {
      kind: 'wait',
      reason: isBehind ? 'WaitingForNonce' : 'AwaitingFinality',
      message: isBehind
        ? `Transaction ${hash} (nonce ${nonce}) was sent and waits for an earlier transaction of the same signer: kubectl get stx shows which.`
        : `Transaction ${hash} was sent; waiting until it is mined and its block is final.`,
      afterMs: network.config.pollIntervalMs,
    })
  }

  // ---- the cancel

  async function driveCancel(moment: Moment, of: RecordObject): Promise<void> {
    const nonce = of.status?.place
    if (nonce === undefined) return
    const signer = signing.signerOf(moment.lane, of.spec.signer)
    const cap = cancelCap(feeCap(signer, undefined))
    const market = await moment.market()
    const attempts = openAttempts(recordOf(of))
    const newest = attempts.findLast(({ kind }) => kind === 'Cancel')
    const isLate = newest !== undefined && isTooCheap(feesOf(newest), market) && waitedMs(of, newest) > moment.network.bumpAfterMs
    const known = memory.of(of)
    if (
      (newest === undefined || isLate || known.isUnderpriced) &&
      mayAttempt(recordOf(of), 'Cancel') === 'yes' &&
      (newest === undefined || mayBumpNow(moment, of))
    ) {
      const fees = feesFor(market, cap, highestFees(attempts))
      if (fees === undefined && newest === undefined)
        throw wait(
          'FeeTooHigh',
          `Nonce ${nonce} is to be cancelled, and gas costs more than twice the signer's maxFeePerGasGwei. It goes on when the price falls or the policy's cap is raised.`,
          12_000,
        )
      if (fees !== undefined) {
        known.bumpedAt = clock.monotonicMs()
        known.isUnderpriced = false
        const signed = await signing.version(of, signer, { kind: 'Cancel', nonce, gas: 0n, fees, valueWei: wei(0n) }, moment.signal)
        const written = await record(moment, of, signed)
        const nodes = moment.counts.nodes.flatMap((node, index) => (node === undefined ? [] : [index]))
        await send(moment, written, signed.attempt, signed.raw, nodes)
        return
      }
    }
    if (newest === undefined) return
    const nodes = await lacking(moment, of, newest)
    if (nodes.length > 0) await send(moment, of, newest, await signing.again(of, signer, newest, moment.signal), nodes)
  }

  const isSignerLeaving = ({ spec }: RecordObject): boolean =>
    [...deps.signers()].some(({ metadata }) => metadata.name === spec.signer && metadata.deletionTimestamp !== undefined)

  /** Why nothing of the call is to be sent; undefined where it may be. */
  async function hindrance(
    moment: Moment,
    of: RecordObject,
  ): Promise<{ readonly overtaken: boolean; readonly standing: Standing } | Admission> {
    const kind = deps.kindOf(of)
    try {
      const overtaken = await kind.overtaken(of, moment.signal)
      if (overtaken !== undefined) return { overtaken: true, standing: standingOf(overtaken) }
      return await kind.mayBeSigned(of, false, moment.signal)
    } catch (error) {
      moment.signal.throwIfAborted()
      return { overtaken: false, standing: standingOf(error) }
    }
  }

  /** What to do with an open place whose nonce is not used yet. */
  async function drive(moment: Moment, of: RecordObject): Promise<void> {
    const known = memory.of(of)
    const found = await hindrance(moment, of)
    let standing: Standing
    let isOvertaken = false
    if ('signer' in found) {
      // Once its cancel is written down, nothing else of it is sent under this nonce.
      if (isCancelling(recordOf(of))) return cancel(moment, of, undefined)
      try {
        await driveCall(moment, of, found)
        known.hinderedSince = undefined
        return
      } catch (error) {
        moment.signal.throwIfAborted()
        standing = standingOf(error)
      }
    } else {
      standing = found.standing
      isOvertaken = found.overtaken
    }
    known.hinderedSince ??= clock.monotonicMs()
    // Its newest version may have been written in this very look.
    const now = store.record(of.metadata.name) ?? of
    const nonce = now.status?.place
    if (nonce === undefined || now.metadata.uid !== of.metadata.uid) return
    const decision = wish(recordOf(now), {
      hindrance: hindranceOf(standing),
      maybeSent: !known.freshPlace,
      somebodyWaits:
        isOvertaken ||
        // Another resource of the same purpose gets the record once nothing of it can land; a signer that is being deleted waits for its lane.
        standing.reason === 'OwnerGone' ||
        isSignerLeaving(now) ||
        somebodyWaits(moment, nonce, (other) => isHeldBack(memory.standing(other.metadata.name))),
      hinderedMs: clock.monotonicMs() - known.hinderedSince,
    })
    if (decision === 'cancel') await cancel(moment, now, standing)
    else memory.stand(now, standing)
  }

  /** Sends the cancel. `because`: what keeps the call back, which a person should know before anything else. */
  async function cancel(moment: Moment, of: RecordObject, because: Standing | undefined): Promise<void> {
    try {
      await driveCancel(moment, of)
      const now = store.record(of.metadata.name) ?? of
      if (because === undefined) cancelStands(moment, now)
      else memory.stand(now, because)
    } catch (error) {
      moment.signal.throwIfAborted()
      const why = standingOf(error)
      // What keeps the lane from moving is what a person must see first.
      memory.stand(of, why)
    }
  }

  function cancelStands({ network }: Moment, of: RecordObject): void {
    const { disputed } = memory.of(of)
    if (disputed !== undefined) {
      memory.stand(of, disputed)
      return
    }
    const cancel = openAttempts(recordOf(of)).findLast(({ kind }) => kind === 'Cancel')
    memory.stand(of, {
      kind: 'wait',
      reason: 'Cancelling',
      message: `Nonce ${of.status?.place} is being cancelled by transaction ${cancel?.hash ?? ''}, so that others can go on. Once that is final it is decided whether this is sent again.`,
      afterMs: network.config.pollIntervalMs,
    })
  }

  return { drive, record, sendCall, sentSoFar, attemptsOf }
}

/** What keeps a transaction from being sent, or from taking a place: nothing, something that passes, or something that needs a person or a price. */
export const hindranceOf = (standing: Standing | undefined): Hindrance =>
  standing === undefined || (standing.kind === 'wait' && behindOthers.has(standing.reason))
    ? 'none'
    : isPassing(standing)
      ? 'passing'
      : 'lasting'

/** It waits for something of its own: nobody needs to make room for it. */
export const isHeldBack = (standing: Standing | undefined): boolean =>
  standing !== undefined && (standing.kind === 'stall' || (standing.kind === 'wait' && !behindOthers.has(standing.reason)))
const behindOthers: ReadonlySet<string> = new Set(['WaitingForNonce', 'AwaitingFinality', 'NoFinality'])

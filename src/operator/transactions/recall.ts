import { sameHex } from '../../lib/hex.ts'
import { timestamp } from '../../resources/conditions.ts'
import { DISREGARD_SUBMISSION_ANNOTATION } from '../../resources/meta.ts'
import type { TransactionClaim } from '../../resources/staking-transaction.ts'
import { stall, wait } from '../engine/verdict.ts'
import { isOver, openClaims } from './claims.ts'
import { hashIn } from './ethereum-texts.ts'
import type { LaneDeps, Moment } from './moment.ts'
import { disregardedIn, type WitnessedTransaction, withPlace } from './protocol.ts'
import { type RecordObject, recordOf } from './store.ts'

export type Recall = ReturnType<typeof createRecall>

/** Follows what was sent for a record before, and the record does not have. */
export function createRecall({ store, memory, clock }: Pick<LaneDeps, 'store' | 'memory' | 'clock'>) {
  /** ▸ What an earlier version may have sent is looked for, hash by hash. @returns whether one was found and is followed @throws Halt while one may land */
  async function followsClaim(moment: Moment, record: RecordObject): Promise<boolean> {
    const { chain, lane, counts, network, signal } = moment
    const { call } = record.spec
    const claims = openClaims(recordOf(record), disregardedIn(record.metadata.annotations?.[DISREGARD_SUBMISSION_ANNOTATION]))
    const lost: TransactionClaim[] = []
    for (const one of claims) {
      const shown = one.hash === undefined ? undefined : await chain.transaction(hashIn({ hash: one.hash }), signal)
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
    const at = timestamp(clock.now())
    const written = await store.writeStatus(
      record,
      withPlace(recordOf(record), nonce, { hash, nonce, kind: 'Call', namespace: record.spec.owner.namespace, found: true, at }),
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

  return { followsClaim, follow }
}

import { sameHex } from '../../lib/hex.ts'
import { transactionPurposes } from '../../resources/staking-transaction.ts'
import { useAs } from './follow.ts'
import type { LaneDeps, Moment } from './moment.ts'
import { laneKey, placeName } from './names.ts'
import { closedOf, type Place } from './protocol.ts'
import { recordOf } from './store.ts'

/** Places of which one look asks who has used them: each costs some questions to the nodes, and they are few. */
const ASKED_AT_ONCE = 5

/**
 * Who has used the numbers that no transaction of the log accounts for: a filler, or a place that was taken and never named. A stranger's transaction under one of
 * them is told on the signer, as under any number that was given out, until a person has looked: the place stays so long.
 */
export function createStrangers({ store, memory, signers }: Pick<LaneDeps, 'store' | 'memory' | 'signers'>) {
  /** The log says what became of it, or has lost whom it was for: then it can't tell a stranger's from its own. */
  function isAccounted({ lane }: Moment, { nonce, transaction, subjects = [] }: Place): boolean {
    if (subjects.length > 0) return true
    if (transaction !== undefined) {
      const owner = transaction.name === undefined ? undefined : store.record(transaction.name)
      if (owner?.spec.call === undefined || owner.status?.place === nonce) return true
    }
    const of = [...store.liveIn(lane), ...transactionPurposes.flatMap((purpose) => [...store.concludedIn(lane, purpose, nonce)])]
    return of.some((record) => record.status?.place === nonce || closedOf(recordOf(record)).some((one) => one.nonce === nonce))
  }

  /** @returns whether the place is to stay */
  async function isTakenByOthers({ lane, chain, signal }: Moment, { nonce, transaction }: Place): Promise<boolean> {
    const acknowledged = Math.max(
      0,
      ...[...signers()].flatMap(({ spec }) =>
        spec.chain === 'Ethereum' && sameHex(spec.address, lane.address) ? (spec.acknowledgedNonce ?? 0) : [],
      ),
    )
    const key = placeName(lane, nonce)
    if (nonce < acknowledged) {
      memory.strangers.delete(key)
      return false
    }
    if (memory.strangers.has(key)) return true
    const used = await chain.nonceUse(lane.address, nonce, signal)
    if (used.is !== 'used') return false
    const call = transaction?.name === undefined ? undefined : store.record(transaction.name)?.spec.call
    if (useAs({ call, from: lane.address }, used.transaction) !== 'foreign') return false
    memory.strangers.set(key, { lane: laneKey(lane), nonce, hash: used.transaction.hash })
    return true
  }

  /** Of places that nothing needs any more, those that may go now. */
  return async function* mayGo(moment: Moment, spent: readonly Place[]): AsyncGenerator<Place> {
    let asked = 0
    for (const place of spent) {
      if (isAccounted(moment, place)) yield place
      else if (asked++ < ASKED_AT_ONCE && !(await isTakenByOthers(moment, place))) yield place
    }
    memory.lookedForStrangers.add(laneKey(moment.lane))
  }
}

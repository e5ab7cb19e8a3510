import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { StakingTransactionStatus } from '../../resources/staking-transaction.ts'
import { createStore } from '../kube/store.ts'
import type { LaneId } from './names.ts'
import { isMissing, type Place, takenBack } from './protocol.ts'
import { restore } from './restore.ts'
import { isSettledRecord, type RecordObject, recordIndexers, recordOf, recordRanks, type TransactionStore } from './store.ts'

const lane: LaneId = { chainId: 560_048, address: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266' }
const signal = AbortSignal.timeout(60_000)
const outcomeOf = (nonce: number) => ({ is: 'Landed', nonce, hash: `0x${nonce}`, blockNumber: nonce }) as const
const recordWith = (at: number, status: StakingTransactionStatus, change: Partial<RecordObject['spec']> = {}): RecordObject => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind: 'StakingTransaction',
  metadata: { name: `record-${at}`, uid: `uid-${at}`, resourceVersion: '1' },
  spec: {
    chain: 'Ethereum',
    network: 'hoodi',
    chainId: lane.chainId,
    purpose: at % 3 === 0 ? 'Withdrawal' : 'Deposit',
    subject: `0x${at}`,
    amount: '',
    owner: { kind: 'EthereumStake', namespace: 'team', name: `stake-${at}`, originUid: '' },
    generation: 0,
    signer: 'treasury',
    from: lane.address,
    ...change,
  },
  status,
})

/** The log in memory, that notes what it is asked to write, and which records were made for it. */
function logOf(records: readonly RecordObject[]) {
  const store = createStore<RecordObject>({ indexers: recordIndexers, ranks: recordRanks, isSettled: isSettledRecord })
  for (const record of records) store.set(record.metadata.name, record)
  const looked = new Set<string>()
  const written: string[] = []
  function* noting(found: Iterable<RecordObject>): Generator<RecordObject> {
    for (const record of found) {
      looked.add(record.metadata.name)
      yield record
    }
  }
  const log: Pick<TransactionStore, 'liveIn' | 'concludedIn' | 'takePlace' | 'writeStatus'> = {
    liveIn: () => [...noting(store.byIndex('lane', `${lane.chainId}/${lane.address.toLowerCase()}`))],
    concludedIn: ({ chainId, address }, purpose, from = -1) =>
      noting(store.atLeast('concluded', `${chainId}/${address.toLowerCase()} ${purpose}`, from)),
    takePlace: async (_lane, nonce, by) => {
      written.push(`place ${nonce} for ${by?.name}`)
      return { nonce, transaction: undefined, created: true }
    },
    writeStatus: async (record) => {
      written.push(`${record.metadata.name} is open again`)
      return record
    },
  }
  return { log: log as TransactionStore, looked, written }
}
const placesAt = (nonces: readonly number[]): ReadonlyMap<number, Place> =>
  new Map(nonces.map((nonce) => [nonce, { nonce, transaction: undefined }]))
const countsAt = (final: number, finalEverywhere: number | undefined = final) => ({
  final,
  latest: final,
  pending: final,
  finalEverywhere,
  nodes: [],
})

test('what a look through every record of the lane would have written is written, and nothing else', async () => {
  const nonce = fc.integer({ min: 0, max: 8 })
  const status = fc.record({ place: fc.option(nonce, { nil: undefined }), isOver: fc.boolean(), isForeign: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(
      fc.array(status, { maxLength: 8 }),
      fc.uniqueArray(nonce, { maxLength: 6 }),
      nonce,
      fc.option(nonce, { nil: undefined }),
      async (statuses, nonces, final, everywhere) => {
        const records = statuses.map(({ place, isOver, isForeign }, at) =>
          recordWith(at, {
            ...(place === undefined ? {} : { place }),
            ...(isOver ? { outcome: outcomeOf(place ?? 0) } : {}),
            ...(isForeign ? { closed: [{ nonce: 0, by: 'Foreign', hash: '0xf', blockNumber: 1 }] } : {}),
          }),
        )
        const elsewhere = recordWith(100, { place: 9, outcome: outcomeOf(9) }, { from: `0x${'1'.repeat(40)}` })
        const counts = { ...countsAt(final), finalEverywhere: everywhere }
        const places = placesAt(nonces)
        const { log, written } = logOf([...records, elsewhere])
        await restore(log, { lane, counts, places, signal })
        const wanted = records.flatMap((record) => [
          ...(isMissing(recordOf(record), places) ? [`place ${record.status?.place} for ${record.metadata.name}`] : []),
          ...(takenBack(recordOf(record), counts) === undefined ? [] : [`${record.metadata.name} is open again`]),
        ])
        expect(written.toSorted()).toEqual(wanted.toSorted())
      },
    ),
  )
})

test('of thousands that are over only those are looked at that the chain or the places may have fallen behind', async () => {
  const records = Array.from({ length: 3_000 }, (_, at) => recordWith(at, { place: at, outcome: outcomeOf(at) }))
  const { log, looked, written } = logOf(records)
  await restore(log, { lane, counts: countsAt(2_999), places: placesAt([2_999]), signal })
  expect([...looked]).toEqual(['record-2999'])
  expect(written).toEqual(['record-2999 is open again'])
})

import { expect, test } from 'vitest'
import type { KindDefinition } from '../resources/meta.ts'
import { signerNonce } from '../resources/signer-nonce.ts'
import { stakingSigner } from '../resources/staking-signer.ts'
import { stakingTransaction } from '../resources/staking-transaction.ts'
import { createCaches } from './caches.ts'
import type { CacheOptions } from './kube/collections.ts'
import type { KubeObject } from './kube/objects.ts'
import { createReadings, createSeen } from './readings.ts'
import { testAddress } from './testing/fake-keys.ts'
import { createFakeKube } from './testing/fake-kube.ts'
import { createTestClock } from './testing/test-clock.ts'
import { hoodi } from './testing/world.ts'
import { placeName } from './transactions/names.ts'

interface Has {
  readonly lanes?: object[]
  readonly records?: object[]
  readonly places?: number[]
  readonly conditions?: object[]
  readonly suspend?: unknown
  readonly leads?: boolean
  readonly synced?: boolean
}

/** The readings of an operator in whose cluster these objects are. */
function world({ lanes, records, places, conditions, suspend, leads = true, synced = true }: Has) {
  const clock = createTestClock()
  const kube = createFakeKube(clock)
  const caches = createCaches(<R extends KubeObject>(definition: KindDefinition, options?: CacheOptions<R>) =>
    kube.follow<R>(definition, options),
  )
  const address = testAddress(0)
  kube.collection<KubeObject>(stakingSigner).create({
    metadata: { name: 'treasury' },
    spec: { chain: 'Ethereum', address, ...(suspend !== undefined && { suspend }) },
    status: { ...(lanes && { lanes }), ...(conditions && { conditions }) },
  })
  for (const [index, status] of (records ?? []).entries())
    kube.collection<KubeObject>(stakingTransaction).create({
      metadata: { name: `record-${index}` },
      spec: {
        chainId: hoodi.chainId,
        from: address,
        generation: 0,
        subject: '0x',
        signer: 'treasury',
        owner: { kind: 'EthereumStake', namespace: 'team-a', name: `stake-${index}` },
      },
      status,
    })
  for (const nonce of places ?? [])
    kube.collection<KubeObject>(signerNonce).create({
      metadata: { name: placeName({ chainId: hoodi.chainId, address }, nonce) },
      spec: { chainId: hoodi.chainId, address: address.toLowerCase(), nonce },
    })
  return createReadings({
    elector: { isHeld: () => leads, transitions: () => 0, annotations: () => ({}) },
    caches,
    controllers: { stats: () => [] },
    collections: { informers: [['ethereumstakes', { hasSynced: () => synced } as never]] },
    networks: {
      names: (chain) => (chain === 'Ethereum' ? ['hoodi'] : []),
      ethereum: () => ({ config: hoodi }) as never,
    },
    seen: createSeen(clock),
    waits: { all: () => [] },
    nodes: { readings: () => [] },
    clock,
  })
}

const lane = { network: 'hoodi', nextNonce: 7, open: 3, waiting: 0 }
const landed = { place: 8, outcome: { is: 'Landed', hash: '0x1', blockNumber: 1 } }

test.each<{ when: string; has: Has; shows: object[] }>([
  { when: 'nothing was ever signed or looked at', has: {}, shows: [] },
  { when: 'the signer was looked at, and nothing is in the log', has: { lanes: [lane] }, shows: [{ inFlight: 0, nextNonce: 7 }] },
  {
    when: 'the log has come further than the last look at the signer',
    has: { lanes: [lane], records: [landed, { place: 9, attempts: [] }, {}], places: [8, 9] },
    shows: [{ inFlight: 1, nextNonce: 10 }],
  },
  {
    when: 'all is final, whatever the signer showed before',
    has: { lanes: [lane], records: [landed], places: [8] },
    shows: [{ inFlight: 0, nextNonce: 9 }],
  },
])("a signer's gauges, when $when, are the log's", ({ has, shows }) => {
  expect([...world(has).signers()].map(({ inFlight, nextNonce }) => ({ inFlight, nextNonce }))).toEqual(shows)
})

test.each<{ when: string; conditions: object[]; phase: string; stalled: string }>([
  { when: 'it was not looked at yet', conditions: [], phase: 'NotReady', stalled: '' },
  { when: 'it is ready', conditions: [{ type: 'Ready', status: 'True', reason: 'Succeeded' }], phase: 'Ready', stalled: '' },
  {
    when: 'it is short of funds, which needs no person where they are on their way',
    conditions: [
      { type: 'Ready', status: 'False', reason: 'InsufficientFunds' },
      { type: 'Stalled', status: 'False', reason: 'InProgress' },
    ],
    phase: 'NotReady',
    stalled: '',
  },
  {
    when: 'its key is missing',
    conditions: [
      { type: 'Ready', status: 'False', reason: 'KeyMissing' },
      { type: 'Stalled', status: 'True', reason: 'KeyMissing' },
    ],
    phase: 'NotReady',
    stalled: 'KeyMissing',
  },
])('a signer counts as stalled by its condition Stalled alone: $when', ({ conditions, phase, stalled }) => {
  expect([...world({ conditions }).resources()]).toEqual([{ kind: 'StakingSigner', phase, stalled, count: 1 }])
})

test.each([
  { suspend: true, shown: true },
  { suspend: false, shown: false },
  { suspend: undefined, shown: false },
])('a signer with spec.suspend $suspend is shown as suspended: $shown, whatever its status says first', ({ suspend, shown }) => {
  // Its key is missing too, which is what its conditions say.
  const conditions = [{ type: 'Ready', status: 'False', reason: 'KeyMissing' }]
  expect([...world({ suspend, conditions }).suspendedSigners()]).toEqual([{ signer: 'treasury', suspended: shown }])
})

test.each([
  { when: 'it leads and its caches are whole', leads: true, synced: true, knows: true },
  { when: 'it leads and its caches are being filled', leads: true, synced: false, knows: false },
  { when: 'another leads', leads: false, synced: true, knows: false },
])('an instance tells of the fleet: $knows, when $when', ({ leads, synced, knows }) => {
  expect(world({ leads, synced }).knowsFleet()).toBe(knows)
})

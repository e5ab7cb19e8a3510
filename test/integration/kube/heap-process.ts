import { systemClock } from '../../../src/lib/clock.ts'
import { createInformer } from '../../../src/operator/kube/informer.ts'
import type { KubeObject } from '../../../src/operator/kube/objects.ts'
import { createQueue } from '../../../src/operator/kube/queue.ts'
import type { ResourceClient } from '../../../src/operator/kube/resource-client.ts'

/**
 * Prints what an object of a settled fleet takes of the heap, in bytes: in the cache, and in the queue for its next poll. The objects are of the size
 * that stakes have: 2.8 kB of JSON without their managed fields, nine conditions. Run with --expose-gc.
 */
const COUNT = 10_000
const PAGE = 500

const hex = (digits: number, seed: number): string => `0x${(seed * 7919).toString(16).padStart(digits, 'c0ffee').slice(0, digits)}`
const conditionTypes = ['Ready', 'Reconciling', 'Stalled', 'Created', 'Verified', 'Broadcast', 'Confirmed', 'Accepted', 'Active']

const stake = (index: number): KubeObject & Record<string, unknown> => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind: 'EthereumStake',
  metadata: {
    name: `stake-${index}`,
    namespace: `team-${index % 20}`,
    uid: `${String(index).padStart(8, '0')}-1b2c-4d5e-8f90-a1b2c3d4e5f6`,
    resourceVersion: String(1_000_000 + index),
    generation: 1,
    creationTimestamp: '2026-01-01T00:00:00Z',
    finalizers: ['staking.dev/holds-money'],
    annotations: { 'staking.dev/origin': `{"uid":"${index}","namespace":"team-${index % 20}","name":"stake-${index}"}` },
    managedFields: [
      {
        manager: 'operator',
        operation: 'Update',
        subresource: 'status',
        fieldsV1: { 'f:status': { 'f:stakeId': {}, 'f:conditions': { 'k:{"type":"Ready"}': {} } } },
      },
    ],
  },
  spec: { network: 'hoodi', amountEth: '32', withdrawalAddress: hex(40, index), credentialsType: 'Compounding', signer: 'treasury' },
  status: {
    stakeId: `stk_${index}`,
    phase: 'Active',
    observedGeneration: 1,
    transaction: {
      status: 'confirmed',
      blockNumber: String(index),
      attempts: [{ hash: hex(64, index), nonce: index, maxFeePerGasGwei: '30', maxPriorityFeePerGasGwei: '1' }],
    },
    validator: { pubkey: hex(96, index), index: String(index), status: 'active_ongoing' },
    conditions: conditionTypes.map((type) => ({
      type,
      status: 'True',
      reason: 'AsPlanned',
      message: 'The deposit is in a finalized block and the validator is active.',
      observedGeneration: 1,
      lastTransitionTime: `2026-01-01T00:0${index % 10}:00Z`,
    })),
  },
})

const collect = (): number => {
  globalThis.gc?.()
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

const before = collect()
let listed = 0
const client: Pick<ResourceClient<KubeObject>, 'definition' | 'list' | 'watch'> = {
  definition: { group: 'staking.dev', version: 'v1alpha1', plural: 'ethereumstakes', kind: 'EthereumStake', namespaced: true },
  // Parsed from text, as from a server: objects made in code share their strings anyway.
  list: async () => {
    const text = JSON.stringify(Array.from({ length: PAGE }, (_, index) => stake(listed + index)))
    listed += PAGE
    return { items: JSON.parse(text), bytes: text.length, resourceVersion: '9000000', ...(listed < COUNT && { continue: 'more' }) }
  },
  watch: (_options, _onEvent, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
}
const stopping = new AbortController()
const queue = createQueue({ clock: systemClock })
const informer = createInformer({
  client: client as ResourceClient<KubeObject>,
  clock: systemClock,
  onChange: (key) => queue.addAfter(key, 3_600_000),
})
const running = informer.run(stopping.signal)
await informer.whenSynced(stopping.signal)
console.log(Math.round((collect() - before) / informer.size))
stopping.abort()
queue.shutdown()
await running

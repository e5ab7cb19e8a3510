import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Hex } from '../lib/chain-types.ts'
import { FINALIZER, ORIGIN_ANNOTATION, RECORD_FINALIZER } from '../resources/meta.ts'
import { createCaches } from './caches.ts'
import { ethereumStakeStatus } from './kinds/ethereum-stake/status.ts'
import type { CacheOptions, Collection } from './kube/collections.ts'
import type { KubeObject } from './kube/objects.ts'
import { createPacking } from './kube/packed.ts'
import { transactionName } from './transactions/names.ts'

const digest = (what: string): string => createHash('sha384').update(what).digest('hex')
const hex = (bytes: number, what: string): Hex =>
  `0x${digest(what)
    .repeat(2)
    .slice(0, 2 * bytes)}`
const uid = (what: string): string => digest(what).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5')
const WALLET = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266' as const
const CONTRACT = '0x00000000219ab540356cBB839Cbe05303d7705Fa' as const
const time = (at: number): string => new Date(Date.UTC(2026, 0, 1) + at * 60_000).toISOString().replace('.000', '')

/** A stake of an active validator, as the API server has it. */
function stake(at: number): KubeObject {
  const [namespace, name] = [`team-${at % 20}`, `validator-${String(at).padStart(5, '0')}`]
  const [pubkey, hash, root] = [hex(48, `key ${at}`), hex(32, `hash ${at}`), hex(32, `root ${at}`)]
  const resource = {
    apiVersion: 'staking.dev/v1alpha1',
    kind: 'EthereumStake',
    metadata: {
      name,
      namespace,
      uid: uid(`stake ${at}`),
      resourceVersion: String(100_000 + at * 7),
      generation: 1,
      creationTimestamp: time(at),
      finalizers: [FINALIZER],
      annotations: {
        [ORIGIN_ANNOTATION]: `${uid(`stake ${at}`)}/${namespace}/${name}`,
        'kubectl.kubernetes.io/last-applied': 'x'.repeat(500),
      },
      managedFields: [{ manager: 'kubectl' }],
    },
    spec: { network: 'hoodi', amountEth: '32', withdrawalAddress: WALLET, credentialsType: 'Compounding', signer: 'treasury' },
  } as const
  const evidence = {
    stakeId: digest(`id ${at}`).slice(0, 32),
    depositData: {
      pubkey,
      withdrawalCredentials: `0x02${'0'.repeat(22)}${WALLET.slice(2).toLowerCase()}` as const,
      amountGwei: '32000000000',
      signature: hex(96, `signature ${at}`),
      depositDataRoot: root,
    },
    verifiedRoot: root,
    transaction: {
      chainId: 560_048,
      from: WALLET,
      to: CONTRACT,
      valueWei: '32000000000000000000',
      dataHash: hex(32, `data ${at}`),
      hash,
      nonce: at,
      gas: '72000',
      maxFeePerGasWei: '3000000000',
      maxPriorityFeePerGasWei: '1000000000',
      preparedAt: time(at),
      state: 'Confirmed' as const,
      broadcastHash: hash,
      reportedHash: hash,
      minedHash: hash,
      blockNumber: 1_000_000 + at * 3,
      blockHash: hex(32, `block ${at}`),
    },
    consensus: { status: 'Accepted' as const },
    validator: { pubkey, index: String(1_200_000 + at), status: 'active_ongoing' },
  }
  return {
    ...resource,
    status: ethereumStakeStatus(resource, evidence, { at: 'settled' }, new Date(Date.UTC(2026, 0, 2) + at * 60_000)),
  } as KubeObject
}

/** The record of its deposit. */
function record(at: number): KubeObject {
  const { metadata } = stake(at)
  const [pubkey, hash] = [hex(48, `key ${at}`), hex(32, `hash ${at}`)]
  return {
    apiVersion: 'staking.dev/v1alpha1',
    kind: 'StakingTransaction',
    metadata: {
      name: transactionName({ purpose: 'Deposit', chainId: 560_048, pubkey }),
      uid: uid(`record ${at}`),
      resourceVersion: String(100_003 + at * 7),
      generation: 1,
      creationTimestamp: time(at),
      finalizers: [RECORD_FINALIZER],
    },
    spec: {
      chain: 'Ethereum',
      network: 'hoodi',
      chainId: 560_048,
      purpose: 'Deposit',
      subject: pubkey,
      amount: '32 ETH',
      apiId: digest(`id ${at}`).slice(0, 32),
      owner: { kind: 'EthereumStake', namespace: metadata.namespace, name: metadata.name, originUid: metadata.uid },
      generation: 0,
      signer: 'treasury',
      from: WALLET,
      call: {
        to: CONTRACT,
        data: `0x${Array.from({ length: 5 }, (_, part) => digest(`data ${part} of ${at}`)).join('')}`,
        valueWei: '32000000000000000000',
      },
    },
    status: {
      state: 'Landed',
      place: at,
      attempts: [{ hash, kind: 'Call', nonce: at, gas: '72000', maxFeePerGasWei: '3000000000', at: time(at) }],
      outcome: { is: 'Landed', nonce: at, hash, blockNumber: 1_000_000 + at * 3, blockHash: hex(32, `block ${at}`) },
    },
  } as KubeObject
}

/** How the caches hold objects, by their plural. */
const options = new Map<string, CacheOptions<KubeObject>>()
createCaches(<R extends KubeObject>({ plural }: { readonly plural: string }, given: CacheOptions<R> = {}): Collection<R> => {
  options.set(plural, given as unknown as CacheOptions<KubeObject>)
  return { client: {}, cache: {}, onChange: () => {} } as unknown as Collection<R>
})

/** A cache takes besides, for each: 16 bytes for the text itself, its key, and 50 or so in the cache and in each index. */
test.each([
  { plural: 'ethereumstakes', make: stake, bytes: 760 },
  { plural: 'stakingtransactions', make: record, bytes: 760 },
])('of $plural that are settled the cache holds no more than $bytes bytes each', ({ plural, make, bytes }) => {
  const { transform = (object: KubeObject) => object, isSettled } = options.get(plural) ?? {}
  const packing = createPacking<KubeObject>()
  const texts = Array.from({ length: 300 }, (_, at) => {
    const held = transform(make(at))
    expect(isSettled?.(held)).toBe(true)
    const packed = packing.pack(held)
    expect(packing.unpack(packed)).toEqual(held)
    return packed
  })
  const settled = texts.slice(1)
  expect(settled.reduce((sum, text) => sum + text.length, 0) / settled.length).toBeLessThanOrEqual(bytes)
  // Each character is a byte as long as none is beyond Latin-1.
  expect(settled.filter((text) => /[^\0-\xff]/.test(text))).toEqual([])
})

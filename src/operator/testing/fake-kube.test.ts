import { describe, expect, test } from 'vitest'
import { type EthereumStake, ethereumStake } from '../../resources/ethereum-stake.ts'
import { API_VERSION } from '../../resources/meta.ts'
import { type StakingSigner, stakingSigner } from '../../resources/staking-signer.ts'
import type { KubeObject } from '../kube/objects.ts'
import { createFakeKube } from './fake-kube.ts'
import { createTestClock } from './test-clock.ts'

/** What the tests of everything else rely on: the API server's rules, as far as the operator meets them. */
const signal = new AbortController().signal
const spec = {
  network: 'hoodi',
  amountEth: '32',
  withdrawalAddress: '0x52908400098527886E0F7030069857D2E4169EE7',
  credentialsType: 'Compounding',
  signer: 'signer-1',
} as const
const stake = (name: string, change: object = {}) => ({
  apiVersion: API_VERSION,
  kind: 'EthereumStake',
  metadata: { name, namespace: 'team-a' },
  spec: { ...spec, ...change },
})
const stakesIn = () => {
  const kube = createFakeKube(createTestClock())
  return { kube, stakes: kube.collection<EthereumStake & KubeObject>(ethereumStake) }
}
const ref = { name: 'a', namespace: 'team-a' }

describe('a fake collection', () => {
  test('gives a name out once', async () => {
    const { stakes } = stakesIn()
    const made = await stakes.client.create(stake('a'), signal)
    await expect(stakes.client.create(stake('a'), signal)).rejects.toMatchObject({ status: 409, reason: 'AlreadyExists' })
    await stakes.client.delete(ref, {}, signal)
    const again = await stakes.client.create(stake('a'), signal)
    expect(again.metadata.uid).not.toBe(made.metadata.uid)
  })

  test('creates without the status, prunes what the schema does not know, and refuses what it does not allow', async () => {
    const { stakes } = stakesIn()
    const made = await stakes.client.create({ ...stake('a', { unknown: 1 }), status: { phase: 'Earning' } } as never, signal)
    // As the CRD has it: seen by nobody yet.
    expect(made.status).toEqual({ observedGeneration: -1 })
    expect(made.spec).toEqual(expect.objectContaining(spec))
    expect(made.spec).not.toHaveProperty('unknown')
    await expect(stakes.client.create(stake('b', { amountEth: 'much' }), signal)).rejects.toMatchObject({ status: 422 })
    const { resourceVersion } = made.metadata
    await expect(stakes.client.mergePatch(ref, { spec: { amountEth: 'much' } }, { resourceVersion }, signal)).rejects.toMatchObject({
      status: 422,
    })
  })

  test('keeps spec and status apart: each is written by itself, and fenced', async () => {
    const { stakes } = stakesIn()
    const { metadata } = await stakes.client.create(stake('a'), signal)
    const patch = { spec: { suspend: true }, status: { phase: 'Pending' } }
    const written = await stakes.client.mergePatch(ref, patch, { resourceVersion: metadata.resourceVersion, subresource: 'status' }, signal)
    expect([written.spec.suspend, written.status?.phase, written.metadata.generation]).toEqual([undefined, 'Pending', 1])
    await expect(stakes.client.mergePatch(ref, patch, { resourceVersion: metadata.resourceVersion }, signal)).rejects.toMatchObject({
      status: 409,
      reason: 'Conflict',
    })
    const edited = await stakes.client.mergePatch(
      ref,
      { spec: { suspend: true }, status: { phase: 'Earning' } },
      { resourceVersion: written.metadata.resourceVersion },
      signal,
    )
    expect([edited.spec.suspend, edited.status?.phase, edited.metadata.generation]).toEqual([true, 'Pending', 2])
  })

  test.each([
    { preconditions: { uid: 'another' }, goes: false },
    { preconditions: { resourceVersion: '1' }, goes: false },
    { preconditions: {}, goes: true },
  ])('deletes under $preconditions: $goes', async ({ preconditions, goes }) => {
    const { stakes } = stakesIn()
    await stakes.client.create(stake('a'), signal)
    const deleted = stakes.client.delete(ref, { preconditions }, signal)
    if (goes) await deleted
    else await expect(deleted).rejects.toMatchObject({ status: 409, reason: 'Conflict' })
    expect(stakes.get('team-a/a') === undefined).toBe(goes)
  })

  test('keeps a deleted object as long as finalizers hold it', async () => {
    const { stakes } = stakesIn()
    stakes.create({ ...stake('a'), metadata: { ...ref, finalizers: ['held'] } })
    await stakes.client.delete(ref, {}, signal)
    const held = stakes.get('team-a/a')
    expect(held?.metadata.deletionTimestamp).toBeDefined()
    const { resourceVersion } = held?.metadata ?? { resourceVersion: '' }
    await stakes.client.mergePatch(ref, { metadata: { finalizers: null } }, { resourceVersion }, signal)
    expect(stakes.get('team-a/a')).toBeUndefined()
  })

  test('lists by pages, namespaces and selectable fields, and by no other field', async () => {
    const { stakes } = stakesIn()
    for (const name of ['c', 'a', 'b']) await stakes.client.create(stake(name), signal)
    await stakes.client.create({ ...stake('d', { signer: 'other' }), metadata: { name: 'd', namespace: 'team-b' } }, signal)
    const names = async (options: object) => (await stakes.client.list(options, signal)).items.map(({ metadata }) => metadata.name)
    const first = await stakes.client.list({ limit: 2 }, signal)
    expect(first.items.map(({ metadata }) => metadata.name)).toEqual(['a', 'b'])
    expect(await names({ limit: 2, continue: first.continue })).toEqual(['c', 'd'])
    expect((await stakes.client.list({ limit: 4 }, signal)).continue).toBeUndefined()
    expect(await names({ namespace: 'team-b' })).toEqual(['d'])
    expect(await names({ fieldSelector: 'spec.signer=other' })).toEqual(['d'])
    expect(await names({ fieldSelector: 'spec.signer!=other,metadata.name=b' })).toEqual(['b'])
    await expect(names({ fieldSelector: 'spec.amountEth=32' })).rejects.toMatchObject({ status: 400 })
  })

  test('is one for each kind, with the scope of the kind', async () => {
    const { kube, stakes } = stakesIn()
    expect(kube.collection(ethereumStake)).toBe(stakes)
    const signers = kube.collection<StakingSigner & KubeObject>(stakingSigner)
    await expect(signers.client.get(ref, signal)).rejects.toThrow('cluster-scoped')
    await expect(stakes.client.get({ name: 'a' }, signal)).rejects.toThrow('namespaced')
  })
})

describe('its cache', () => {
  test('tells of each change once, own writes as own, and finds by index', async () => {
    const { stakes } = stakesIn()
    const cache = stakes.cache({ indexers: { signer: ({ spec }) => [spec.signer] } })
    const told: string[] = []
    cache.onChange((key, { type, own }) => void told.push(`${type} ${key}${own ? ', own' : ''}`))
    const made = await stakes.client.create(stake('a'), signal)
    cache.put(made)
    cache.frozen = true
    const { resourceVersion } = made.metadata
    cache.put(await stakes.client.mergePatch(ref, { spec: { suspend: true } }, { resourceVersion }, signal))
    expect(told).toEqual(['added team-a/a', 'updated team-a/a, own'])
    expect(cache.byIndex('signer', 'signer-1').map(({ spec }) => spec.suspend)).toEqual([true])
    expect([cache.size, cache.hasSynced()]).toEqual([1, true])
  })

  test('that is frozen hears of nothing, until it thaws', async () => {
    const { stakes } = stakesIn()
    await stakes.client.create(stake('a'), signal)
    const cache = stakes.cache()
    cache.frozen = true
    stakes.remove('team-a/a')
    await stakes.client.create(stake('b'), signal)
    expect([...cache.list()].map(({ metadata }) => metadata.name)).toEqual(['a'])
    cache.thaw()
    expect([...cache.list()].map(({ metadata }) => metadata.name)).toEqual(['b'])
  })

  test('takes in nothing that is older than what it has, or was deleted since', async () => {
    const { stakes } = stakesIn()
    const cache = stakes.cache()
    const made = await stakes.client.create(stake('a'), signal)
    stakes.edit('team-a/a', (object) => ({ ...object, spec: { ...object.spec, suspend: true } }))
    cache.put(made)
    expect(cache.get('team-a/a')?.spec.suspend).toBe(true)
    stakes.remove('team-a/a')
    cache.put(made)
    expect(cache.get('team-a/a')).toBeUndefined()
  })
})

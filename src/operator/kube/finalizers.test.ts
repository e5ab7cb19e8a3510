import { describe, expect, test } from 'vitest'
import { createMemoryServer } from '../../../test/integration/kube/memory-server.ts'
import { isConflict } from './errors.ts'
import { changeMetadata, hasFinalizer, type MetadataChange, metadataPatch } from './finalizers.ts'
import type { KubeObject } from './objects.ts'

const object = (metadata: Partial<KubeObject['metadata']>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name: 'one', namespace: 'ns', uid: 'u', resourceVersion: '1', ...metadata },
})

const cases: { given: string; metadata: Partial<KubeObject['metadata']>; change: MetadataChange; patch: object | undefined }[] = [
  { given: 'a first finalizer', metadata: {}, change: { addFinalizer: 'mine' }, patch: { metadata: { finalizers: ['mine'] } } },
  {
    given: "a finalizer beside another's",
    metadata: { finalizers: ['theirs'] },
    change: { addFinalizer: 'mine' },
    patch: { metadata: { finalizers: ['theirs', 'mine'] } },
  },
  { given: 'a finalizer that is there', metadata: { finalizers: ['mine'] }, change: { addFinalizer: 'mine' }, patch: undefined },
  {
    given: "the removal of ours, keeping another's",
    metadata: { finalizers: ['theirs', 'mine'] },
    change: { removeFinalizer: 'mine' },
    patch: { metadata: { finalizers: ['theirs'] } },
  },
  { given: 'the removal of what is not there', metadata: {}, change: { removeFinalizer: 'mine' }, patch: undefined },
  {
    given: 'only the annotations that differ',
    metadata: { annotations: { a: '1', b: '2', c: '3' } },
    change: { annotations: { a: '1', b: '9', c: null, d: null } },
    patch: { metadata: { annotations: { b: '9', c: null } } },
  },
  {
    given: 'finalizer and annotation in one write',
    metadata: {},
    change: { addFinalizer: 'mine', annotations: { origin: 'x' } },
    patch: { metadata: { finalizers: ['mine'], annotations: { origin: 'x' } } },
  },
]
test.each(cases)('the patch holds $given', ({ metadata, change, patch }) => {
  expect(metadataPatch(object(metadata), change)).toEqual(patch)
})

const signal = new AbortController().signal
const things = { group: 'x', version: 'v1', plural: 'things', kind: 'Thing', namespaced: true }

test('a change computed from a stale object is refused, so that no finalizer put there meanwhile is lost', async () => {
  const server = createMemoryServer<KubeObject>(things)
  const stale = server.write(object({}))
  server.write({ ...stale, metadata: { ...stale.metadata, finalizers: ['theirs'] } })
  const refused = await changeMetadata(server.client, stale, { addFinalizer: 'mine' }, signal).catch((error: unknown) => error)
  expect(isConflict(refused)).toBe(true)
})

test('nothing is written when nothing changes', async () => {
  const server = createMemoryServer<KubeObject>(things)
  const stored = server.write(object({ finalizers: ['mine'] }))
  expect(await changeMetadata(server.client, stored, { addFinalizer: 'mine' }, signal)).toBe(stored)
  expect(server.calls.mergePatch).toBe(0)
})

test('an object that is gone is told as undefined', async () => {
  const server = createMemoryServer<KubeObject>(things)
  const stored = server.write(object({ finalizers: ['mine'] }))
  expect(hasFinalizer(stored, 'mine')).toBe(true)
  server.remove('ns/one')
  expect(await changeMetadata(server.client, stored, { removeFinalizer: 'mine' }, signal)).toBeUndefined()
})

describe('an object of which a cache holds only some finalizers', () => {
  const setUp = () => {
    const server = createMemoryServer<KubeObject>(things)
    const finalizers = ['theirs', 'mine', 'others']
    const stored = server.write(object({ finalizers, labels: { a: 'b' }, annotations: { kept: '1', left: 'out' } }))
    const { labels, annotations, ...metadata } = stored.metadata
    const cached: KubeObject = { ...stored, metadata: { ...metadata, finalizers: ['mine'], annotations: { kept: '1' }, incomplete: true } }
    expect([labels, annotations]).toBeDefined()
    return { server, stored, cached }
  }

  test('loses none of the others, nor a label or an annotation, when its metadata is changed', async () => {
    const { server, cached } = setUp()
    const change = { removeFinalizer: 'mine', annotations: { kept: '2' } }
    const changed = await changeMetadata(server.client, cached, change, signal)
    expect(changed?.metadata).toMatchObject({
      finalizers: ['theirs', 'others'],
      labels: { a: 'b' },
      annotations: { kept: '2', left: 'out' },
    })
    expect(server.calls).toMatchObject({ get: 1, mergePatch: 1 })
  })

  test('is not changed by what was decided on an older state of it', async () => {
    const { server, stored, cached } = setUp()
    server.write({ ...stored, metadata: { ...stored.metadata, annotations: { decides: 'otherwise' } } })
    const refused = await changeMetadata(server.client, cached, { removeFinalizer: 'mine' }, signal).catch((error: unknown) => error)
    expect(isConflict(refused)).toBe(true)
    expect(server.calls.mergePatch).toBe(0)
  })

  test('makes no patch by itself', () => {
    expect(() => metadataPatch(setUp().cached, { removeFinalizer: 'mine' })).toThrow('read it first')
  })

  test('is gone when the server has it no more', async () => {
    const { server, cached } = setUp()
    server.remove('ns/one')
    expect(await changeMetadata(server.client, cached, { removeFinalizer: 'mine' }, signal)).toBeUndefined()
  })
})

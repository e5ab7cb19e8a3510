import { expect, test } from 'vitest'
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

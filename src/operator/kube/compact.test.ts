import { expect, test } from 'vitest'
import { createCompact } from './compact.ts'
import type { KubeObject } from './objects.ts'

interface Thing extends KubeObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly message: string }[]; readonly hash: string }
}

const thing = (): Thing => ({
  apiVersion: 'example.dev/v1',
  kind: 'Thing',
  metadata: {
    name: 'one',
    namespace: 'team-a',
    uid: 'u',
    resourceVersion: '7',
    managedFields: [{ manager: 'kubectl' }],
    annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', kept: 'yes' },
  },
  status: { conditions: [{ type: 'Ready', message: 'all is well' }], hash: '0xabc' },
})

test('of the metadata only what every object is known by is kept, and all else of the object', () => {
  const given = thing()
  const { namespace, uid, resourceVersion, name } = given.metadata
  expect(createCompact()(given)).toEqual({ ...given, metadata: { name, namespace, uid, resourceVersion } })
})

test('annotations that are read are kept', () => {
  expect(createCompact({ annotations: ['kept', 'absent'] })(thing()).metadata.annotations).toEqual({ kept: 'yes' })
})

test('the object given is left as it is: its owner goes on with it', () => {
  const given = thing()
  createCompact()(given)
  expect(given).toEqual(thing())
})

test('an object without status or annotations passes', () => {
  const { status, metadata, ...rest } = thing()
  const bare = { ...rest, metadata: { name: metadata.name, uid: 'u', resourceVersion: '1' } }
  expect(status).toBeDefined()
  expect(createCompact()(bare)).toEqual(bare)
})

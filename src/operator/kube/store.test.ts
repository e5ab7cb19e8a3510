import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { KubeObject } from './objects.ts'
import { createStore } from './store.ts'

interface Thing extends KubeObject {
  readonly tags: readonly string[]
}
const thing = (name: string, tags: readonly string[]): Thing => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name, uid: name, resourceVersion: '1' },
  tags,
})
const namesOf = (things: readonly Thing[]): string[] => things.map(({ metadata }) => metadata.name).sort()

/** FNV-1a of both is the same for this seed. */
const SEED = 0x811c9dc5
const [one, other] = ['costarring', 'liquid']

test('an index finds what has a value and nothing else, whatever was set, changed and deleted', () => {
  const tag = fc.constantFrom('a', 'b', 'c', one, other)
  const action = fc.record({ name: fc.constantFrom('x', 'y', 'z'), tags: fc.option(fc.uniqueArray(tag, { maxLength: 3 })) })
  fc.assert(
    fc.property(fc.array(action, { maxLength: 40 }), (actions) => {
      const store = createStore<Thing>({ tag: ({ tags }) => tags }, SEED)
      const expected = new Map<string, Thing>()
      for (const { name, tags } of actions) {
        if (tags === null) {
          store.delete(name)
          expected.delete(name)
        } else {
          store.set(name, thing(name, tags))
          expected.set(name, thing(name, tags))
        }
        for (const value of ['a', 'b', 'c', one, other])
          expect(namesOf(store.byIndex('tag', value))).toEqual(
            namesOf([...expected.values()].filter(({ tags: has }) => has.includes(value))),
          )
      }
    }),
  )
})

test('values with the same hash are told apart', () => {
  const store = createStore<Thing>({ tag: ({ tags }) => tags }, SEED)
  store.set('x', thing('x', [one]))
  expect(store.byIndex('tag', other)).toEqual([])
  store.set('y', thing('y', [other]))
  expect(namesOf(store.byIndex('tag', one))).toEqual(['x'])
  expect(namesOf(store.byIndex('tag', other))).toEqual(['y'])
  store.set('both', thing('both', [one, other]))
  store.delete('x')
  expect(namesOf(store.byIndex('tag', one))).toEqual(['both'])
  expect(namesOf(store.byIndex('tag', other))).toEqual(['both', 'y'])
})

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
      const store = createStore<Thing>({ indexers: { tag: ({ tags }) => tags }, seed: SEED })
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

test('those that are settled are found, counted and ranked as all others are', () => {
  const action = fc.record({
    name: fc.constantFrom('x', 'y', 'z'),
    tags: fc.option(fc.uniqueArray(fc.constantFrom('a', 'b'), { maxLength: 2 })),
    rank: fc.integer({ min: 0, max: 3 }),
    isSettled: fc.boolean(),
  })
  type Ranked = Thing & { readonly rank: number; readonly isSettled: boolean }
  fc.assert(
    fc.property(fc.array(action, { maxLength: 40 }), (actions) => {
      const store = createStore<Ranked>({
        indexers: { tag: ({ tags }) => tags },
        ranks: { rank: ({ tags, rank }) => (tags[0] === undefined ? undefined : { group: tags[0], rank }) },
        tallies: { rank: ({ rank }) => String(rank), weight: ({ tags }) => tags.join() },
        weights: { weight: ({ rank }) => rank },
        isSettled: ({ isSettled }) => isSettled,
      })
      const expected = new Map<string, Ranked>()
      for (const { name, tags, rank, isSettled } of actions) {
        if (tags === null) {
          store.delete(name)
          expected.delete(name)
        } else {
          const object = { ...thing(name, tags), rank, isSettled }
          store.set(name, object)
          expected.set(name, object)
        }
        const all = [...expected.values()]
        expect(store.size).toBe(all.length)
        expect([...store.keys()].sort()).toEqual([...expected.keys()].sort())
        expect(namesOf([...store.values()])).toEqual(namesOf(all))
        expect(namesOf([...store.unsettled()])).toEqual(namesOf(all.filter((one) => !one.isSettled)))
        expect(store.get(name)).toEqual(expected.get(name))
        for (const tag of ['a', 'b']) {
          expect(namesOf(store.byIndex('tag', tag))).toEqual(namesOf(all.filter((one) => one.tags.includes(tag))))
          for (const least of [0, 2])
            expect(namesOf([...store.atLeast('rank', tag, least)])).toEqual(
              namesOf(all.filter((one) => one.tags[0] === tag && one.rank >= least)),
            )
        }
        for (const [value, count] of store.tally('rank')) expect(count).toBe(all.filter((one) => String(one.rank) === value).length)
        expect([...store.tally('rank').values()].reduce((sum, count) => sum + count, 0)).toBe(all.length)
        const weights = Map.groupBy(all, ({ tags: of }) => of.join())
        for (const [value, these] of weights)
          expect(store.tally('weight').get(value) ?? 0).toBe(these.reduce((sum, one) => sum + one.rank, 0))
        for (const value of store.tally('weight').keys()) expect(weights.has(value)).toBe(true)
      }
    }),
  )
})

test('an object that is settled while somebody goes through all of them is met once', () => {
  const store = createStore<Thing>({ isSettled: ({ tags }) => tags.includes('settled') })
  for (const name of ['x', 'y', 'z']) store.set(name, thing(name, []))
  const met: string[] = []
  for (const { metadata } of store.values()) {
    met.push(metadata.name)
    store.set(metadata.name, thing(metadata.name, ['settled']))
    if (met.length > 10) break
  }
  expect(met).toEqual(['x', 'y', 'z'])
})

test.each(['byIndex', 'atLeast', 'tally'] as const)('%s of a name that was not declared is a mistake', (method) => {
  expect(() => createStore<Thing>()[method]('colour', 'red', 0)).toThrow(TypeError)
})

test('values with the same hash are told apart', () => {
  const store = createStore<Thing>({ indexers: { tag: ({ tags }) => tags }, seed: SEED })
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

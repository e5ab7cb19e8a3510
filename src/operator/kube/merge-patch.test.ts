import fc from 'fast-check'
import { expect, test } from 'vitest'
import { merge } from '../../../test/integration/kube/memory-server.ts'
import { diffMergePatch, sameJson } from './merge-patch.ts'

test.each([
  { given: 'a field that changed', before: { a: 1, b: 2 }, after: { a: 1, b: 3 }, patch: { b: 3 } },
  { given: 'a field that went', before: { a: 1, b: 2 }, after: { a: 1 }, patch: { b: null } },
  { given: 'a field that is now undefined', before: { a: 1 }, after: { a: undefined }, patch: { a: null } },
  { given: 'a nested field', before: { a: { x: 1, y: 2 } }, after: { a: { x: 1, y: 3 } }, patch: { a: { y: 3 } } },
  { given: 'a list', before: { a: [1, 2] }, after: { a: [1, 3] }, patch: { a: [1, 3] } },
  { given: 'nothing before', before: undefined, after: { a: 1 }, patch: { a: 1 } },
  { given: 'no change', before: { a: { x: [{ y: 1 }] } }, after: { a: { x: [{ y: 1 }] } }, patch: undefined },
  { given: 'an object in place of a text', before: { a: 'x' }, after: { a: { y: 1 } }, patch: { a: { y: 1 } } },
])('the patch for $given', ({ before, after, patch }) => {
  expect(diffMergePatch(before, after)).toEqual(patch)
})

// A merge patch can't say null, nor an object that holds nothing inside a list's place; status holds neither.
const value = fc.letrec((tie) => ({
  tree: fc.oneof({ depthSize: 'small' }, fc.integer(), fc.string(), fc.boolean(), fc.array(fc.integer(), { maxLength: 3 }), tie('record')),
  record: fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), tie('tree'), { maxKeys: 4, noNullPrototype: true }),
})).record as fc.Arbitrary<Record<string, unknown>>

test('the patch, applied to what was, gives what is', () => {
  fc.assert(
    fc.property(value, value, (before, after) => {
      const patch = diffMergePatch(before, after)
      expect(sameJson(merge(before, patch ?? {}), after)).toBe(true)
      expect(patch === undefined).toBe(sameJson(before, after))
    }),
  )
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createHeap } from './heap.ts'

test('whatever goes in comes out by weight', () => {
  fc.assert(
    fc.property(fc.array(fc.integer()), (weights) => {
      const heap = createHeap<number>((weight) => weight)
      for (const weight of weights) heap.push(weight)
      const out: number[] = []
      for (let next = heap.pop(); next !== undefined; next = heap.pop()) out.push(next)
      expect(out).toEqual([...weights].sort((a, b) => a - b))
      expect(heap.size).toBe(0)
    }),
  )
})

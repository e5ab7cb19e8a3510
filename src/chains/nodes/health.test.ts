import { describe, expect, test } from 'vitest'
import { healthOf, type NodeHead, type Sightings, sighted } from './health.ts'

const pace = { graceMs: 36_000, blockMs: 12_000, fewBlocks: 3n }
const start = 1_700_000_000
/** A node that showed these heads at these seconds; blocks are 12 s apart, so that block 0 was made at second 0. */
function seen(...heads: readonly (readonly [second: number, height: number, madeAt?: number])[]): Sightings {
  let node: Sightings | undefined
  for (const [second, height, madeAt = height * 12] of heads) {
    const head: NodeHead = { height: BigInt(height), timestamp: start + madeAt }
    node = sighted(node, head, second * 1000)
  }
  if (node === undefined) throw new Error('a node that was never seen')
  return node
}
const at = (second: number) => ({ now: second * 1000, wallSeconds: start + second })

describe('a node is', () => {
  const cases: { name: string; node: Sightings; others: Sightings[]; second: number; out: 'behind' | 'still' | undefined }[] = [
    {
      name: 'well beside one at the same height',
      node: seen([0, 0], [12, 1]),
      others: [seen([0, 0], [12, 1])],
      second: 12,
      out: undefined,
    },
    {
      name: 'well one block behind, for a while',
      node: seen([0, 0], [12, 0]),
      others: [seen([0, 0], [12, 1])],
      second: 20,
      out: undefined,
    },
    {
      name: 'out when it stands still and the other goes on',
      node: seen([0, 0], [60, 0]),
      others: [seen([0, 0], [12, 1], [24, 2], [36, 3], [60, 5])],
      second: 60,
      out: 'still',
    },
    {
      name: 'well again once it has come along',
      node: seen([0, 0], [60, 0], [72, 6]),
      others: [seen([0, 0], [12, 1], [60, 5], [72, 6])],
      second: 72,
      out: undefined,
    },
    {
      name: 'out at first sight when it is far behind by the chain’s own time',
      node: seen([1200, 50]),
      others: [seen([1200, 100])],
      second: 1200,
      out: 'behind',
    },
    {
      name: 'out while it syncs',
      node: seen([1200, 10], [1212, 40]),
      others: [seen([1200, 100], [1212, 101])],
      second: 1212,
      out: 'behind',
    },
    {
      name: 'well at the pace of the day, however far ahead another claims to be',
      node: seen([1200, 100], [1212, 101], [1260, 105]),
      others: [seen([1200, 9_000_000], [1260, 9_000_000])],
      second: 1260,
      out: undefined,
    },
    { name: 'well alone, however old its head', node: seen([0, 0]), others: [], second: 86_400, out: undefined },
    {
      name: 'well when all stand still',
      node: seen([0, 0], [86_400, 0]),
      others: [seen([0, 0], [86_400, 0])],
      second: 86_400,
      out: undefined,
    },
    {
      name: 'well when a chain that rests for hours has its next block on the other first',
      node: seen([0, 1, 0], [7200, 1, 0]),
      others: [seen([0, 1, 0], [7200, 2, 7200])],
      second: 7201,
      out: undefined,
    },
    {
      name: 'always one block later than the other, and well',
      node: seen([12, 0], [24, 1], [36, 2], [48, 3], [60, 4], [72, 5]),
      others: [seen([12, 1], [24, 2], [36, 3], [48, 4], [60, 5], [72, 6])],
      second: 72,
      out: undefined,
    },
  ]
  test.each(cases)('$name', ({ node, others, second, out }) => {
    expect(healthOf(node, others, pace, at(second)).out).toBe(out)
  })

  test('well as long as it was never seen', () => {
    expect(healthOf(undefined, [seen([0, 5])], pace, at(0)).out).toBeUndefined()
  })

  test('lagging before it is out, and its lag is counted in blocks', () => {
    const rested = healthOf(seen([0, 1, 0], [7200, 1, 0]), [seen([0, 1, 0], [7200, 6, 7199])], pace, at(7201))
    expect(rested).toMatchObject({ lag: 5n, lagging: true })
    expect(healthOf(seen([0, 1], [12, 1]), [seen([0, 1], [12, 2])], pace, at(12))).toMatchObject({
      lag: 1n,
      lagging: false,
      out: undefined,
    })
  })

  test('judged by slots where heads have no time', () => {
    const slots = { graceMs: 15_000, blockMs: 400, fewBlocks: 25n }
    const node = sighted(undefined, { height: 1000n }, 0)
    const judged = (height: bigint) => healthOf(node, [sighted(undefined, { height }, 0)], slots, at(0)).out
    expect(judged(1030n)).toBeUndefined()
    expect(judged(1040n)).toBe('behind')
  })
})

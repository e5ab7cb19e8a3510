import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createLanes, type LanesOptions } from './lanes.ts'
import { refOf } from './objects.ts'

const HIGH = 1
const LOW = 0
const setUp = (options: Partial<LanesOptions<string>> = {}) => {
  const lanes = createLanes<string>({ namespaceOf: (key) => refOf(key).namespace ?? '', ...options })
  /** Takes keys that run for no time. */
  const take = (count: number): (string | undefined)[] =>
    Array.from({ length: count }, () => {
      const key = lanes.shift()?.key
      if (key !== undefined) lanes.release(key)
      return key
    })
  return { lanes, take }
}
const numbered = (space: string, count: number): string[] => Array.from({ length: count }, (_, index) => `${space}/${index}`)

describe('within a priority', () => {
  test('a key of another namespace is picked at once, whatever number one namespace has waiting', () => {
    const { lanes, take } = setUp()
    for (const key of numbered('flood', 10_000)) lanes.push(key, HIGH, 0)
    lanes.push('calm/one', HIGH, 0)
    expect(take(2)).toEqual(['flood/0', 'calm/one'])
    expect(lanes.size).toBe(9_999)
  })

  test('namespaces take turns, and within each the order of coming holds', () => {
    const { lanes, take } = setUp()
    for (const key of [...numbered('a', 3), ...numbered('b', 2), ...numbered('c', 1)]) lanes.push(key, HIGH, 0)
    expect(take(6)).toEqual(['a/0', 'b/0', 'c/0', 'a/1', 'b/1', 'a/2'])
  })

  test('keys without a namespace take turns as one', () => {
    const { lanes, take } = setUp()
    for (const key of ['x', 'y', 'a/0', 'a/1']) lanes.push(key, HIGH, 0)
    expect(take(4)).toEqual(['x', 'a/0', 'y', 'a/1'])
  })

  test('a namespace that comes again and again does not go before one that waits', () => {
    const { lanes, take } = setUp()
    lanes.push('poked/one', HIGH, 0)
    for (const key of numbered('calm', 3)) lanes.push(key, HIGH, 0)
    const order: (string | undefined)[] = []
    for (let pick = 0; pick < 6; pick++) {
      order.push(...take(1))
      lanes.push('poked/one', HIGH, 0)
    }
    expect(order.filter((key) => key?.startsWith('calm/'))).toEqual(['calm/0', 'calm/1', 'calm/2'])
  })
})

describe('between priorities', () => {
  test('the higher goes first, but of eight picks in a row one goes to the lower', () => {
    const { lanes, take } = setUp()
    for (const key of numbered('new', 20)) lanes.push(key, HIGH, 0)
    for (const key of numbered('poll', 2)) lanes.push(key, LOW, 0)
    const order = take(22)
    expect(order.indexOf('poll/0')).toBe(7)
    expect(order.indexOf('poll/1')).toBe(15)
  })

  test('a key moved up leaves its old place: a key that goes up again and again while the lower waits leaves nothing behind', () => {
    const { lanes } = setUp()
    lanes.push('calm/poll', LOW, 0)
    for (let time = 0; time < 7; time++) {
      lanes.push('poked/one', LOW, 0)
      lanes.push('poked/one', HIGH, 5)
      expect(lanes.shift()).toEqual({ key: 'poked/one', priority: HIGH, since: 0 })
      lanes.release('poked/one')
    }
    expect(lanes.size).toBe(1)
    expect(lanes.shift()?.key).toBe('calm/poll')
    expect(lanes.shift()).toBeUndefined()
  })
})

describe('with a bound on what runs of one namespace', () => {
  test('a key whose namespace changes while it runs is counted in the one that it came with', () => {
    const namespaces = new Map([['a', 'slow']])
    const { lanes } = setUp({ namespaceOf: (key) => namespaces.get(key) ?? 'slow', mostOfOneNamespace: 1 })
    lanes.push('a', HIGH, 0)
    lanes.push('b', HIGH, 0)
    expect([lanes.shift()?.key, lanes.shift()]).toEqual(['a', undefined])
    namespaces.set('a', 'calm')
    lanes.release('a')
    expect(lanes.shift()?.key).toBe('b')
  })

  test('what is above it waits until one of them ends, and others go on', () => {
    const { lanes } = setUp({ mostOfOneNamespace: 2 })
    for (const key of numbered('slow', 4)) lanes.push(key, HIGH, 0)
    expect([lanes.shift()?.key, lanes.shift()?.key, lanes.shift()]).toEqual(['slow/0', 'slow/1', undefined])
    lanes.push('calm/one', HIGH, 0)
    expect([lanes.shift()?.key, lanes.shift()]).toEqual(['calm/one', undefined])
    lanes.release('slow/0')
    expect([lanes.shift()?.key, lanes.shift()]).toEqual(['slow/2', undefined])
  })

  test('it counts over all priorities', () => {
    const { lanes } = setUp({ mostOfOneNamespace: 1 })
    lanes.push('slow/0', HIGH, 0)
    lanes.push('slow/1', LOW, 0)
    expect([lanes.shift()?.key, lanes.shift()]).toEqual(['slow/0', undefined])
    lanes.push('slow/2', HIGH, 0)
    expect(lanes.shift()).toBeUndefined()
    lanes.release('slow/0')
    expect([lanes.shift()?.key, lanes.shift()]).toEqual(['slow/2', undefined])
    lanes.release('slow/2')
    expect(lanes.shift()?.key).toBe('slow/1')
  })
})

test('whatever is pushed, given out and released, each key comes once, none is lost, and the bound holds', () => {
  const key = fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat(4)).map(([space, name]) => `${space}/${name}`)
  const action = fc.oneof(
    fc.record({ do: fc.constant('push' as const), key, priority: fc.constantFrom(HIGH, LOW) }),
    fc.record({ do: fc.constant('shift' as const) }),
    fc.record({ do: fc.constant('release' as const), which: fc.nat(10) }),
  )
  fc.assert(
    fc.property(fc.array(action, { maxLength: 200 }), (actions) => {
      const { lanes } = setUp({ mostOfOneNamespace: 2 })
      const expected = new Set<string>()
      const running: string[] = []
      const shift = (): void => {
        const got = lanes.shift()
        const free = [...expected].filter((one) => running.filter((other) => other[0] === one[0]).length < 2)
        expect(got === undefined ? [] : [got.key]).toEqual(got === undefined ? free : free.filter((one) => one === got.key))
        if (got === undefined) return
        expected.delete(got.key)
        running.push(got.key)
      }
      for (const step of actions) {
        if (step.do === 'push') {
          // As the queue does: a key that runs is not pushed.
          if (running.includes(step.key)) continue
          lanes.push(step.key, step.priority, 0)
          expected.add(step.key)
        } else if (step.do === 'shift') shift()
        else if (running.length > 0) for (const one of running.splice(step.which % running.length, 1)) lanes.release(one)
        expect(lanes.size).toBe(expected.size)
      }
      for (const one of running.splice(0)) lanes.release(one)
      for (let left = expected.size; left > 0; left--) {
        shift()
        for (const one of running.splice(0)) lanes.release(one)
      }
      expect(expected.size).toBe(0)
      expect(lanes.shift()).toBeUndefined()
    }),
    { numRuns: 300 },
  )
})

test('a hundred times as many waiting keys make a pick no slower', () => {
  /** The process's own time: a busy machine's is not counted. A pick that goes through all keys would take a hundred times as long. */
  const costOf = (count: number): number => {
    const { lanes, take } = setUp()
    for (const key of numbered('flood', count)) lanes.push(key, HIGH, 0)
    const before = process.cpuUsage()
    take(1_000)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  }
  costOf(1_000)
  const [few, many] = [Math.min(...[1, 2, 3].map(() => costOf(1_000))), Math.min(...[1, 2, 3, 4, 5].map(() => costOf(100_000)))]
  expect(many).toBeLessThan(20 * few + 20)
})

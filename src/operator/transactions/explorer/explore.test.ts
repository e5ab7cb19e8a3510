import { afterAll, describe, expect, test } from 'vitest'
import { cases } from './ablations.ts'
import { ablations, type Config } from './config.ts'
import { configs, slow, together } from './configs.ts'
import { type Exploration, explore, walk } from './explore.ts'

const now = () => performance.now()
/** Every state is seen; the limit only ends a world that has grown by mistake. */
const whole = { states: 2_000_000, ms: Number.POSITIVE_INFINITY }
const world = (id: string): Config => {
  const found = [...configs, ...slow].find((config) => config.id === id)
  if (found === undefined) throw new Error(`no world ${id}`)
  return found
}

const lines: string[] = []
const count = (what: string, { states, depth, ms }: Exploration): void => {
  lines.push(`${states.toLocaleString('en').padStart(10)} states, depth ${String(depth).padStart(3)}, ${(ms / 1000).toFixed(1)} s: ${what}`)
}
afterAll(() => {
  console.log(`explored:\n${lines.join('\n')}`)
})

describe("with the product's rules, in every order of every step, each purpose lands once, every lane moves, and Ready is true", () => {
  // A third of a second and more each.
  const longer = new Set(['02', '06', '17', '22', '24', '25', '25b', '27', '29d'])
  describe.each([
    { size: 'small', options: {}, worlds: configs.filter(({ id }) => !longer.has(id)) },
    { size: 'large', options: { tags: 'whole' }, worlds: configs.filter(({ id }) => longer.has(id)) },
  ])('in a $size world', ({ options, worlds }) => {
    test.each(worlds)('$id: $title', { timeout: 300_000, ...options }, (config) => {
      const explored = explore(config, whole, now)
      count(`${config.id} ${config.title}`, explored)
      expect(explored.counterexample).toBeUndefined()
      expect(explored.isExhausted).toBe(true)
      expect(explored.states).toBeGreaterThan(100)
    })
  })

  test('no world that needs nobody calls a person', () => {
    const calm = configs.filter(({ mayWait }) => mayWait !== true)
    expect(calm.length).toBeGreaterThan(10)
  })
})

describe('without a rule there is a way', { tags: 'whole' }, () => {
  test.each(cases.map((one) => ({ ...one, what: ablations[one.rule] })))(
    '$finds in $steps steps when $what',
    { timeout: 60_000 },
    ({ rule, and = [], world: id, finds, steps }) => {
      const explored = explore({ ...world(id), without: [rule, ...and] }, { ...whole, asksHealth: finds === 'stuck' }, now)
      expect(explored.counterexample?.is).toBe(finds)
      expect(explored.counterexample?.steps).toHaveLength(steps)
    },
  )
  test.each(cases.filter(({ and }) => and !== undefined))(
    'and with $rule in place there is none, though $and are left out',
    { timeout: 60_000 },
    ({ and = [], world: id }) => {
      const explored = explore({ ...world(id), without: and }, { ...whole, asksHealth: false }, now)
      expect(explored.counterexample).toBeUndefined()
      expect(explored.isExhausted).toBe(true)
    },
  )
  test('for every rule that can be left out', () => {
    expect(new Set(cases.map(({ rule }) => rule))).toEqual(new Set(Object.keys(ablations)))
  })
})

describe('all faults together, at random', () => {
  test.each([1, 2, 3])('seed %i finds nothing', { timeout: 60_000 }, (seed) => {
    const walked = walk(together, { seed, walks: 250, length: 200, ms: Number.POSITIVE_INFINITY }, now)
    count(`${together.title}, seed ${seed}`, walked)
    expect(walked.counterexample).toBeUndefined()
    expect(walked.states).toBeGreaterThan(5_000)
  })
  test('a seed makes the same walk again', () => {
    const once = () => walk(together, { seed: 7, walks: 20, length: 100, ms: Number.POSITIVE_INFINITY }, now).states
    expect(once()).toBe(once())
  })
  test('a walk finds what is there to be found', () => {
    const broken: Config = { ...world('11c'), without: ['forgottenPlaces', 'witnesses'] }
    const walked = walk(broken, { seed: 1, walks: 5_000, length: 100, ms: Number.POSITIVE_INFINITY }, now)
    expect(walked.counterexample?.is).toBe('paid twice')
  })
})

import { type Config, productRules, type Rules } from './config.ts'
import { createHealer } from './heal.ts'
import { createLeaders, type Leaders } from './leader.ts'
import { type Emit, type State, VIOLATION } from './state.ts'
import { createStateTable, type StateTable } from './table.ts'
import { type Action, describe } from './words.ts'
import { createWorld } from './world.ts'

export interface Bounds {
  readonly states: number
  /** Time, in ms, by `now`. */
  readonly ms: number
  /** Whether it is asked of each state that all comes right from there: most of the time goes into it. Default: yes. */
  readonly asksHealth?: boolean
}
export type Found = 'paid twice' | 'wrong Ready' | 'one nonce given out twice' | 'signed against the owner' | 'over the limit' | 'stuck'
export interface Counterexample {
  readonly is: Found
  readonly steps: readonly string[]
  /** For `stuck`: why. */
  readonly why: string
}
export interface Exploration {
  readonly states: number
  readonly depth: number
  /** Every state that can be reached was seen. */
  readonly isExhausted: boolean
  readonly ms: number
  readonly counterexample: Counterexample | undefined
  /** States from which, with every fault over, somebody is waited for. */
  readonly waits: number
}

const founds: readonly (Found | undefined)[] = [
  undefined,
  'paid twice',
  'wrong Ready',
  'one nonce given out twice',
  'signed against the owner',
  'over the limit',
]

function assemble(config: Config, rules: Rules) {
  const world = createWorld(config, rules)
  let leaders: Leaders | undefined
  const healer = createHealer(world, () => {
    if (leaders === undefined) throw new Error('no leaders yet')
    return leaders
  })
  const made = createLeaders(world, healer.isHealing)
  leaders = made
  const successors = (s: State, emit: Emit): void => {
    made.steps(s, emit)
    world.happenings(s, emit)
  }
  return { world, healer, successors }
}

/** All orders of all steps, breadth first: the first counterexample is a shortest one. */
export function explore(config: Config, bounds: Bounds, now: () => number, rules: Rules = productRules): Exploration {
  const { world, healer, successors } = assemble(config, rules)
  const begun = now()
  const table = createStateTable(world.stride)
  table.add(world.initial(), -1, 0)
  const s: State = new Uint16Array(world.stride)
  let waits = 0
  let depth = 0
  let levelEnd = 1
  let next = 0
  let bad = -1
  const parent = { index: 0 }
  const emit: Emit = (t, by) => {
    const before = table.size()
    const index = table.add(t, parent.index, by)
    if (index === before && bad < 0 && world.violation(t) !== VIOLATION.none) bad = index
  }
  const done = (isExhausted: boolean, counterexample?: Counterexample): Exploration => ({
    states: table.size(),
    depth,
    isExhausted,
    ms: now() - begun,
    counterexample,
    waits,
  })
  for (; next < table.size(); next++) {
    if (next === levelEnd) {
      depth++
      levelEnd = table.size()
    }
    if (table.size() >= bounds.states || ((next & 1023) === 0 && now() - begun > bounds.ms)) return done(false)
    table.read(next, s)
    const health = bounds.asksHealth === false ? 'done' : healer.health(s)
    if (health === 'waits') waits++
    if (health === 'stuck' || (health === 'waits' && config.mayWait !== true)) return done(false, stuck(table, next, healer.explain(s)))
    parent.index = next
    successors(s, emit)
    if (bad >= 0) {
      table.read(bad, s)
      return done(false, { is: founds[world.violation(s)] ?? 'stuck', steps: trace(table, bad), why: '' })
    }
  }
  return done(true)
}

const trace = (table: StateTable, from: number): string[] => {
  const steps: string[] = []
  for (let index = from; table.parentOf(index) >= 0; index = table.parentOf(index)) steps.push(describe(table.actionOf(index)))
  return steps.reverse()
}
const stuck = (table: StateTable, from: number, { why, steps }: { why: string; steps: readonly string[] }): Counterexample => ({
  is: 'stuck',
  steps: trace(table, from),
  why: `${why}. Then, with all faults over: ${steps.length === 0 ? 'nothing can be done' : steps.join(', ')}`,
})

/** Random walks: all faults together, as deep as they come. The seed makes a walk the same again. */
export function walk(
  config: Config,
  options: { readonly seed: number; readonly walks: number; readonly length: number; readonly ms: number },
  now: () => number,
  rules: Rules = productRules,
): Exploration {
  const { world, healer, successors } = assemble(config, rules)
  const begun = now()
  const random = generator(options.seed)
  const s: State = new Uint16Array(world.stride)
  const chosen: State = new Uint16Array(world.stride)
  const seen = createStateTable(world.stride)
  let waits = 0
  let deepest = 0
  let by: Action = 0
  const end = (counterexample?: Counterexample): Exploration => ({
    states: seen.size(),
    depth: deepest,
    isExhausted: false,
    ms: now() - begun,
    counterexample,
    waits,
  })
  for (let walked = 0; walked < options.walks && now() - begun < options.ms; walked++) {
    s.set(world.initial())
    const steps: string[] = []
    for (let step = 0; step < options.length; step++) {
      let count = 0
      successors(s, (t, made) => {
        count++
        if (random() * count >= 1) return
        chosen.set(t)
        by = made
      })
      if (count === 0) break
      s.set(chosen)
      steps.push(describe(by))
      deepest = Math.max(deepest, step + 1)
      const before = seen.size()
      if (seen.add(s, -1, 0) < before) continue
      if (world.violation(s) !== VIOLATION.none)
        return end({ is: founds[world.violation(s)] ?? 'stuck', steps, why: `seed ${options.seed}` })
      const health = healer.health(s)
      if (health === 'waits') waits++
      if (health === 'stuck') {
        const { why, steps: tried } = healer.explain(s)
        return end({ is: 'stuck', steps, why: `seed ${options.seed}: ${why}. Then: ${tried.join(', ')}` })
      }
    }
  }
  return end()
}

/** mulberry32: numbers from 0 to 1. */
function generator(seed: number): () => number {
  let a = seed >>> 0
  return () => {
    a = (a + 0x6d2b79f5) >>> 0
    let t = Math.imul(a ^ (a >>> 15), a | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

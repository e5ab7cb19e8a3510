import { parseArgs } from 'node:util'
import type { Config } from './config.ts'
import { configs, enlarged, large, slow, together } from './configs.ts'
import { type Exploration, explore, walk } from './explore.ts'

/**
 * The large exploration: every world as in the tests, each with one more of every fault and number, and random walks.
 *   npm run test:explore -- [--only 02,11c] [--states 4000000] [--seconds 120] [--seed 1] [--walks 8]
 */
const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    states: { type: 'string', default: '4000000' },
    seconds: { type: 'string', default: '120' },
    seed: { type: 'string' },
    walks: { type: 'string', default: '8' },
  },
})
const only = values.only?.split(',')
const now = () => performance.now()
const bounds = { states: Number(values.states), ms: Number(values.seconds) * 1000 }
let total = 0
let failed = 0

function report(what: string, explored: Exploration): void {
  const { states, depth, isExhausted, ms, counterexample, waits } = explored
  total += states
  const end = counterexample === undefined ? (isExhausted ? 'exhausted' : 'bound reached') : counterexample.is.toUpperCase()
  const speed = Math.round(states / Math.max(1, ms))
  process.stdout.write(
    `${states.toLocaleString('en').padStart(12)} states, depth ${String(depth).padStart(3)}, ${(ms / 1000).toFixed(1).padStart(6)} s, ${speed} a ms, waits for a person in ${waits}: ${end}: ${what}\n`,
  )
  if (counterexample === undefined) return
  failed++
  process.stdout.write(`  ${counterexample.why}\n${counterexample.steps.map((step, index) => `  ${index + 1}. ${step}\n`).join('')}`)
}

const worlds = (config: Config): readonly Config[] => [config, enlarged(config)]
for (const config of [...configs, ...slow, ...large])
  if (only === undefined || only.includes(config.id))
    for (const one of worlds(config)) report(`${one.id} ${one.title}`, explore(one, bounds, now))
if (only === undefined) {
  const first = Number(values.seed ?? Math.floor(Math.random() * 1_000_000))
  for (let seed = first; seed < first + Number(values.walks); seed++)
    report(`${together.title}, seed ${seed}`, walk(together, { seed, walks: 1_000_000, length: 300, ms: bounds.ms / 4 }, now))
}
process.stdout.write(`${total.toLocaleString('en')} states in all; ${failed === 0 ? 'nothing found' : `${failed} found`}\n`)
process.exitCode = failed === 0 ? 0 : 1

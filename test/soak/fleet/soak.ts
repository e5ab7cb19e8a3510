import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createRandom, type Random } from '../../crash/random.ts'
import { SOLANA_STAKER_ADDRESS, SOLANA_WITHDRAWER_ADDRESS } from '../../stack/stack.ts'
import type { Fault } from '../faults.ts'
import { createSentReader, readBeacon, readCounts, readEthereum } from '../oracle/ethereum.ts'
import type { Evidence, LastEvidence, Terms } from '../oracle/evidence.ts'
import { lastViolations, unfinished, violations } from '../oracle/judge.ts'
import type { KubernetesObject } from '../oracle/kubernetes.ts'
import { createSolanaReader } from '../oracle/solana.ts'
import { faultKinds } from './faults.ts'
import { CAPS, createUsers, LIMIT, type Users } from './users.ts'
import { type Fleet, type Kept, startFleet, TERMS } from './world.ts'

export interface FleetResult {
  readonly seed: number
  readonly faults: readonly string[]
  readonly wishes: number
  /** What the chains have in the end. */
  readonly paid: Readonly<Record<'deposits' | 'requests' | 'solanaStakes', number>>
  /** Times at which everything was judged while faults went on. */
  readonly looks: number
  readonly settledAfterMs: number
  /** What must never be. */
  readonly violations: readonly string[]
}

export interface FleetSoakOptions {
  /** Of faults, at least; a fault that has begun is done whole. */
  readonly seconds: number
  readonly seed: number
  readonly say: (line: string) => void
  readonly signal: AbortSignal
  /** How long nothing may move towards everything being settled once the faults are over: a busy machine is slow, and no more. Default 300,000. */
  readonly settleMs?: number
}

const EPOCH_MS = 4_000
const LOOK_MS = 5_000
const PLURALS = [
  'ethereumstakes',
  'validatorexits',
  'validatorwithdrawals',
  'solanastakes',
  'stakingsigners',
  'stakingtransactions',
  'signernonces',
]

/**
 * Users make, change and delete resources of all kinds while everything around the operator fails, one fault at a time; the oracle looks all the while. Then the
 * faults end, and everything must settle. The seed makes the faults and their order; what the users do comes of it too, but meets another state each time.
 */
export async function fleetSoak(options: FleetSoakOptions): Promise<FleetResult> {
  const { seconds, seed, say, signal, settleMs = 300_000 } = options
  const fleet = await startFleet({ say, signal })
  const over = new AbortController()
  const found = new Set<string>()
  const note = (lines: readonly string[]): void => {
    for (const line of lines) {
      if (!found.has(line)) say(`VIOLATION ${line}`)
      found.add(line)
    }
  }
  try {
    const users = createUsers(fleet, createRandom(seed + 1))
    await users.begin()
    const oracle = createOracle(fleet, users)
    let looks = 0
    const look = async (): Promise<void> => {
      const evidence = await oracle.look().catch(() => undefined)
      if (evidence === undefined) return
      looks += 1
      note(violations(evidence))
    }
    const random = createRandom(seed)
    const userPace = createRandom(seed + 2)
    const running = [
      ...[...fleet.operators, fleet.service].map((kept) => keepRunning(kept, over.signal, say)),
      repeat(over.signal, EPOCH_MS, async () => void fleet.solana.nextEpoch()),
      repeat(over.signal, LOOK_MS, look),
      repeat(over.signal, 4_000, async () => {
        for (const line of await users.tend()) say(`person: ${line}`)
      }),
    ]
    const quiet = new AbortController()
    const busy = repeat(
      quiet.signal,
      // The more there is, the longer they wait: two hours are to have twice as much as half an hour, not four times, since all of it is looked after to the end.
      () => userPace.between(300, 1_800 + 10 * users.wishes().length),
      async () => {
        await users.act().catch((error: unknown) => say(`a user could not: ${String(error)}`))
      },
    )
    const faults = await strike(fleet, users, { random, say, signal, seconds })
    say('the faults are over')
    quiet.abort()
    await busy
    await oracle.endLimit()
    await users.finish()
    await users.applyAll()
    const begun = performance.now()
    const last = await settle(fleet, oracle, settleMs, say, signal)
    const settledAfterMs = Math.round(performance.now() - begun)
    over.abort()
    await Promise.all(running)
    note(lastViolations(last))
    note(unexpected(fleet))
    return {
      seed,
      faults,
      wishes: users.wishes().length,
      paid: {
        deposits: last.ethereum.deposits.length,
        requests: last.ethereum.requests.length,
        solanaStakes: last.solana.accounts.size,
      },
      looks,
      settledAfterMs,
      violations: [...found],
    }
  } finally {
    over.abort()
    await fleet.stop()
  }
}

/** Does something now and then until it is over. What fails is tried again. */
async function repeat(signal: AbortSignal, every: number | (() => number), act: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await sleep(typeof every === 'number' ? every : every(), undefined, { signal }).catch(() => undefined)
    if (!signal.aborted) await act().catch(() => undefined)
  }
}

/** As a kubelet: what has ended is started again. */
const keepRunning = (kept: Kept, signal: AbortSignal, say: (line: string) => void): Promise<void> =>
  repeat(signal, 500, async () => {
    if (kept.isHeld || kept.program.process().alive()) return
    say(`${kept.name} has ended, and is started again`)
    await kept.program.start()
  })

/** Faults, one at a time, each kind once a round. @returns their names */
async function strike(
  fleet: Fleet,
  users: Users,
  { random, say, signal, seconds }: { readonly random: Random } & Pick<FleetSoakOptions, 'say' | 'signal' | 'seconds'>,
): Promise<readonly string[]> {
  const kinds = faultKinds(fleet, users)
  const done: string[] = []
  const until = performance.now() + seconds * 1_000
  while (performance.now() < until && !signal.aborted) {
    for (const fault of shuffled(kinds, random).map((kind) => random.pick(kind as [Fault]))) {
      const [ms, pauseMs] = [random.between(1_000, 4_500), random.between(300, 3_000)]
      if (performance.now() >= until || signal.aborted) break
      say(fault.name)
      done.push(fault.name)
      try {
        await fault.run(ms)
      } catch (error) {
        throw new Error(`the fault "${fault.name}" could not be done: ${error instanceof Error ? error.stack : String(error)}`)
      }
      await sleep(pauseMs)
    }
  }
  return done
}

function shuffled<T>(list: readonly T[], random: Random): readonly T[] {
  const left = [...list]
  return list.flatMap(() => left.splice(random.between(0, left.length), 1))
}

/** Looks until nothing is unfinished, or for `patienceMs` no less than before. @returns what was seen last */
async function settle(
  fleet: Fleet,
  oracle: ReturnType<typeof createOracle>,
  patienceMs: number,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<LastEvidence> {
  let told = ''
  let fewest = Number.POSITIVE_INFINITY
  let untilMs = performance.now() + patienceMs
  for (;;) {
    const seen = await oracle.lookAtAll().catch((error: unknown) => {
      say(`the oracle could not look: ${String(error)}`)
      return undefined
    })
    const open = seen === undefined ? ['nothing was seen'] : unfinished(seen)
    if (seen !== undefined && (open.length === 0 || performance.now() > untilMs || signal.aborted)) return seen
    if (seen === undefined && (performance.now() > untilMs || signal.aborted)) throw new Error('the oracle could not look at the end')
    if (seen !== undefined && open.length < fewest) {
      fewest = open.length
      untilMs = performance.now() + patienceMs
    }
    const line = `${open.length} things are unfinished: ${open[0]?.slice(0, 300)}`
    if (line !== told) say(line)
    told = line
    // Validators are made, leave and are paid in epochs; nobody waits for days.
    await fleet.beacon.advanceEpochs(2).catch(() => undefined)
    await sleep(2_000)
  }
}

/** Reads for the oracle: raw data of the chains, and objects as JSON. What the objects claim must be there, so they are read first. */
function createOracle({ cluster, anvil, beacon, solana }: Fleet, users: Users) {
  let terms: Terms = { ...TERMS, depositContract: anvil.depositContract.toLowerCase(), ...CAPS, limit: LIMIT }
  const source = { rpcUrl: anvil.url, depositContract: terms.depositContract, requestContract: terms.requestContract }
  const objects = async (): Promise<readonly KubernetesObject[]> => {
    const lists = await Promise.all(
      PLURALS.map(async (plural) => {
        const { status, body } = await cluster.request({ path: `/apis/staking.dev/v1alpha1/${plural}` })
        if (status !== 200) throw new Error(`${plural}: ${status}`)
        const { kind, items } = body as { readonly kind: string; readonly items: readonly KubernetesObject[] }
        return items.map((item) => ({ ...item, kind: kind.replace(/List$/, '') }))
      }),
    )
    return lists.flat()
  }
  const readSolana = createSolanaReader(solana.url, [SOLANA_STAKER_ADDRESS, SOLANA_WITHDRAWER_ADDRESS])
  const readSent = createSentReader(anvil.url, terms.signer)
  async function look(): Promise<Evidence> {
    const read = await objects()
    const [ethereum, solanaFacts] = await Promise.all([readEthereum(source), readSolana()])
    // A wish is kept before it is said: none of what was read is missing here.
    return { terms, wishes: structuredClone(users.wishes()), objects: read, ethereum, solana: solanaFacts }
  }
  return {
    look,
    /** The owner of the key is about to take the limit away. */
    async endLimit(): Promise<void> {
      const { timestamp } = await anvil.rpc<{ readonly timestamp: string }>('eth_getBlockByNumber', ['latest', false])
      terms = { ...terms, limit: { ...LIMIT, until: Number(timestamp) } }
    },
    async lookAtAll(): Promise<LastEvidence> {
      const evidence = await look()
      return {
        ...evidence,
        sent: await readSent(),
        counts: await readCounts(anvil.url, terms.signer),
        beacon: await readBeacon(beacon.url),
      }
    },
  }
}

/** A defect, whatever came of it: no fault makes a program say this. */
const defects = /\b(TypeError|RangeError|ReferenceError|SyntaxError|AssertionError|unhandledRejection|uncaughtException)\b.*/g

function unexpected({ stack }: Fleet): readonly string[] {
  const logs = ['operator.log', 'other-operator.log', 'service.log'].map((file) => readFileSync(join(stack.dir, file), 'utf8'))
  const lines = new Set(logs.flatMap((log) => log.match(defects) ?? []).map((line) => `a program says: ${line.slice(0, 500)}`))
  return [...lines].filter((line) => !line.includes('fetch failed'))
}

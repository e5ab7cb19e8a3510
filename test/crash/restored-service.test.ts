import { describe, expect, test } from 'vitest'
import { decodeInstruction } from '../../src/chains/solana/instructions.ts'
import { add, none } from '../../src/operator/testing/rows.ts'
import { stakeWorld } from '../../src/operator/testing/solana-stories.ts'
import { KEY as SOLANA_KEY, type SolanaWorld } from '../../src/operator/testing/solana-world.ts'
import { createWorld, EXIT, KEY, WITHDRAWAL, type World } from '../../src/operator/testing/world.ts'

/**
 * The staking API's database is set back to a copy from before a resource was asked for, at each point of its life: what was handed out for it is forgotten, and
 * the same request is handed out again, of Solana under another stake with another account. Whatever the operator does then, nothing is paid a second time.
 */
const changes = /^(before|after) (\w+\.(create|mergePatch|update)|api\.\w+|chain\.(send|broadcast|sendTransaction))/

/** What happens besides, right after the database was set back. */
const besides = ['nothing else', 'the operator ends', 'the operator ends, and status is lost'] as const
type Besides = (typeof besides)[number]

/** Counts the points of one life, and gives the hook that sets the database back at one of them. */
function at(fatal: number, forget: () => void, more: Besides) {
  let passed = 0
  return (point: string, operator: { kill(): void }) => {
    if (!changes.test(point) || passed++ !== fatal) return
    forget()
    if (more !== 'nothing else') operator.kill()
  }
}

/** Of the points of a second life, one in so many is tried after each of a first: all are, in the end. */
const EACH = 7

describe.each([KEY, EXIT, WITHDRAWAL])('%s', (key) => {
  const world = () => {
    const made = createWorld()
    made.addSigner()
    add(made, key)
    return made
  }
  const loseStatus = (given: World): void => {
    const name = key.slice(key.indexOf(':') + 1)
    if (key === KEY) given.editStatus(none)
    else if (key === EXIT) given.exits.edit(name, ({ status: _gone, ...exit }) => exit)
    else given.withdrawals.edit(name, ({ status: _gone, ...withdrawal }) => withdrawal)
  }
  const paid = (given: World): number => (key === KEY ? given.chain.deposits() : given.chain.requests()).length
  /** @returns what brings it back */
  const forget = (given: World) => () => [given.service.forget(), given.requests.forget()]

  test.each(besides)(
    'is paid once, at whichever point the database is set back, and %s',
    async (more) => {
      const points: string[] = []
      const counting = world()
      await counting.settle(
        counting.start((point) => void (changes.test(point) && points.push(point))),
        [key],
      )
      expect(paid(counting)).toBe(1)
      expect(points.length).toBeGreaterThan(20)

      for (let fatal = 0; fatal < points.length; fatal++) {
        const given = world()
        const first = given.start(at(fatal, forget(given), more))
        await given.settle(first, [key])
        if (first.killed) {
          if (more === 'the operator ends, and status is lost') loseStatus(given)
          await given.settle(given.start(), [key])
        }
        const where = `set back at ${points[fatal]}: ${given.condition('Ready', key)?.message}`
        expect(given.chain.violations, where).toEqual([])
        // What is lost is asked for again, and no person is asked.
        expect(paid(given), where).toBe(1)
        expect(given.ready(key), where).toBe(true)
      }
    },
    60_000,
  )

  test('is paid once, though the data comes back at any point after that, and status is lost both times', async () => {
    const points: string[] = []
    const counting = world()
    await counting.settle(
      counting.start((point) => void (changes.test(point) && points.push(point))),
      [key],
    )

    let lives = 0
    for (let fatal = 0; fatal < points.length; fatal++) {
      for (let back = fatal % EACH; back < points.length; back += EACH) {
        const given = world()
        let bringBack: readonly (() => void)[] = []
        const first = given.start(at(fatal, () => (bringBack = forget(given)()), 'the operator ends'))
        await given.settle(first, [key])
        if (!first.killed) continue
        loseStatus(given)
        const between = given.start(
          at(
            back,
            () => {
              for (const one of bringBack) one()
            },
            'the operator ends',
          ),
        )
        await given.settle(between, [key])
        if (!between.killed) continue
        loseStatus(given)
        for (let life = 0; life < 2; life++) {
          const last = given.start()
          await last.visitLanes()
          await given.settle(last, [key])
        }
        lives++
        const where = `set back at ${points[fatal]}, brought back at point ${back}: ${given.condition('Ready', key)?.message}`
        expect(given.chain.violations, where).toEqual([])
        expect(paid(given), where).toBeLessThanOrEqual(1)
      }
    }
    expect(lives).toBeGreaterThan(points.length)
  }, 120_000)
})

describe('a Solana stake', () => {
  const funded = ({ cluster }: SolanaWorld): readonly string[] =>
    cluster
      .landed()
      .filter(({ failure }) => failure === undefined)
      .flatMap(({ message }) => message.instructions.map(decodeInstruction))
      .flatMap((one) => (one.kind === 'initialize' ? [one.account] : []))

  test.each(besides)(
    'is paid once at the most, at whichever point the database is set back, and %s',
    async (more) => {
      const points: string[] = []
      const counting = stakeWorld()
      await counting.settle(counting.start((point) => void (changes.test(point) && points.push(point))))
      expect(funded(counting)).toHaveLength(1)
      expect(points.length).toBeGreaterThan(20)

      let paid = 0
      for (let fatal = 0; fatal < points.length; fatal++) {
        const given = stakeWorld()
        const first = given.start(at(fatal, given.service.forget, more))
        await given.settle(first)
        const operator = first.killed ? given.start() : first
        if (first.killed && more === 'the operator ends, and status is lost') given.editStatus(none)
        // What was signed before may land, or expire and be made anew.
        for (let round = 0; round < 3; round++) {
          await given.settle(operator)
          given.cluster.expire()
          given.clock.advance(60_000)
        }
        const accounts = funded(given)
        const where = `set back at ${points[fatal]}: ${accounts.join(' and ')}, ${given.condition('Ready')?.message}`
        expect(accounts.length, where).toBeLessThanOrEqual(1)
        // It comes to its end, or says what a person has to look at: nothing is asked for again for ever.
        expect(given.condition('Ready')?.status === 'True' || given.condition('Stalled')?.status === 'True', where).toBe(true)
        paid += accounts.length
      }
      expect(paid).toBeGreaterThan(points.length / 4)
    },
    60_000,
  )

  test('is paid once at the most, though the data comes back at any point after that, and status is lost both times', async () => {
    const points: string[] = []
    const counting = stakeWorld()
    await counting.settle(counting.start((point) => void (changes.test(point) && points.push(point))))

    let second = 0
    for (let fatal = 0; fatal < points.length; fatal++) {
      // Each point of the second life after some point of the first.
      for (let back = fatal % EACH; back < points.length; back += EACH) {
        const given = stakeWorld()
        let bringBack = none as () => void
        const first = given.start(at(fatal, () => (bringBack = given.service.forget()), 'the operator ends'))
        await given.settle(first)
        if (!first.killed) continue
        given.editStatus(none)
        const between = given.start(at(back, bringBack, 'the operator ends'))
        await given.settle(between)
        if (!between.killed) continue
        given.editStatus(none)
        for (let round = 0; round < 3; round++) {
          const last = given.start()
          for (const { metadata } of last.records(SOLANA_KEY)) await last.visitRecord(metadata.name)
          await given.settle(last)
          given.cluster.expire()
          given.clock.advance(60_000)
        }
        const accounts = funded(given)
        const where = `set back at ${points[fatal]}, brought back at point ${back}: ${accounts.join(' and ')}, ${given.condition('Ready')?.message}`
        expect(accounts.length, where).toBeLessThanOrEqual(1)
        if (given.start().records(SOLANA_KEY).length > 1) second++
      }
    }
    expect(second).toBeGreaterThan(0)
  }, 60_000)
})

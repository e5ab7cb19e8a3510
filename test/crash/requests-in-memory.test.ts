import { describe, expect, test } from 'vitest'
import { ChainError } from '../../src/chains/ethereum/chain.ts'
import { misfortune, shuffle } from '../../src/operator/testing/misfortune.ts'
import { seededRandom } from '../../src/operator/testing/test-clock.ts'
import { createWorld, EXIT, KILLED, WITHDRAWAL, type World } from '../../src/operator/testing/world.ts'

/** An exit and a withdrawal of two validators, each a whole life, with a hook at every point before and after each call, effect and write. */
function worldWith(...keys: readonly string[]): World {
  const world = createWorld()
  world.addSigner()
  for (const [index, key] of keys.entries()) {
    const validator = { network: 'hoodi', pubkey: world.validator(index) }
    if (key.startsWith('exit:')) world.addExit(key, { validator })
    else world.addWithdrawal(key, { validator, amountGwei: `${1_000 + index}` })
  }
  return world
}

function assertAskedOnce(world: World, keys: readonly string[]): void {
  const asked = world.chain.requests().map(({ kind, pubkey }) => `${kind} ${pubkey}`)
  const wanted = keys.map((key, index) => `${key.startsWith('exit:') ? 'exit' : 'withdrawal'} ${world.validator(index)}`)
  expect(asked.toSorted()).toEqual(wanted.toSorted())
  expect(world.chain.violations).toEqual([])
  expect(world.requests.stored()).toHaveLength(keys.length)
  expect(
    world.chain
      .requests()
      .map(({ nonce }) => nonce)
      .toSorted((a, b) => a - b),
  ).toEqual(keys.map((_, nonce) => nonce))
}

describe.each([EXIT, WITHDRAWAL])('%s', (key) => {
  test('ended at every single point of its life and started again, the operator has asked once', async () => {
    const counting = worldWith(key)
    const points: string[] = []
    await counting.settle(
      counting.start((point) => void points.push(point)),
      [key],
    )
    assertAskedOnce(counting, [key])
    expect(points.length).toBeGreaterThan(60)

    for (let fatal = 0; fatal < points.length; fatal++) {
      const world = worldWith(key)
      let passed = 0
      const doomed = world.start((_point, operator) => {
        if (passed++ === fatal) operator.kill()
      })
      await world.settle(doomed, [key])
      expect(doomed.killed, `ended at ${points[fatal]}`).toBe(true)
      await world.settle(world.start(), [key])
      expect(world.ready(key), `after an end at ${points[fatal]}: ${JSON.stringify(world.requestStatus(key).conditions)}`).toBe(true)
      try {
        assertAskedOnce(world, [key])
      } catch (error) {
        throw new Error(`after an end at ${points[fatal]}`, { cause: error })
      }
    }
  })

  test('deleted after an end at any point, it is asked for once or not at all, and no exit is left at the staking API to be sent', async () => {
    const counting = worldWith(key)
    const points: string[] = []
    await counting.settle(
      counting.start((point) => void points.push(point)),
      [key],
    )
    for (let fatal = 0; fatal < points.length; fatal++) {
      const world = worldWith(key)
      let passed = 0
      await world.settle(
        world.start((_point, operator) => {
          if (passed++ === fatal) operator.kill()
        }),
        [key],
      )
      world.remove(key)
      await world.settle(world.start(), [key], 20)
      const where = `deleted after an end at ${points[fatal]}`
      const stuck = world.object(key)
      // Its nonce waits for the signer's next transaction, which is none of its own.
      if (stuck !== undefined) {
        expect(world.condition('Ready', key)?.reason, where).toBe('Deleting')
        world.addStake()
        world.editSpec({}, 'team-a/stake-1')
        await world.settle(world.start(), [key, 'team-a/stake-1'], 30)
      }
      expect(world.object(key), where).toBeUndefined()
      expect(world.chain.requests().length, where).toBeLessThanOrEqual(1)
      expect(world.chain.violations).toEqual([])
      if (key === EXIT && world.chain.requests().length === 0)
        for (const { status, transaction } of await world.requests.requests()) {
          if (status === 'cancelled') continue
          // It was told of a transaction before that was sent, and so takes nothing back: the log has proof that nothing of it lands.
          const record = [...world.records.list()].find(({ spec }) => spec.purpose === 'Exit')?.status
          expect(
            record?.attempts?.map(({ hash }) => hash),
            where,
          ).toContain(transaction.hash)
          expect(
            record?.closed?.map(({ nonce }) => nonce),
            where,
          ).toEqual(record?.attempts?.map(() => 0).slice(0, 1))
        }
    }
  })
})

const noAnswer = () => new ChainError('unavailable', 'no answer')

const ten = Array.from({ length: 10 }, (_, index) => `${index % 2 === 0 ? 'exit' : 'withdrawal'}:team-a/one-${index}`)
const seeds = Array.from({ length: Number(process.env.FUZZ_SEEDS ?? 3) }, (_, seed) => seed)

describe('five exits and five withdrawals of one signer at the same time', { timeout: 240_000 }, () => {
  test.each(seeds)('whatever befalls them, are each asked for once (seed %i)', async (seed) => {
    const world = createWorld({ depth: 3, bumpAfterMs: 20_000 })
    world.addSigner()
    for (const [index, key] of ten.entries()) {
      const validator = { network: 'hoodi', pubkey: world.validator(index) }
      if (key.startsWith('exit:')) world.addExit(key, { validator })
      else world.addWithdrawal(key, { validator, amountGwei: `${1_000 + index}` })
    }
    const random = seededRandom(4000 + seed)
    const any = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
    const log: string[] = []
    const around = misfortune({ random, log, most: 400, ends: 0.003, fails: 0.01, ofChain: noAnswer, order: () => shuffle(random) })
    const start = () => world.start(around, random)
    // Two leaders at once: that must cost nothing but time.
    const leaders = [start(), start()]
    const happens = (name: string, chance: number, event: () => void) => {
      if (random() >= chance) return
      log.push(name)
      event()
    }
    // One that was given up, had its status lost and was reported before, waits for a person: nobody knows whether it landed. So does one that the
    // contract's fee has reverted three times.
    const isGivenUp = (key: string) =>
      world.requestStatus(key).phase === 'Failed' || ['AlreadyRequested', 'RemadeTooOften'].includes(world.stalled(key) ?? '')
    for (let round = 0; round < 150; round++) {
      const calm = round > 60
      if (!calm) {
        happens('the price changes', 0.2, () => {
          world.chain.state.baseFee = BigInt(any([2, 10, 25, 45, 70])) * 1_000_000_000n
        })
        happens('the contract asks for another fee', 0.2, () => {
          world.chain.state.requestFee = any([1n, 150n, 1_000n, 10n ** 16n])
        })
        happens('the node forgets its pool', 0.1, () => world.chain.forget())
        happens('the node takes and forgets', 0.1, () => {
          world.chain.state.forgetful = !world.chain.state.forgetful
        })
        happens('a reorg', 0.1, () => {
          const depth = Math.min(2, Number(world.chain.height()))
          world.chain.reorg(depth, random() < 0.5)
          // What is final stays so: as many blocks come in place of those.
          world.chain.mine(depth)
        })
        happens('a status is lost', 0.05, () => world.editRequestStatus(() => undefined, any(ten)))
        happens('a transaction is lost from status', 0.05, () =>
          world.editRequestStatus(({ transaction: _gone, ...rest }) => rest, any(ten)),
        )
        happens('a cache freezes', 0.1, () => {
          any(leaders).caches[any(['exits', 'withdrawals', 'signers', 'records', 'places'] as const)].frozen = true
        })
      } else {
        world.chain.state.baseFee = 10_000_000_000n
        world.chain.state.requestFee = 1n
        world.chain.state.forgetful = false
      }
      if (calm || random() < 0.3)
        for (const { caches } of leaders)
          for (const cache of [caches.exits, caches.withdrawals, caches.signers, caches.records, caches.places]) cache.thaw()
      await Promise.all(
        leaders.map((leader) =>
          Promise.all(
            [
              ...[...ten, 'signer-1'].map((key) => (key.includes('/') ? leader.visit(key) : leader.visitSigner(key))),
              leader.visitLanes(),
            ].map((visit) => visit.catch(() => KILLED)),
          ),
        ),
      )
      for (const [index, leader] of leaders.entries()) if (leader.killed) leaders[index] = start()
      world.clock.advance(12_000)
      if (random() < 0.6) world.chain.mine(1, (versions) => versions[Math.floor(random() * versions.length)])
      if (calm && ten.every((key) => world.ready(key) || isGivenUp(key))) break
    }
    const unready = () =>
      ten
        .flatMap((key) =>
          world.ready(key) ? [] : [`${key}: ${world.condition('Ready', key)?.reason} ${world.condition('Ready', key)?.message}`],
        )
        .join('\n')
    try {
      const failed = ten.filter(isGivenUp)
      expect(failed.length).toBeLessThan(ten.length)
      expect(
        ten.filter((key) => !world.ready(key) && !failed.includes(key)).map((key) => JSON.stringify(world.condition('Ready', key))),
      ).toEqual([])
      expect(world.chain.violations).toEqual([])
      // A request whose fee had risen above what it carried was reverted: it was not made, and says so. Each other was made once.
      expect(
        world.chain
          .requests()
          .map(({ pubkey }) => pubkey)
          .toSorted(),
      ).toEqual(ten.flatMap((key, index) => (failed.includes(key) ? [] : [world.validator(index)])).toSorted())
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}\n${unready()}\n${log.join('\n')}`)
    }
  })
})

import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { isTrue } from '../../src/resources/conditions.ts'
import type { EthereumStake } from '../../src/resources/ethereum-stake.ts'
import type { Program } from '../stack/program.ts'
import { metricsOf, replicaOf } from '../stack/replica.ts'
import { applyAll, eventually, getStakes, OTHER_ADDRESS, signer, stake } from '../stack/resources.ts'
import { type Stack, startStack } from '../stack/stack.ts'
import { expectExactlyOnce, untilAllReady } from './exactly-once.ts'
import { chooseSeed, createRandom } from './random.ts'

/** Two operators over one real Lease. Safety does not rest on it: whatever happens to it, each stake is bought once. */
const LEASE = ['--lease-duration', '4s', '--renew-deadline', '3s', '--retry-period', '500ms']
/** Each of the two is frozen once. */
const FREEZES = 2
const TIMEOUT = { timeout: 400_000 }
const SLOW_MS = 150_000

describe('two operators', () => {
  let stack: Stack
  let other: Program
  const stopped = new Set<Program>()
  beforeEach(async () => {
    stopped.clear()
    stack = await startStack({ anvil: { mining: 1 }, startOperator: false, operatorArgs: LEASE })
    await applyAll(stack.cluster, [signer()])
    other = await replicaOf(stack)
    // So that who starts first leads.
    await stack.operator.start()
    await untilLeads(stack.operatorMetrics)
    await other.start()
  }, 180_000)
  afterEach(async () => {
    other?.process().kill('SIGCONT')
    await other?.kill()
    await stack?.stop()
  })

  test('only one acts: the other fills its caches, is ready, and writes nothing', TIMEOUT, async () => {
    await applyAll(stack.cluster, some(0, 6))
    await allReady(6)
    expect(await metric(stack.operatorMetrics, 'staking_operator_status_writes_total')).toBeGreaterThan(0)
    expect(await metric(metricsOf(other), 'staking_operator_status_writes_total')).toBe(0)
    // Of the fleet only the one that leads tells: a sum over both counts nothing twice.
    const ofFleet = /^staking_operator_(resources|amount_eth|signer_|rpc_node_height|waiting_resources)/m
    expect(await (await fetch(stack.operatorMetrics)).text()).toMatch(ofFleet)
    expect(await (await fetch(metricsOf(other))).text()).not.toMatch(ofFleet)
    expect(await leads(metricsOf(other))).toBe(false)
    await expectExactlyOnce(stack, 6)

    // The end of a pod: the lease is given up at once, long before it would expire.
    stopped.add(stack.operator)
    expect(await stack.operator.stop()).toMatchObject({ code: 0 })
    await untilLeads(metricsOf(other))
    await applyAll(stack.cluster, some(6, 7))
    await allReady(7)
    await expectExactlyOnce(stack, 7)
  })

  test(
    'a leader that is frozen in the middle of a run wakes when another leads: it ends, and nothing is bought twice',
    TIMEOUT,
    async () => {
      const seed = chooseSeed()
      console.log(`seed ${seed}; again with STAKING_TEST_SEED=${seed}`)
      const random = createRandom(seed)
      let [leader, standby] = [stack.operator, other]
      for (let round = 0; round < FREEZES; round++) {
        await untilLeads(metricsOf(leader))
        await applyAll(stack.cluster, some(round * 6, round * 6 + 3))
        // In the middle of it: some transactions are being prepared, others sent or reported.
        await eventually(
          'work has begun',
          () => getStakes(stack.cluster),
          (stakes) => stakes.length > round * 6 && stakes.some(isUnderWay),
          SLOW_MS,
        )
        await delay(random.between(0, 400))
        const frozen = leader.process()
        frozen.kill('SIGSTOP')
        stopped.add(leader)
        await applyAll(stack.cluster, some(round * 6 + 3, round * 6 + 6))
        await untilLeads(metricsOf(standby))
        // It wakes while the new leader is at work, or when all is done.
        if (random.between(0, 2) === 0) await allReady((round + 1) * 6)
        else await delay(random.between(0, 600))
        frozen.kill('SIGCONT')
        expect((await frozen.exited).code).toBe(1)
        await leader.start()
        ;[leader, standby] = [standby, leader]
      }
      await allReady(FREEZES * 6)
      await expectExactlyOnce(stack, FREEZES * 6)
    },
  )

  test('a leader that cannot reach the API server ends; started again it goes on where it was', TIMEOUT, async () => {
    stopped.add(other)
    await other.stop()
    await applyAll(stack.cluster, some(0, 4))
    await eventually(
      'work has begun',
      () => getStakes(stack.cluster),
      (stakes) => stakes.some(isUnderWay),
      SLOW_MS,
    )
    const leader = stack.operator.process()
    await stack.cluster.stopApiServer()
    expect((await leader.exited).code).toBe(1)
    await stack.cluster.startApiServer()
    await stack.operator.start()
    await applyAll(stack.cluster, some(4, 6))
    await allReady(6)
    await expectExactlyOnce(stack, 6)
  })

  const some = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) =>
      stake(`s-${from + index}`, { amountEth: `${32 + from + index}`, withdrawalAddress: OTHER_ADDRESS }),
    )
  const isUnderWay = ({ status }: EthereumStake) => status?.conditions !== undefined && !isTrue(status.conditions, 'Ready')
  /** An operator that lost its lease because the machine was too slow ends, and is started again, as a kubelet does. */
  const allReady = (count: number) =>
    untilAllReady(stack, count, async () => {
      for (const one of [stack.operator, other]) if (!stopped.has(one) && !one.process().alive()) await one.start()
    })
})

/** The sum over all its label values. */
async function metric(url: string, name: string): Promise<number> {
  const text = await (await fetch(url, { signal: AbortSignal.timeout(2_000) })).text()
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

const leads = async (url: string): Promise<boolean> => (await metric(url, 'staking_operator_leader')) === 1
const untilLeads = (url: string) =>
  eventually(
    `${url} leads`,
    () => leads(url).catch(() => false),
    (is) => is,
    SLOW_MS,
  )

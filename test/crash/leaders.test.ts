import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { isTrue } from '../../src/resources/conditions.ts'
import type { EthereumStake } from '../../src/resources/ethereum-stake.ts'
import type { Program } from '../stack/program.ts'
import { metricsOf, replicaOf } from '../stack/replica.ts'
import { applyAll, eventually, getStakes, OTHER_ADDRESS, signer, stake } from '../stack/resources.ts'
import { type Stack, startStack } from '../stack/stack.ts'
import { expectExactlyOnce, untilAllReady } from './exactly-once.ts'
import { chooseSeed, createRandom } from './random.ts'

/** Two operators over one real Lease. Safety does not rest on it: whatever happens to it, each stake is bought once. */
const LEASE = ['--lease-duration', '8s', '--renew-deadline', '6s', '--retry-period', '500ms']
/** One that a busy machine keeps: where who leads is not to change by itself. */
const LONG_LEASE = ['--lease-duration', '90s', '--renew-deadline', '60s', '--retry-period', '500ms']
/** Each of the two is frozen once. */
const FREEZES = 2
const TIMEOUT = { timeout: 400_000 }
const SLOW_MS = 150_000

describe('two operators', () => {
  let stack: Stack
  let other: Program
  const started = new Set<Program>()
  const stopped = new Set<Program>()
  const begin = async (operatorArgs: readonly string[]) => {
    started.clear()
    stopped.clear()
    stack = await startStack({ anvil: { mining: 1 }, startOperator: false, operatorArgs })
    await applyAll(stack.cluster, [signer()])
    other = await replicaOf(stack)
    // So that who starts first leads.
    for (const one of [stack.operator, other]) {
      await one.start()
      started.add(one)
      await untilLeads(stack.operatorMetrics)
    }
  }
  afterEach(async () => {
    if (other !== undefined && started.has(other)) {
      other.process().kill('SIGCONT')
      await other.kill()
    }
    await stack?.stop()
  })

  test('only one acts: the other fills its caches, is ready, and writes nothing', TIMEOUT, async () => {
    await begin(LONG_LEASE)
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
      await begin(LEASE)
      for (let round = 0; round < FREEZES; round++) {
        await leaderAndStandby()
        await applyAll(stack.cluster, some(round * 6, round * 6 + 3))
        // In the middle of it: some transactions are being prepared, others sent or reported.
        await eventually(
          'work has begun',
          () => getStakes(stack.cluster),
          (stakes) => stakes.length > round * 6 && stakes.some(isUnderWay),
          SLOW_MS,
        )
        await delay(random.between(0, 400))
        const [leader, standby] = await leaderAndStandby()
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
        stopped.delete(leader)
      }
      await allReady(FREEZES * 6)
      await expectExactlyOnce(stack, FREEZES * 6)
    },
  )

  test('a leader that cannot reach the API server ends; started again it goes on where it was', TIMEOUT, async () => {
    await begin(LEASE)
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
  const tend = async () => {
    for (const one of started) if (!stopped.has(one) && !one.process().alive()) await one.start()
  }
  const allReady = (count: number) => untilAllReady(stack, count, tend)
  const untilLeads = (url: string) =>
    eventually(
      `${url} leads`,
      async () => {
        await tend()
        return leads(url)
      },
      (is) => is,
      SLOW_MS,
    )
  /** Whoever has lost it to the other meanwhile is the standby now. */
  async function leaderAndStandby(): Promise<readonly [Program, Program]> {
    const found = await eventually(
      'one of them leads',
      async () => {
        await tend()
        return (await leads(stack.operatorMetrics)) ? stack.operator : (await leads(metricsOf(other))) ? other : undefined
      },
      (one) => one !== undefined,
      SLOW_MS,
    )
    return found === other ? [other, stack.operator] : [stack.operator, other]
  }
})

/** The sum over all its label values. */
async function metric(url: string, name: string): Promise<number> {
  const text = await (await fetch(url, { signal: AbortSignal.timeout(20_000) })).text()
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

const leads = async (url: string): Promise<boolean> => (await metric(url, 'staking_operator_leader')) === 1

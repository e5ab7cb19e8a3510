import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { applyAll, namespace, OTHER_ADDRESS, signer, stake, WITHDRAWAL_ADDRESS } from '../stack/resources.ts'
import { type Stack, startStack } from '../stack/stack.ts'
import { dropLease, expectExactlyOnce, untilAllReady } from './exactly-once.ts'
import { chooseSeed, createRandom, type Random } from './random.ts'

/**
 * Stakes of two namespaces come in over time while the parts of the system are ended with SIGKILL at random moments and started again.
 * Whatever was lost with them, afterwards each stake was bought once.
 */
const ROUNDS = 10
const STAKES = 20
/** With everything failing at once, fewer: they find the same and take their time. */
const FAULTY_ROUNDS = 5
/** The dead's lease is taken away; on a machine under load no living one should lose it. */
const LONG_LEASE = ['--lease-duration', '30s', '--renew-deadline', '20s', '--retry-period', '2s']

describe('stakes while parts die at random moments', () => {
  let stack: Stack | undefined
  afterEach(async () => {
    await stack?.stop()
    stack = undefined
  })

  async function start(): Promise<Stack> {
    stack = await startStack({
      anvil: { mining: 1 },
      faults: true,
      startOperator: false,
      operatorArgs: LONG_LEASE,
    })
    await applyAll(stack.cluster, [
      namespace('team-a'),
      namespace('team-b'),
      signer({ policy: { allowedNamespaces: { names: ['team-a', 'team-b'] } } }),
    ])
    return stack
  }

  const seeded = (): Random => {
    const seed = chooseSeed()
    console.log(`seed ${seed}; again with STAKING_TEST_SEED=${seed}`)
    return createRandom(seed)
  }

  /** Two more stakes, of various amounts and types, each in another namespace. */
  const two = (round: number) => [
    stake(`a-${round}`, { amountEth: '32', credentialsType: 'Execution', withdrawalAddress: OTHER_ADDRESS }, { namespace: 'team-a' }),
    stake(`b-${round}`, { amountEth: `${33 + round}.5`, withdrawalAddress: WITHDRAWAL_ADDRESS }, { namespace: 'team-b' }),
  ]

  test('twenty, and the operator is killed ten times', { timeout: 600_000 }, async () => {
    const random = seeded()
    const { cluster, operator } = await start()
    for (let round = 0; round < ROUNDS; round++) {
      await operator.start()
      await applyAll(cluster, two(round))
      await delay(random.between(0, 2_000))
      await operator.kill()
      await dropLease(cluster)
    }
    await operator.start()
    if (stack === undefined) throw new Error('no stack')
    await untilAllReady(stack, STAKES)
    await expectExactlyOnce(stack, STAKES)
  })

  test('the service is killed too, and the chain cannot be reached at times', { timeout: 600_000 }, async () => {
    const random = seeded()
    const { cluster, operator, service, rpcFaults, apiFaults } = await start()
    await operator.start()
    for (let round = 0; round < FAULTY_ROUNDS; round++) {
      await applyAll(cluster, two(round))
      await delay(random.between(0, 800))
      const end = random.pick(['operator', 'service', 'both'] as const)
      // Calls that never reach the node (each second round, so that a run without any is none by chance), or whose answers never come back.
      rpcFaults?.when(/./).times(random.between(1, 12), { kind: 'drop', afterPassing: round % 2 === 1 })
      apiFaults?.when(/^(POST|PUT)/).times(random.between(0, 2), { kind: 'drop', afterPassing: true })
      await delay(random.between(0, 300))
      if (end !== 'service') {
        await operator.kill()
        await dropLease(cluster)
      }
      if (end !== 'operator') await service.kill()
      await Promise.all([end === 'service' ? undefined : operator.start(), end === 'operator' ? undefined : service.start()])
    }
    rpcFaults?.clear()
    apiFaults?.clear()
    if (stack === undefined) throw new Error('no stack')
    await untilAllReady(stack, FAULTY_ROUNDS * 2)
    expect(rpcFaults?.calls()).toBeGreaterThan(rpcFaults?.passed() ?? 0)
    await expectExactlyOnce(stack, FAULTY_ROUNDS * 2)
  })
})

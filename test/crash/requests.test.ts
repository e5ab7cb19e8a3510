import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { decodeRequestLog, withdrawalRequestContract } from '../../src/chains/ethereum/requests.ts'
import { isTrue } from '../../src/resources/conditions.ts'
import type { EthereumStake } from '../../src/resources/ethereum-stake.ts'
import type { ValidatorExit } from '../../src/resources/validator-exit.ts'
import type { ValidatorWithdrawal } from '../../src/resources/validator-withdrawal.ts'
import type { RpcLog } from '../chains/deposit-contract.ts'
import { applyAll, eventually, getStakes, ownStake, PAYER, signer, validatorExit, validatorWithdrawal } from '../stack/resources.ts'
import { clientOf, FAST_BEACON, type Stack, startStack } from '../stack/stack.ts'
import { dropLease, minedNonces, untilAllReady } from './exactly-once.ts'
import { chooseSeed, createRandom } from './random.ts'

/**
 * Ten exits and ten withdrawals come in over time while the operator is ended with SIGKILL ten times at random moments. Whatever was lost with it,
 * afterwards the chain has exactly one request for each, as its resource asks.
 */
const ROUNDS = 10
const LONG_LEASE = ['--lease-duration', '30s', '--renew-deadline', '20s', '--retry-period', '2s']
const pubkeyOf = ({ status }: EthereumStake) => (status?.depositData?.pubkey ?? '0x') as `0x${string}`

let stack: Stack | undefined
afterEach(async () => {
  await stack?.stop()
  stack = undefined
})

type Request = ValidatorExit | ValidatorWithdrawal
async function listed<T extends Request>({ cluster }: Stack, plural: string): Promise<readonly T[]> {
  const { body } = await cluster.request({ path: `/apis/staking.dev/v1alpha1/${plural}` })
  return (body as { items: T[] }).items
}

/** Every request that was mined, as `<what> <pubkey>`, and by whom. */
async function requestsOnChain({ anvil }: Stack): Promise<readonly string[]> {
  const logs = await anvil.rpc<readonly RpcLog[]>('eth_getLogs', [
    { address: withdrawalRequestContract, fromBlock: '0x0', toBlock: 'latest' },
  ])
  return logs
    .map(decodeRequestLog)
    .map(({ source, request }) => {
      expect(source).toBe(PAYER.toLowerCase())
      return `${request.kind === 'exit' ? 'exit' : `withdrawal of ${request.amountGwei}`} ${request.pubkey}`
    })
    .sort()
}

test('ten exits and ten withdrawals, and the operator is killed ten times', { timeout: 900_000 }, async () => {
  const seed = chooseSeed()
  console.log(`seed ${seed}; again with STAKING_TEST_SEED=${seed}`)
  const random = createRandom(seed)
  const here = await startStack({
    anvil: { mining: 1 },
    beacon: FAST_BEACON,
    startOperator: false,
    operatorArgs: [...LONG_LEASE, '--observe-activating', '1s'],
  })
  stack = here
  const { cluster, operator, beacon } = here
  await applyAll(cluster, [signer(), ...Array.from({ length: 2 * ROUNDS }, (_, index) => ownStake(`s-${index}`, { amountEth: '40' }))])
  await operator.start()
  await untilAllReady(here, 2 * ROUNDS)
  for (const stake of await getStakes(cluster)) await beacon.advanceUntil(pubkeyOf(stake), ['active_ongoing'])
  await beacon.advanceEpochs(3)
  await operator.kill()
  await dropLease(cluster)

  for (let round = 0; round < ROUNDS; round++) {
    await operator.start()
    await applyAll(cluster, [
      validatorExit(`e-${round}`, { stakeRef: { name: `s-${round}` } }),
      validatorWithdrawal(`w-${round}`, { stakeRef: { name: `s-${ROUNDS + round}` } }, String(1_000_000_000 + round)),
    ])
    await delay(random.between(0, 3_000))
    await operator.kill()
    await dropLease(cluster)
  }
  await operator.start()
  await eventually(
    'all requests are ready',
    async () => {
      const all = [...(await listed<Request>(here, 'validatorexits')), ...(await listed<Request>(here, 'validatorwithdrawals'))]
      return {
        count: all.length,
        others: all
          .filter(({ status }) => !isTrue(status?.conditions, 'Ready'))
          .map(({ metadata, status }) => `${metadata.name}: ${status?.conditions?.find(({ type }) => type === 'Ready')?.message}`),
      }
    },
    ({ count, others }) => count === 2 * ROUNDS && others.length === 0,
    240_000,
  )

  const stakes = new Map((await getStakes(cluster)).map((stake) => [stake.metadata.name, pubkeyOf(stake)]))
  const wanted = Array.from({ length: ROUNDS }, (_, index) => [
    `exit ${stakes.get(`s-${index}`)}`,
    `withdrawal of ${1_000_000_000 + index} ${stakes.get(`s-${ROUNDS + index}`)}`,
  ]).flat()
  expect(await requestsOnChain(here)).toEqual(wanted.sort())
  expect((await beacon.requests()).filter(({ accepted }) => !accepted)).toEqual([])
  expect(await minedNonces(here.anvil)).toEqual(Array.from({ length: 4 * ROUNDS }, (_, nonce) => nonce))

  const client = clientOf(here)
  const signal = AbortSignal.timeout(60_000)
  for (const [name, pubkey] of stakes) {
    const exits = (await client.listExitRequests({ params: { pubkey } }, signal)).body.items
    const withdrawals = (await client.listWithdrawalRequests({ params: { pubkey } }, signal)).body.items
    const said = [...exits, ...withdrawals].map(({ status, consensus }) => `${status} ${consensus.status}`)
    expect(said, name).toEqual(['confirmed accepted'])
  }
})

import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { isTrue } from '../../src/resources/conditions.ts'
import type { SolanaStake } from '../../src/resources/solana-stake.ts'
import { callRpc } from '../chains/json-rpc.ts'
import { applyAll, eventually, SOL, solanaSigners, solanaStake } from '../stack/resources.ts'
import { clientOf, SOLANA_STAKER_ADDRESS, SOLANA_WITHDRAWER_ADDRESS, type Stack, startStack } from '../stack/stack.ts'
import { dropLease } from './exactly-once.ts'
import { chooseSeed, createRandom } from './random.ts'

/**
 * Ten stakes live from creation to withdrawal while the operator is ended with SIGKILL ten times at random moments. Whatever was lost with it,
 * afterwards ten stake accounts were made, each was funded once, and all money is back but the fees.
 */
const LIVES = 10
const ROUNDS = 10
const LONG_LEASE = ['--lease-duration', '30s', '--renew-deadline', '20s', '--retry-period', '2s']
const amountOf = (index: number): bigint => 2n * SOL + BigInt(index)

let stack: Stack | undefined
afterEach(async () => {
  await stack?.stop()
  stack = undefined
})

async function stakesOf({ cluster }: Stack): Promise<readonly SolanaStake[]> {
  const { body } = await cluster.request({ path: '/apis/staking.dev/v1alpha1/solanastakes' })
  return (body as { items: SolanaStake[] }).items
}
const protocolOf = ({ status }: SolanaStake) => status?.protocol?.status
const isReady = ({ status }: SolanaStake) => isTrue(status?.conditions, 'Ready')

async function want({ cluster }: Stack, name: string, desiredState: 'Inactive' | 'Withdrawn'): Promise<void> {
  await cluster.kubectlOk(['patch', 'solstake', name, '--type', 'merge', '-p', JSON.stringify({ spec: { desiredState } })])
}

interface Landed {
  readonly meta: { readonly fee: number; readonly err: unknown; readonly logMessages: readonly string[] }
}
/** Everything that landed on an account. */
async function landedOn(url: string, address: string): Promise<readonly Landed[]> {
  const signatures = await callRpc<readonly { signature: string }[]>(url, 'getSignaturesForAddress', [address, { limit: 1_000 }])
  const landed: Landed[] = []
  for (const { signature } of signatures) {
    const options = { commitment: 'confirmed', maxSupportedTransactionVersion: 0 }
    const transaction = await callRpc<Landed | null>(url, 'getTransaction', [signature, options])
    if (transaction !== null) landed.push(transaction)
  }
  return landed
}

test('ten whole lives, and the operator is killed ten times', { timeout: 900_000 }, async () => {
  const seed = chooseSeed()
  console.log(`seed ${seed}; again with STAKING_TEST_SEED=${seed}`)
  const random = createRandom(seed)
  const here = await startStack({ solana: {}, startOperator: false, operatorArgs: [...LONG_LEASE, '--observe-activating', '1s'] })
  stack = here
  const { cluster, operator, solana } = here
  await applyAll(cluster, solanaSigners())
  const before = { staker: solana.balance(SOLANA_STAKER_ADDRESS), withdrawer: solana.balance(SOLANA_WITHDRAWER_ADDRESS) }

  for (let round = 0; round < ROUNDS; round++) {
    await operator.start()
    await applyAll(cluster, [solanaStake(`s-${round}`, { amountLamports: String(amountOf(round)) })])
    // Each round an epoch passes, and what has come far enough is sent on its way: one by one, or in one go.
    solana.nextEpoch()
    for (const stake of await stakesOf(here)) {
      if (!isReady(stake) || stake.spec.desiredState === 'Withdrawn') continue
      await want(here, stake.metadata.name, stake.spec.desiredState === 'Active' && random.between(0, 2) === 0 ? 'Inactive' : 'Withdrawn')
    }
    await delay(random.between(0, 3_000))
    await operator.kill()
    await dropLease(cluster)
  }
  await operator.start()
  await eventually(
    'all are withdrawn',
    async () => {
      const all = await stakesOf(here)
      // One that was killed before anything was paid is paid now; asked for its withdrawal before that, it would never be.
      for (const stake of all)
        if (stake.spec.desiredState !== 'Withdrawn' && isReady(stake)) await want(here, stake.metadata.name, 'Withdrawn')
      const waits = (stake: SolanaStake) => protocolOf(stake) === 'Activating' || protocolOf(stake) === 'Deactivating'
      if (all.some(waits)) {
        solana.nextEpoch()
        await delay(1_000)
      }
      return {
        count: all.length,
        others: all
          .filter((stake) => !isReady(stake) || protocolOf(stake) !== 'Withdrawn')
          .map(({ metadata, status }) => `${metadata.name}: ${status?.conditions?.find(({ type }) => type === 'Ready')?.message}`),
      }
    },
    ({ count, others }) => count === LIVES && others.length === 0,
    300_000,
  )

  const stakes = await stakesOf(here)
  expect(new Set(stakes.map(({ status }) => status?.stakeAccount)).size).toBe(LIVES)
  for (const { metadata, status } of stakes) {
    const landed = await landedOn(solana.url, status?.stakeAccount ?? '')
    const count = (instruction: string) =>
      landed.filter(({ meta }) => meta.err === null && meta.logMessages.some((line) => line.includes(instruction))).length
    const lived = {
      landed: landed.filter(({ meta }) => meta.err === null).length,
      made: count('DelegateStake'),
      withdrawn: count('Withdraw'),
    }
    expect(lived, metadata.name).toEqual({ landed: 3, made: 1, withdrawn: 1 })
    expect(solana.balance(status?.stakeAccount ?? ''), metadata.name).toBe(0n)
  }
  const fees = (await landedOn(solana.url, SOLANA_STAKER_ADDRESS)).reduce((sum, { meta }) => sum + BigInt(meta.fee), 0n)
  const total = Array.from({ length: LIVES }, (_, index) => amountOf(index)).reduce((sum, amount) => sum + amount, 0n)
  expect(solana.balance(SOLANA_STAKER_ADDRESS)).toBe(before.staker - total - fees)
  expect(solana.balance(SOLANA_WITHDRAWER_ADDRESS)).toBe(before.withdrawer + total)

  const listed = (await clientOf(here).listSolanaStakes({}, AbortSignal.timeout(30_000))).body.items
  expect(listed.map(({ protocol }) => protocol.status)).toEqual(Array.from({ length: LIVES }, () => 'WITHDRAWN'))
})

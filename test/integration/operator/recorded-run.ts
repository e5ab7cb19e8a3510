import { setTimeout as pause } from 'node:timers/promises'
import { reset } from '../../chains/faults.ts'
import {
  applyAll,
  eventually,
  getOne,
  ownStake,
  seen,
  solanaSigners,
  solanaStake,
  stake,
  validatorWithdrawal,
} from '../../stack/resources.ts'
import { FAST_BEACON, type StackOptions } from '../../stack/stack.ts'
import { type FaultyStack, untilPaidOnce } from './harness.ts'

/** What the pictures of the panels are recorded of: both chains, with validators. */
export const recordingStack: StackOptions = { beacon: FAST_BEACON, solana: {} }

/** A few minutes in which something of most kinds happens, one after the other, so that the pictures show it. No test depends on its times. */
export async function recordedRun(stack: FaultyStack): Promise<void> {
  const { cluster, rpcFaults } = stack
  // The operator reaches the service through a proxy, whose domain is another.
  const challengeDomain = new URL(stack.serviceUrl).host
  const networks = stack.networks.networks.map((network) => (network.chain === 'Solana' ? { ...network, challengeDomain } : network))
  stack.writeNetworks({ ...stack.networks, networks })
  await applyAll(cluster, [...solanaSigners(), ownStake('own', { amountEth: '40' })])
  for (let at = 1; at <= 5; at++) {
    await applyAll(cluster, [stake(`stake-${at}`), stake(`more-${at}`), solanaStake(`sol-${at}`)])
    await pause(10_000)
  }
  // Too dear for this one; over the limit for that one.
  await applyAll(cluster, [stake('capped', { maxFeePerGasGwei: '0.000000001' }), stake('large', { amountEth: '128' })])
  await untilPaidOnce(stack, 'stake-5', { timeoutMs: 150_000 })
  await applyAll(cluster, [validatorWithdrawal('withdrawal', { stakeRef: { name: 'own' } }, '1000000000')])
  // The networks file is written anew, then the nodes are away for a while.
  stack.writeNetworks({ stakingApi: { ...stack.networks.stakingApi, timeoutMs: 6_000 }, networks })
  await pause(10_000)
  rpcFaults.when(/./).always(reset)
  await applyAll(cluster, [stake('in-the-outage')])
  await pause(20_000)
  rpcFaults.clear()
  await untilPaidOnce(stack, 'in-the-outage', { timeoutMs: 150_000 })
  await eventually(
    'the last Solana stake is ready',
    () => getOne(cluster, 'solanastakes', 'sol-5'),
    (value) => seen(value).ready === 'True',
    60_000,
  )
  await pause(15_000)
}

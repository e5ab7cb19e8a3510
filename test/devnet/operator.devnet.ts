import { toHex } from 'viem'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { Hex } from '../../src/chains/ethereum/chain.ts'
import { withdrawalCredentials } from '../../src/chains/ethereum/deposit.ts'
import { decodeDeposit, type RpcLog } from '../chains/deposit-contract.ts'
import { callRpc } from '../chains/json-rpc.ts'
import {
  applyAll,
  eventually,
  getStake,
  ownStake,
  PAYER,
  seen,
  signer,
  untilReady,
  untilSeen,
  untilStake,
  validatorExit,
  validatorWithdrawal,
} from '../stack/resources.ts'
import { clientOf, type Stack, startStack } from '../stack/stack.ts'

/**
 * The whole system, API server and operator included, before a real network: what people apply becomes a validator. The operator's account is its
 * own; what it does is told by the resources.
 */
const devnet = inject('devnet')
let stack: Stack
beforeAll(async () => {
  stack = await startStack({ ethereum: devnet, operatorArgs: ['--observe-activating', '2s'] })
})
afterAll(async () => {
  if (process.env.DEVNET_DIR !== undefined) console.log(stack?.logs())
  await stack?.stop()
})

describe('by resources', () => {
  test('a stake is paid, final, and becomes an active validator', async () => {
    await applyAll(stack.cluster, [signer(), ownStake('real', { amountEth: '34' })])
    await untilReady(stack.cluster, 'real', 120_000)
    const active = await untilStake(
      stack.cluster,
      'real',
      'is active',
      (stake) => stake.status?.conditions?.some(({ type, status }) => type === 'Active' && status === 'True') === true,
      240_000,
    )
    expect(active.status?.validator).toMatchObject({ status: 'active_ongoing', index: expect.anything() })
    expect(seen(await getStake(stack.cluster, 'real'))).toMatchObject({ ready: 'True', phase: 'Active' })
    // One stake, and one deposit, of what was applied.
    const logs = await callRpc<RpcLog[]>(devnet.url, 'eth_getLogs', [{ address: devnet.depositContract, fromBlock: '0x0' }])
    const deposits = logs.map(decodeDeposit).filter(({ pubkey }) => pubkey === active.status?.depositData?.pubkey)
    expect(deposits).toMatchObject([{ amountGwei: 34_000_000_000n, withdrawalCredentials: withdrawalCredentials('0x02', PAYER) }])
    const { body } = await clientOf(stack).listEthereumStakes({}, new AbortController().signal)
    expect(body.items).toMatchObject([{ stakeId: active.status?.stakeId, transaction: { status: 'confirmed' } }])
  })

  test('a partial withdrawal waits until the validator is old enough, is accepted and paid; the exit behind it waits for that', async () => {
    const { cluster } = stack
    await applyAll(cluster, [validatorWithdrawal('some', { stakeRef: { name: 'real' } }, '1000000001')])
    await untilSeen(cluster, 'validatorwithdrawals', 'some', 'is sent', ({ phase }) => phase === 'Confirming', 90_000)
    await applyAll(cluster, [validatorExit('leave', { stakeRef: { name: 'real' } })])
    const [withdrawal, exit] = await Promise.all([
      untilSeen(cluster, 'validatorwithdrawals', 'some', 'is ready', ({ ready }) => ready === 'True', 120_000),
      untilSeen(cluster, 'validatorexits', 'leave', 'is ready', ({ ready }) => ready === 'True', 180_000),
    ])
    for (const { status } of [withdrawal, exit]) expect(status?.consensus).toMatchObject({ status: 'Accepted' })
    // The exit was mined after the withdrawal was paid, or the network would have dropped it.
    const paid = await eventually('everything is paid', payments, (found) => found.length >= 2, 180_000)
    expect(paid[0]?.amountGwei).toBe(1_000_000_001n)
    expect(paid.reduce((sum, { amountGwei }) => sum + amountGwei, 0n)).toBeGreaterThan(33_900_000_000n)
    expect(paid[0]?.block).toBeLessThan(exit.status?.transaction?.blockNumber ?? 0)
  })
})

/** What the consensus layer has paid to the signer's address. */
async function payments(): Promise<readonly { readonly block: number; readonly amountGwei: bigint }[]> {
  const latest = Number(await callRpc<Hex>(devnet.url, 'eth_blockNumber'))
  const found: { block: number; amountGwei: bigint }[] = []
  for (let block = 0; block <= latest; block += 1) {
    const { withdrawals } = await callRpc<{ withdrawals: { address: Hex; amount: Hex }[] }>(devnet.url, 'eth_getBlockByNumber', [
      toHex(block),
      false,
    ])
    for (const { address, amount } of withdrawals)
      if (address.toLowerCase() === PAYER.toLowerCase()) found.push({ block, amountGwei: BigInt(amount) })
  }
  return found
}

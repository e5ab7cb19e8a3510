import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { withdrawalCredentials } from '../../src/chains/ethereum/deposit.ts'
import { decodeDeposit, type RpcLog } from '../chains/deposit-contract.ts'
import { callRpc } from '../chains/json-rpc.ts'
import { applyAll, getStake, ownStake, PAYER, seen, signer, untilReady, untilStake } from '../stack/resources.ts'
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
})

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { privateKeyToAccount } from 'viem/accounts'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Hex } from '../../../src/chains/ethereum/chain.ts'
import { type Anvil, type AnvilOptions, startAnvil } from '../../chains/anvil.ts'
import { encodeDeposit } from '../../chains/deposit-contract.ts'

let running: Anvil[] = []
let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'staking-anvil-test-'))
})
afterEach(async () => {
  await Promise.all(running.map((anvil) => anvil.stop()))
  running = []
  rmSync(dir, { recursive: true, force: true })
})
const start = async (options?: AnvilOptions): Promise<Anvil> => {
  const anvil = await startAnvil(options)
  running.push(anvil)
  return anvil
}

const signer = (anvil: Anvil, index = 0) => {
  const account = anvil.accounts[index]
  if (account === undefined) throw new Error(`no account ${index}`)
  return privateKeyToAccount(account.privateKey)
}
const deposit = {
  pubkey: `0x${'a1'.repeat(48)}`,
  withdrawalCredentials: `0x02${'00'.repeat(11)}${'b2'.repeat(20)}`,
  signature: `0x${'c3'.repeat(96)}`,
  amountGwei: 32_000_000_000n,
} as const
const sign = (
  anvil: Anvil,
  { nonce = 0, to = anvil.depositContract, data = '0x' as Hex, value = 0n, maxFeePerGas = 10n ** 11n } = {},
): Promise<Hex> =>
  signer(anvil).signTransaction({
    ...{ type: 'eip1559', chainId: anvil.chainId, gas: 300_000n, maxPriorityFeePerGas: 10n ** 9n },
    ...{ nonce, to, data, value, maxFeePerGas },
  })
const signDeposit = (anvil: Anvil, nonce = 0): Promise<Hex> => sign(anvil, { nonce, data: encodeDeposit(deposit), value: 32n * 10n ** 18n })
const send = (anvil: Anvil, raw: Hex): Promise<Hex> => anvil.rpc<Hex>('eth_sendRawTransaction', [raw])
/** With automine, the block comes shortly after the answer, not before it. */
const sendMined = async (anvil: Anvil, raw: Hex): Promise<Hex> => {
  const hash = await send(anvil, raw)
  await expect.poll(() => receipt(anvil, hash), { timeout: 30_000 }).not.toBeNull()
  return hash
}
const receipt = (anvil: Anvil, hash: Hex) => anvil.rpc<{ status: Hex; blockNumber: Hex } | null>('eth_getTransactionReceipt', [hash])

test('it has the real deposit contract, which takes a deposit and refuses a wrong root', async () => {
  const anvil = await start()
  expect(await anvil.depositCount()).toBe(0)
  expect(await anvil.deposits()).toEqual([])
  const hash = await sendMined(anvil, await signDeposit(anvil))
  expect(await anvil.depositCount()).toBe(1)
  expect(await anvil.deposits()).toEqual([{ ...deposit, index: 0, txHash: hash, blockNumber: 1 }])

  const other = encodeDeposit({ ...deposit, amountGwei: 1_000_000_000n })
  const wrong = await sendMined(anvil, await sign(anvil, { nonce: 1, data: other, value: 32n * 10n ** 18n }))
  expect((await receipt(anvil, wrong))?.status).toBe('0x0')
  expect(await anvil.depositCount()).toBe(1)
})

test('it has the withdrawal request contract of EIP-7002, whose fee is 1 wei', async () => {
  const anvil = await start()
  expect(BigInt(await anvil.rpc<Hex>('eth_call', [{ to: '0x00000961Ef480Eb55e80D19ad83579A64c007002' }, 'latest']))).toBe(1n)
})

test('its accounts are funded well beyond 25 deposits, and as many as asked for', async () => {
  const anvil = await start({ accounts: 3, balanceEth: 5000 })
  expect(anvil.accounts).toHaveLength(3)
  expect(anvil.accounts.map((_, index) => signer(anvil, index).address)).toEqual(anvil.accounts.map(({ address }) => address))
  for (const { address } of anvil.accounts) expect(await anvil.balance(address)).toBe(5000n * 10n ** 18n)
})

test('finalized follows two blocks behind', async () => {
  const anvil = await start({ mining: 'manual' })
  await anvil.mine(5)
  expect(await anvil.blockNumber()).toBe(5)
  expect(await anvil.finalizedBlockNumber()).toBe(3)
})

test('with a block time, blocks come by themselves', async () => {
  const anvil = await start({ mining: 1 })
  await expect.poll(() => anvil.blockNumber(), { timeout: 30_000 }).toBeGreaterThan(1)
})

test('mined by hand, a transaction waits in the pool, and can be dropped from it', async () => {
  const anvil = await start({ mining: 'manual' })
  const raw = await signDeposit(anvil)
  const hash = await send(anvil, raw)
  const { address } = signer(anvil)
  expect(await anvil.pending()).toEqual([hash])
  expect([await anvil.transactionCount(address), await anvil.transactionCount(address, 'pending')]).toEqual([0, 1])
  await expect(send(anvil, raw)).rejects.toThrow('already imported')
  await anvil.dropTransaction(hash)
  expect(await anvil.pending()).toEqual([])
  await send(anvil, raw)
  await anvil.mine()
  await expect(send(anvil, raw)).rejects.toThrow('nonce too low')
})

test('a reorg takes a deposit out of the chain and the pool; the same bytes bring it back', async () => {
  const anvil = await start({ mining: 'manual' })
  const raw = await signDeposit(anvil)
  const hash = await send(anvil, raw)
  await anvil.mine(2)
  await anvil.reorg(2)
  expect(await anvil.blockNumber()).toBe(2)
  expect(await anvil.depositCount()).toBe(0)
  expect(await receipt(anvil, hash)).toBeNull()
  expect(await anvil.pending()).toEqual([])
  expect(await anvil.transactionCount(signer(anvil).address)).toBe(0)
  expect(await send(anvil, raw)).toBe(hash)
  await anvil.mine()
  expect(await anvil.depositCount()).toBe(1)
})

test('a reorg can put another transaction where the first one was', async () => {
  const anvil = await start({ mining: 'manual' })
  const first = await send(anvil, await signDeposit(anvil))
  await anvil.mine(2)
  await anvil.reorg(2, [{ raw: await sign(anvil, { to: signer(anvil, 1).address, value: 1n }), block: 0 }])
  expect(await receipt(anvil, first)).toBeNull()
  expect(await anvil.depositCount()).toBe(0)
  expect(await anvil.transactionCount(signer(anvil).address)).toBe(1)
})

test('the base fee of the next block can be set: what pays less is thrown out, and refused until it is lower', async () => {
  const anvil = await start({ mining: 'manual' })
  const raw = await sign(anvil, { to: signer(anvil, 1).address, maxFeePerGas: 5n * 10n ** 9n })
  const hash = await send(anvil, raw)
  await anvil.setNextBlockBaseFee(10n ** 12n)
  await anvil.mine()
  expect(await receipt(anvil, hash)).toBeNull()
  expect(await anvil.pending()).toEqual([])
  await expect(send(anvil, raw)).rejects.toThrow('max fee per gas less than block base fee')
  await anvil.setNextBlockBaseFee(10n ** 9n)
  await anvil.mine()
  await send(anvil, raw)
  await anvil.mine()
  expect(await receipt(anvil, hash)).not.toBeNull()
})

test('crashed and started again, the blocks are there and the pool is empty', async () => {
  const anvil = await start({ mining: 'manual' })
  const mined = await send(anvil, await signDeposit(anvil))
  await anvil.mine(3)
  await send(anvil, await signDeposit(anvil, 1))
  const deposits = await anvil.deposits()
  const genesis = await anvil.rpc<{ hash: Hex }>('eth_getBlockByNumber', ['0x0', false])
  await anvil.crash()
  await expect(anvil.blockNumber()).rejects.toThrow()
  await anvil.restart()
  expect(await anvil.blockNumber()).toBe(3)
  expect(await anvil.finalizedBlockNumber()).toBe(1)
  expect(await anvil.deposits()).toEqual(deposits)
  expect((await receipt(anvil, mined))?.blockNumber).toBe('0x1')
  expect(await anvil.rpc('eth_getBlockByNumber', ['0x0', false])).toMatchObject({ hash: genesis.hash })
  expect(await anvil.pending()).toEqual([])
  await send(anvil, await signDeposit(anvil, 1))
  await anvil.mine()
  expect(await anvil.depositCount()).toBe(2)
})

test('with a state file, a later anvil goes on where the first one stopped', async () => {
  const stateFile = join(dir, 'state.json')
  const first = await startAnvil({ stateFile })
  await sendMined(first, await signDeposit(first))
  await first.stop()
  const second = await start({ stateFile })
  expect(await second.depositCount()).toBe(1)
})

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseGwei, toHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import type { Hex } from '../../src/chains/ethereum/chain.ts'
import { encodeDepositCalldata, signDepositMessage, withdrawalCredentials } from '../../src/chains/ethereum/deposit.ts'
import { depositGasLimit, maxDepositGas, maxRequestGas, requestGasLimit } from '../../src/chains/ethereum/deposit-gas.ts'
import { ethereumNetworkConfig } from '../../src/chains/ethereum/networks.ts'
import { encodeRequestCalldata, withdrawalRequestContract } from '../../src/chains/ethereum/requests.ts'
import { createEthereumChain } from '../../src/chains/ethereum/rpc-chain.ts'
import { gwei, wei } from '../../src/lib/amounts.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { exitOf } from '../chains/beacon/sender.ts'
import { callRpc } from '../chains/json-rpc.ts'
import { freePort } from '../cluster/ports.ts'
import { type RunningProcess, startProcess } from '../cluster/process.ts'
import { runToEnd } from '../cluster/run.ts'
import { amsterdamGenesis } from './genesis.ts'

/** geth with Amsterdam on, alone (no beacon node with Gloas is to be had): what deposits and requests cost under EIP-8037 and EIP-8038. */
const never = new AbortController().signal
const { assets, chainId, depositContract, genesisForkVersion, accounts } = inject('devnet')
const payer = privateKeyToAccount(accounts[0]?.privateKey ?? '0x')
const dir = mkdtempSync(join(tmpdir(), 'staking-amsterdam-'))
let geth: RunningProcess
let url = ''

beforeAll(async () => {
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  writeFileSync(join(dir, 'genesis.json'), amsterdamGenesis([payer.address], 100_000n * 10n ** 18n))
  const data = ['--datadir', join(dir, 'geth'), '--state.scheme', 'hash']
  const { code, stderr } = await runToEnd({
    command: assets.geth,
    args: ['init', ...data, join(dir, 'genesis.json')],
    signal: AbortSignal.timeout(60_000),
  })
  if (code !== 0) throw new Error(stderr.slice(-2_000))
  geth = await startProcess({
    name: 'geth',
    command: assets.geth,
    args: [
      '--dev',
      ...data,
      '--nodiscover',
      '--maxpeers',
      '0',
      '--ipcdisable',
      '--http',
      '--http.addr',
      '127.0.0.1',
      '--http.port',
      String(port),
    ],
    logFile: join(dir, 'geth.log'),
    scratch: dir,
    readyTimeoutMs: 60_000,
    readyWhen: async () => Number(await callRpc<Hex>(url, 'eth_chainId')) === chainId,
  })
})
afterAll(async () => {
  await geth?.stop(5_000)
  rmSync(dir, { recursive: true, force: true, maxRetries: 3 })
})

/** A receipt as soon as there is one; geth says that it indexes as long as it has no block. */
async function receiptOf(hash: Hex): Promise<{ readonly status: Hex; readonly gasUsed: Hex }> {
  for (let look = 0; look < 300; look += 1) {
    const receipt = await callRpc<{ status: Hex; gasUsed: Hex } | null>(url, 'eth_getTransactionReceipt', [hash]).catch(() => null)
    if (receipt !== null) return receipt
    await new Promise((done) => setTimeout(done, 100))
  }
  throw new Error(`${hash} is in no block`)
}

test('a new slot is measured, and no deposit or request runs out of gas, wherever tree and queue stand', async () => {
  const config = ethereumNetworkConfig.parse({
    name: 'amsterdam',
    chain: 'Ethereum',
    rpcUrls: [url],
    chainId,
    depositContractAddress: depositContract,
    genesisForkVersion,
    confirmations: 0,
  })
  const chain = createEthereumChain({ config, clock: systemClock })
  const storage = await chain.storageGas(never)
  // Before Amsterdam it is 17,100 more than one that is there.
  expect(storage.newSlot).toBeGreaterThanOrEqual(100_000n)

  const pay = async (to: Hex, data: Hex, value: bigint, gasLimit: typeof depositGasLimit) => {
    const estimate = await chain.estimateGas({ from: payer.address, to, data, valueWei: wei(value) }, never)
    const gas = gasLimit(estimate, storage)
    const nonce = Number(await callRpc<Hex>(url, 'eth_getTransactionCount', [payer.address, 'pending']))
    const raw = await payer.signTransaction({
      ...{ chainId, type: 'eip1559', nonce, to, data, value, gas },
      ...{ maxFeePerGas: parseGwei('20'), maxPriorityFeePerGas: parseGwei('1') },
    })
    const { status, gasUsed } = await receiptOf(await callRpc<Hex>(url, 'eth_sendRawTransaction', [raw]))
    expect(status, `estimated at ${estimate}, limited to ${gas}`).toBe('0x1')
    return { gas, used: BigInt(gasUsed) }
  }
  const deposits = []
  for (let number = 1; number <= 8; number += 1) {
    const message = {
      withdrawalCredentials: withdrawalCredentials('0x02', payer.address),
      amountGwei: gwei(32_000_000_000n),
      genesisForkVersion,
    }
    const deposit = signDepositMessage(new Uint8Array(32).fill(number), message)
    deposits.push(await pay(depositContract, encodeDepositCalldata(deposit), 32n * 10n ** 18n, depositGasLimit))
  }
  const requests = []
  for (let number = 0; number < 3; number += 1) {
    const data = encodeRequestCalldata(exitOf(toHex(number + 1, { size: 48 })))
    requests.push(await pay(withdrawalRequestContract, data, 1_000n, requestGasLimit))
  }
  for (const [all, max] of [
    [deposits, maxDepositGas(storage)],
    [requests, maxRequestGas(storage)],
  ] as const) {
    const dearest = all.map(({ used }) => used).reduce((most, used) => (used > most ? used : most), 0n)
    for (const { gas } of all) {
      // Also in the place of the dearest one, which its estimate knows nothing of.
      expect(gas).toBeGreaterThanOrEqual(dearest)
      expect(gas).toBeLessThan(max)
    }
  }
})

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPublicClient, createWalletClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { depositSelector, encodeDepositCalldata, signDepositMessage, withdrawalCredentials } from '../../../src/chains/ethereum/deposit.ts'
import { ethereumNetworkConfig } from '../../../src/chains/ethereum/networks.ts'
import { createEthereumChain } from '../../../src/chains/ethereum/rpc-chain.ts'
import { gwei, gweiToWei } from '../../../src/lib/amounts.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/log.ts'
import { buildHistory } from '../../../src/operator/networks/build-history.ts'
import { type Anvil, startAnvil } from '../../chains/anvil.ts'

/** The real deposit contract is the judge of roots and calldata. */
let anvil: Anvil
beforeAll(async () => {
  anvil = await startAnvil()
})
afterAll(() => anvil.stop())

async function send(deposit: ReturnType<typeof signDepositMessage>) {
  const [account] = anvil.accounts
  if (account === undefined) throw new Error('no account')
  const wallet = createWalletClient({ account: privateKeyToAccount(account.privateKey), transport: http(anvil.url) })
  const hash = await wallet.sendTransaction({
    chain: null,
    to: anvil.depositContract,
    data: encodeDepositCalldata(deposit),
    value: gweiToWei(deposit.amountGwei),
    gas: 200_000n,
  })
  // anvil mines a moment after it took a transaction.
  const client = createPublicClient({ transport: http(anvil.url), pollingInterval: 20 })
  return client.waitForTransactionReceipt({ hash, timeout: 60_000 })
}

describe('the deposit contract', () => {
  test.each([
    { type: '0x01', eth: 32n },
    { type: '0x02', eth: 33n },
    { type: '0x02', eth: 2048n },
  ] as const)('takes a deposit of $eth ETH with $type credentials, and logs it as it was signed', async ({ type, eth }) => {
    const before = await anvil.depositCount()
    const deposit = signDepositMessage(new Uint8Array(32).fill(Number(eth % 100n) + 1), {
      withdrawalCredentials: withdrawalCredentials(type, '0x52908400098527886E0F7030069857D2E4169EE7'),
      amountGwei: gwei(eth * 1_000_000_000n),
      genesisForkVersion: '0x10000910',
    })
    expect(encodeDepositCalldata(deposit).startsWith(depositSelector)).toBe(true)
    await send(deposit)
    const { pubkey, withdrawalCredentials: credentials, amountGwei, signature } = deposit
    expect((await anvil.deposits()).at(-1)).toMatchObject({
      pubkey,
      withdrawalCredentials: credentials,
      amountGwei,
      signature,
      index: before,
    })
  })

  test('refuses a deposit whose root is another', async () => {
    const before = await anvil.depositCount()
    const deposit = signDepositMessage(new Uint8Array(32).fill(9), {
      withdrawalCredentials: withdrawalCredentials('0x01', '0x52908400098527886E0F7030069857D2E4169EE7'),
      amountGwei: gwei(32_000_000_000n),
      genesisForkVersion: '0x10000910',
    })
    expect(await send({ ...deposit, depositDataRoot: `0x${'00'.repeat(32)}` })).toMatchObject({ status: 'reverted' })
    expect(await anvil.depositCount()).toBe(before)
  })
})

describe('a history of one’s own making', () => {
  const never = new AbortController().signal
  const keys = [21, 22, 23].map((number) => new Uint8Array(32).fill(number))
  const depositOf = (secretKey: Uint8Array) =>
    signDepositMessage(secretKey, {
      withdrawalCredentials: withdrawalCredentials('0x02', '0x52908400098527886E0F7030069857D2E4169EE7'),
      amountGwei: gwei(32_000_000_000n),
      genesisForkVersion: '0x10000910',
    })

  test('is built from the contract’s logs, proven by its root, and begun with at the next start', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'staking-history-'))
    try {
      const [first, second, later] = keys.map(depositOf)
      if (first === undefined || second === undefined || later === undefined) throw new Error('no deposits')
      for (const deposit of [first, second, first]) expect(await send(deposit)).toMatchObject({ status: 'success' })
      // Beyond what may still change.
      await anvil.mine(70)
      const entry = {
        ...{ name: 'local', chain: 'Ethereum', rpcUrls: [anvil.url], chainId: anvil.chainId, confirmations: 2 },
        ...{ depositContractAddress: anvil.depositContract, genesisForkVersion: '0x10000910' },
      }
      const [networks, out] = [join(dir, 'networks.yaml'), join(dir, 'history')]
      writeFileSync(
        networks,
        JSON.stringify({ stakingApi: { url: 'http://127.0.0.1:1', apiKeyFile: join(dir, 'key') }, networks: [entry] }),
      )
      const lines: string[] = []
      const log = createLogger({ program: 'test', level: 'info', destination: { write: (line: string) => void lines.push(line) } })
      const built = await buildHistory({ networks, network: 'local', out, log, signal: never })
      expect(Number(built.count)).toBe(await anvil.depositCount())

      await send(later)
      const calls: string[] = []
      const chain = createEthereumChain({
        config: ethereumNetworkConfig.parse({ ...entry, depositHistoryFile: out }),
        clock: systemClock,
        log,
        onCall: (method) => calls.push(method),
      })
      expect((await chain.depositsFor(first.pubkey, never)).map(({ signature }) => signature)).toEqual([first.signature, first.signature])
      expect(await chain.depositsFor(later.pubkey, never)).toHaveLength(1)
      expect(await chain.depositsFor(depositOf(new Uint8Array(32).fill(29)).pubkey, never)).toEqual([])
      expect(lines.join()).toContain('the deposit history begins with a file')
      expect(lines.join()).not.toContain('is not used')
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  })
})

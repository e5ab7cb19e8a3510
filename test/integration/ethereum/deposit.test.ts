import { createPublicClient, createWalletClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { depositSelector, encodeDepositCalldata, signDepositMessage, withdrawalCredentials } from '../../../src/chains/ethereum/deposit.ts'
import { gwei, gweiToWei } from '../../../src/lib/amounts.ts'
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
  return client.waitForTransactionReceipt({ hash, timeout: 10_000 })
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

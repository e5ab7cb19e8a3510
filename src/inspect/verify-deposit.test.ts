import { describe, expect, test } from 'vitest'
import type { Address, BlockHash, ChainReceipt, ChainTransaction, DepositLog, FinalBlock, Hash } from '../chains/ethereum/chain.ts'
import { encodeDepositCalldata, signDepositMessage, withdrawalCredentials } from '../chains/ethereum/deposit.ts'
import { knownNetworks } from '../chains/ethereum/networks.ts'
import { chainOfBlocks, chainOverNodes, createTestNode, type TestNode, type TestTransaction } from '../chains/ethereum/test-nodes.ts'
import { type Gwei, gwei, gweiToWei, wei } from '../lib/amounts.ts'
import { parseDepositFile } from './deposit-claims.ts'
import { conclusionOf, type Verdict } from './verdict.ts'
import { verifyDepositData, verifyNoneBefore, verifyOnceInList, verifyTransaction } from './verify-deposit.ts'

const never = new AbortController().signal
const constants = knownNetworks.hoodi as NonNullable<(typeof knownNetworks)[string]>
const hoodi = { ...constants, name: 'hoodi' }
const address: Address = '0x52908400098527886E0F7030069857D2E4169EE7'
const other: Address = '0x8617E340B3D01FA5F11F306F4090FD50E238070D'
const amountGwei = gwei(32_000_000_000n)
const signed = (of: { fork?: `0x${string}`; to?: Address; amount?: Gwei } = {}) =>
  signDepositMessage(new Uint8Array(32).fill(7), {
    withdrawalCredentials: withdrawalCredentials('0x02', of.to ?? address),
    amountGwei: of.amount ?? amountGwei,
    genesisForkVersion: of.fork ?? hoodi.genesisForkVersion,
  })
const bare = (hex: string) => hex.slice(2)
/** As the deposit CLI writes it. */
const cliFile = (deposit = signed(), more: object = {}) =>
  JSON.stringify([
    {
      pubkey: bare(deposit.pubkey),
      withdrawal_credentials: bare(deposit.withdrawalCredentials),
      amount: Number(deposit.amountGwei),
      signature: bare(deposit.signature),
      deposit_message_root: bare(deposit.depositMessageRoot),
      deposit_data_root: bare(deposit.depositDataRoot),
      fork_version: bare(hoodi.genesisForkVersion),
      network_name: 'hoodi',
      deposit_cli_version: '1.2.0',
      ...more,
    },
  ])
const broken = (verdicts: readonly Verdict[]) => verdicts.filter(({ holds }) => holds === false).map(({ rule }) => rule)
const judge = (text: string, expected = {}) =>
  parseDepositFile(text, 'file.json').flatMap((claim) => verifyDepositData(claim, hoodi, expected))

describe('a file of deposit data', () => {
  test('of the deposit CLI holds, and says where the money can return to', () => {
    const verdicts = judge(cliFile())
    expect(broken(verdicts)).toEqual([])
    expect(verdicts.find(({ rule }) => rule === 'withdrawal credentials')?.says).toContain(address.toLowerCase())
  })

  test('with the mark that Windows writes before a text, in capitals and with 0x, holds', () => {
    const [entry] = JSON.parse(cliFile()) as readonly Record<string, unknown>[]
    const loud = Object.fromEntries(
      Object.entries(entry ?? {}).map(([field, value]) => [
        field,
        typeof value === 'string' && /^[0-9a-f]{8,}$/.test(value) ? `0x${value.toUpperCase()}` : value,
      ]),
    )
    expect(broken(judge(`\uFEFF${JSON.stringify(loud)}`))).toEqual([])
  })

  /** As the staking API gives it. */
  const ofApi = (more: object = {}) => {
    const { pubkey, signature, depositDataRoot, depositMessageRoot, withdrawalCredentials: credentials } = signed()
    const depositData = {
      pubkey,
      withdrawalCredentials: credentials,
      amountGwei: '32000000000',
      signature,
      depositMessageRoot,
      depositDataRoot,
      forkVersion: hoodi.genesisForkVersion,
      networkName: 'hoodi',
      depositContractAddress: hoodi.depositContractAddress,
      chainId: hoodi.chainId,
    }
    const around = { network: 'hoodi', amountEth: '32', withdrawalAddress: address, credentialsType: '0x02' }
    return JSON.stringify({ stakeId: 'st_1', ...around, depositData, unsignedTransaction, ...more })
  }
  const unsignedTransaction = {
    chainId: hoodi.chainId,
    to: hoodi.depositContractAddress,
    data: encodeDepositCalldata(signed()),
    valueWei: '32000000000000000000',
  }

  test('of the staking API holds, and so does its call', () => {
    const verdicts = judge(ofApi())
    expect(broken(verdicts)).toEqual([])
    for (const rule of ['chain id of the call', 'to', 'calldata', 'value', 'credentials of the stake', 'amount of the stake'])
      expect(verdicts.find((one) => one.rule === rule)?.holds, rule).toBe(true)
  })

  test.each<[string, object, string[]]>([
    ['goes to somebody else', { to: other }, ['to']],
    ['is for another chain', { chainId: 1 }, ['chain id of the call']],
    ['has the call of another deposit', { data: encodeDepositCalldata(signed({ to: other })) }, ['calldata']],
    ['has bytes behind the call', { data: `${unsignedTransaction.data}00` }, ['calldata']],
    ['calls nothing', { data: '0x' }, ['calldata']],
    ['pays another amount', { valueWei: '32000000000000000001' }, ['value']],
    ['is somebody else’s whole', { to: other, data: '0x', valueWei: '1' }, ['to', 'calldata', 'value']],
  ])('of the staking API whose transaction %s does not hold', (_what, more, rules) => {
    expect(broken(judge(ofApi({ unsignedTransaction: { ...unsignedTransaction, ...more } })))).toEqual(rules)
  })

  test.each<[string, object, string[]]>([
    ['withdrawal address', { withdrawalAddress: other }, ['credentials of the stake']],
    ['type of credentials', { credentialsType: '0x01' }, ['credentials of the stake']],
    ['type of credentials, without an address', { withdrawalAddress: undefined, credentialsType: '0x01' }, ['credentials of the stake']],
    ['network', { network: 'mainnet' }, ['network of the stake']],
    ['amount', { amountEth: '33' }, ['amount of the stake']],
  ])('of the staking API that says another %s than its deposit data does not hold', (_what, more, rules) => {
    expect(broken(judge(ofApi(more)))).toEqual(rules)
  })

  test('of the staking API whose transaction can’t be read is refused in words', () => {
    expect(() => parseDepositFile(ofApi({ unsignedTransaction: { ...unsignedTransaction, to: '0xab' } }), 'file.json')).toThrow(
      /file\.json is not a deposit: unsignedTransaction\.to: must be 20 bytes in hex/,
    )
  })

  test.each<[string, string, object, string[]]>([
    ['signed for mainnet', cliFile(signed({ fork: '0x00000000' })), {}, ['signature']],
    [
      'that pays somebody else than is expected',
      cliFile(signed({ to: other })),
      { withdrawalAddress: address },
      ['withdrawal credentials'],
    ],
    ['of another kind than is expected', cliFile(), { credentialsType: '0x01' }, ['withdrawal credentials']],
    ['of another amount than is expected', cliFile(), { amountGwei: gwei(40_000_000_000n) }, ['amount']],
    [
      'whose amount was changed',
      cliFile(signed(), { amount: 33_000_000_000 }),
      {},
      ['signature', 'deposit message root', 'deposit data root'],
    ],
    ['of another fork version', cliFile(signed(), { fork_version: '00000000' }), {}, ['fork version']],
    [
      'with BLS credentials',
      cliFile(signed(), { withdrawal_credentials: `00${'ab'.repeat(31)}` }),
      {},
      ['withdrawal credentials', 'signature', 'deposit message root', 'deposit data root'],
    ],
    ['that pays the deposit contract itself', cliFile(signed({ to: hoodi.depositContractAddress })), {}, ['withdrawal address']],
    [
      'of an amount that is signed as another, beyond 64 bits',
      cliFile(signed(), { amount: String(2n ** 64n + 32_000_000_000n) }),
      {},
      ['amount'],
    ],
    ['under the least amount', cliFile(signed({ amount: gwei(999_999_999n) })), {}, ['amount']],
  ])('%s does not hold', (_what, text, expected, rules) => {
    expect(broken(judge(text, expected))).toEqual(rules)
  })

  test.each([
    ['not JSON', 'pubkey: 0xab', /file\.json is not JSON/],
    ['an empty list', '[]', /file\.json has no deposits/],
    ['something else', '{"kind":"Pod"}', /file\.json is not a deposit: pubkey: /],
    ['a key cut short', cliFile(signed(), { pubkey: 'abcd' }), /file\.json\[0\] is not a deposit: pubkey: must be 48 bytes in hex/],
    ['an amount in ETH', cliFile(signed(), { amount: '32.0' }), /amount: must be a whole number of gwei/],
  ])('that is %s is refused in words', (_what, text, message) => {
    expect(() => parseDepositFile(text, 'file.json')).toThrow(message)
  })
})

describe('whether it comes first for its key', () => {
  const [claim] = parseDepositFile(cliFile(), 'file.json')
  if (claim === undefined) throw new Error('there is one')
  const hash = `0x${'99'.repeat(32)}` as Hash
  const paid = (deposit = signed()): DepositLog => ({ ...deposit, index: 0n, transactionHash: hash, blockNumber: 5n })

  test.each<[string, readonly DepositLog[], boolean, RegExp]>([
    ['as none is there', [], true, /has none for its public key yet/],
    ['as it was paid', [paid()], true, /was paid by transaction 0x99.* paid once more/],
    ['though others have added since', [paid(), paid(signed({ to: other }))], true, /was paid by/],
    [
      'not after another one’s credentials',
      [paid(signed({ to: other })), paid()],
      false,
      /0x99.* came first, with credentials 0x02.*8617e3/i,
    ],
    ['nor after one of another amount', [paid(signed({ amount: gwei(1_000_000_000n) }))], false, /came first/],
  ])('%s', (_what, deposits, holds, says) => {
    expect(verifyNoneBefore(claim, deposits)).toMatchObject({ holds, says: expect.stringMatching(says) })
  })

  test('twice in one file, it is told', () => {
    const twice = parseDepositFile(`[${[cliFile(), cliFile()].map((one) => one.slice(1, -1)).join(',')}]`, 'file.json')
    expect(twice.flatMap((one) => verifyOnceInList(one, twice)).map(({ holds, says }) => [holds, says])).toEqual(
      twice.map(() => [false, expect.stringMatching(/^entries 0, 1 of the file/)]),
    )
    expect(verifyOnceInList(claim, [claim])).toEqual([])
  })
})

describe('a transaction', () => {
  const hash = `0x${'1a'.repeat(32)}` as Hash
  const blockHash = `0x${'bb'.repeat(32)}` as BlockHash
  const deposit = signed()
  const transaction: ChainTransaction = {
    hash,
    from: other,
    to: hoodi.depositContractAddress,
    nonce: 1,
    data: encodeDepositCalldata(deposit),
    valueWei: gweiToWei(amountGwei),
    blockNumber: 5n,
    blockHash,
  }
  const receipt: ChainReceipt = {
    hash,
    from: other,
    success: true,
    blockNumber: 5n,
    blockHash,
    gasUsed: 1n,
    effectiveGasPrice: wei(1n),
    logs: [],
  }
  const log = (transactionHash: `0x${string}`): DepositLog => ({ ...deposit, index: 0n, transactionHash, blockNumber: 5n })
  interface Shown {
    readonly transaction?: ChainTransaction | undefined
    readonly receipt?: ChainReceipt | undefined
    readonly final?: 'agreed' | 'disagreed' | 'unknown'
    readonly deposits?: readonly DepositLog[]
    readonly asked?: (block: FinalBlock) => void
  }
  const look = (shown: Shown, withHistory = false) =>
    verifyTransaction(
      {
        transaction: async () => ('transaction' in shown ? shown.transaction : transaction),
        receipt: async () => ('receipt' in shown ? shown.receipt : receipt),
        finalEverywhere: async (block) => {
          shown.asked?.(block)
          return shown.final ?? 'agreed'
        },
        head: async () => ({ latest: 9n, final: 7n, baseFeePerGas: wei(1n) }),
        depositsFor: async () => shown.deposits ?? [],
      },
      { hash, network: hoodi, expected: {}, withHistory },
      new AbortController().signal,
    )

  test.each<[string, Shown, string[]]>([
    ['whose event the contract did not log', {}, ['event']],
    ['to another contract', { transaction: { ...transaction, to: other } }, ['to', 'event']],
    [
      'of another value than is signed',
      { transaction: { ...transaction, valueWei: wei(31n * 10n ** 18n) } },
      ['signature', 'data root of the call', 'event'],
    ],
    ['with a remainder under a gwei', { transaction: { ...transaction, valueWei: wei(gweiToWei(amountGwei) + 1n) } }, ['value', 'event']],
    ['with bytes behind the call', { transaction: { ...transaction, data: `${transaction.data}00` } }, ['calldata']],
    ['reverted', { receipt: { ...receipt, success: false } }, ['success', 'event']],
    ['that the nodes disagree about', { final: 'disagreed' }, ['final', 'event']],
  ])('%s does not hold', async (_what, shown, rules) => {
    expect(broken(await look(shown))).toEqual(rules)
  })

  test.each<[string, Shown, string, RegExp]>([
    ['that no node knows', { transaction: undefined }, 'transaction', /^no node of hoodi that answers knows 0x1a.* yet: .*verify it again/],
    [
      'that no node shows in a block',
      { receipt: undefined },
      'mined',
      /^no node of hoodi that answers shows it in a block yet: verify it again/,
    ],
  ])('%s may be there later: it is not known, and not broken', async (_what, shown, rule, says) => {
    const verdicts = await look(shown)
    expect(verdicts.find((one) => one.rule === rule)).toMatchObject({ holds: 'unknown', says: expect.stringMatching(says) })
    expect(conclusionOf(verdicts)).toMatchObject({ holds: 'unknown', exitCode: 2 })
  })

  test('that no node shows in a block is broken by what can be seen of it', async () => {
    const verdicts = await look({ transaction: { ...transaction, to: other }, receipt: undefined })
    expect(conclusionOf(verdicts)).toMatchObject({ holds: false, exitCode: 1 })
  })

  test('is what every node shows of it: each is asked for its block, and for the same receipt', async () => {
    const asked: FinalBlock[] = []
    await look({ asked: (block) => asked.push(block) })
    expect(asked).toEqual([{ number: 5n, hash: blockHash, holds: { hash, receipt } }])
  })

  test('that one node alone has done is not final, whatever that node says came of it', async () => {
    const sent: TestTransaction = { hash, from: other, nonce: 1, signed: { to: hoodi.depositContractAddress } }
    const honest = () => createTestNode({ blocks: chainOfBlocks(100, { 5: [sent] }) })
    const receiptIs = (change: object): TestNode => ({
      ...honest(),
      says: new Map([['eth_getTransactionReceipt', (_params, own) => ({ ...(own() as object), ...change })]]),
    })
    // An answer, and it is null.
    const forgetful: TestNode = {
      ...honest(),
      says: new Map([['eth_getTransactionReceipt', () => ({ error: undefined, result: null })]]),
    }
    const elsewhere = createTestNode({ blocks: chainOfBlocks(100, { 6: [sent] }) })
    const finalOf = async (...nodes: TestNode[]) => {
      const { chain } = chainOverNodes(nodes)
      const verdicts = await verifyTransaction(chain, { hash, network: hoodi, expected: {}, withHistory: false }, never)
      return verdicts.find(({ rule }) => rule === 'final')?.holds
    }
    expect(await finalOf(honest(), honest())).toBe(true)
    expect(await finalOf(honest(), forgetful)).toBe('unknown')
    expect(await finalOf(receiptIs({ status: '0x0' }), honest())).toBe(false)
    expect(await finalOf(honest(), elsewhere)).toBe(false)
  })

  test('that is not final everywhere is not told to be', async () => {
    expect((await look({ final: 'unknown' })).find(({ rule }) => rule === 'final')?.holds).toBe('unknown')
  })

  test('that came second for its key is found with the history, and not told without', async () => {
    const earlier = log(`0x${'99'.repeat(32)}`)
    const first = async (shown: Shown, withHistory: boolean) =>
      (await look(shown, withHistory)).find(({ rule }) => rule === 'first deposit')?.holds
    expect(await first({ deposits: [earlier, log(hash)] }, true)).toBe(false)
    expect(await first({ deposits: [log(hash)] }, true)).toBe(true)
    expect(await first({ deposits: [earlier, log(hash)] }, false)).toBe('unknown')
  })
})

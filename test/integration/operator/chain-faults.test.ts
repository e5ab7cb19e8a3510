import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Hex } from '../../../src/chains/ethereum/chain.ts'
import type { EthereumStake } from '../../../src/resources/ethereum-stake.ts'
import { RECONCILE_ANNOTATION } from '../../../src/resources/meta.ts'
import { html, httpStatus, reset, resetAfterPassing, tooManyRequests } from '../../chains/faults.ts'
import type { Fault } from '../../chains/faulty-http.ts'
import { nodeSays } from '../../chains/faulty-rpc.ts'
import {
  applyAll,
  eventsOf,
  eventually,
  getSigner,
  getStake,
  PAYER,
  SIGNER,
  seen,
  signer,
  stake,
  untilHolds,
} from '../../stack/resources.ts'
import {
  deleteStake,
  metric,
  metricsOf,
  moneyOf,
  patchSigner,
  patchStake,
  recordOf,
  serviceStakes,
  staysFor,
  untilGone,
  untilPaidOnce,
  untilShows,
  untilStalls,
  useStack,
  whileMining,
  whileNoMoneyMoves,
} from './harness.ts'

/** Everything that a chain and its nodes do to a transaction. Blocks come when a test says so. */
const stack = useStack({ anvil: { mining: 'manual', accounts: 4 }, bumpAfterMs: 1_000 })
const GWEI = 1_000_000_000n

const untilMinedAndPaid = (name: string) => whileMining(stack(), () => untilPaidOnce(stack(), name))

/** Waits until the service knows this hash: it is told before anything is sent. */
const untilTold = (name: string, hash: string) =>
  eventually(
    `the service knows ${hash}`,
    () => serviceStakes(stack(), name),
    ([known]) => known?.transaction.hash === hash,
  )

/** Waits until the stake's transaction was taken by the node; the service was told of it before. */
const untilSent = async (name: string): Promise<EthereumStake & { readonly hash: Hex; readonly nonce: number }> => {
  const sent = await eventually(
    `the transaction of ${name} is out`,
    () => getStake(stack().cluster, name),
    (value) => value?.status?.transaction?.state === 'Broadcast',
    30_000,
  )
  const transaction = sent?.status?.transaction
  if (sent === undefined || transaction === undefined) throw new Error(`${name} has no transaction`)
  const [known] = await serviceStakes(stack(), name)
  expect(known?.transaction.hash, 'told first').toBe(transaction.hash)
  return { ...sent, hash: transaction.hash as Hex, nonce: transaction.nonce }
}
/** Raw transactions that were sent since a point of the proxy's history. */
const rawSince = (from: number): readonly string[] =>
  stack()
    .rpcFaults.history()
    .slice(from)
    .filter(({ names }) => names.includes('eth_sendRawTransaction'))
    .map(({ body }) => (JSON.parse(body) as { params: [string] }).params[0])
/** The market is as cheap as it was. */
const cheapAgain = async () => {
  await stack().anvil.setNextBlockBaseFee(7n)
  await stack().anvil.mine(3)
}

beforeAll(async () => {
  await stack().anvil.mine(3)
  await applyAll(stack().cluster, [signer()])
})
afterEach(cheapAgain)

describe('fees', () => {
  test('a transaction that pays too little is replaced under its own nonce, which the service is told, and pays once', async () => {
    const { cluster, anvil } = stack()
    const before = await moneyOf(stack())
    await applyAll(cluster, [stake('stuck')])
    const first = await untilSent('stuck')
    await anvil.setNextBlockBaseFee(10n * GWEI)
    await anvil.mine()
    const replaced = await eventually(
      'a dearer version is out',
      () => getStake(cluster, 'stuck'),
      (value) => value?.status?.transaction?.hash !== first.hash && value?.status?.transaction?.state === 'Broadcast',
      30_000,
    )
    const now = replaced?.status?.transaction
    await untilTold('stuck', now?.hash ?? '')
    expect(now?.nonce).toBe(first.nonce)
    expect(now?.replaced?.map(({ hash }) => hash)).toContain(first.hash)
    const old = first.status?.transaction
    for (const fee of ['maxFeePerGasWei', 'maxPriorityFeePerGasWei'] as const)
      expect(BigInt(now?.[fee] ?? 0) * 100n, fee).toBeGreaterThanOrEqual(BigInt(old?.[fee] ?? 0) * 110n)
    expect(BigInt(now?.maxFeePerGasWei ?? 0)).toBeLessThanOrEqual(100n * GWEI)
    const { status: logged } = await recordOf(cluster, 'stuck')
    expect(logged).toMatchObject({ state: 'Open', place: first.nonce })
    expect(logged?.attempts?.map(({ hash, nonce, kind }) => ({ hash, nonce, kind }))).toEqual(
      [first.hash, now?.hash].map((hash) => ({ hash, nonce: first.nonce, kind: 'Call' })),
    )

    const paid = await untilMinedAndPaid('stuck')
    expect(paid.status?.transaction).toMatchObject({ nonce: first.nonce, minedHash: now?.hash, reportedHash: now?.hash })
    expect((await moneyOf(stack())).deposits).toBe(before.deposits + 1)
    await eventually(
      'the service follows the version that landed',
      () => serviceStakes(stack(), 'stuck'),
      ([known]) => known?.transaction.status === 'confirmed' && known.transaction.hash === now?.hash,
    )
  })

  test('a replacement over the cap is not made, and it goes on when the cap is raised', async () => {
    const { cluster, anvil } = stack()
    await applyAll(cluster, [stake('capped', { maxFeePerGasGwei: '2' })])
    const first = await untilSent('capped')
    await anvil.setNextBlockBaseFee(10n * GWEI)
    await anvil.mine()
    // Longer than one is waited for before a replacement. That it is too dear is said after half a minute.
    const attempts = await staysFor(2_500, async () => (await recordOf(cluster, 'capped')).status?.attempts)
    expect(attempts?.map(({ hash }) => hash)).toEqual([first.hash])
    expect(seen(await getStake(cluster, 'capped')).stalled).toBe(false)
    await patchStake(cluster, 'capped', { spec: { maxFeePerGasGwei: '60' } })
    await eventually(
      'a dearer version is out',
      () => getStake(cluster, 'capped'),
      (value) => value?.status?.transaction?.hash !== first.hash && value?.status?.transaction?.state === 'Broadcast',
      30_000,
    )
    const paid = await untilMinedAndPaid('capped')
    expect(paid.status?.transaction?.nonce).toBe(first.nonce)
  })

  test("a stake's first transaction over the signer's cap is not made: it waits until the price falls", async () => {
    const { cluster, anvil } = stack()
    await patchSigner(cluster, SIGNER, { policy: { maxFeePerGasGwei: '2' } })
    await whileNoMoneyMoves(stack(), async () => {
      await anvil.setNextBlockBaseFee(10n * GWEI)
      await anvil.mine()
      await applyAll(cluster, [stake('dear')])
      const waiting = await untilShows(cluster, 'dear', 'FeeTooHigh', /costs more now than the cap of 2 gwei allows with room for a rise/)
      expect(waiting.status?.transaction).toBeUndefined()
    })
    await cheapAgain()
    await untilMinedAndPaid('dear')
    await patchSigner(cluster, SIGNER, { policy: { maxFeePerGasGwei: '100' } })
  })
})

describe('what is lost is sent again, the same bytes', () => {
  test('a transaction that the node dropped', async () => {
    const { cluster, anvil, rpcFaults } = stack()
    const from = rpcFaults.history().length
    await applyAll(cluster, [stake('dropped')])
    const { hash } = await untilSent('dropped')
    await anvil.dropTransaction(hash)
    await eventually(
      'it is in the pool again',
      () => anvil.pending(),
      (pool) => pool.includes(hash),
    )
    const raw = rawSince(from)
    expect(raw.length).toBeGreaterThanOrEqual(2)
    expect(new Set(raw).size).toBe(1)
    const paid = await untilMinedAndPaid('dropped')
    expect(paid.status?.transaction?.minedHash).toBe(hash)
  })

  test('a transaction whose block left the chain before it was final', async () => {
    const { cluster, anvil, rpcFaults } = stack()
    const from = rpcFaults.history().length
    const before = await moneyOf(stack())
    await applyAll(cluster, [stake('reorged')])
    const { hash } = await untilSent('reorged')
    await anvil.mine()
    await untilShows(cluster, 'reorged', 'AwaitingFinality', /is in block \d+; waiting until that block is final/)
    expect((await moneyOf(stack())).deposits).toBe(before.deposits + 1)
    await anvil.reorg(1)
    expect((await moneyOf(stack())).deposits, 'the deposit is gone').toBe(before.deposits)
    await eventually(
      'it is in the pool again',
      () => anvil.pending(),
      (pool) => pool.includes(hash),
    )
    const paid = await untilMinedAndPaid('reorged')
    expect(paid.status?.transaction?.minedHash).toBe(hash)
    expect(new Set(rawSince(from)).size).toBe(1)
    expect((await moneyOf(stack())).deposits).toBe(before.deposits + 1)
  })
})

describe('what a node says when it is given the transaction', () => {
  // That it pays too little is said three times: taken at the second try, the very same bytes would do.
  test.each<{ says: string; name: string; fault: Fault; sameBytes: boolean }>([
    { says: 'that it knows it', name: 'known', fault: nodeSays.alreadyKnown, sameBytes: true },
    { says: 'that it was imported', name: 'imported', fault: nodeSays.alreadyImported, sameBytes: true },
    { says: 'that the nonce is too low', name: 'low', fault: nodeSays.nonceTooLow, sameBytes: true },
    { says: 'that a replacement is underpriced', name: 'replacement', fault: nodeSays.replacementUnderpriced, sameBytes: false },
    { says: 'that it is underpriced', name: 'underpriced', fault: nodeSays.underpriced, sameBytes: false },
    { says: 'that the fee cap is below the base fee', name: 'below', fault: nodeSays.feeCapTooLow, sameBytes: false },
    { says: 'nothing, having taken it', name: 'silent', fault: resetAfterPassing, sameBytes: true },
    { says: 'nothing, not having taken it', name: 'reset', fault: reset, sameBytes: true },
    { says: 'a 500', name: 'broken', fault: httpStatus(500), sameBytes: true },
    { says: 'HTML', name: 'html', fault: html(200), sameBytes: true },
    { says: 'to come back in a second', name: 'limited', fault: tooManyRequests(1), sameBytes: true },
    { says: 'something unheard of', name: 'unheard', fault: { ...nodeSays.rateLimited }, sameBytes: true },
  ])('$says: one deposit is made, under one nonce', async ({ name, fault, sameBytes }) => {
    const { cluster, rpcFaults } = stack()
    const from = rpcFaults.history().length
    const before = await moneyOf(stack())
    const nonce = await stack().anvil.transactionCount(PAYER)
    const strikes = sameBytes ? 1 : 3
    const struck = rpcFaults.when('eth_sendRawTransaction').times(strikes, fault)
    await applyAll(cluster, [stake(`says-${name}`)])
    const paid = await untilMinedAndPaid(`says-${name}`)
    expect(struck.hits()).toBe(strikes)
    expect(paid.status?.transaction?.nonce).toBe(nonce)
    expect(new Set(rawSince(from)).size === 1, 'the same bytes').toBe(sameBytes)
    expect((await moneyOf(stack())).deposits).toBe(before.deposits + 1)
  })

  test('that the funds do not suffice: the fee is not raised, and the same bytes go out once it is funded', async () => {
    const { cluster, rpcFaults } = stack()
    const from = rpcFaults.history().length
    const short = rpcFaults.when('eth_sendRawTransaction').always(nodeSays.insufficientFunds)
    await applyAll(cluster, [stake('unfunded-late')])
    const waiting = await untilShows(
      cluster,
      'unfunded-late',
      'InsufficientFunds',
      /does not cover the amount and the fee\. Fund the address; it goes on by itself/,
    )
    expect(seen(waiting).stalled).toBe(false)
    short.remove()
    await patchStake(cluster, 'unfunded-late', { metadata: { annotations: { [RECONCILE_ANNOTATION]: 'funded' } } })
    await untilMinedAndPaid('unfunded-late')
    expect(new Set(rawSince(from)).size).toBe(1)
  })
})

test('an address without funds: it waits, says how much is missing, and goes on by itself once it is funded', async () => {
  const { cluster, anvil } = stack()
  const balance = await anvil.balance(PAYER)
  await whileNoMoneyMoves(stack(), async () => {
    await anvil.setBalance(PAYER, 0n)
    await applyAll(cluster, [stake('unfunded')])
    await untilShows(
      cluster,
      'unfunded',
      'InsufficientFunds',
      new RegExp(`${PAYER} holds 0 ETH on local.*does not cover 32 ETH and the highest possible fee\\. Fund the address`),
    )
    await eventually(
      'the signer shows it',
      () => getSigner(cluster),
      ({ status }) => status?.conditions?.find(({ type }) => type === 'Funded')?.status === 'False',
    )
  })
  await anvil.setBalance(PAYER, balance)
  await untilMinedAndPaid('unfunded')
})

test('a node that is down, before and after the transaction is out: it is told, and goes on', async () => {
  const { cluster, rpcFaults, anvil } = stack()
  const down = rpcFaults.when(() => true).always(reset)
  await applyAll(cluster, [stake('outage')])
  const waiting = await untilShows(cluster, 'outage', 'ChainUnavailable', /RPC node does not answer usefully; it is tried again/)
  expect(seen(waiting).stalled).toBe(false)
  down.remove()
  const { hash } = await untilSent('outage')
  const downAgain = rpcFaults.when(() => true).always(httpStatus(503))
  await untilShows(cluster, 'outage', 'ChainUnavailable', /./)
  await anvil.mine(3)
  downAgain.remove()
  const paid = await untilMinedAndPaid('outage')
  expect(paid.status?.transaction?.minedHash).toBe(hash)
})

test('a deposit that is reverted stalls with its reason, and applied anew it is paid', async () => {
  const { cluster, anvil } = stack()
  const before = await moneyOf(stack())
  await applyAll(cluster, [stake('reverted')])
  const { hash } = await untilSent('reverted')
  // For one block, the contract refuses everything.
  const code = await anvil.rpc<Hex>('eth_getCode', [anvil.depositContract, 'latest'])
  await anvil.rpc('anvil_setCode', [anvil.depositContract, '0x60006000fd'])
  await anvil.mine()
  await anvil.rpc('anvil_setCode', [anvil.depositContract, code])
  await anvil.mine(3)
  const stalled = await untilStalls(
    cluster,
    'reverted',
    'TransactionReverted',
    new RegExp(`${hash} was reverted in block \\d+: no stake was made`),
  )
  expect(stalled.status).toMatchObject({ phase: 'Failed', transaction: { state: 'Failed', minedHash: hash } })
  await untilHolds(
    'it is counted',
    () => metricsOf(stack()),
    (scraped) => expect(scraped).toContain('staking_operator_stalled_resources{kind="EthereumStake",reason="TransactionReverted"} 1'),
  )
  expect((await moneyOf(stack())).deposits).toBe(before.deposits)

  await eventually(
    'the service has seen it too',
    () => serviceStakes(stack(), 'reverted'),
    ([known]) => known?.transaction.status === 'failed',
  )
  await deleteStake(cluster, 'reverted')
  await untilGone(cluster, 'reverted')
  await applyAll(cluster, [stake('reverted')])
  await untilMinedAndPaid('reverted')
  expect((await moneyOf(stack())).deposits).toBe(before.deposits + 1)
})

describe('a nonce that another transaction of the same key has used', () => {
  const payElsewhere = (nonce?: number) =>
    stack().anvil.rpc<Hex>('eth_sendTransaction', [
      {
        from: PAYER,
        to: stack().anvil.accounts[2]?.address,
        value: '0x1',
        gas: '0x5208',
        maxFeePerGas: '0x12a05f2000',
        maxPriorityFeePerGas: '0x12a05f2000',
        ...(nonce === undefined ? {} : { nonce: `0x${nonce.toString(16)}` }),
      },
    ])

  test('a new one is taken only when that is final, and one deposit is made', async () => {
    const { cluster, anvil, rpcFaults } = stack()
    await patchSigner(cluster, SIGNER, { policy: { sharedKey: true } })
    const before = await moneyOf(stack())
    await applyAll(cluster, [stake('overtaken')])
    const { hash, nonce } = await untilSent('overtaken')
    const down = rpcFaults.when('eth_sendRawTransaction').always(httpStatus(500))
    await anvil.dropTransaction(hash)
    await payElsewhere(nonce)
    await anvil.mine()
    down.remove()
    // In a block, and not final: what was in that block may come back.
    const until = Date.now() + 3_000
    while (Date.now() < until) {
      const now = await getStake(cluster, 'overtaken')
      expect(now?.status).toMatchObject({ transaction: { nonce, hash } })
      expect(now?.status?.transaction?.replaced).toBeUndefined()
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
    const paid = await untilMinedAndPaid('overtaken')
    expect(paid.status?.transaction?.nonce).toBe(nonce + 1)
    expect(paid.status?.transaction?.replaced?.map((attempt) => attempt.hash)).toContain(hash)
    expect((await moneyOf(stack())).deposits).toBe(before.deposits + 1)
    await patchSigner(cluster, SIGNER, { policy: { sharedKey: null } })
  })

  test('a transaction that nobody accounts for stops the signer, until a person has looked', async () => {
    const { cluster, anvil } = stack()
    const count = await anvil.transactionCount(PAYER)
    await payElsewhere()
    await anvil.mine(3)
    await whileNoMoneyMoves(stack(), async () => {
      await applyAll(cluster, [stake('unaccounted')])
      await untilStalls(
        cluster,
        'unaccounted',
        'UnaccountedTransactions',
        new RegExp(`knows of those below nonce ${count} only\\..*set spec\\.acknowledgedNonce: ${count + 1}`),
      )
      await eventually(
        'the signer says so too',
        () => getSigner(cluster),
        (value) => seen(value).reason === 'UnaccountedTransactions',
      )
      await eventually(
        'and its event',
        () => eventsOf(cluster, SIGNER),
        (events) => events.some(({ type, reason }) => type === 'Warning' && reason === 'UnaccountedTransactions'),
      )
      const stalledSigners = () => metric(stack(), 'staking_operator_stalled_resources', { kind: 'StakingSigner' })
      await eventually('it is counted', stalledSigners, (count) => count === 1)
    })
    await patchSigner(cluster, SIGNER, { acknowledgedNonce: count + 1 })
    await untilMinedAndPaid('unaccounted')
  })
})

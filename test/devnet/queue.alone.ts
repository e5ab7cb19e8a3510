import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseGwei } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import type { Hex } from '../../src/chains/ethereum/chain.ts'
import { encodeRequestCalldata, withdrawalRequestContract } from '../../src/chains/ethereum/requests.ts'
import type { StakingClient } from '../../src/contract/client.ts'
import { gwei } from '../../src/lib/amounts.ts'
import { createSender, exitOf, withdrawalOf } from '../chains/beacon/sender.ts'
import { callRpc } from '../chains/json-rpc.ts'
import { ethereumNetwork } from '../stack/ethereum.ts'
import { clientOf, type StackService, startStackService } from '../stack/service.ts'
import { mainEntry } from '../stack/stack.ts'
import { interopSecretKey } from './interop.ts'
import { ACCOUNTS } from './shared.ts'
import { until } from './until.ts'

/** Requests behind many others in the queue of the real EIP-7002 contract, and a withdrawal that the real consensus layer cuts. */
const never = new AbortController().signal
const eth = 1_000_000_000n
const others = 140
const devnet = inject('devnet')
const keyOf = (index: number): Hex => devnet.accounts[index]?.privateKey ?? '0x'
/** Of the validators of genesis. */
const owner = privateKeyToAccount(keyOf(1))
const stranger = privateKeyToAccount(keyOf(ACCOUNTS.serviceStranger))
const sender = createSender(devnet)
const dir = mkdtempSync(join(tmpdir(), 'staking-devnet-queue-'))
let staking: StackService
let service: StakingClient

beforeAll(async () => {
  staking = await startStackService({
    dir,
    entry: mainEntry,
    networks: [ethereumNetwork(devnet, 'finalized', devnet.url)],
    seed: createHash('sha256').update('worthless: the seed of a test').digest('hex'),
  })
  service = clientOf(staking)
})
afterAll(async () => {
  await service?.close()
  await staking?.program.stop()
  rmSync(dir, { recursive: true, force: true, maxRetries: 3 })
})

/** Signed and not sent: more than the fee after many requests in one block, whatever is over is lost. */
const signed = (by: typeof owner, data: Hex, nonce: number): Promise<Hex> =>
  by.signTransaction({
    chainId: devnet.chainId,
    type: 'eip1559',
    nonce,
    to: withdrawalRequestContract,
    data,
    value: parseGwei('1'),
    gas: 200_000n,
    maxFeePerGas: parseGwei('20'),
    maxPriorityFeePerGas: parseGwei('2'),
  })
const broadcast = (raw: Hex): Promise<Hex> => callRpc<Hex>(devnet.url, 'eth_sendRawTransaction', [raw])
const nonceOf = (by: typeof owner): Promise<number> => sender.client.getTransactionCount({ address: by.address })

test(`a withdrawal behind ${others} requests of strangers is pending until its turn, then cut, and paid`, async () => {
  const [, , , , , , , , , , , , , , validator] = devnet.genesisValidators
  if (validator === undefined) throw new Error('no such validator')
  const { pubkey } = validator
  await sender.deposit(owner, interopSecretKey(validator.index), { amountGwei: 8n * eth, type: '0x02' })
  const params = { pubkey }
  const capacity = await until('topped up', 240, async () => {
    const found = (await service.getWithdrawalCapacity({ params }, never)).body
    return found.eligible && found.availableGwei >= 8n * eth ? found : undefined
  })
  const asked = gwei(6n * eth)
  const made = (
    await service.createWithdrawalRequest({ idempotencyKey: randomBytes(8).toString('hex'), params, body: { amountGwei: asked } }, never)
  ).body

  // One block takes them all: strangers' first, then 5 ETH that the owner asks for past the service, then the service's own.
  const strangers = encodeRequestCalldata(exitOf(`0x${'cd'.repeat(48)}`))
  const [first, own] = [await nonceOf(stranger), await nonceOf(owner)]
  const raws = await Promise.all(Array.from({ length: others }, (_, number) => signed(stranger, strangers, first + number)))
  for (const raw of raws) await broadcast(raw)
  await broadcast(await signed(owner, encodeRequestCalldata(withdrawalOf(pubkey, 5n * eth)), own))
  const transactionHash = await broadcast(await signed(owner, made.unsignedTransaction.data, own + 1))
  const receipt = await sender.client.waitForTransactionReceipt({ hash: transactionHash, timeout: 60_000 })
  expect(receipt.status).toBe('success')
  const request = { pubkey, requestId: made.requestId }
  await service.submitWithdrawalRequest({ params: request, body: { transactionHash } }, never)
  const read = async () => (await service.getWithdrawalRequest({ params: request }, never)).body

  const seen: string[] = []
  const judged = await until('judged', 180, async () => {
    const { consensus } = await read()
    if (consensus.status === 'pending' && consensus.reason !== undefined && !seen.includes(consensus.reason)) seen.push(consensus.reason)
    return consensus.status === 'pending' ? undefined : consensus
  })
  const turns = seen.flatMap((reason) => /its turn is block (\d+)/.exec(reason)?.[1] ?? []).map(Number)
  expect(turns.length, seen.join('\n')).toBeGreaterThan(0)
  expect(new Set(turns).size, 'one turn, and it stays').toBe(1)
  expect(turns[0], 'several blocks after its own').toBeGreaterThan(Number(receipt.blockNumber) + 3)
  // Its balance is a little over 40 ETH by now: 5 of 8 are taken, and what is left is less than 6.
  expect(judged.status).toBe('accepted')
  expect(judged.reason).toContain(`of the ${asked} gwei that were asked for, as no more was available`)
  const payable = judged.payment?.amountGwei ?? 0n
  expect(payable).toBeGreaterThanOrEqual(capacity.availableGwei - 5n * eth)
  expect(payable).toBeLessThan(asked)
  const paid = await until('paid', 180, async () => {
    const { consensus } = await read()
    return consensus.payment?.status === 'paid' ? consensus.payment : undefined
  })
  expect(paid).toMatchObject({ amountGwei: payable, blockNumber: expect.any(Number) })
})

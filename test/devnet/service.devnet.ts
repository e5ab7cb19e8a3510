import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { Address, Hex } from '../../src/chains/ethereum/chain.ts'
import type { StakingClient } from '../../src/contract/client.ts'
import { StakingApiError } from '../../src/contract/client-error.ts'
import { gwei, type Wei } from '../../src/lib/amounts.ts'
import { createSender, exitOf } from '../chains/beacon/sender.ts'
import { callRpc } from '../chains/json-rpc.ts'
import type { RunningProcess } from '../cluster/process.ts'
import { ethereumNetwork, NETWORK } from '../stack/ethereum.ts'
import { clientOf, type StackService, startStackService } from '../stack/service.ts'
import { mainEntry } from '../stack/stack.ts'
import { ACCOUNTS } from './shared.ts'
import { until } from './until.ts'
import { importByHand, startValidatorClient } from './validator-client.ts'

/**
 * The staking service before a real network, from a stake to its exit. Whoever owns the validator is played by the test: it signs what the service
 * prepares, with a well-known key. The flow runs once; the tests say what came of each part.
 */
const never = new AbortController().signal
const eth = 1_000_000_000n
/** Of config.yml. */
const SLOTS_PER_EPOCH = 4
const devnet = inject('devnet')
const owner = privateKeyToAccount(devnet.accounts[ACCOUNTS.serviceOwner]?.privateKey ?? '0x')
const stranger = privateKeyToAccount(devnet.accounts[ACCOUNTS.serviceStranger]?.privateKey ?? '0x')
const sender = createSender(devnet)
const fresh = () => ({ idempotencyKey: randomBytes(8).toString('hex') })

const dir = mkdtempSync(join(tmpdir(), 'staking-devnet-service-'))
let staking: StackService
let service: StakingClient
let validatorClient: RunningProcess | undefined
let outcome: Promise<Awaited<ReturnType<typeof wholeLife>>>

beforeAll(async () => {
  staking = await startStackService({
    dir,
    entry: mainEntry,
    networks: [ethereumNetwork(devnet, 'finalized', devnet.url)],
    seed: createHash('sha256').update('worthless: the seed of a test').digest('hex'),
  })
  service = clientOf(staking)
  outcome = wholeLife()
  // Each test awaits it, and tells.
  outcome.catch(() => undefined)
})
afterAll(async () => {
  await outcome?.catch(() => undefined)
  await validatorClient?.stop()
  await service?.close()
  await staking?.program.stop()
  rmSync(dir, { recursive: true, force: true, maxRetries: 3 })
})

/** Sends what the service prepared. Resolves when it is mined. */
const send = async ({ to, data, valueWei }: { to: Address; data: Hex; valueWei: Wei }, by = owner): Promise<Hex> =>
  (await sender.send(by, to, data, valueWei)).transactionHash

const stakeOf = async (stakeId: string) => (await service.getEthereumStake({ params: { stakeId } }, never)).body

const createExit = async (pubkey: Hex) => (await service.createExitRequest({ ...fresh(), params: { pubkey } }, never)).body
/** Resolves with the consensus layer's word. */
async function reportExit({ pubkey, requestId }: { readonly pubkey: Hex; readonly requestId: string }, transactionHash: Hex) {
  const params = { pubkey, requestId }
  await service.submitExitRequest({ params, body: { transactionHash } }, never)
  return until('judged', 120, async () => {
    const { body } = await service.getExitRequest({ params }, never)
    return body.status === 'confirmed' && body.consensus.status !== 'pending' ? body : undefined
  })
}

/** The first withdrawal (EIP-4895) of a validator after a block. The owner's balance would not do: its validators' fees go there too. */
async function paidTo(index: number, after: bigint) {
  const latest = await sender.client.getBlockNumber()
  for (let number = after + 1n; number <= latest; number += 1n) {
    const { withdrawals } = await callRpc<{ withdrawals: { validatorIndex: Hex; address: Hex; amount: Hex }[] }>(
      devnet.url,
      'eth_getBlockByNumber',
      [`0x${number.toString(16)}`, false],
    )
    const found = withdrawals.find(({ validatorIndex }) => Number(validatorIndex) === index)
    if (found !== undefined) return { address: found.address, amountGwei: BigInt(found.amount) }
  }
  return undefined
}

/** Who attested: validators' liveness in the epoch before the head's, which the beacon node tells from the blocks' attestations. */
async function attested(index: number): Promise<{ readonly epoch: number; readonly live: boolean }> {
  const head = await fetch(`${devnet.beaconUrl}/eth/v1/beacon/headers/head`)
  const { data } = (await head.json()) as { data: { header: { message: { slot: string } } } }
  const epoch = Math.floor(Number(data.header.message.slot) / SLOTS_PER_EPOCH) - 1
  const response = await fetch(`${devnet.beaconUrl}/eth/v1/validator/liveness/${epoch}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify([String(index)]),
  })
  const found = (await response.json()) as { data?: { index: string; is_live: boolean }[] }
  return { epoch, live: found.data?.some((each) => each.index === String(index) && each.is_live) ?? false }
}

/** The validator's key, pushed to a validator client of somebody else's by its Keymanager API. */
async function pushKey(pubkey: Hex, stakeId: string) {
  const logs = process.env.DEVNET_DIR ?? dir
  mkdirSync(logs, { recursive: true })
  const started = await startValidatorClient({
    assets: devnet.assets,
    dir: join(logs, 'second-validator-client'),
    beaconRpc: devnet.beaconRpc,
    chainConfigFile: join(devnet.dir, 'config.yml'),
    signal: AbortSignal.timeout(60_000),
  })
  validatorClient = started.process
  const target = ['--network', NETWORK, '--to', started.url, '--token-file', started.tokenFile, '--pubkey', pubkey]
  // Its API listens before its wallet is open. Gas limits it takes only where it uses a builder.
  const pushed = await until('pushed', 60, () =>
    staking.command('keystores', 'push', ...target, '--fee-recipient', owner.address).catch(() => undefined),
  )
  const again = await staking.command('keystores', 'push', ...target)
  const feeRecipient = await fetch(`${started.url}/eth/v1/validator/${pubkey}/feerecipient`, {
    headers: { authorization: `Bearer ${readFileSync(started.tokenFile, 'utf8').trim()}` },
  })
  const { data } = (await feeRecipient.json()) as { data: { ethaddress: string } }
  return { pushed, again, feeRecipient: data.ethaddress, provisioned: (await stakeOf(stakeId)).keysProvisioned }
}

/** The same key as a file, which the client's own command takes, in a wallet that never runs. */
async function exportKey(pubkey: Hex) {
  const [out, passwordFile] = [join(dir, 'keystores'), join(dir, 'keystore-password')]
  writeFileSync(passwordFile, 'Keystores-of-a-test-1!\n', { mode: 0o600 })
  const flags = ['--out', out, '--password-file', passwordFile, '--pubkey', pubkey]
  const refused = await staking.command('keystores', 'export', ...flags).then(
    () => 'exported',
    (error: unknown) => String(error),
  )
  await staking.command('keystores', 'export', ...flags, '--again')
  await importByHand(
    { assets: devnet.assets, dir: join(dir, 'idle-wallet'), signal: AbortSignal.timeout(60_000) },
    { keystoresDir: out, passwordFile },
  )
  return { refused, files: readdirSync(out) }
}

async function wholeLife() {
  const body = { network: NETWORK, amountEth: gwei(34n * eth), withdrawalAddress: owner.address, credentialsType: '0x02' } as const
  const stake = (await service.createEthereumStake({ ...fresh(), body }, never)).body
  const { pubkey } = stake.depositData
  const { stakeId } = stake
  const deposit = await send(stake.unsignedTransaction)
  await service.submitEthereumStake({ params: { stakeId }, body: { transactionHash: deposit } }, never)

  const statuses: string[] = []
  const active = await until('active', 240, async () => {
    const { validator } = await stakeOf(stakeId)
    if (statuses.at(-1) !== validator.status) statuses.push(validator.status)
    return validator.status === 'active_ongoing' ? validator : undefined
  })
  const { index = -1, activationEpoch = -1 } = active
  const refused = await createExit(pubkey).then(
    () => 'made',
    (error: unknown) => (error instanceof StakingApiError ? error.code : String(error)),
  )
  // Past the service, which makes no such request: it will be dropped.
  const young = await sender.request(owner, exitOf(pubkey))
  const before = await until('active for an epoch', 30, async () => {
    const found = await attested(index)
    return found.epoch > activationEpoch ? found : undefined
  })
  const push = await pushKey(pubkey, stakeId)
  const exported = await exportKey(pubkey)

  const capacity = await until('old enough', 60, async () => {
    const found = (await service.getWithdrawalCapacity({ params: { pubkey } }, never)).body
    return found.eligible ? found : undefined
  })
  const params = { pubkey }
  const amountGwei = gwei(eth + 1n)
  const [byStranger, late, barred] = [await createExit(pubkey), await createExit(pubkey), await createExit(pubkey)]
  const asked = (await service.createWithdrawalRequest({ ...fresh(), params, body: { amountGwei } }, never)).body
  const strangersHash = await send(byStranger.unsignedTransaction, stranger)
  const withdrawalHash = await send(asked.unsignedTransaction)
  const barredHash = await send(barred.unsignedTransaction)
  const sentAt = await sender.client.getBlockNumber()
  const byRequest = { pubkey, requestId: asked.requestId }
  await service.submitWithdrawalRequest({ params: byRequest, body: { transactionHash: withdrawalHash } }, never)
  // Verdicts come with finality, the payment meanwhile.
  const [withdrawal, wrongSender, tooEarly, behindWithdrawal, paid, live] = await Promise.all([
    until('judged', 120, async () => {
      const found = (await service.getWithdrawalRequest({ params: byRequest }, never)).body
      return found.status === 'confirmed' && found.consensus.status !== 'pending' ? found : undefined
    }),
    reportExit(byStranger, strangersHash),
    // Its hash is older than the request: whoever reports it is told what became of that transaction.
    reportExit(late, young.hash),
    reportExit(barred, barredHash),
    until('paid', 120, () => paidTo(index, sentAt)),
    until('attesting', 120, async () => ((await attested(index)).live ? true : undefined)),
  ])
  const exit = await createExit(pubkey)
  const leaving = await reportExit(exit, await send(exit.unsignedTransaction))
  const last = await until('exiting', 60, async () => {
    const { validator } = await stakeOf(stakeId)
    return validator.exitEpoch === undefined ? undefined : validator
  })
  const { transaction } = await stakeOf(stakeId)
  return {
    ...{ pubkey, statuses, active, transaction, activationEpoch, refused, before, push, exported, live, capacity, amountGwei },
    ...{ withdrawal, behindWithdrawal, wrongSender, tooEarly, paid, leaving, last },
  }
}

describe('through the service', () => {
  test('a stake’s deposit becomes an active validator', async () => {
    const { statuses, active, transaction } = await outcome
    expect(transaction.status).toBe('confirmed')
    expect(statuses.filter((status) => status !== 'pending_initialized')).toEqual(['unknown', 'pending_queued', 'active_ongoing'])
    expect(active).toMatchObject({ index: expect.any(Number), activationEpoch: expect.any(Number) })
  })

  test('the key is pushed to another validator client, which attests with it: no file is copied by hand', async () => {
    const { push, before, live, pubkey } = await outcome
    expect(before.live, 'nobody ran the key before').toBe(false)
    expect(push.pushed).toContain(`imported ${pubkey}`)
    expect(push.again).toContain(`present ${pubkey}`)
    expect(push.feeRecipient.toLowerCase()).toBe(owner.address.toLowerCase())
    expect(push.provisioned).toBe(true)
    expect(live).toBe(true)
  })

  test('the exported keystore of a key that runs already asks for a word, and is taken by the client’s own command', async () => {
    const { refused, files } = (await outcome).exported
    expect(refused).toMatch(/exported before: .* to keymanager http:.*two places is slashed/)
    expect(files.filter((name) => /^keystore-m_12381_3600_\d+_0_0-\d+\.json$/.test(name))).toHaveLength(1)
  })

  test('a partial withdrawal is accepted, and paid to the gwei', async () => {
    const { capacity, withdrawal, paid, amountGwei } = await outcome
    expect(capacity).toMatchObject({ eligible: true, reasons: [], credentialsType: '0x02', requestFeeWei: 1n })
    expect(withdrawal.consensus).toMatchObject({ status: 'accepted', reason: expect.stringContaining(`${amountGwei} gwei can be paid`) })
    expect(paid).toEqual({ address: owner.address.toLowerCase(), amountGwei })
  })

  test('requests that are mined and dropped are told as dropped, with the rule', async () => {
    const { wrongSender, tooEarly, behindWithdrawal } = await outcome
    const reasonOf = ({ consensus }: { readonly consensus: { readonly status: string; readonly reason?: string | undefined } }) =>
      `${consensus.status} ${consensus.reason?.split(':')[0]}`
    expect({
      wrongSender: reasonOf(wrongSender),
      tooEarly: reasonOf(tooEarly),
      behindWithdrawal: reasonOf(behindWithdrawal),
    }).toEqual({
      wrongSender: 'dropped sender-not-withdrawal-address',
      tooEarly: 'dropped too-young',
      behindWithdrawal: 'dropped pending-withdrawals',
    })
  })

  test('what the network would drop is refused when it is asked for', async () => {
    expect((await outcome).refused).toBe('validation-failed')
  })

  test('an exit is accepted, and the stake shows it', async () => {
    const { leaving, last } = await outcome
    expect(leaving.consensus).toMatchObject({ status: 'accepted', reason: expect.stringContaining(`exits in epoch ${last.exitEpoch}`) })
  })
})

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DepositLog, Hex } from '../../../src/chains/ethereum/chain.ts'
import { withdrawalCredentials } from '../../../src/chains/ethereum/deposit.ts'
import type { DepositMark, DepositScan } from '../../../src/chains/ethereum/deposit-scan.ts'
import { wei } from '../../../src/lib/amounts.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/log.ts'
import { createAdmin } from '../../../src/service/admin.ts'
import { createMissingStakes } from '../../../src/service/ethereum/missing-stakes.ts'
import { createUnreportedPayments } from '../../../src/service/ethereum/unreported-payments.ts'
import { createFakeChain } from './fake-chain.ts'
import { databases, networkConfig, startService, type TestService, withdrawalAddress } from './harness.ts'

const { both, stop } = databases('missing')
afterAll(stop)

const never = new AbortController().signal
const elsewhere: Hex = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359'
const pubkeyOf = (n: number): Hex => `0x${n.toString(16).padStart(2, '0').repeat(48)}`

/** The deposits of everybody, as a test says them. */
function createDeposits() {
  const made: DepositLog[] = []
  const scan: DepositScan = {
    depositMark: async () => ({ block: BigInt(made.length), count: BigInt(made.length) }),
    depositsAfter: async (mark) => {
      const deposits = made.slice(Number(mark.block))
      const end: DepositMark = { block: BigInt(made.length), count: BigInt(made.length) }
      return { mark: end, deposits }
    },
  }
  const add = (pubkey: Hex, credentials: Hex) => {
    const [index, blockNumber] = [BigInt(made.length), BigInt(made.length + 1)]
    const amountGwei = 32_000_000_000n as DepositLog['amountGwei']
    made.push({
      pubkey,
      withdrawalCredentials: credentials,
      amountGwei,
      signature: '0x',
      index,
      transactionHash: `0x${'e'.repeat(64)}` as const,
      blockNumber,
    })
  }
  return { scan, add }
}

describe.each(both)('deposits that $database has no stake of', ({ open }) => {
  let service: TestService
  const lines: string[] = []
  const deposits = createDeposits()
  const network = { config: networkConfig(), chain: createFakeChain('devnet'), deposits: deposits.scan }
  const log = createLogger({ program: 'service', level: 'info', destination: { write: (line) => lines.push(line) } })
  /** As many instances as there are. */
  const instance = () => createMissingStakes({ store: service.store, clock: systemClock, log })
  const due = () =>
    service.store.db
      .updateTable('deposit_marks')
      .set({ check_at: new Date(0) })
      .execute()
  const missing = async () =>
    (await createAdmin({ store: service.store, clock: systemClock }).missingStakes({})).map(({ pubkey }) => pubkey)
  let known: Hex
  beforeAll(async () => {
    service = await startService(await open())
    const key = await service.key()
    known = (await service.stake(key)).body.depositData.pubkey
    // Asked for by somebody, and not paid: everybody's deposits to it say nothing.
    await service.stake(key, { withdrawalAddress: elsewhere })
    const paid = { status: 'confirmed', hash: `0x${'a'.repeat(64)}`, block_number: 1n, block_hash: `0x${'b'.repeat(64)}` } as const
    await service.store.db.updateTable('ethereum_stakes').set(paid).where('pubkey', '=', known).execute()
  })
  afterAll(() => service?.close())
  const own = withdrawalCredentials('0x02', withdrawalAddress)

  test('before the database first looked are none of its own', async () => {
    deposits.add(pubkeyOf(1), own)
    await instance().pass(network, never)
    await due()
    await instance().pass(network, never)
    expect(await missing()).toEqual([])
    expect(lines.join('')).not.toContain('missing')
  })

  test('are told when they are to a withdrawal address of its paid stakes, of whatever credentials, and no others are', async () => {
    deposits.add(known, own)
    deposits.add(pubkeyOf(2), withdrawalCredentials('0x01', withdrawalAddress))
    deposits.add(pubkeyOf(3), withdrawalCredentials('0x02', elsewhere))
    deposits.add(pubkeyOf(4), `0x00${own.slice(4)}`)
    deposits.add(pubkeyOf(5), own)
    deposits.add(pubkeyOf(5), own)
    await due()
    await instance().pass(network, never)
    expect(await missing()).toEqual([pubkeyOf(2), pubkeyOf(5)])
    expect(lines.filter((line) => line.includes('was it restored from an older copy'))).toHaveLength(2)
  })

  test('are told once by several instances, and again at the next start', async () => {
    lines.length = 0
    deposits.add(pubkeyOf(6), own)
    await due()
    const instances = [instance(), instance()]
    await Promise.all(instances.map((one) => one.pass(network, never)))
    expect(lines.filter((line) => line.includes('was it restored from an older copy'))).toHaveLength(1)
    await due()
    await instance().pass(network, never)
    expect(lines.join('')).toContain('"missing":3')
  })

  test('are said no more once they are dismissed', async () => {
    const admin = createAdmin({ store: service.store, clock: systemClock })
    expect(await admin.dismissMissing({ pubkeys: [pubkeyOf(2).toUpperCase().replace('X', 'x'), pubkeyOf(9)] })).toEqual([pubkeyOf(2)])
    expect(await missing()).toEqual([pubkeyOf(5), pubkeyOf(6)])
    expect(await admin.dismissMissing({ pubkeys: [] })).toEqual([])
  })

  describe('and unpaid stakes', () => {
    let pubkey: Hex
    const of = () => service.store.db.selectFrom('ethereum_stakes').where('pubkey', '=', pubkey)
    const lookAt = async () => (await of().select('look_at').executeTakeFirstOrThrow()).look_at.getTime()
    /** Seconds from before `act` until it is looked for, and from after it: what a busy machine takes lies between. */
    const inSecondsOf = async (act: () => Promise<unknown>) => {
      const before = Date.now()
      await act()
      const after = Date.now()
      const at = await lookAt()
      return { fromBefore: (at - before) / 1_000, fromAfter: (at - after) / 1_000 }
    }
    const set = (values: { created_at?: Date; look_at?: Date }) =>
      service.store.db.updateTable('ethereum_stakes').set(values).where('pubkey', '=', pubkey).execute()
    const look = () => {
      const unreported = createUnreportedPayments({ store: service.store, clock: systemClock, log })
      return unreported.pass(network, { latest: 10n, final: 8n, baseFeePerGas: wei(1n) }, never)
    }
    let made: { fromBefore: number; fromAfter: number }
    beforeAll(async () => {
      const key = await service.key()
      made = await inSecondsOf(async () => {
        pubkey = (await service.stake(key)).body.depositData.pubkey
      })
    })

    test('that are new are looked for after five polls, and again after as many', async () => {
      expect(made.fromBefore).toBeGreaterThan(0)
      await set({ look_at: new Date(0) })
      const { fromBefore, fromAfter } = await inSecondsOf(look)
      expect(fromBefore).toBeGreaterThan(0)
      expect(fromAfter).toBeLessThan(2)
    })

    test.each([
      { hours: 2, after: 720 },
      { hours: 24 * 365, after: 3_600 },
    ])('of $hours hours are looked for after $after seconds', async ({ hours, after }) => {
      await set({ look_at: new Date(0), created_at: new Date(Date.now() - hours * 3_600_000) })
      const { fromBefore, fromAfter } = await inSecondsOf(look)
      expect(fromBefore).toBeGreaterThan(after - 30)
      expect(fromAfter).toBeLessThan(after + 30)
    })

    test('are looked for soon once somebody has made a deposit for their key', async () => {
      deposits.add(pubkey, own)
      await due()
      const { fromAfter } = await inSecondsOf(() => instance().pass(network, never))
      expect(fromAfter).toBeLessThan(2)
    })

    test('are looked for soon when the nodes do not tell, or the payment is not final', async () => {
      for (const trouble of ['node', 'not final'] as const) {
        await set({ look_at: new Date(0) })
        network.chain.failing = trouble === 'node' ? 'unavailable' : undefined
        const { deposit_data: made } = await of().select('deposit_data').executeTakeFirstOrThrow()
        const { withdrawalCredentials: credentials, signature } = made as { withdrawalCredentials: Hex; signature: Hex }
        const amountGwei = 32_000_000_000n as DepositLog['amountGwei']
        const payment = { pubkey, withdrawalCredentials: credentials, amountGwei, signature, index: 0n, blockNumber: 9n }
        network.chain.deposits.set(pubkey, [{ ...payment, transactionHash: `0x${'f'.repeat(64)}` as const }])
        const { fromAfter } = await inSecondsOf(look)
        network.chain.failing = undefined
        expect(fromAfter, trouble).toBeLessThan(2)
      }
    })
  })
})

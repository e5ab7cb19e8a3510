import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { parseEth } from '../../lib/amounts.ts'
import { createLogger } from '../../lib/log.ts'
import { createValidatorKeys, parseSeed } from '../seed.ts'
import { createDepositMaker, type DepositMaker, type DepositTerms } from './deposit-maker.ts'
import { startDepositWorkers } from './deposit-workers.ts'

const folder = mkdtempSync(join(tmpdir(), 'staking-deposits-'))
const seed = '00112233445566778899aabbccddeeff'.repeat(2)
const seedFile = join(folder, 'seed')
writeFileSync(seedFile, seed)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const keys = createValidatorKeys(parseSeed(seed, 'the seed'))
const inline = createDepositMaker(keys)
const never = new AbortController().signal
const terms: DepositTerms = {
  network: {
    name: 'devnet',
    chainId: 31337,
    depositContractAddress: '0x00000000219ab540356cBB839Cbe05303d7705Fa',
    genesisForkVersion: '0x10000910',
  },
  amountGwei: parseEth('32'),
  credentialsType: '0x02',
  withdrawalAddress: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
}

describe('workers that make deposits', { timeout: 60_000 }, () => {
  let pool: DepositMaker | undefined
  afterEach(() => pool?.close())
  const lines: string[] = []
  const log = createLogger({ program: 'service', level: 'debug', destination: { write: (line) => lines.push(line) } })
  /** Counts what had to be done in this thread. */
  const counting = () => {
    const counted = { times: 0, ...inline }
    counted.make = (...given) => {
      counted.times++
      return inline.make(...given)
    }
    return counted
  }

  test('make the very deposits that this thread makes, once they are ready, and this thread makes none then', async () => {
    const here = counting()
    pool = startDepositWorkers({ seedFile, fingerprint: keys.fingerprint, inline: here, log, size: 2 })
    const made = pool
    await expect
      .poll(
        async () => {
          const before = here.times
          expect(await made.make(7n, terms, never)).toEqual(await inline.make(7n, terms, never))
          return here.times - before
        },
        { timeout: 50_000 },
      )
      .toBe(0)
    const indices = Array.from({ length: 20 }, (_, index) => BigInt(index))
    const deposits = await Promise.all(indices.map((index) => made.make(index, terms, never)))
    expect(deposits).toEqual(await Promise.all(indices.map((index) => inline.make(index, terms, never))))
  })

  test('of another seed are not used', async () => {
    pool = startDepositWorkers({ seedFile, fingerprint: 'another', inline, log, size: 1 })
    await expect.poll(() => lines.join(''), { timeout: 50_000 }).toContain('not the one that the service started with')
    expect(await pool.make(1n, terms, never)).toEqual(await inline.make(1n, terms, never))
  })

  test('that fail leave the work to this thread', async () => {
    pool = startDepositWorkers({ seedFile: join(folder, 'none'), fingerprint: keys.fingerprint, inline, log, size: 1 })
    await expect.poll(() => lines.join(''), { timeout: 50_000 }).toContain('a worker that makes deposits failed')
    expect(await pool.make(1n, terms, never)).toEqual(await inline.make(1n, terms, never))
  })
})

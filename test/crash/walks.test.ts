import { describe, expect, test } from 'vitest'
import { assertWalks, fatesOf } from '../../src/operator/testing/fates.ts'
import { EXIT, KEY, WITHDRAWAL } from '../../src/operator/testing/world.ts'
import * as ethereum from './ethereum-walk.ts'
import * as solana from './solana-walk.ts'

/**
 * Lives with several misfortunes each, at random points: ends, stale caches, databases and etcd set back and brought back, lost logs, forged statuses, deletions,
 * bad nodes. Then all works again, a person does what messages ask for, and by the chain's own history no money has moved twice or to elsewhere.
 */

/** More of them on demand: FUZZ_SEEDS=500. */
const seeds = Array.from({ length: Number(process.env.FUZZ_SEEDS ?? 12) }, (_, seed) => 7_000 + seed)
const some = { least: 3, most: 10, apart: 200 }

describe.each([KEY, EXIT, WITHDRAWAL])('%s', { timeout: 120_000 }, (key) => {
  test.each(seeds)('comes through its misfortunes, once (seed %i)', async (seed) => {
    const { end } = await assertWalks(fatesOf(seed, ethereum.weights, some), (fates) => ethereum.walk(key, fates))
    expect(end).not.toBe('')
  })
})

describe('a SolanaStake', { timeout: 120_000 }, () => {
  test.each(seeds)('comes through its misfortunes, once (seed %i)', async (seed) => {
    const { end } = await assertWalks(fatesOf(seed, solana.weights, some), solana.walk)
    expect(end).not.toBe('')
  })
})

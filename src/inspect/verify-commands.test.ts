import { expect, test } from 'vitest'
import type { ChainReceipt, Hash } from '../chains/ethereum/chain.ts'
import { landedOf } from './verify-commands.ts'

const never = new AbortController().signal
const hashOf = (version: number) => `0x${String(version).repeat(64)}` as Hash
const versions = [3, 2, 1].map((version) => ({ hash: hashOf(version) }))
const found = (mined: number | undefined, of = versions) =>
  landedOf(of, { receipt: async (hash) => (mined !== undefined && hash === hashOf(mined) ? ({ hash } as ChainReceipt) : undefined) }, never)

test('of several versions of a transaction, that one is verified which is in a block', async () => {
  for (const mined of [1, 2, 3]) expect(await found(mined)).toBe(hashOf(mined))
})

test('and the latest, where none is', async () => {
  expect(await found(undefined)).toBe(hashOf(3))
  expect(await found(undefined, versions.slice(2))).toBe(hashOf(1))
})

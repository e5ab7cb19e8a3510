import { describe, expect, test } from 'vitest'
import { depositGasLimit, maxDepositGas, maxRequestGas, requestGasLimit } from './deposit-gas.ts'
import { beforeAmsterdam, fromAmsterdam, measureStorageGas } from './storage-gas.ts'

/** As the real contract (ethereum-genesis.json) used it on anvil 1.7. */
const measured = [
  { given: 'an odd number, the cheapest', used: 50_502n },
  { given: 'the first of all: count and node are new slots', used: 84_702n },
  { given: 'the second: level 1 is new', used: 70_578n },
  { given: 'the fourth: level 2 is new', used: 73_566n },
  { given: 'the sixth: level 1, which is there', used: 53_502n },
  { given: 'the twentieth: level 2, which is there', used: 56_502n },
  { given: 'the 2^31st: level 31 is new', used: 50_502n + 31n * 3_000n + 17_100n },
]

test.each(measured.flatMap((estimated) => measured.map((mined) => ({ estimated, mined }))))(
  'estimated as $estimated.given, it does not run out of gas when mined as $mined.given',
  ({ estimated, mined }) => {
    expect(depositGasLimit(estimated.used)).toBeGreaterThanOrEqual(mined.used)
    expect(depositGasLimit(estimated.used, beforeAmsterdam)).toBeGreaterThanOrEqual(mined.used)
  },
)

describe('after Amsterdam, where a new slot costs about 108,000 gas', () => {
  /** As geth 1.17.10 used it with Amsterdam on (test/devnet/amsterdam.alone.ts): the first of all, the second, the fourth; odd ones; the sixth. */
  const slot = 108_788n
  const deposits = [260_654n, 165_710n, 168_686n, 64_826n, 67_790n, 64_826n + 31n * 3_000n + slot]
  test.each(deposits.flatMap((estimated) => deposits.map((mined) => ({ estimated, mined }))))(
    'a deposit that was estimated at $estimated does not run out of gas at $mined',
    ({ estimated, mined }) => {
      expect(depositGasLimit(estimated)).toBeGreaterThanOrEqual(mined)
      expect(depositGasLimit(estimated, { newSlot: slot })).toBeGreaterThanOrEqual(mined)
    },
  )
  test('a request that was estimated within the queue does not run out of gas beyond its high-water mark', () => {
    // The first request of all; one of an empty queue; one behind others of its block, within the queue.
    const requests = [575_545n, 251_785n, 251_785n - 2n * slot]
    for (const estimated of requests) for (const mined of requests) expect(requestGasLimit(estimated)).toBeGreaterThanOrEqual(mined)
    expect(requestGasLimit(251_785n - 2n * slot, beforeAmsterdam)).toBeLessThan(575_545n)
  })
  test('the dearest deposit and request are not taken for a call of something else, and what costs a multiple is', () => {
    expect(depositGasLimit(263_890n)).toBeLessThan(maxDepositGas(fromAmsterdam))
    expect(requestGasLimit(581_280n)).toBeLessThan(maxRequestGas(fromAmsterdam))
    expect(requestGasLimit(5_000_000n)).toBeGreaterThan(maxRequestGas(fromAmsterdam))
    // A fork that is dearer still raises the margin, and the bound with it.
    const later = { newSlot: 400_000n }
    expect(requestGasLimit(5n * later.newSlot + 30_000n, later)).toBeGreaterThanOrEqual((10n * later.newSlot * 4n) / 10n)
    expect(maxRequestGas(later)).toBeGreaterThan(requestGasLimit(5n * later.newSlot + 30_000n, later))
  })
})

describe('what a new slot costs', () => {
  /** A node's estimate: 53,000 for a creation, and for each store of something a new slot. */
  const nodeOf = (newSlot: bigint) => async (initCode: string) => 53_000n + BigInt(initCode.match(/600160..55/g)?.length ?? 0) * newSlot
  test.each([19_900n, 100_800n])('is measured: %i', async (newSlot) => {
    expect(await measureStorageGas(nodeOf(newSlot))).toEqual({ newSlot })
  })
  test('is not believed to be nothing', async () => {
    await expect(measureStorageGas(nodeOf(0n))).rejects.toThrow(RangeError)
  })
})

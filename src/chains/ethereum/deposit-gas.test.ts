import { describe, expect, test } from 'vitest'
import { depositGasLimit, requestGasLimit } from './deposit-gas.ts'
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

describe('after Amsterdam, where a new slot costs about 103,000 gas', () => {
  /** ethpandaops/dora#857: the first of all takes 246,366. The others differ from it by the slots that are there, and by their levels. */
  const slot = fromAmsterdam.newSlot
  const deposits = [50_502n, 53_502n, 246_366n, 50_502n + slot, 50_502n + 31n * 3_000n + slot]
  test.each(deposits.flatMap((estimated) => deposits.map((mined) => ({ estimated, mined }))))(
    'a deposit that was estimated at $estimated does not run out of gas at $mined',
    ({ estimated, mined }) => {
      expect(depositGasLimit(estimated)).toBeGreaterThanOrEqual(mined)
      expect(depositGasLimit(estimated, { newSlot: slot })).toBeGreaterThanOrEqual(mined)
    },
  )
  test('a request that was estimated within the queue does not run out of gas beyond its high-water mark', () => {
    const [within, beyond] = [55_000n, 55_000n + 3n * slot]
    expect(requestGasLimit(within)).toBeGreaterThanOrEqual(beyond)
    expect(requestGasLimit(within, beforeAmsterdam)).toBeLessThan(beyond)
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

import { expect, test } from 'vitest'
import { depositGasLimit } from './deposit-gas.ts'

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
  },
)

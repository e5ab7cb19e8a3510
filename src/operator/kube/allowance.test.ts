import { expect, test } from 'vitest'
import { createAllowance } from './allowance.ts'

function setUp(burst: number, perSecond: number) {
  let now = 0
  const allowance = createAllowance({ clock: { monotonicMs: () => now }, burst, perSecond })
  return { claim: allowance.claim, pass: (ms: number) => (now += ms) }
}

test('so many at once are free, and each beyond waits for its share', () => {
  const { claim } = setUp(2, 4)
  expect([claim('a'), claim('a'), claim('a'), claim('a')]).toEqual([0, 0, 250, 500])
})

test('one key takes nothing from another', () => {
  const { claim } = setUp(1, 1)
  expect([claim('a'), claim('a'), claim('b')]).toEqual([0, 1_000, 0])
})

test('what was claimed is given back with time, and never more than the burst', () => {
  const { claim, pass } = setUp(2, 4)
  for (let n = 0; n < 3; n++) claim('a')
  pass(500)
  expect([claim('a'), claim('a')]).toEqual([0, 250])
  pass(3_600_000)
  expect([claim('a'), claim('a'), claim('a')]).toEqual([0, 0, 250])
})

test('keys that were used up are remembered, however many others come', () => {
  const { claim, pass } = setUp(2, 1)
  for (let n = 0; n < 3; n++) claim('spent')
  for (let n = 0; n < 5_000; n++) {
    claim(`other-${n}`)
    pass(0.1)
  }
  expect(claim('spent')).toBeGreaterThan(0)
})

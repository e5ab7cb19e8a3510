import { expect, test } from 'vitest'
import { id } from '../contract/schemas/common.ts'
import { newId } from './ids.ts'

test('ids have the form of the contract, are unique and sort by time', () => {
  const at = (ms: number) => newId(new Date(1_790_000_000_000 + ms))
  const ids = Array.from({ length: 1_000 }, (_, ms) => at(ms))
  expect([...ids].sort()).toEqual(ids)
  for (const one of ids) expect(id.safeParse(one).success).toBe(true)
  expect(new Set(Array.from({ length: 1_000 }, () => at(0))).size).toBe(1_000)
})

test('ids of one process sort by the order of their making, however many are made within a millisecond', () => {
  const now = new Date(1_790_000_100_000)
  const ids = Array.from({ length: 10_000 }, () => newId(now))
  expect([...ids].sort()).toEqual(ids)
})

test('a clock that is set back far is believed', () => {
  newId(new Date(1_790_000_200_000))
  const earlier = newId(new Date(1_790_000_000_000))
  expect(earlier < newId(new Date(1_790_000_200_000))).toBe(true)
  expect(Number.parseInt(earlier.slice(0, 12), 16)).toBe(1_790_000_000_000)
})

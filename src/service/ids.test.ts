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

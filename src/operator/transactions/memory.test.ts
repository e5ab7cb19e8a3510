import { expect, test } from 'vitest'
import { createMemory } from './memory.ts'
import type { RecordObject } from './store.ts'

const record = { metadata: { name: 'deposit-1', uid: 'u1', resourceVersion: '1' } } as RecordObject

test('a record that has its outcome is forgotten, and who asks about it leaves no note', () => {
  const memory = createMemory(
    () => {},
    () => 0,
  )
  memory.of(record).sent.add('0x1')
  expect(memory.find(record)?.sent.has('0x1')).toBe(true)
  memory.conclude(record)
  expect(memory.find(record)).toBeUndefined()
  expect(memory.find(record)).toBeUndefined()
})

test('that a record was just concluded is told once, and only within moments', () => {
  let now = 0
  const memory = createMemory(
    () => {},
    () => now,
  )
  expect(memory.wasJustConcluded(record)).toBe(false)
  memory.conclude(record)
  expect(memory.wasJustConcluded(record)).toBe(true)
  expect(memory.wasJustConcluded(record)).toBe(false)
  memory.conclude(record)
  now = 5_000
  expect(memory.wasJustConcluded(record)).toBe(false)
})

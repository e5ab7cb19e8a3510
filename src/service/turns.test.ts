import { expect, test } from 'vitest'
import { createTurns } from './turns.ts'

const never = new AbortController().signal

test('one after another for the same thing, side by side for different ones', async () => {
  const inTurn = createTurns()
  const order: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = inTurn('a', () => gate.promise.then(() => order.push('first')), never)
  const second = inTurn('a', async () => order.push('second'), never)
  await inTurn('b', async () => order.push('other'), never)
  expect(order).toEqual(['other'])
  gate.resolve()
  await Promise.all([first, second])
  expect(order).toEqual(['other', 'first', 'second'])
})

test('one that fails, or gives up waiting, holds nobody up and lets nobody through early', async () => {
  const inTurn = createTurns()
  const gate = Promise.withResolvers<void>()
  const order: string[] = []
  const first = inTurn('a', () => gate.promise.then(() => Promise.reject(new Error('failed'))), never)
  const impatient = new AbortController()
  const second = inTurn('a', async () => order.push('second'), impatient.signal)
  const third = inTurn('a', async () => order.push('third'), never)
  impatient.abort(new Error('too late'))
  await expect(second).rejects.toThrow('too late')
  expect(order).toEqual([])
  gate.resolve()
  await expect(first).rejects.toThrow('failed')
  await third
  expect(order).toEqual(['third'])
})

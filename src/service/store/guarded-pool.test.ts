import { EventEmitter } from 'node:events'
import type pg from 'pg'
import { expect, test } from 'vitest'
import { DatabaseUnavailableError, guardedPool, isOutage } from './guarded-pool.ts'

const failing = (message: string, code?: string) => Object.assign(new Error(message), code === undefined ? {} : { code })

test.each([
  { error: failing('connect', 'ECONNREFUSED'), outage: true },
  { error: failing('terminating connection due to administrator command', '57P01'), outage: true },
  { error: failing('the database system is starting up', '57P03'), outage: true },
  { error: failing('sorry, too many clients already', '53300'), outage: true },
  { error: failing('cannot execute UPDATE in a read-only transaction', '25006'), outage: true },
  { error: failing('Connection terminated unexpectedly'), outage: true },
  { error: failing('duplicate key', '23505'), outage: false },
  { error: failing('password authentication failed', '28P01'), outage: false },
  { error: failing('syntax error', '42601'), outage: false },
  { error: 'nothing', outage: false },
])('$error is an outage: $outage', ({ error, outage }) => {
  expect(isOutage(error)).toBe(outage)
})

function fakePool(query: () => Promise<unknown>, waitingCount = 0) {
  const released: unknown[] = []
  const events = new EventEmitter()
  const pool = {
    options: { max: 1 },
    waitingCount,
    idleCount: 0,
    totalCount: 1,
    connect: async () => Object.assign(events, { query, release: (error: unknown) => released.push(error) }),
    end: async () => undefined,
  }
  return { pool: guardedPool(pool as unknown as pg.Pool, { statementMs: 20, maxWaiting: 3 }), released, events }
}

test('a connection whose answer is overdue is thrown away, and answers nothing more', async () => {
  const { pool, released } = fakePool(() => new Promise(() => undefined))
  const client = await pool.connect()
  await expect(client.query('select 1', [])).rejects.toMatchObject({ name: 'DatabaseUnavailableError', kind: 'away' })
  await expect(client.query('rollback', [])).rejects.toBeInstanceOf(DatabaseUnavailableError)
  client.release()
  expect(released).toEqual([expect.any(DatabaseUnavailableError)])
})

test('a statement that is refused is no outage, and its connection stays', async () => {
  const { pool, released } = fakePool(() => Promise.reject(failing('duplicate key', '23505')))
  const client = await pool.connect()
  await expect(client.query('insert', [])).rejects.toMatchObject({ code: '23505' })
  client.release()
  expect(released).toEqual([undefined])
})

test('when enough wait, further ones are refused at once', async () => {
  const { pool } = fakePool(async () => ({ rows: [] }), 3)
  await expect(pool.connect()).rejects.toMatchObject({ kind: 'busy' })
})

test('a connection that is lost between two statements is thrown away, and ends nothing', async () => {
  const { pool, released, events } = fakePool(async () => ({ rows: [] }))
  const client = await pool.connect()
  await client.query('begin', [])
  // Without a listener, an emitter throws it.
  events.emit('error', failing('read', 'ECONNRESET'))
  await expect(client.query('commit', [])).rejects.toMatchObject({ kind: 'away' })
  client.release()
  expect(released).toEqual([expect.objectContaining({ code: 'ECONNRESET' })])
})

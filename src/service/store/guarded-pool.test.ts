import { EventEmitter, once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import pg from 'pg'
import { expect, test } from 'vitest'
import { DatabaseUnavailableError, guardedPool, HeardClient, isOutage } from './guarded-pool.ts'

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

/** A message of PostgreSQL's protocol (version 3): its kind, its length, its content. */
const message = (kind: string, ...content: readonly (number | string)[]) => {
  const body = Buffer.concat(content.map((part) => (typeof part === 'string' ? Buffer.from(`${part}\0`) : Buffer.from([0, 0, 0, part]))))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length + 4)
  return Buffer.concat([Buffer.from(kind), length, body])
}

test('a server that lets a client in and is killed at the same moment ends nothing: the next statement says that it is away', async () => {
  const dying = 'terminating connection due to unexpected postmaster exit'
  const welcome = [message('R', 0), Buffer.from('Z\0\0\0\x05I')]
  const farewell = message('E', 'SFATAL', 'C57P01', `M${dying}`, '')
  // In one piece: nobody has a turn in between.
  const server = createServer((socket) =>
    socket.on('error', () => undefined).once('data', () => socket.end(Buffer.concat([...welcome, farewell]))),
  )
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const pool = new pg.Pool({ Client: HeardClient, host: '127.0.0.1', port, user: 'u', database: 'd', max: 1 })
  pool.on('error', () => undefined)
  try {
    const client = await guardedPool(pool, { statementMs: 1_000, maxWaiting: 3 }).connect()
    await expect(client.query('select 1', [])).rejects.toMatchObject({ name: 'DatabaseUnavailableError', kind: 'away' })
    client.release()
  } finally {
    server.close()
    await pool.end()
  }
})

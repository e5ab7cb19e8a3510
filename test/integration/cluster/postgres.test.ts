import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Postgres, startPostgres } from '../../cluster/postgres.ts'
import { birthOf } from '../../cluster/reaper.ts'

let postgres: Postgres
beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(async () => {
  await postgres?.stop()
})

const query = async (url: string, text: string): Promise<unknown[]> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

test('a new database is empty and apart from others', async () => {
  const one = await postgres.createDatabase('one')
  const other = await postgres.createDatabase('other')
  await query(one, 'create table t (n int)')
  await expect(query(other, 'select * from t')).rejects.toThrow('does not exist')
})

test('what was committed survives that the server is killed', async () => {
  const url = await postgres.createDatabase('crash')
  await query(url, 'create table t (n int); insert into t values (42)')
  const before = postgres.pid()
  await postgres.kill()
  expect(birthOf(before)).toBeUndefined()
  await expect(query(url, 'select 1')).rejects.toThrow(/ECONNREFUSED/)
  await postgres.restart()
  expect(await query(url, 'select n from t')).toEqual([{ n: 42 }])
})

test('a wrong password is refused', async () => {
  const url = new URL(postgres.url)
  url.password = 'wrong'
  await expect(query(url.href, 'select 1')).rejects.toThrow('password authentication failed')
})

test('a name that is more than a name is refused', async () => {
  await expect(postgres.createDatabase('x; drop database one')).rejects.toThrow('not a plain name')
})

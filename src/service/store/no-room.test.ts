import { expect, test } from 'vitest'
import { DatabaseUnavailableError } from './guarded-pool.ts'
import { noRoom, rememberRefusals } from './no-room.ts'

const saying = (code: string) => Object.assign(new Error('a text of the database'), { code })
const MIB = 1_048_576

test.each([
  { free: 0, says: "the disk of the service's database is full: 0 MiB are free, and it needs 24" },
  { free: 23.9, says: "the disk of the service's database is full: 23 MiB are free, and it needs 24" },
  { free: 24, says: undefined },
])('of a disk with $free MiB free it says $says', ({ free, says }) => {
  expect(noRoom('/data', () => ({ bavail: (free * MIB) / 4096, bsize: 4096 }))).toBe(says)
})

test('a folder that can not be asked is not said to be full', () => {
  expect(noRoom('/there/is/none')).toBeUndefined()
})

test('a database that has refused to write is remembered for a minute, whatever else it says', () => {
  let now = 0
  const refusals = rememberRefusals(() => now)
  refusals.heard({ level: 'query' })
  refusals.heard({ level: 'error', error: saying('23505') })
  refusals.heard({ level: 'error', error: saying('ECONNREFUSED') })
  expect(refusals.lately()).toBeUndefined()
  refusals.heard({ level: 'error', error: saying('53100') })
  now = 59_999
  refusals.heard({ level: 'query' })
  expect(refusals.lately()).toBe("the disk of the service's database is full")
  refusals.heard({ level: 'error', error: new DatabaseUnavailableError('away', 'lost', saying('25006')) })
  now = 60_001
  expect(refusals.lately()).toBe("the service's database takes no writes: it is a standby")
  now = 120_000
  expect(refusals.lately()).toBeUndefined()
})

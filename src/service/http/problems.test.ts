import { fastify } from 'fastify'
import { expect, test } from 'vitest'
import { DatabaseUnavailableError } from '../store/database.ts'
import { installProblems } from './problems.ts'

const saying = (code: string, message = 'a text of the database') => Object.assign(new Error(message), { code })

test.each([
  { error: saying('53100'), says: "the disk of the service's database is full" },
  {
    error: new DatabaseUnavailableError('away', 'lost', saying('53100')),
    says: "the disk of the service's database is full",
  },
  { error: saying('25006'), says: "the service's database takes no writes: it is a standby" },
  { error: saying('53300'), says: "the service's database takes no more connections" },
  { error: saying('ECONNREFUSED'), says: "the service's database does not answer" },
  { error: saying('57P01'), says: "the service's database does not answer" },
  { error: new DatabaseUnavailableError('busy', 'many'), says: 'too many requests wait for the database', retryAfter: '1' },
])('is answered 503 with Retry-After, and says so: $says', async ({ error, says, retryAfter = '5' }) => {
  const app = fastify()
  installProblems(app, { allowedMethods: () => [], replayOf: async () => undefined })
  app.get('/', () => Promise.reject(error))
  const { statusCode, headers, body } = await app.inject('/')
  expect([statusCode, headers['retry-after'], JSON.parse(body)]).toMatchObject([
    503,
    retryAfter,
    { code: 'service-unavailable', detail: says },
  ])
  expect(body).not.toContain('a text of the database')
})

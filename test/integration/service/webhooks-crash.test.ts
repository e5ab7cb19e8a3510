import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { apiKeysCreate } from '../../../src/service/commands.ts'
import { type Anvil, startAnvil } from '../../chains/anvil.ts'
import { type Postgres, startPostgres } from '../../cluster/postgres.ts'
import { startReceiver, undelivered } from '../../soak/deliveries.ts'
import { folderDatabase } from '../../stack/memory-database.ts'
import { callService, withdrawalAddress } from './harness.ts'
import { type ServiceFiles, serviceFiles, spawnService } from './processes.ts'

let anvil: Anvil
let postgres: Postgres
beforeAll(async () => {
  ;[anvil, postgres] = await Promise.all([startAnvil(), startPostgres()])
})
afterAll(async () => {
  await Promise.all([anvil?.stop(), postgres?.stop()])
})

const stakes = '/v1/ethereum/stakes'
const hash = () => `0x${randomBytes(32).toString('hex')}`
const patience = { timeout: 120_000, interval: 200 }

describe.each([
  {
    database: 'the embedded database',
    rounds: 3,
    configure: async ({ dataDir }: ServiceFiles) => {
      await folderDatabase(dataDir)
      return {}
    },
  },
  {
    database: 'PostgreSQL',
    rounds: 2,
    configure: async (files: ServiceFiles) => {
      const urlFile = join(files.folder, 'url')
      writeFileSync(urlFile, await postgres.createDatabase('webhooks_crash'))
      return { STAKING_SERVICE_DATABASE_URL_FILE: urlFile }
    },
  },
])('the webhooks of a service on $database that is killed while it delivers', ({ rounds, configure }) => {
  test('come at least once each, signed, and under the id that they had before; none is lost', { timeout: 600_000 }, async () => {
    // The lease of an endpoint is as long as an attempt may take, and some seconds: after a kill, PostgreSQL's is waited for.
    const files = serviceFiles(anvil, { webhooks: { allowHttp: true, allowAddresses: ['127.0.0.0/8'], timeoutMs: 2_000 } })
    const env: Record<string, string> = await configure(files)
    const receiver = await startReceiver()
    let service = await spawnService(files.config, env)
    try {
      const key = (await apiKeysCreate({ config: files.config, account: 'acme', env })).key.reveal()
      const call = (method: string, path: string, body?: object, idempotencyKey?: string) =>
        callService(service.url, method, path, { key, idempotencyKey, ...(body === undefined ? {} : { body }) })
      const create = (name: string) => call('POST', stakes, { network: 'devnet', amountEth: 32, withdrawalAddress }, name)
      const { secret, state } = await receiver.follow(() => service.url, key)
      /** What the account was told that it has done: each is news. */
      const news = new Map<string, Set<string>>()
      let names = 0

      for (let round = 0; round < rounds; round++) {
        let killed = false
        const creators = Array.from({ length: 3 }, async () => {
          while (!killed && names < 40 * (round + 1)) {
            const made = await create(`stake/${names++}`).catch(() => undefined)
            if (made?.status !== 201) continue
            const { stakeId } = made.body
            news.set(stakeId, new Set(['awaiting_submission']))
            const told = await call('PUT', `${stakes}/${stakeId}/submission`, { transactionHash: hash() }).catch(() => undefined)
            if (told?.status === 200) news.get(stakeId)?.add('submitted')
          }
        })
        // Some are delivered, others are being made, and one is on its way when the process is gone.
        const enough = receiver.received.length + 5
        await expect.poll(() => receiver.received.length, patience).toBeGreaterThan(enough)
        const holding = receiver.hold()
        await create(`last/${round}`)
        const underWay = await holding
        service.process.kill('SIGKILL')
        killed = true
        await service.process.exited
        await Promise.all(creators)
        receiver.release()
        const before = receiver.received.length
        service = await spawnService(files.config, env)
        await expect.poll(() => receiver.received.slice(before).map(({ id }) => id), patience).toContain(underWay.id)
      }

      // A stake whose answer was cut off is there as well, or not: the list tells.
      const listed = (await call('GET', `${stakes}?limit=200`)).body.items as { stakeId: string; transaction: { status: string } }[]
      for (const { stakeId, transaction } of listed)
        news.set(stakeId, new Set([...(news.get(stakeId) ?? []), 'awaiting_submission', transaction.status]))
      await expect.poll(state, patience).toMatchObject({ status: 'enabled', pending: 0 })

      const expected = [...news].flatMap(([stakeId, statuses]) => [...statuses].map((status) => `${stakeId} ${status}`))
      expect(undelivered(expected, receiver.received)).toEqual([])
      expect(service.process.output()).not.toContain(secret)
    } finally {
      await service.process.stop()
      await receiver.close()
      files.remove()
    }
  })
})

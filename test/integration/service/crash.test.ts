import { randomInt } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { asAdmin } from '../../../src/service/admin.ts'
import { apiKeysCreate } from '../../../src/service/commands.ts'
import { loadServiceConfig } from '../../../src/service/config.ts'
import { type Anvil, startAnvil } from '../../chains/anvil.ts'
import { type Postgres, startPostgres } from '../../cluster/postgres.ts'
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
    rounds: 1,
    configure: async (files: ServiceFiles) => {
      const urlFile = join(files.folder, 'url')
      writeFileSync(urlFile, await postgres.createDatabase('crash'))
      return { STAKING_SERVICE_DATABASE_URL_FILE: urlFile }
    },
  },
])('a service on $database that is killed while it creates stakes', ({ rounds, configure }) => {
  test('loses no stake, makes none twice, and hands out no key twice', { timeout: 300_000 }, async () => {
    const files = serviceFiles(anvil)
    const env = await configure(files)
    Object.assign(process.env, env)
    try {
      const key = (await apiKeysCreate({ config: files.config, account: 'acme' })).key.reveal()
      /** By Idempotency-Key: the answer that a client got, if it got one. */
      const answers = new Map<string, string | undefined>()
      const answered = () => [...answers.values()].filter((text) => text !== undefined).length
      const post = (url: string, idempotencyKey: string) =>
        callService(url, 'POST', '/v1/ethereum/stakes', {
          key,
          idempotencyKey,
          body: { network: 'devnet', amountEth: 32, withdrawalAddress, externalReference: idempotencyKey },
        })

      for (let round = 0; round < rounds; round++) {
        const { process: service, url } = await spawnService(files.config)
        let killed = false
        const creators = Array.from({ length: 4 }, async (_, creator) => {
          for (let count = 0; !killed && count < 1_000; count++) {
            const idempotencyKey = `${round}/${creator}/${count}`
            answers.set(idempotencyKey, undefined)
            const answer = await post(url, idempotencyKey).catch(() => undefined)
            if (answer?.status === 201) answers.set(idempotencyKey, answer.text)
          }
        })
        // Some are answered, others are anywhere between their first and last step.
        const enough = answered() + randomInt(3, 20)
        const deadline = Date.now() + 60_000
        while (answered() < enough && Date.now() < deadline) await new Promise((done) => setTimeout(done, 5))
        await new Promise((done) => setTimeout(done, randomInt(30)))
        service.kill('SIGKILL')
        killed = true
        await service.exited
        await Promise.all(creators)
        expect(service.output()).not.toContain(files.seedHex)
        expect(service.output()).not.toContain(key)
      }

      const { process: service, url } = await spawnService(files.config)
      try {
        expect(answered()).toBeGreaterThanOrEqual(3 * rounds)
        for (const [idempotencyKey, text] of answers) {
          // A claim that the crash left behind is given up after its lease.
          const deadline = Date.now() + 40_000
          let answer = await post(url, idempotencyKey)
          while (answer.status === 409 && answer.body.code === 'idempotency-key-in-progress' && Date.now() < deadline) {
            await new Promise((done) => setTimeout(done, 250))
            answer = await post(url, idempotencyKey)
          }
          expect(answer.status).toBe(201)
          if (text !== undefined) expect(answer.text).toBe(text)
        }
        const config = await loadServiceConfig(files.config, {}, process.env)
        const made = await asAdmin(config.database, systemClock, (admin) => admin.stakeKeys({}))
        expect(made).toHaveLength(answers.size)
        expect(new Set(made.map(({ pubkey }) => pubkey)).size).toBe(answers.size)
        expect(new Set(made.map(({ keyIndex }) => keyIndex)).size).toBe(answers.size)
      } finally {
        const { code } = await service.stop()
        expect(code).toBe(0)
      }
    } finally {
      for (const name of Object.keys(env)) delete process.env[name]
      files.remove()
    }
  })
})

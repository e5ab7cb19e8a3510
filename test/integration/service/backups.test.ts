import { randomBytes } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { apiKeysCreate } from '../../../src/service/commands.ts'
import { type Anvil, startAnvil } from '../../chains/anvil.ts'
import { type Commands, pageCommands } from '../../cluster/page-commands.ts'
import { type Postgres, startPostgres } from '../../cluster/postgres.ts'
import { runToEnd } from '../../cluster/run.ts'
import { folderDatabase } from '../../stack/memory-database.ts'
import { programFile } from '../../stack/programs.ts'
import { callService, type Response, withdrawalAddress } from './harness.ts'
import { type Call, createPayer } from './payer.ts'
import { type ServiceFiles, serviceFiles, spawnService } from './processes.ts'

/** The drill of docs/how-to/back-up-and-restore-the-service.md, with its commands as they stand. */
let anvil: Anvil
let postgres: Postgres
beforeAll(async () => {
  ;[anvil, postgres] = await Promise.all([startAnvil(), startPostgres()])
})
afterAll(async () => {
  await Promise.all([anvil?.stop(), postgres?.stop()])
})

const run = (command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  runToEnd({ command, args: [...args], env: { NODE_NO_WARNINGS: '1', ...env }, signal: AbortSignal.timeout(90_000) })
const cli = (files: ServiceFiles, ...args: readonly string[]) =>
  run(process.execPath, [programFile('src/main.ts'), 'service', ...args, '--config', files.config])
interface Way {
  readonly env: Readonly<Record<string, string>>
  /** What the reader of the page has. */
  readonly page: Commands
  backUp(): Promise<unknown>
  lose(): Promise<unknown>
  restore(): Promise<unknown>
  missing(): ReturnType<typeof run>
}

/** The page's commands beside a configuration, of which a copy is where they look for it. */
async function openPage(
  files: ServiceFiles,
  backup: string,
  env: Readonly<Record<string, string>>,
  path: readonly string[] = [],
): Promise<Commands> {
  const page = await pageCommands(
    undefined,
    { page: 'docs/how-to/back-up-and-restore-the-service.md', placeholders: { '/backup/2026-11-28': backup }, env, path },
    AbortSignal.timeout(400_000),
  )
  page.file('service.yaml', readFileSync(files.config, 'utf8'))
  return page
}

async function embedded(files: ServiceFiles): Promise<Way> {
  const out = join(files.folder, 'backup')
  await folderDatabase(files.dataDir)
  const page = await openPage(files, out, {})
  return {
    env: {},
    page,
    backUp: async () => {
      await page.run('Back up the embedded database', 1)
      const again = await cli(files, 'backup', '--out', out)
      expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('is not empty') })
    },
    lose: async () => {
      const refused = await cli(files, 'restore', '--from', out)
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('which is not overwritten') })
      rmSync(join(files.folder, 'data'), { recursive: true })
    },
    restore: () => page.run('Restore', 3),
    missing: () => cli(files, 'missing-stakes'),
  }
}

async function server(files: ServiceFiles): Promise<Way> {
  const name = `drill_${randomBytes(4).toString('hex')}`
  const url = await postgres.createDatabase(name)
  const urlFile = join(files.folder, 'url')
  writeFileSync(urlFile, url)
  const env = { STAKING_SERVICE_DATABASE_URL_FILE: urlFile }
  const page = await openPage(files, 'none', { ...env, DATABASE_URL: url }, [postgres.bin])
  return {
    env,
    page,
    backUp: async () => {
      const refused = await cli(files, 'backup', '--out', join(files.folder, 'backup'), '--database-url-file', urlFile)
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('pg_dump') })
      await page.run('Back up a PostgreSQL database')
    },
    lose: async () => {
      const client = new pg.Client({ connectionString: postgres.url })
      await client.connect()
      await client.query(`drop database ${name} with (force)`)
      await client.end()
    },
    restore: async () => {
      await postgres.createDatabase(name)
      await page.run('Restore', 2)
    },
    missing: () => cli(files, 'missing-stakes', '--database-url-file', urlFile),
  }
}

describe.each([
  { database: 'the embedded database', open: embedded },
  { database: 'PostgreSQL', open: server },
])('a drill: $database is backed up, goes on, is lost, and is restored', ({ open }) => {
  test('it says which paid stake it misses, hands out no key twice, and answers old requests as before', { timeout: 400_000 }, async () => {
    const files = serviceFiles(anvil)
    const way = await open(files)
    let service = await spawnService(files.config, way.env)
    try {
      const key = (await apiKeysCreate({ config: files.config, account: 'acme', env: way.env })).key.reveal()
      const post = async (idempotencyKey: string): Promise<Response> => {
        const body = { network: 'devnet', amountEth: 32, withdrawalAddress, externalReference: idempotencyKey }
        const answer = await callService(service.url, 'POST', '/v1/ethereum/stakes', { key, idempotencyKey, body })
        expect(answer.status).toBe(201)
        return answer
      }
      const makeAll = async (names: readonly string[]) =>
        new Map(await Promise.all(names.map(async (name) => [name, await post(name)] as const)))
      const keysOf = (answers: ReadonlyMap<string, Response>) => [...answers.values()].map(({ body }) => body.depositData.pubkey as string)
      const metrics = async () => (await fetch(`${service.url}/metrics`)).text()
      const readiness = async () => (await (await fetch(`${service.url}/readyz?verbose`)).json()) as object
      const within = { timeout: 60_000, interval: 200 }
      const pay = async (stake: { unsignedTransaction: Call }) => {
        const hash = await createPayer(anvil).pay(stake.unsignedTransaction)
        await expect.poll(() => anvil.pending(), within).toEqual([])
        await anvil.mine(4)
        return hash
      }

      const before = await makeAll(['before/0', 'before/1', 'before/2'])
      const first = before.get('before/0')?.body ?? expect.fail()
      await pay(first)
      const read = async () => (await callService(service.url, 'GET', `/v1/ethereum/stakes/${first.stakeId}`, { key })).body
      await expect.poll(read, within).toMatchObject({ transaction: { status: 'confirmed' } })
      await way.backUp()
      const lost = await makeAll(['lost/0', 'lost/1', 'lost/2'])
      const paid = lost.get('lost/1') ?? expect.fail()
      const hash = await pay(paid.body)
      service.process.kill('SIGKILL')
      await service.process.exited
      await way.lose()
      await way.restore()

      service = await spawnService(files.config, way.env)
      await expect.poll(readiness, within).toMatchObject({ status: 'ready', missingStakes: { devnet: 1 } })
      await expect.poll(metrics, within).toContain('staking_service_missing_stakes{network="devnet"} 1')
      await service.process.waitForOutput(new RegExp(`"pubkey":"${paid.body.depositData.pubkey}".*was it restored from an older copy`))
      await way.page.fails('Restore', 7)
      const listed = await way.missing()
      expect(listed.code).toBe(1)
      expect(listed.stdout.trimEnd().split('\n').slice(1)).toEqual([
        expect.stringContaining(`${paid.body.depositData.pubkey}\t${withdrawalAddress}`),
      ])
      expect(listed.stdout).toContain(hash)

      for (const [name, answer] of before) expect((await post(name)).text).toBe(answer.text)
      const after = await makeAll(['after/0', 'after/1', 'after/2'])
      expect(new Set([before, lost, after].flatMap(keysOf)).size).toBe(9)
      expect((await post('lost/1')).body).toMatchObject({
        depositData: paid.body.depositData,
        transaction: { status: 'submitted', hash },
      })
      expect((await post('lost/2')).body.depositData).toEqual(lost.get('lost/2')?.body.depositData)
      await expect.poll(readiness, within).toMatchObject({ missingStakes: {} })
      expect(await way.missing()).toMatchObject({ code: 0 })
      // Nothing is left of it to dismiss.
      expect(await way.page.run('Restore', 8)).toBe('dismissed 0\n')
      expect(await way.page.run('Restore', 9)).toMatch(/\tacme\t/)
    } finally {
      await service.process.stop()
      way.page.stop()
      files.remove()
    }
  })
})

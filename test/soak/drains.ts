import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { apiKeysCreate } from '../../src/service/commands.ts'
import type { Anvil } from '../chains/anvil.ts'
import { withdrawalAddress } from '../integration/service/harness.ts'
import { serviceFiles, spawnService } from '../integration/service/processes.ts'
import { stakesPath } from './clients.ts'

/** What was seen of one end of a service under load. */
export interface DrainOutcome {
  readonly code: number | null
  readonly servedWhileEnding: number
  /** `/readyz` was 503 while it still served. */
  readonly saidUnready: boolean
  readonly toldToGoElsewhere: number
  /** Outcomes that no client may see: a reset, a cut answer, a status that it didn't deserve. */
  readonly unexpected: readonly string[]
}

/** On a busy machine the node may be too slow for the service: that is said. Who comes when it has ended is refused a connection. */
const expected = new Set(['201', '503 service-unavailable', '503 chain-unavailable', 'ECONNREFUSED'])

/** Starts a service and ends it while clients ask, again and again on the same database. @param given `databaseUrl`: undefined: the embedded database. */
export async function drains(given: { anvil: Anvil; databaseUrl: string | undefined; times: number }): Promise<readonly DrainOutcome[]> {
  const files = serviceFiles(given.anvil, { drainMs: 3_000 })
  try {
    const urlFile = join(files.folder, 'url')
    if (given.databaseUrl !== undefined) writeFileSync(urlFile, given.databaseUrl)
    const env: Record<string, string> = given.databaseUrl === undefined ? {} : { STAKING_SERVICE_DATABASE_URL_FILE: urlFile }
    const key = (await apiKeysCreate({ config: files.config, account: 'acme', env })).key.reveal()
    const outcomes: DrainOutcome[] = []
    for (let time = 0; time < given.times; time++) outcomes.push(await drain(files.config, env, key, time))
    return outcomes
  } finally {
    files.remove()
  }
}

async function drain(config: string, env: Readonly<Record<string, string>>, key: string, time: number): Promise<DrainOutcome> {
  const { process: service, url } = await spawnService(config, env)
  const seen = new Map<string, number>()
  const times = (outcome: string) => seen.get(outcome) ?? 0
  let [stopping, gone, saidUnready, count] = [false, false, false, 0]
  const clients = Array.from({ length: 8 }, async () => {
    while (!gone) {
      const outcome = await ask(url, key, `load/${time}/${count++}`)
      seen.set(outcome, times(outcome) + 1)
      if (outcome === 'ECONNREFUSED') gone = true
      // As Retry-After says.
      if (outcome.startsWith('503')) await new Promise((done) => setTimeout(done, 1_000))
    }
  })
  const watcher = (async () => {
    while (!gone) {
      const status = await fetch(`${url}/readyz`).then(
        (answer) => answer.status,
        () => undefined,
      )
      if (stopping && status === 503) saidUnready = true
      await new Promise((done) => setTimeout(done, 50))
    }
  })()
  try {
    while (times('201') < 20) await Promise.race([new Promise((done) => setTimeout(done, 20)), service.exited.then(failed)])
    const before = times('201')
    stopping = true
    const { code } = await service.stop(60_000)
    gone = true
    await Promise.all([...clients, watcher])
    return {
      code,
      servedWhileEnding: times('201') - before,
      saidUnready,
      toldToGoElsewhere: times('503 service-unavailable'),
      unexpected: [...seen.keys()].filter((outcome) => !expected.has(outcome)),
    }
  } finally {
    gone = true
    await service.stop(10_000)
  }
}

function failed(): never {
  throw new Error('the service ended by itself')
}

async function ask(url: string, key: string, idempotencyKey: string): Promise<string> {
  try {
    const answer = await fetch(url + stakesPath, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
      body: JSON.stringify({ network: 'devnet', amountEth: 32, withdrawalAddress }),
      signal: AbortSignal.timeout(100_000),
    })
    const { code = '' } = (await answer.json()) as { code?: string }
    return `${answer.status} ${code}`.trim()
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined
    return cause instanceof Error && 'code' in cause ? String(cause.code) : String(error)
  }
}

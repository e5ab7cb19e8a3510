import { randomBytes } from 'node:crypto'
import { withdrawalAddress } from '../integration/service/harness.ts'

/** What the clients know at the end. */
export interface Known {
  /** By Idempotency-Key: the body of the one answer. */
  readonly answers: ReadonlyMap<string, string>
  /** By stake: the hash that was taken. */
  readonly reported: ReadonlyMap<string, string>
}

export const stakesPath = '/v1/ethereum/stakes'
/** One in so many stakes has a hash reported. */
const reportEvery = 10
/** Longer than the service takes for any request. */
const timeoutMs = 25_000

/**
 * Clients that create stakes one after another and report hashes for some, and know no better than to ask again until they are answered.
 * @param urls Of the instances, asked in turn.
 */
export function createClients({ urls, key }: { readonly urls: readonly string[]; readonly key: string }) {
  const answers = new Map<string, string>()
  const reported = new Map<string, string>()
  const violations: string[] = []
  let [stopping, gaveUp, repeated, turn, slowestMs] = [false, false, 0, 0, 0]

  async function ask(method: string, path: string, idempotencyKey: string, body: object) {
    const answer = await fetch((urls[turn++ % urls.length] ?? '') + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    })
    return { status: answer.status, text: await answer.text() }
  }

  /** Until it succeeds, whatever happens on the way. @returns undefined when it never did */
  async function insist(method: string, path: string, idempotencyKey: string, body: object, success: number): Promise<string | undefined> {
    const begun = performance.now()
    let last = 'no attempt'
    for (let attempt = 0; !gaveUp; attempt++) {
      if (attempt > 0) repeated++
      try {
        const { status, text } = await ask(method, path, idempotencyKey, body)
        if (status === success) {
          slowestMs = Math.max(slowestMs, performance.now() - begun)
          return text
        }
        last = `${status} ${text}`
        const isPassing = status === 503 || (status === 409 && text.includes('idempotency-key-in-progress'))
        if (!isPassing) violations.push(`${method} ${path}: ${last}`)
      } catch (error) {
        // Cut, refused, or too slow: whether it took effect is not known.
        last = `${error instanceof Error ? (error.cause ?? error) : error}`
      }
      await new Promise((done) => setTimeout(done, Math.min(100 * 2 ** attempt, 1_000)))
    }
    violations.push(`${method} ${path} under ${idempotencyKey} was never answered, lastly: ${last}`)
    return undefined
  }

  /** One client, until it is told to stop. */
  async function run(number: number): Promise<void> {
    for (let count = 0; !stopping; count++) {
      const idempotencyKey = `soak/${number}/${count}`
      const body = { network: 'devnet', amountEth: 32, withdrawalAddress, externalReference: idempotencyKey }
      const first = await insist('POST', stakesPath, idempotencyKey, body, 201)
      if (first === undefined) return
      answers.set(idempotencyKey, first)
      if (count % reportEvery !== 0) continue
      const again = await insist('POST', stakesPath, idempotencyKey, body, 201)
      if (again !== undefined && again !== first) violations.push(`the answer under ${idempotencyKey} has changed`)
      const { stakeId } = JSON.parse(first) as { stakeId: string }
      const transactionHash = `0x${randomBytes(32).toString('hex')}`
      if ((await insist('PUT', `${stakesPath}/${stakeId}/submission`, `report/${idempotencyKey}`, { transactionHash }, 200)) !== undefined)
        reported.set(stakeId, transactionHash)
    }
  }

  return {
    run,
    known: { answers, reported } satisfies Known,
    violations,
    repeated: () => repeated,
    slowestMs: () => Math.round(slowestMs),
    /** No further stake is begun. */
    stop: () => {
      stopping = true
    },
    /** What is open stays open. */
    giveUp: () => {
      gaveUp = true
    },
  }
}

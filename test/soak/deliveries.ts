import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { webhookEvent } from '../../src/contract/schemas/webhooks.ts'
import { callService } from '../integration/service/harness.ts'

/** A delivery that came. */
export interface Received {
  /** The same at each attempt. */
  readonly id: string
  /** The resource and its new status; undefined where the signature doesn't hold, or the body is not what the contract says. */
  readonly news: string | undefined
}

const endpoints = '/v1/webhook-endpoints'

/** Takes whatever is delivered, and verifies it as it comes: what is old is refused. While it holds, it answers nothing. */
export async function startReceiver() {
  const received: Received[] = []
  let webhook: Webhook | undefined
  let [holds, held] = [false, Promise.withResolvers<Received>()]
  const newsOf = (text: string, headers: Record<string, string>): string | undefined => {
    try {
      const { data } = webhookEvent.parse(webhook?.verify(text, headers))
      return `${data.id} ${data.status}`
    } catch {
      return undefined
    }
  }
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of incoming) chunks.push(chunk as Buffer)
    } catch {
      // Its sender was killed: nothing was delivered.
      return
    }
    const headers = incoming.headers as Record<string, string>
    const one = { id: String(headers['webhook-id']), news: newsOf(Buffer.concat(chunks).toString(), headers) }
    received.push(one)
    if (holds) held.resolve(one)
    else outgoing.writeHead(204).end()
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  return {
    received: received as readonly Received[],
    /** From now on nothing is answered. @returns the first delivery that is not */
    hold: (): Promise<Received> => {
      holds = true
      return held.promise
    },
    release: () => {
      holds = false
      held = Promise.withResolvers()
    },
    /** Has an account's changes delivered here. @param service Where an instance is reached without faults. */
    async follow(service: () => string, key: string) {
      const made = await callService(service(), 'POST', endpoints, { key, idempotencyKey: 'the endpoint', body: { url } })
      if (made.status !== 201) throw new Error(`no webhook endpoint was made: ${made.text}`)
      const { endpointId, secret } = made.body as { endpointId: string; secret: string }
      webhook = new Webhook(secret)
      return {
        secret,
        state: async () =>
          (await callService(service(), 'GET', `${endpoints}/${endpointId}`, { key })).body as { status: string; pending: number },
      }
    },
    close: () =>
      new Promise<void>((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

/** Waits until nothing waits to be delivered. @returns what is wrong when something does after `ms`, or the endpoint was disabled */
export async function untilDelivered(state: () => Promise<{ status: string; pending: number }>, ms: number): Promise<readonly string[]> {
  const end = performance.now() + ms
  for (;;) {
    const { status, pending } = await state()
    if (status === 'enabled' && pending === 0) return []
    if (performance.now() > end) return [`webhooks were not delivered: the endpoint is ${status}, and ${pending} are pending`]
    await new Promise((done) => setTimeout(done, 500))
  }
}

/** @param expected What the account was told that it has done. @returns what is wrong: news that never came, or under two ids, and what no receiver would believe */
export function undelivered(expected: Iterable<string>, received: readonly Received[]): string[] {
  const ids = new Map<string, Set<string>>()
  for (const { id, news = '' } of received) ids.set(news, (ids.get(news) ?? new Set()).add(id))
  const forged = ids.get('')
  ids.delete('')
  return [
    ...[...(forged ?? [])].map((id) => `the delivery ${id} does not verify`),
    ...[...ids].filter(([, all]) => all.size > 1).map(([news]) => `"${news}" was delivered under several ids`),
    ...[...new Set(expected)].filter((news) => !ids.has(news)).map((news) => `"${news}" was never delivered`),
  ]
}

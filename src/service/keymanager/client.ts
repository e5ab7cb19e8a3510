import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { Agent, type Dispatcher } from 'undici'
import { z } from 'zod'
import type { Secret } from '../../lib/secret.ts'
import { addressCheck } from '../addresses.ts'

/** A validator client that doesn't take what it is given, or doesn't answer as the standard has it. */
export class KeymanagerError extends Error {
  override readonly name = 'KeymanagerError'
}

/**
 * The standard Keymanager API of validator clients (ethereum/keymanager-APIs, v1), as far as keys are pushed there. Public keys are in lower case with 0x.
 * All throw {@link KeymanagerError}.
 */
export interface Keymanager {
  /** Scheme, host and port: it names the place. */
  readonly place: string
  /** Whose keys it holds itself. */
  keystores(): Promise<ReadonlySet<string>>
  /** Whose keys it has another program sign with. Empty where it knows no such thing. */
  remoteKeys(): Promise<ReadonlySet<string>>
  /** @returns what it says of each, in their order */
  importKeystores(given: {
    readonly keystores: readonly string[]
    readonly passwords: readonly string[]
    readonly slashingProtection: string | undefined
  }): Promise<readonly { readonly status: 'imported' | 'duplicate' | 'error'; readonly message: string }[]>
  /** Returns once the client shows it, where it shows any: what it says it has taken is no proof. */
  setFeeRecipient(pubkey: string, address: string): Promise<void>
  setGasLimit(pubkey: string, gasLimit: string): Promise<void>
  close(): Promise<void>
}

export interface KeymanagerOptions {
  /** https, or http on this machine alone. */
  readonly url: string
  readonly token: Secret
  /** PEM of the authority that the server's certificate is from; default: those of the system. */
  readonly ca?: string
  /** http to other machines too: whoever listens on the way gets the keys. */
  readonly allowHttp?: boolean
  readonly timeoutMs?: number
}

const pubkey = z
  .string()
  .regex(/^0x[0-9a-fA-F]{96}$/)
  .transform((text) => text.toLowerCase())
const keystoreList = z.object({ data: z.array(z.object({ validating_pubkey: pubkey })) })
const remoteList = z.object({ data: z.array(z.object({ pubkey })).nullish() })
const imported = z.object({
  data: z.array(z.object({ status: z.enum(['imported', 'duplicate', 'error']), message: z.string().optional() })),
})

const feeRecipient = z.object({ data: z.object({ ethaddress: z.string() }) })
const refusal = z.object({ message: z.string() })

const maxBodyBytes = 16 * 1024 * 1024
const loopback = addressCheck(['127.0.0.0/8', '::1'])
const isThisMachine = (hostname: string): boolean => {
  const host = hostname.replace(/^\[|\]$/g, '')
  return isIP(host) === 0 ? host === 'localhost' : loopback(host)
}

/** Statuses of a client that doesn't have an operation. */
const unknownOperation: ReadonlySet<number> = new Set([404, 405, 501])

export function createKeymanager(options: KeymanagerOptions): Keymanager {
  const { token, ca, allowHttp = false, timeoutMs = 120_000 } = options
  const url = URL.parse(options.url)
  if (url === null || !/^https?:$/.test(url.protocol)) throw new KeymanagerError('the URL of the validator client must be an http(s) URL')
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new KeymanagerError('the URL of the validator client must hold no user name, password, query or fragment')
  if (url.protocol === 'http:' && !allowHttp && !isThisMachine(url.hostname))
    throw new KeymanagerError('the URL of the validator client must be https: over http, whoever listens on the way gets the keys')
  const dispatcher: Dispatcher = new Agent({ connections: 2, connect: { timeout: 10_000, ...(ca === undefined ? {} : { ca }) } })
  const prefix = url.pathname.replace(/\/+$/, '')

  async function call(method: 'GET' | 'POST', path: string, body?: object): Promise<{ status: number; json: unknown }> {
    const what = `${method} ${path.replace(/0x[0-9a-f]{96}/, '{pubkey}')}`
    let answer: { status: number; text: string }
    try {
      const response = await dispatcher.request({
        origin: url?.origin ?? '',
        path: `${prefix}${path}`,
        method,
        headers: {
          accept: 'application/json',
          authorization: `Bearer ${token.reveal()}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        body: body === undefined ? null : JSON.stringify(body),
        signal: AbortSignal.timeout(timeoutMs),
      })
      answer = { status: response.statusCode, text: await bounded(response.body) }
    } catch (error) {
      if (error instanceof KeymanagerError) throw error
      throw new KeymanagerError(`${what}: the validator client could not be reached (${codeOf(error)})`)
    }
    if (answer.status === 401 || answer.status === 403)
      throw new KeymanagerError(`${what}: the validator client refuses the token (${answer.status})`)
    return { status: answer.status, json: parsed(answer.text) }
  }

  /** @throws KeymanagerError unless the answer is a success of this form */
  async function read<T>(schema: z.ZodType<T>, method: 'GET' | 'POST', path: string, body?: object): Promise<T> {
    const { status, json } = await call(method, path, body)
    const result = status === 200 ? schema.safeParse(json) : undefined
    if (result?.success === true) return result.data
    throw new KeymanagerError(`${method} ${path}: the validator client answered ${status}, not as the Keymanager API has it`)
  }

  async function set(path: string, body: object, what: string): Promise<void> {
    const { status, json } = await call('POST', path, body)
    if (status === 202 || status === 200) return
    const said = refusal.safeParse(json).data?.message
    throw new KeymanagerError(
      `the validator client holds the keys, and does not take the ${what} (${status}${said === undefined ? '' : `: ${printable(said)}`})`,
    )
  }

  return {
    place: `keymanager ${url.origin}${prefix}`,
    keystores: async () => {
      const { data } = await read(keystoreList, 'GET', '/eth/v1/keystores')
      return new Set(data.map((one) => one.validating_pubkey))
    },
    async remoteKeys() {
      const { status, json } = await call('GET', '/eth/v1/remotekeys')
      if (unknownOperation.has(status)) return new Set()
      const result = status === 200 ? remoteList.safeParse(json) : undefined
      if (result?.success !== true)
        throw new KeymanagerError(`GET /eth/v1/remotekeys: the validator client answered ${status}, not as the Keymanager API has it`)
      return new Set((result.data.data ?? []).map((one) => one.pubkey))
    },
    async importKeystores({ keystores, passwords, slashingProtection }) {
      const { data } = await read(imported, 'POST', '/eth/v1/keystores', {
        keystores,
        passwords,
        ...(slashingProtection === undefined ? {} : { slashing_protection: slashingProtection }),
      })
      if (data.length !== keystores.length)
        throw new KeymanagerError(`the validator client was given ${keystores.length} keystores and speaks of ${data.length}`)
      return data.map(({ status, message = '' }) => ({ status, message: printable(message) }))
    },
    async setFeeRecipient(key, ethaddress) {
      const path = `/eth/v1/validator/${key}/feerecipient`
      await set(path, { ethaddress }, 'fee recipient')
      const { status, json } = await call('GET', path)
      if (unknownOperation.has(status)) return
      const shown = status === 200 ? feeRecipient.safeParse(json).data?.data.ethaddress : undefined
      if (shown?.toLowerCase() !== ethaddress.toLowerCase())
        throw new KeymanagerError(
          `the validator client holds the keys, has taken the fee recipient of ${key}, and does not show it (${status})`,
        )
    },
    setGasLimit: (key, gas_limit) => set(`/eth/v1/validator/${key}/gas_limit`, { gas_limit }, 'gas limit'),
    close: () => dispatcher.close(),
  }
}

async function bounded(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.byteLength
    if (size > maxBodyBytes) throw new KeymanagerError('the answer of the validator client is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A client's own words, for the one who called the command: one line, and no keystore that it might quote. */
const printable = (text: string): string => text.replace(/[^\x20-\x7e]+/g, ' ').slice(0, 160)

function codeOf(error: unknown): string {
  for (let current = error, depth = 0; current instanceof Error && depth < 4; current = current.cause, depth++) {
    const code = (current as { code?: unknown }).code
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,63}$/.test(code)) return code
    if (current.name === 'TimeoutError') return 'no answer in time'
  }
  return 'unknown error'
}

/** The token's file, as validator clients write it: some put the address of their page before it. */
export async function readToken(file: string, asSecret: (text: string) => Secret): Promise<Secret> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new KeymanagerError(`the token file ${file} cannot be read (${error.code ?? 'unknown error'})`)
  })
  const lines = text.split(/\r?\n/).filter((line) => line !== '')
  const token = lines.at(-1)?.trim() ?? ''
  if (!/^[!-~]{8,4096}$/.test(token)) throw new KeymanagerError(`${file} does not hold a token: one line of printable characters`)
  return asSecret(token)
}

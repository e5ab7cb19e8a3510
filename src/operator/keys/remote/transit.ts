import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import type { SolanaAddress } from '../../../chains/solana/addresses.ts'
import type { Clock } from '../../../lib/clock.ts'
import { Secret } from '../../../lib/secret.ts'
import { shareCall } from '../../../lib/shared-call.ts'
import { KeyError } from '../../ports.ts'
import { isPassing, jsonOf, type RemoteAnswer, type RemoteHttp } from './remote-http.ts'
import type { SolanaSigner } from './remote-keys.ts'

export type TransitAuth =
  /** A file that somebody else renews, an agent say. It is read for each request. */
  | { readonly tokenFile: string }
  /** Logs in with the projected token of the service account. */
  | { readonly kubernetes: { readonly role: string; readonly mount: string; readonly tokenFile: string } }

const loginAnswer = z.object({ auth: z.object({ client_token: z.string().min(1).max(16_384), lease_duration: z.int().min(0) }) })
const signAnswer = z.object({ data: z.object({ signature: z.string() }) })
const never = new AbortController().signal

/** Solana by the Transit engine of Vault or OpenBao, with a key of type ed25519. The token needs `update` on `<mount>/sign/<key>`, and nothing else. */
export function createTransit({
  name,
  url,
  mount,
  key,
  keyVersion,
  namespace,
  address,
  auth,
  http,
  clock,
}: {
  readonly name: string
  readonly url: URL
  readonly mount: string
  readonly key: string
  /** Another version is another address. */
  readonly keyVersion: number
  readonly namespace?: string | undefined
  readonly address: SolanaAddress
  readonly auth: TransitAuth
  readonly http: RemoteHttp
  readonly clock: Clock
}): SolanaSigner {
  const at = (path: string): URL => new URL(`${url.pathname.replace(/\/$/, '')}/v1/${path}`, url)
  const headers = { 'content-type': 'application/json', ...(namespace === undefined ? {} : { 'x-vault-namespace': namespace }) }
  let session: { readonly token: Secret; readonly renewAt: number } | undefined

  async function tokenIn(file: string): Promise<Secret> {
    const text = (await readFile(file, 'utf8').catch(() => '')).trim()
    if (!/^[\x21-\x7e]{1,16384}$/.test(text))
      throw new KeyError('unavailable', `The remote signer ${name} can't be asked: ${file} holds no token. Mount what holds it.`)
    return new Secret(text)
  }

  /** Long before the token ends: two thirds of its life. */
  const login = shareCall(async () => {
    if (!('kubernetes' in auth)) return
    const { role, mount: path, tokenFile } = auth.kubernetes
    const jwt = await tokenIn(tokenFile)
    const begun = clock.monotonicMs()
    const answer = await http.send(
      { method: 'POST', url: at(`auth/${path}/login`), headers, body: JSON.stringify({ role, jwt: jwt.reveal() }) },
      never,
    )
    if (answer.status !== 200) throw failure(answer, `the login with the role ${role}`)
    const parsed = loginAnswer.safeParse(jsonOf(name, answer))
    if (!parsed.success) throw notIts()
    const { client_token, lease_duration } = parsed.data.auth
    session = {
      token: new Secret(client_token),
      renewAt: lease_duration === 0 ? Number.POSITIVE_INFINITY : begun + (lease_duration * 2_000) / 3,
    }
  })

  async function tokenNow(signal: AbortSignal): Promise<Secret> {
    if ('tokenFile' in auth) return tokenIn(auth.tokenFile)
    if (session === undefined || clock.monotonicMs() >= session.renewAt) {
      const before = session
      try {
        await login(signal)
      } catch (error) {
        signal.throwIfAborted()
        // The old one has a third of its life left: where it has not, it is refused, and said.
        if (before === undefined) throw error
      }
    }
    if (session === undefined) throw notIts()
    return session.token
  }

  const notIts = (): KeyError =>
    new KeyError('unavailable', `The remote signer ${name} answered what is not Vault's protocol: is its URL right? It is asked again.`)

  const failure = ({ status, retryAfterMs }: RemoteAnswer, what: string): KeyError =>
    // 472, 473: a standby that doesn't forward; 503: sealed.
    isPassing(status) || status === 472 || status === 473
      ? new KeyError(
          'unavailable',
          `The remote signer ${name} answered ${status}${status === 503 ? ' (sealed, or starting)' : ''}. It is asked again.`,
          {
            retryAfterMs,
          },
        )
      : new KeyError(
          'refused',
          `The remote signer ${name} refused ${what} (${status}): look at the key, the token and its policy, and at the server's audit log.`,
        )

  async function ask(bytes: Uint8Array, signal: AbortSignal): Promise<RemoteAnswer> {
    const token = await tokenNow(signal)
    return http.send(
      {
        method: 'POST',
        url: at(`${mount}/sign/${key}`),
        headers: { ...headers, 'x-vault-token': token.reveal() },
        body: JSON.stringify({ input: Buffer.from(bytes).toString('base64'), key_version: keyVersion }),
      },
      signal,
    )
  }

  return {
    address,
    async sign(bytes, signal) {
      let answer = await ask(bytes, signal)
      if (answer.status === 403 && 'kubernetes' in auth) {
        // The token may have been revoked: with a new one, once.
        session = undefined
        answer = await ask(bytes, signal)
      }
      if (answer.status !== 200) throw failure(answer, `to sign with ${mount}/${key}`)
      const parsed = signAnswer.safeParse(jsonOf(name, answer))
      if (!parsed.success) throw notIts()
      const match = /^[a-z]+:v[0-9]{1,9}:([A-Za-z0-9+/]{86}==)$/.exec(parsed.data.data.signature)
      // Looked at by who asked: it verifies, or not.
      return new Uint8Array(Buffer.from(match?.[1] ?? '', 'base64'))
    },
  }
}

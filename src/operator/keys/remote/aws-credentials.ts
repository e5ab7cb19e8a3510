import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import type { Clock } from '../../../lib/clock.ts'
import { shareCall } from '../../../lib/shared-call.ts'
import { KeyError } from '../../ports.ts'
import { jsonOf, type RemoteHttp } from './remote-http.ts'

export interface AwsCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string | undefined
}

export interface AwsCredentialsSource {
  get(signal: AbortSignal): Promise<AwsCredentials>
  /** They were not taken: the next are fetched. */
  forget(): void
}

/** What is so near to its end is renewed, in ms; where that fails, it is used up to its end. */
const EARLY_MS = 300_000
const never = new AbortController().signal

const containerAnswer = z.object({
  AccessKeyId: z.string().min(1),
  SecretAccessKey: z.string().min(1),
  Token: z.string().min(1),
  Expiration: z.iso.datetime({ offset: true }),
})

interface Fetched extends AwsCredentials {
  /** Unix ms; undefined for those without an end. */
  readonly expiresAt: number | undefined
}

/**
 * AWS credentials from where Kubernetes gives them, by the environment variables of the AWS SDKs: a web identity (IRSA: AWS_WEB_IDENTITY_TOKEN_FILE and
 * AWS_ROLE_ARN), a container's (EKS Pod Identity: AWS_CONTAINER_CREDENTIALS_FULL_URI), or fixed ones (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
 * AWS_SESSION_TOKEN), which come first. Not the node's own (instance metadata), which every pod of the node has, and no files in a home folder.
 */
export function createAwsCredentials({
  name,
  region,
  http,
  clock,
  env = process.env,
}: {
  readonly name: string
  readonly region: string
  readonly http: RemoteHttp
  readonly clock: Clock
  readonly env?: Readonly<Record<string, string | undefined>>
}): AwsCredentialsSource {
  let kept: Fetched | undefined
  const now = () => clock.now().getTime()
  const leftMs = () => (kept === undefined ? 0 : kept.expiresAt === undefined ? Number.POSITIVE_INFINITY : kept.expiresAt - now())

  const fetchOnce = shareCall(async () => {
    kept = await source()
  })

  function source(): Promise<Fetched> | Fetched {
    const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: token } = env
    if (id && secret) return { accessKeyId: id, secretAccessKey: secret, sessionToken: token || undefined, expiresAt: undefined }
    if (env.AWS_WEB_IDENTITY_TOKEN_FILE && env.AWS_ROLE_ARN) return byWebIdentity(env.AWS_WEB_IDENTITY_TOKEN_FILE, env.AWS_ROLE_ARN)
    if (env.AWS_CONTAINER_CREDENTIALS_FULL_URI) return byContainer(env.AWS_CONTAINER_CREDENTIALS_FULL_URI)
    throw unavailable(
      'has no AWS credentials: give the operator’s service account a role (IRSA or EKS Pod Identity), or the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    )
  }

  const unavailable = (what: string): KeyError => new KeyError('unavailable', `The remote signer ${name} ${what}. It is asked again.`)

  async function token(file: string): Promise<string> {
    const text = (await readFile(file, 'utf8').catch(() => '')).trim()
    if (!/^[\x21-\x7e]{1,16384}$/.test(text)) throw unavailable(`has no AWS credentials: ${file} holds no token`)
    return text
  }

  /** AssumeRoleWithWebIdentity of the region's STS, which answers XML. The request needs no signature: the token is what counts. */
  async function byWebIdentity(file: string, role: string): Promise<Fetched> {
    const body = new URLSearchParams({
      Action: 'AssumeRoleWithWebIdentity',
      Version: '2011-06-15',
      RoleArn: role,
      RoleSessionName: env.AWS_ROLE_SESSION_NAME || 'staking-operator',
      WebIdentityToken: await token(file),
    })
    const suffix = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com'
    const { status, text } = await http.send(
      {
        method: 'POST',
        url: new URL(env.AWS_ENDPOINT_URL_STS || `https://sts.${region}.${suffix}/`),
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: body.toString(),
      },
      never,
    )
    const code = field(text, 'Code')
    if (status !== 200)
      throw unavailable(
        `has no AWS credentials: STS refused the web identity (${status}${code !== undefined && /^[A-Za-z]{1,64}$/.test(code) ? `, ${code}` : ''}); look at the role's trust policy and at the service account's annotation`,
      )
    const [id, secret, session, expiration] = ['AccessKeyId', 'SecretAccessKey', 'SessionToken', 'Expiration'].map((one) =>
      field(text, one),
    )
    const expiresAt = Date.parse(expiration ?? '')
    if (id === undefined || secret === undefined || session === undefined || Number.isNaN(expiresAt))
      throw unavailable('has no AWS credentials: STS answered something else')
    return { accessKeyId: id, secretAccessKey: secret, sessionToken: session, expiresAt }
  }

  async function byContainer(uri: string): Promise<Fetched> {
    const url = URL.canParse(uri) ? new URL(uri) : undefined
    if (url === undefined || !(url.protocol === 'https:' || (url.protocol === 'http:' && containerHosts.has(url.hostname))))
      throw unavailable('has no AWS credentials: AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor of this machine')
    const file = env.AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE
    const authorization = file ? await token(file) : env.AWS_CONTAINER_AUTHORIZATION_TOKEN
    const answer = await http.send({ method: 'GET', url, headers: authorization ? { authorization } : {} }, never)
    const found = answer.status === 200 ? containerAnswer.safeParse(jsonOf(name, answer)) : undefined
    if (found?.success !== true)
      throw unavailable(
        `has no AWS credentials: the agent of EKS Pod Identity answered ${answer.status}; look at the association of the service account`,
      )
    const { AccessKeyId, SecretAccessKey, Token, Expiration } = found.data
    return { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: Token, expiresAt: Date.parse(Expiration) }
  }

  return {
    async get(signal) {
      if (leftMs() < EARLY_MS) {
        try {
          await fetchOnce(signal)
        } catch (error) {
          signal.throwIfAborted()
          if (leftMs() <= 0) throw error
        }
      }
      if (kept === undefined) throw unavailable('has no AWS credentials')
      return kept
    },
    forget() {
      kept = undefined
    },
  }
}

/** This machine, and where the agents of ECS and EKS listen. */
const containerHosts = new Set(['127.0.0.1', 'localhost', '[::1]', '169.254.170.2', '169.254.170.23', '[fd00:ec2::23]'])

/** The text of an element that holds nothing else, of an XML answer of AWS. */
const field = (xml: string, element: string): string | undefined => new RegExp(`<${element}>([^<&]+)</${element}>`).exec(xml)?.[1]

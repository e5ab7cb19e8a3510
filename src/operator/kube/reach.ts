import type { Clock } from '../../lib/clock.ts'
import { ConfigError } from '../../lib/config-error.ts'
import { createBackoff } from './backoff.ts'
import type { Cluster } from './cluster.ts'
import { isTransportError, KubeError } from './errors.ts'
import type { KubeLog } from './log.ts'

/** Whether the API server has been reached since this process started. */
export interface Reach {
  /** Why it is not, for people; undefined once it is. */
  trouble(): string | undefined
  /** Waits until it has answered. @returns false when the signal aborted first. @throws ConfigError for what no waiting mends. */
  reached(signal: AbortSignal): Promise<boolean>
}

export interface ReachOptions {
  readonly cluster: Cluster
  /** A read that the process needs anyway. That there is no such object is an answer. */
  readonly probe: (signal: AbortSignal) => Promise<unknown>
  readonly clock: Clock
  readonly log: KubeLog
  readonly random?: () => number
}

const firstWaitMs = 500
const longestWaitMs = 10_000
const tellEveryMs = 60_000
/** A server that is just starting may refuse what it will take a moment later. */
const refusalsToBelieve = 3

/**
 * Waits for the API server at the start: as long as it is down, and with a line each minute. What it refuses for good (the credentials, or we its certificate)
 * is a mistake of the configuration, and told as one.
 */
export function createReach({ cluster, probe, clock, log, random }: ReachOptions): Reach {
  let trouble: string | undefined = 'it has not been asked yet'

  const failure = (signal: AbortSignal): Promise<Trouble | undefined> =>
    probe(signal).then(
      () => undefined,
      (error: unknown) => troubleOf(error, cluster.host),
    )

  return {
    trouble: () => (trouble === undefined ? undefined : `the API server is not reached: ${trouble}`),
    async reached(signal) {
      const backoff = createBackoff({ baseMs: firstWaitMs, maxMs: longestWaitMs, random })
      let toldAt: number | undefined
      let refusals = 0
      while (!signal.aborted) {
        const found = await failure(signal)
        if (signal.aborted) break
        trouble = found?.says
        if (found === undefined) {
          if (toldAt !== undefined) log.info({ cluster: cluster.name }, 'the API server answers')
          return true
        }
        refusals = found.isFinal ? refusals + 1 : 0
        if (refusals === refusalsToBelieve) throw new ConfigError(`${cluster.name}: ${found.says}`)
        const now = clock.monotonicMs()
        if (!found.isFinal && (toldAt === undefined || now - toldAt >= tellEveryMs)) {
          log.warn({ cluster: cluster.name, reason: found.says }, 'the API server is not reached: waiting for it')
          toldAt = now
        }
        await clock.sleep(backoff.next(), signal).catch(() => undefined)
      }
      return false
    },
  }
}

interface Trouble {
  readonly says: string
  /** Waiting does not help: a person must change the configuration. */
  readonly isFinal: boolean
}

/** What went wrong and what to do; undefined where the answer is one. */
function troubleOf(error: unknown, host: string): Trouble | undefined {
  if (isTransportError(error)) return unreachable(error.code, error.message, host)
  if (!(error instanceof KubeError)) return { says: error instanceof Error ? error.message : String(error), isFinal: false }
  if (error.status === 404 && error.reason !== '') return undefined
  if (error.status === 401)
    return {
      says: 'the API server refuses the credentials (401): give this user a new token or certificate, or name another context',
      isFinal: true,
    }
  if (error.status === 403) return { says: `${error.message} (403): give it the rights of the chart`, isFinal: false }
  if (error.status === 400)
    return {
      says: 'the server does not take the request for one (400): is its URL https, and its port that of the API server?',
      isFinal: true,
    }
  if (error.reason === '' || error.reason === 'NotJson')
    return { says: `what answers is no Kubernetes API server (${error.status}): check host, port and path of its URL`, isFinal: false }
  return { says: error.message, isFinal: false }
}

/** Codes of OpenSSL's verification, as Node names them, for a chain that does not end in the authority that was named. */
const foreignChain = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'INVALID_CA',
])

function unreachable(code: string, message: string, host: string): Trouble {
  if (foreignChain.has(code))
    return {
      says: `the server's certificate is not from the authority that is named (${code}): put the CA of this cluster into certificate-authority`,
      isFinal: true,
    }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return {
      says: `the server's certificate is not for ${host} (${code}): name the server as its certificate does, or set tls-server-name`,
      isFinal: true,
    }
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'EPROTO')
    return { says: `the server speaks no TLS (${code}): check the port, and whether the URL is http`, isFinal: true }
  if (/^ERR_SSL_.*ALERT/.test(code))
    return { says: `the server refuses the client certificate (${code}): give this user a certificate of this cluster`, isFinal: true }
  // The client's own: the message says which file or program.
  if (code === 'CREDENTIALS' || code === 'PROXY' || code === 'NO_CLUSTER') return { says: message, isFinal: true }
  if (code === 'PLUGIN') return { says: message, isFinal: false }
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return { says: `the name ${host} is not known (${code})`, isFinal: false }
  return { says: `it does not answer (${code})`, isFinal: false }
}

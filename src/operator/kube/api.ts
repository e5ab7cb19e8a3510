import type { Clock } from '../../lib/clock.ts'
import { inSpan } from '../../lib/tracing.ts'
import type { ApiRequest, KubeCaller, Verb } from './caller.ts'
import { type CredentialSource, createCredentials } from './credentials.ts'
import { KubeError, kubeError } from './errors.ts'
import type { KubeLog } from './log.ts'
import type { KubeObject } from './objects.ts'
import { createResourceClient, type ResourceClient, type ResourceClientOptions, type ResourceDefinition } from './resource-client.ts'
import { createRevisions, type EtcdSetBack } from './revisions.ts'
import { type Answer, createTransport } from './transport.ts'

export interface KubeApi extends KubeCaller {
  resource<T extends KubeObject>(definition: ResourceDefinition, options?: Pick<ResourceClientOptions, 'kept'>): ResourceClient<T>
  /** Ends all connections, watches included. */
  close(): Promise<void>
}

export type KubeApiOptions = CredentialSource & {
  readonly clock: Clock
  readonly userAgent: string
  /** How long an answer may take, ms. Watches are bound to it only until they start. */
  readonly requestTimeoutMs?: number
  readonly log?: KubeLog
  /** How old a reading of token and CA files may get, ms. */
  readonly credentialRefreshMs?: number
  /** The server answers as of an earlier moment than it did before (see revisions.ts): this process must end. */
  readonly onSetBack?: (error: EtcdSetBack) => void
  /** For metrics, after each request (for a watch: when it ends). The status is 0 when there was no answer. */
  readonly onRequest?: (verb: Verb, resource: string, status: number, ms: number) => void
}

/** A thin REST client: JSON over one shared pool of connections. It retries nothing but a 401 with renewed credentials: callers know what a repeat means. */
export function createKubeApi(options: KubeApiOptions): KubeApi {
  const { clock, userAgent, requestTimeoutMs = 30_000, onRequest, log, credentialRefreshMs } = options
  const credentials = createCredentials({
    source: options,
    clock,
    ...(log && { log }),
    ...(credentialRefreshMs !== undefined && { refreshMs: credentialRefreshMs }),
  })
  const revisions = createRevisions(options.onSetBack)
  const transport = createTransport({ credentials, requestTimeoutMs, userAgent })

  const exchange = (request: ApiRequest, onData: ((chunk: Buffer) => void) | undefined, signal: AbortSignal): Promise<Answer> =>
    isWrite(request)
      ? inSpan(
          `kubernetes ${request.verb} ${request.resource}`,
          () => ({ kind: 'client', isPart: true, attributes: { 'k8s.verb': request.verb, 'k8s.resource': request.resource } }),
          async (span) => {
            const answer = await ask(request, onData, signal)
            span.set({ 'http.response.status_code': answer.status })
            return answer
          },
        )
      : ask(request, onData, signal)

  async function ask(request: ApiRequest, onData: ((chunk: Buffer) => void) | undefined, signal: AbortSignal): Promise<Answer> {
    const startedAt = clock.monotonicMs()
    let status = 0
    try {
      const answer = await (onData === undefined ? transport.request(request, signal) : transport.stream(request, onData, signal))
      status = answer.status
      if (status >= 200 && status < 300) return answer
      throw kubeError(status, parseLoosely(answer.text), `${request.verb} ${request.resource}`, answer.retryAfter)
    } finally {
      onRequest?.(request.verb, request.resource, status, clock.monotonicMs() - startedAt)
    }
  }

  async function measured<T>(request: ApiRequest, signal: AbortSignal): Promise<{ value: T; bytes: number }> {
    const { text, bytes } = await exchange(request, undefined, signal)
    try {
      return { value: JSON.parse(text) as T, bytes }
    } catch {
      throw new KubeError(200, 'NotJson', `${request.verb} ${request.resource}: the answer is not JSON`)
    }
  }

  const caller: KubeCaller = {
    measured,
    call: async <T>(request: ApiRequest, signal: AbortSignal) => (await measured<T>(request, signal)).value,
    stream: async (request, onData, signal) => {
      await exchange(request, onData, signal)
    },
  }

  return {
    ...caller,
    resource: (definition, given) => createResourceClient(caller, definition, { ...given, revisions }),
    close: transport.close,
  }
}

const isWrite = ({ verb }: ApiRequest): boolean => verb === 'create' || verb === 'update' || verb === 'patch' || verb === 'delete'

function parseLoosely(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

import type { TransportRequest } from './transport.ts'

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete'

export interface ApiRequest extends TransportRequest {
  readonly verb: Verb
  /** The plural, for metrics; `/readyz` and the like may give their path. */
  readonly resource: string
}

/** What a resource client needs of the API server. */
export interface KubeCaller {
  /** Sends and parses the JSON answer. @throws KubeError for a refusal, KubeTransportError when there was no answer, the signal's reason when aborted. */
  call<T>(request: ApiRequest, signal: AbortSignal): Promise<T>
  /** As `call`, with the length of the answer. */
  measured<T>(request: ApiRequest, signal: AbortSignal): Promise<{ readonly value: T; readonly bytes: number }>
  /** Sends and passes on the body as it comes, until the server ends it. Throws as `call` does, and whatever `onData` throws. */
  stream(request: ApiRequest, onData: (chunk: Buffer) => void, signal: AbortSignal): Promise<void>
}

/** The `error` of a JSON-RPC answer. `data` is the node's own: it may hold anything. */
export interface NodeError {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/**
 * Why a call gave no result. `node`: the node answered with an error. `refused`: it does not serve the method, or not to us (-32601, or 401, 402, 403
 * as a status or as an error's code). `too-large`: more bytes than allowed. `timeout` and `no-answer` (reset, 5xx, HTML, rate limit, another shape):
 * nothing is known. The message holds neither the URL, which often is a credential, nor the answer.
 */
export type RpcFailureKind = 'node' | 'refused' | 'too-large' | 'timeout' | 'no-answer'
export class RpcFailure extends Error {
  override readonly name = 'RpcFailure'
  readonly kind: RpcFailureKind
  readonly node: NodeError | undefined
  readonly retryAfterMs: number | undefined
  /** Of `node` and `refused`. */
  readonly method: string | undefined
  /** Of `refused`: 401, 402 or 403, as a status or as the code of an error, where it was one of these. */
  readonly denied: number | undefined
  /** It was answered with the status 404: nothing is served under this URL, or not this. */
  readonly isNotFound: boolean
  constructor(
    kind: RpcFailureKind,
    message: string,
    more: {
      node?: NodeError | undefined
      retryAfterMs?: number | undefined
      method?: string | undefined
      denied?: number | undefined
      isNotFound?: boolean
    } = {},
  ) {
    super(message)
    this.kind = kind
    this.node = more.node
    this.retryAfterMs = more.retryAfterMs
    this.method = more.method
    this.denied = more.denied
    this.isNotFound = more.isNotFound === true
  }
}

/** Codes of JSON-RPC 2.0 for what a node refuses for good: no such method, or not with these parameters. */
const lastingCodes: ReadonlySet<number> = new Set([-32601, -32602])
/**
 * Whether the node would refuse the same call again: it does not serve the method, or not to us, or not with these parameters. `codes`: those of the chain's
 * own nodes that say so, besides JSON-RPC's.
 */
export const isLastingRefusal = ({ kind, node }: RpcFailure, codes: ReadonlySet<number> = new Set()): boolean =>
  kind === 'refused' || (node !== undefined && (lastingCodes.has(node.code) || codes.has(node.code)))

import { stringify } from 'lossless-json'

/** A JSON-RPC error, as Agave's RPC server gives it. */
export class RpcFault extends Error {
  override readonly name = 'RpcFault'
  readonly code: number
  readonly data: unknown
  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}

export const invalidParams = (message: string): RpcFault => new RpcFault(-32602, message)

/** JSON in which bigints are plain integers, as u64 are in the real answers. */
export const toJson = (value: unknown): string => stringify(value) ?? 'null'

export interface RpcRequest {
  readonly jsonrpc: '2.0'
  readonly id: unknown
  readonly method: string
  readonly params: readonly unknown[]
}

/** A request, or undefined for what is none. */
export function readRequest(value: unknown): RpcRequest | undefined {
  if (value === null || typeof value !== 'object' || !('method' in value) || typeof value.method !== 'string') return undefined
  const params = 'params' in value ? value.params : []
  if (params !== undefined && !Array.isArray(params)) return undefined
  return { jsonrpc: '2.0', id: 'id' in value ? value.id : null, method: value.method, params: (params ?? []) as readonly unknown[] }
}

/** Fields of the object that most methods take last. */
export const optionsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : {}

import { RpcFailure } from '../../lib/json-rpc.ts'
import type { DepositNode } from './deposit-node.ts'
import type { RawLog } from './rpc-formats.ts'

export interface LogChunk {
  readonly from: bigint
  readonly to: bigint
  readonly logs: readonly RawLog[]
}

export type LogReader = ReturnType<typeof createLogReader>

/**
 * Reads logs of a long range in chunks. Every provider has its own limits (blocks, results, bytes, seconds) and tells them in its own words, so
 * the chunk is halved whenever a range is refused, down to one block, and doubled after a while of success. The size is kept between reads.
 */
export function createLogReader({ initial = 10_000n, largest = 50_000n }: { readonly initial?: bigint; readonly largest?: bigint } = {}) {
  let size = initial
  let successes = 0
  return {
    /** Chunks from `from` to `to`, in order. None reaches over `boundary`: a chunk is before or after it. */
    async *read(node: Pick<DepositNode, 'logs'>, from: bigint, to: bigint, boundary: bigint): AsyncGenerator<LogChunk> {
      let next = from
      while (next <= to) {
        const last = next <= boundary ? min(to, boundary) : to
        const end = min(next + size - 1n, last)
        let logs: readonly RawLog[]
        try {
          logs = await node.logs(next, end)
        } catch (error) {
          if (end === next || !mayBeTooMuch(error)) {
            // It wasn't the size: the next node is not asked in small steps for that.
            size = max(size, initial)
            throw error
          }
          size = max((end - next + 1n) / (isTimeout(error) ? 8n : 2n), 1n)
          successes = 0
          continue
        }
        yield { from: next, to: end, logs }
        next = end + 1n
        successes += 1
        if (successes >= 16 && size < largest) {
          size = min(size * 2n, largest)
          successes = 0
        }
      }
    },
  }
}

const isTimeout = (error: unknown): boolean => error instanceof RpcFailure && error.kind === 'timeout'

/** Whether a smaller range may help: not when the node is gone, or wants fewer calls. */
function mayBeTooMuch(error: unknown): boolean {
  if (!(error instanceof RpcFailure)) return false
  if (error.kind === 'too-large' || error.kind === 'timeout') return true
  return (
    error.kind === 'node' && !/rate|per second|too many requests|daily|quota|unauthori[sz]ed|forbidden/i.test(error.node?.message ?? '')
  )
}

const min = (a: bigint, b: bigint): bigint => (a < b ? a : b)
const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)

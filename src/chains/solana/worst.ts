import { type NodeFailure, someMayAnswerMs, tellEach } from '../nodes/together.ts'
import { SolanaError, type SolanaErrorCode } from './chain.ts'
import { plainMessage } from './rpc-errors.ts'

/** What several nodes' failures mean together. */
export type Worst = (failures: readonly NodeFailure<SolanaError>[]) => SolanaError

/** What is wrong with nodes, and says nothing of the matter. */
const ofNodes: ReadonlySet<SolanaErrorCode> = new Set([
  'wrong-cluster',
  'access-denied',
  'unavailable',
  'node-behind',
  'no-history',
  'rejected',
])

/** Of nodes that were asked one after the other: what a person must act on, what may pass, and last what would be refused again. */
export const createWorst =
  (network: string): Worst =>
  (failures) =>
    chosen(failures, network, ({ code, isLasting }) =>
      code === 'wrong-cluster' ? 0 : code === 'access-denied' ? 1 : 2 + Number(code === 'rejected') + Number(isLasting),
    )

/** A lagging node may not know the blockhash yet. */
const saysLittle: readonly SolanaErrorCode[] = [
  'no-history',
  'rejected',
  'blockhash-not-found',
  'node-behind',
  'wrong-cluster',
  'access-denied',
  'unavailable',
]
/** Of nodes that were all asked at once: the one that says most about the transaction. */
export const createWorstOfAll =
  (network: string): Worst =>
  (failures) =>
    chosen(failures, network, ({ code, isLasting }) => saysLittle.indexOf(code) + (isLasting ? 0.5 : 0))

function chosen(failures: readonly NodeFailure<SolanaError>[], network: string, rank: (error: SolanaError) => number): SolanaError {
  const [main] = failures.toSorted((a, b) => rank(a.error) - rank(b.error))
  if (main === undefined) return new SolanaError('unavailable', plainMessage('unavailable'))
  const { code, isLasting, retryAfterMs } = main.error
  const told = ofNodes.has(code) ? tellEach(failures, { network, brief }) : undefined
  if (told === undefined) return main.error
  const mayPass = failures.some(({ error }) => passing.has(error.code) || (error.code === 'rejected' && !error.isLasting))
  const again = code === 'access-denied' && mayPass ? someMayAnswerMs : retryAfterMs
  return new SolanaError(code, told, { retryAfterMs: again, isLasting, isOfEach: true })
}

const passing: ReadonlySet<SolanaErrorCode> = new Set(['unavailable', 'node-behind'])
const brief = ({ code }: SolanaError): string | undefined =>
  code === 'unavailable' ? 'gives no usable answer now' : code === 'node-behind' ? 'lags behind the cluster' : undefined

import { type NodeFailure, someMayAnswerMs, tellEach } from '../nodes/together.ts'
import { ChainError, type ChainErrorCode } from './chain.ts'

/** What several nodes' failures mean together. */
export type Worst = (failures: readonly NodeFailure<ChainError>[]) => ChainError

/** What is wrong with nodes, and says nothing of the matter. */
const ofNodes: ReadonlySet<ChainErrorCode> = new Set(['wrong-chain', 'access-denied', 'unavailable', 'rejected'])

/** Of nodes that were asked one after the other: what a person must act on, what may pass, and last what would be refused again. */
export const createWorst =
  (network: string): Worst =>
  (failures) =>
    chosen(failures, network, ({ code, isLasting }) =>
      code === 'wrong-chain' ? 0 : code === 'access-denied' ? 1 : 2 + Number(code === 'rejected') + Number(isLasting),
    )

/** What nodes make of a transaction comes first. */
const saysMost: readonly ChainErrorCode[] = [
  'nonce-too-low',
  'replacement-underpriced',
  'insufficient-funds',
  'underpriced',
  'reverted',
  'rejected',
  'wrong-chain',
  'access-denied',
]
/** Of nodes that were all asked at once: the one that says most about the transaction. */
export const createWorstOfAll =
  (network: string): Worst =>
  (failures) =>
    chosen(failures, network, ({ code }) => (saysMost.includes(code) ? saysMost.indexOf(code) : saysMost.length))

function chosen(failures: readonly NodeFailure<ChainError>[], network: string, rank: (error: ChainError) => number): ChainError {
  const [main] = failures.toSorted((a, b) => rank(a.error) - rank(b.error))
  if (main === undefined) return new ChainError('unavailable', `${network} has no node that answers`)
  const { code, isLasting, retryAfterMs } = main.error
  const told = ofNodes.has(code) ? tellEach(failures, { network, brief }) : undefined
  if (told === undefined) return main.error
  const mayPass = failures.some(({ error }) => error.code === 'unavailable' || (error.code === 'rejected' && !error.isLasting))
  const again = code === 'access-denied' && mayPass ? someMayAnswerMs : retryAfterMs
  return new ChainError(code, told, again, isLasting, true)
}

const brief = ({ code }: ChainError): string | undefined => (code === 'unavailable' ? 'gives no usable answer now' : undefined)

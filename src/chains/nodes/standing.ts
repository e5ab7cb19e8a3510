import type { Clock } from '../../lib/clock.ts'
import { type Health, healthOf, type Pace } from './health.ts'
import type { NodeState } from './node.ts'
import type { ChainLog } from './nodes.ts'

/** No new block on any node for so long is worth a word. */
const quietMs = 300_000

/** How a node stands among the others of its network. */
export interface Standing<Node> {
  /** By the heads that were seen; a change is logged. */
  health(node: Node): Health
  isOut(node: Node): boolean
  /** It failed a moment ago. */
  isResting(node: Node): boolean
  /** As they are asked: those that are out last, before them those that rest. */
  inOrder(): readonly Node[]
}

export function createStanding<C, I, E>(
  nodes: readonly NodeState<C, I, E>[],
  {
    clock,
    network,
    log,
    pace,
  }: { readonly clock: Clock; readonly network: string; readonly log: ChainLog | undefined; readonly pace: Pace },
): Standing<NodeState<C, I, E>> {
  type Node = NodeState<C, I, E>
  const now = (): number => clock.monotonicMs()

  let quiet = false
  /** All stand still: a chain may do so that mines on demand, so that nobody is out; but it is said. */
  const reportQuiet = (): void => {
    const moved = nodes.flatMap(({ seen }) => seen?.trail.at(-1)?.at ?? [])
    const asked = Math.max(...nodes.flatMap(({ seen }) => seen?.seenAt ?? []))
    const isQuiet = moved.length > 0 && asked - Math.max(...moved) > quietMs
    if (isQuiet && !quiet) log?.warn({ network }, 'no node of the network has shown a new block for minutes')
    quiet = isQuiet
  }

  const health = (node: Node): Health => {
    const others = nodes.filter((other) => other !== node).map(({ seen }) => seen)
    const found = healthOf(node.seen, others, pace, { now: now(), wallSeconds: clock.now().getTime() / 1000 })
    if (found.out !== node.out) {
      const fields = { network, node: node.index + 1, lag: Number(found.lag) }
      if (found.out === undefined) log?.info(fields, 'a node has come along with the others: it is asked again')
      else log?.warn({ ...fields, why: found.out }, 'a node is behind the others: it is asked last until it comes along')
      node.out = found.out
    }
    reportQuiet()
    return found
  }
  const isOut = (node: Node): boolean => health(node).out !== undefined
  const isResting = (node: Node): boolean => node.restsUntil > now()

  return {
    health,
    isOut,
    isResting,
    inOrder: () => {
      const ranked = nodes.map((node) => ({ node, rank: isOut(node) ? 2 : isResting(node) ? 1 : 0 }))
      return ranked.toSorted((a, b) => a.rank - b.rank || a.node.index - b.node.index).map(({ node }) => node)
    },
  }
}

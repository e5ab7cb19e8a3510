import type { Clock } from '../../lib/clock.ts'
import { abortable } from '../../lib/shared-call.ts'
import type { NodeState } from './node.ts'

/** How long a question waits for the heads of slow nodes. */
const headWaitMs = 2_000

/** Looks at the heads of nodes now and then, so that they can be compared. */
export interface Lookout<Node, E> {
  /** Looks at the heads of all nodes when that is due; slow nodes are not waited for long. Of one node there is nothing to compare. */
  lookAround(signal: AbortSignal): Promise<void>
  /** A node that failed is left out while others answer, until its rest is over and it has shown its head again. @returns its failure */
  leftOut(node: Node): E | undefined
}

export function createLookout<C, I, E>(
  nodes: readonly NodeState<C, I, E>[],
  {
    clock,
    probeMs,
    isResting,
    readHead,
  }: {
    readonly clock: Clock
    /** How often a head is read, ms. */
    readonly probeMs: number
    readonly isResting: (node: NodeState<C, I, E>) => boolean
    /** Reads the head of a node and takes note of it. */
    readonly readHead: (node: NodeState<C, I, E>) => Promise<unknown>
  },
): Lookout<NodeState<C, I, E>, E> {
  type Node = NodeState<C, I, E>
  const now = (): number => clock.monotonicMs()

  const probe = (node: Node): Promise<unknown> => {
    node.probedAt = now()
    const running = readHead(node)
      .catch(() => {})
      .finally(() => {
        if (node.probe === running) node.probe = undefined
      })
    node.probe = running
    return running
  }

  return {
    async lookAround(signal) {
      if (nodes.length < 2) return
      const due = nodes.filter((node) => node.probe === undefined && !isResting(node) && now() - node.probedAt >= probeMs)
      // Somebody else looks for the first time: without that nothing is known of them.
      const first = nodes.flatMap((node) =>
        node.probe !== undefined && node.seen === undefined && now() - node.probedAt < headWaitMs ? [node.probe] : [],
      )
      if (due.length + first.length === 0) return
      const looks = Promise.all([...first, ...due.map(probe)])
      const done = new AbortController()
      const enough = clock.sleep(headWaitMs, AbortSignal.any([done.signal, signal])).catch(() => {})
      await abortable(Promise.race([looks, enough]), signal).finally(() => done.abort('over'))
    },

    leftOut(node) {
      if (node.failure === undefined || nodes.every(({ failure }) => failure !== undefined)) return undefined
      if (!isResting(node) && node.probe === undefined) probe(node)
      return node.failure
    },
  }
}

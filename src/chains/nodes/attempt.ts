import { abortable } from '../../lib/shared-call.ts'
import { isDenied } from './access.ts'
import { type NodeHead, sighted } from './health.ts'
import type { NodeState } from './node.ts'
import type { ChainLog, NodeHandle, NodeRules } from './nodes.ts'

/** How long a node that gave no answer is asked last. */
const restMs = 10_000
/** How often it is asked for its chain again. */
const identityMs = 300_000

export type Use<C, I, T> = (node: C & NodeHandle<I>) => Promise<T>

/** How one use of one node ended. `skipped`: a method that it is known to refuse was not asked for. */
export type Attempt<T, E> =
  | { readonly value: T }
  | { readonly error: E; readonly kind: 'skipped' | 'final' | 'passes on'; readonly unknown?: string | undefined }

/** Uses a node once: `passOver` skips what it is known to refuse. */
export type TryNode<C, I, E> = <T>(
  node: NodeState<C, I, E>,
  use: Use<C, I, T>,
  signal: AbortSignal,
  passOver: boolean,
) => Promise<Attempt<T, E>>

/** A use of one node: only once it is known to serve the right chain, and with the consequences that a failure has for it. */
export function createAttempts<C extends object, I, E extends Error>({
  rules,
  network,
  log,
  now,
  isLagging,
}: {
  readonly rules: NodeRules<C, I, E>
  readonly network: string
  readonly log: ChainLog | undefined
  /** Monotonic, ms. */
  readonly now: () => number
  readonly isLagging: (node: NodeState<C, I, E>) => boolean
}): TryNode<C, I, E> {
  type Node = NodeState<C, I, E>

  const identityOf = (node: Node): Promise<I> => {
    if (node.verified === undefined || now() - node.verified.at > identityMs) {
      // Not the caller's signal: others may wait for the same check.
      const identity = rules.verify(rules.guard(node.client, node.refusals, undefined), node.index + 1)
      const verified = { at: now(), identity }
      node.verified = verified
      // Also when nobody waits for it any more.
      identity.catch(() => {
        if (node.verified === verified) node.verified = undefined
      })
    }
    return node.verified.identity
  }

  const rest = (node: Node, error: E): void => {
    node.verified = undefined
    node.failure = error
    node.restsUntil = now() + Math.max(restMs, rules.retryAfterMs(error) ?? 0)
  }

  return async (node, use, signal, passOver) => {
    let skipped = false
    let verified = false
    const onSkip = (): void => {
      skipped = true
    }
    try {
      const identity = await abortable(identityOf(node), signal)
      verified = true
      const client = rules.guard(node.client, node.refusals, passOver ? { onSkip } : undefined)
      const sees = (head: NodeHead): void => {
        node.seen = sighted(node.seen, head, now())
        node.probedAt = now()
      }
      const value = await use({ ...client, index: node.index, identity, sees, isLagging: () => isLagging(node) })
      node.failure = undefined
      return { value }
    } catch (thrown) {
      signal.throwIfAborted()
      let caught: unknown = thrown
      // Of a method, or of all? A key may have ended since the node was asked for its chain.
      if (verified && isDenied(thrown) && now() - (node.verified?.at ?? 0) > restMs) {
        node.verified = undefined
        try {
          await abortable(identityOf(node), signal)
        } catch (again) {
          signal.throwIfAborted()
          caught = again
          verified = false
        }
      }
      const error = rules.toError(caught)
      if (skipped) return { error, kind: 'skipped' }
      if (!verified || rules.rests(error, caught)) rest(node, error)
      if (verified && !rules.passesOn(error)) return { error, kind: 'final' }
      log?.warn({ network, node: node.index + 1, code: rules.code(error) }, error.message)
      return { error, kind: 'passes on', unknown: rules.unknownRefusal(error, caught) }
    }
  }
}

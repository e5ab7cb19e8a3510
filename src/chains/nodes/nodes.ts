import type { Clock } from '../../lib/clock.ts'
import { createAttempts, type Use } from './attempt.ts'
import type { NodeHead, Pace } from './health.ts'
import { createLookout } from './lookout.ts'
import { type NodeState, newNode } from './node.ts'
import { createRefusals, type Refusals } from './refusals.ts'
import { createStanding } from './standing.ts'
import type { NodeFailure } from './together.ts'

export interface ChainLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/** What a use gets beside the client: which node it is, and where it tells the heads that it reads. */
export interface NodeHandle<I> {
  /** From 0. */
  readonly index: number
  /** What the node said of itself when it was verified. */
  readonly identity: I
  /** Told of every head that is read from the node: its health comes of it. */
  sees(head: NodeHead): void
  /** More than a few blocks behind the others, or standing still while they go on: what is new may be missing here. */
  isLagging(): boolean
}
export type NodeAnswer<T, E> = { readonly value: T } | NodeFailure<E>

/**
 * The nodes of one network in the order of the configuration: those that are out (see health.ts) last, before them those that failed a moment ago. A
 * node is used only when it serves the right chain: that is asked at first, again after each failure, and every few minutes.
 */
export interface Nodes<C, I, E extends Error> {
  readonly count: number
  /**
   * Does something on the first node that can. Goes on to the next when a node gives no answer, says that it can't now, or refuses a method; a refused
   * method is asked of others first for some minutes. What a node says of the matter itself is final. @throws E
   */
  first<T>(use: (node: C & NodeHandle<I>) => Promise<T>, signal: AbortSignal): Promise<T>
  /** Does something on all nodes, or some by index, at once; waits for all of them. By index; undefined for one that was not asked. */
  each<T>(
    use: (node: C & NodeHandle<I>) => Promise<T>,
    signal: AbortSignal,
    only?: readonly number[],
  ): Promise<readonly (NodeAnswer<T, E> | undefined)[]>
  /** Does something on all nodes at once, and stops waiting when an answer is enough. */
  race<T>(
    use: (node: C & NodeHandle<I>) => Promise<T>,
    enough: (value: T) => boolean,
    signal: AbortSignal,
  ): Promise<readonly NodeAnswer<T, E>[]>
  /** Whether a node (from 0) is asked last, as it is behind the others or stands still while they go on. */
  isOut(index: number): boolean
  /** Counts a disagreement for these nodes (from 0). */
  disagreed(indexes: readonly number[]): void
  readings(): readonly NodeReading[]
}

/** One node for metrics. */
export interface NodeReading {
  /** From 1, in the order of the configuration. */
  readonly node: number
  readonly height: bigint | undefined
  readonly lag: bigint
  /** It failed a moment ago, or is behind the others, or stands still while they go on. */
  readonly unhealthy: boolean
  readonly refusedMethods: number
  /** So often it said something else of the chain than another node. */
  readonly disagreements: number
}

/** What a chain makes of its nodes and of their failures. */
export interface NodeRules<C, I, E extends Error> {
  /** Throws unless the node serves the right chain. `number` counts from 1, for messages. Calls have their own time-out. */
  verify(client: C, number: number): Promise<I>
  /** Reads the head of a node. It tells `sees` itself or by its result. */
  head(node: C & NodeHandle<I>): Promise<NodeHead>
  /** A client that remembers what the node refuses, and with `skip` does not ask for it. */
  guard(client: C, refusals: Refusals, skip: { readonly onSkip: () => void } | undefined): C
  /** A failed call as the chain's error; throws what is none, a defect, as it is. */
  toError(error: unknown): E
  /** Another node may know better. */
  passesOn(error: E): boolean
  /** The node is not well: it is asked last for a while and verified again. `cause` is what was thrown. */
  rests(error: E, cause: unknown): boolean
  /** The method that the node refused for a reason nobody knows: if another node serves it, it is asked there first. */
  unknownRefusal(error: E, cause: unknown): string | undefined
  retryAfterMs(error: E): number | undefined
  /** What they mean together, when no node could; none when there is no node. */
  worst(failures: readonly NodeFailure<E>[]): E
  /** For the log. */
  code(error: E): string
}

export interface NodesOptions<C, I, E extends Error> {
  readonly clients: readonly C[]
  readonly network: string
  readonly clock: Clock
  readonly log?: ChainLog | undefined
  readonly rules: NodeRules<C, I, E>
  /** How often the network is looked at, in ms. */
  readonly pollMs: number
  /** One block's time, in ms, for heads without a timestamp. */
  readonly blockMs: number
  /** So many blocks behind the others are a matter of moments. */
  readonly fewBlocks: bigint
}

/** Polls that a node may be behind, or stand still while others go on. */
const gracePolls = 3

export function createNodes<C extends object, I, E extends Error>(options: NodesOptions<C, I, E>): Nodes<C, I, E> {
  const { clock, network, log, rules } = options
  const now = (): number => clock.monotonicMs()
  const probeMs = Math.min(Math.max(options.pollMs, 1_000), 12_000)
  const pace: Pace = { graceMs: gracePolls * probeMs, blockMs: options.blockMs, fewBlocks: options.fewBlocks }
  type Node = NodeState<C, I, E>
  const nodes = options.clients.map((client, index): Node => {
    const onRefusal = (method: string) =>
      log?.warn({ network, node: index + 1, method }, 'a node does not serve a method: others are asked for it')
    return newNode(client, index, createRefusals(now, onRefusal))
  })
  const { health, isOut, isResting, inOrder } = createStanding(nodes, { clock, network, log, pace })
  const attempt = createAttempts<C, I, E>({ rules, network, log, now, isLagging: (node) => health(node).lagging })
  const answerOf = async <T>(node: Node, use: Use<C, I, T>, signal: AbortSignal): Promise<NodeAnswer<T, E>> => {
    const answer = await attempt(node, use, signal, false)
    return 'value' in answer ? answer : { error: answer.error, node: node.index + 1 }
  }
  const readHead = (node: Node) =>
    attempt(node, async (handle) => handle.sees(await rules.head(handle)), new AbortController().signal, true)
  const { lookAround, leftOut } = createLookout(nodes, { clock, probeMs, isResting, readHead })

  return {
    count: nodes.length,
    first: async (use, signal) => {
      signal.throwIfAborted()
      await lookAround(signal)
      const failures: { readonly node: Node; readonly error: E; readonly unknown: string | undefined }[] = []
      const skipped: Node[] = []
      const tryOn = async (order: readonly Node[], passOver: boolean) => {
        for (const node of order) {
          const answer = await attempt(node, use, signal, passOver)
          if ('value' in answer) {
            // Another node serves what these refused.
            for (const failure of failures) if (failure.unknown !== undefined) failure.node.refusals.add(failure.unknown)
            return answer
          }
          if (answer.kind === 'final') throw answer.error
          if (answer.kind === 'skipped') skipped.push(node)
          else failures.push({ node, error: answer.error, unknown: answer.unknown })
        }
        return undefined
      }
      // None serves it, as far as is remembered: that may have changed.
      const answer = (await tryOn(inOrder(), true)) ?? (await tryOn(skipped.splice(0), false))
      if (answer !== undefined) return answer.value
      throw rules.worst(failures.map(({ node, error }) => ({ node: node.index + 1, error })))
    },
    each: (use, signal, only) =>
      Promise.all(
        nodes.map(async (node) => {
          if (only !== undefined && !only.includes(node.index)) return undefined
          const error = leftOut(node)
          return error !== undefined ? { error, node: node.index + 1 } : answerOf(node, use, signal)
        }),
      ),
    race: <T>(use: Use<C, I, T>, enough: (value: T) => boolean, signal: AbortSignal) => {
      const { promise, resolve, reject } = Promise.withResolvers<readonly NodeAnswer<T, E>[]>()
      const answers: NodeAnswer<T, E>[] = []
      const chosen = nodes.filter((node) => leftOut(node) === undefined)
      const take = (answer: NodeAnswer<T, E>) => {
        answers.push(answer)
        if (answers.length === chosen.length || ('value' in answer && enough(answer.value))) resolve([...answers])
      }
      for (const node of chosen) answerOf(node, use, signal).then(take, reject)
      return promise
    },
    isOut: (index) => nodes.some((node) => node.index === index && isOut(node)),
    disagreed: (indexes) => {
      for (const node of nodes) if (indexes.includes(node.index)) node.disagreements += 1
    },
    readings: () =>
      nodes.map((node) => {
        const { out, lag } = health(node)
        return {
          node: node.index + 1,
          height: node.seen?.head.height,
          lag,
          unhealthy: out !== undefined || isResting(node),
          refusedMethods: node.refusals.list().length,
          disagreements: node.disagreements,
        }
      }),
  }
}

/** The newest block (or slot) that a node shows. `timestamp`: when it was made, in seconds since 1970, where the chain tells. */
export interface NodeHead {
  readonly height: bigint
  readonly timestamp?: number | undefined
}

/** What was seen of one node, in the order of time; moments are monotonic ms. */
export interface Sightings {
  readonly head: NodeHead
  readonly seenAt: number
  /** When each new height was seen first, newest last. */
  readonly trail: readonly { readonly at: number; readonly height: bigint }[]
}

export interface Pace {
  /** How long a node may be behind the others, or stand still, in ms: a few polls. */
  readonly graceMs: number
  /** One block's time, in ms, for heads without a timestamp. */
  readonly blockMs: number
  /** So many blocks behind are a matter of moments. */
  readonly fewBlocks: bigint
}
export interface Moment {
  /** Monotonic ms. */
  readonly now: number
  /** Wall clock, in seconds since 1970. */
  readonly wallSeconds: number
}

export interface Health {
  /** Asked last. */
  readonly out: 'behind' | 'still' | undefined
  /** Blocks below the highest head of all nodes. */
  readonly lag: bigint
  /** More than a few blocks below it, and not at the pace of the day by itself: what is new may be missing, though it may come along in time. */
  readonly lagging: boolean
  /** It has not moved for longer than the grace, and nor has any other: that may be a chain that mines on demand. */
  readonly still: boolean
}

const trailLength = 64

export function sighted(before: Sightings | undefined, head: NodeHead, at: number): Sightings {
  const last = before?.trail.at(-1)
  const trail = before === undefined ? [] : before.trail
  return {
    head,
    seenAt: at,
    trail: last !== undefined && head.height === last.height ? trail : [...trail.slice(1 - trailLength), { at, height: head.height }],
  }
}

/**
 * Health of one node beside the others of its network. It is out when others are ahead of it, by many blocks and long since by the chain's own time, or
 * since longer than the grace by our clock, and it doesn't keep the chain's pace by itself. So a node that goes on at the pace of the day is never out,
 * whatever another one claims; nor is a single node, or all of them when all stand still.
 */
export function healthOf(node: Sightings | undefined, others: readonly (Sightings | undefined)[], pace: Pace, moment: Moment): Health {
  if (node === undefined) return { out: undefined, lag: 0n, lagging: false, still: false }
  const { height } = node.head
  const ahead = others.flatMap((other) => (other !== undefined && other.head.height > height ? [other] : []))
  const lag = ahead.reduce((most, other) => (other.head.height - height > most ? other.head.height - height : most), 0n)
  const movedAt = node.trail.at(-1)?.at ?? node.seenAt
  const still = moment.now - movedAt > pace.graceMs
  if (ahead.length === 0) return { out: undefined, lag, lagging: false, still }

  const overtakenAt = Math.min(...ahead.map((other) => other.trail.find((step) => step.height > height)?.at ?? other.seenAt))
  const longAgo = moment.now - overtakenAt > pace.graceMs
  const farBehind = ahead.some((other) => other.head.height - height > pace.fewBlocks && lagMs(node.head, other.head, pace) > pace.graceMs)
  const age = node.head.timestamp === undefined ? Number.POSITIVE_INFINITY : (moment.wallSeconds - node.head.timestamp) * 1000
  const isFresh = (ms: number): boolean => !still && age <= ms
  const out = (longAgo || farBehind) && !isFresh(pace.graceMs) ? (still ? 'still' : 'behind') : undefined
  const few = Math.min(Number(pace.fewBlocks) * pace.blockMs, pace.graceMs)
  return { out, lag, lagging: out !== undefined || (lag > pace.fewBlocks && !isFresh(few)), still }
}

const lagMs = (behind: NodeHead, ahead: NodeHead, { blockMs }: Pace): number =>
  behind.timestamp === undefined || ahead.timestamp === undefined
    ? Number(ahead.height - behind.height) * blockMs
    : (ahead.timestamp - behind.timestamp) * 1000

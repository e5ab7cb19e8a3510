import { createLinkedList, type Link, type LinkedList } from './linked-list.ts'

/**
 * Keys that wait for a worker, each once. The higher priority goes first; within a priority the namespaces take turns, whatever each has waiting, and
 * within a namespace the order of coming holds. Each operation takes constant time: a flood of one namespace makes nothing slower for the others.
 */
export interface Lanes<K> {
  /** A key that is in already keeps its place, unless the new priority is higher. */
  push(key: K, priority: number, now: number): void
  /** The next key. Its namespace counts as having one more running until `release`. Undefined when none waits whose namespace may have one more. */
  shift(): { readonly key: K; readonly priority: number; readonly since: number } | undefined
  /** A key that was given out by `shift` runs no more. */
  release(key: K): void
  has(key: K): boolean
  readonly size: number
}

export interface LanesOptions<K> {
  /** Asked when a key comes: one that has another namespace later is still counted in this one until it is released. */
  readonly namespaceOf: (key: K) => string
  /** How many keys of one namespace may run at a time. */
  readonly mostOfOneNamespace?: number
}

/** Of so many picks in a row one goes to a lower priority where something waits there: new work in any amount doesn't keep polls from ever running. */
const PICKS_FOR_ONE_LOWER = 8

/** What one namespace has waiting at one priority. */
interface Group<K> {
  readonly namespace: string
  readonly keys: LinkedList<K>
  /** Its place among the namespaces; none while nothing of it may run. */
  turn: Link<Group<K>> | undefined
}

interface Lane<K> {
  readonly priority: number
  readonly groups: Map<string, Group<K>>
  readonly turns: LinkedList<Group<K>>
}

interface Waiting<K> {
  readonly since: number
  readonly lane: Lane<K>
  readonly group: Group<K>
  readonly link: Link<K>
}

export function createLanes<K>({ namespaceOf, mostOfOneNamespace = Number.POSITIVE_INFINITY }: LanesOptions<K>): Lanes<K> {
  const waiting = new Map<K, Waiting<K>>()
  const running = new Map<string, number>()
  /** Of keys that run. */
  const namespaces = new Map<K, string>()
  /** By priority, the highest first. */
  let lanes: Lane<K>[] = []
  /** Picks in a row that passed over a lower priority. */
  let passedOver = 0

  const laneOf = (priority: number): Lane<K> => {
    const known = lanes.find((candidate) => candidate.priority === priority)
    if (known) return known
    const lane: Lane<K> = { priority, groups: new Map(), turns: createLinkedList() }
    lanes = [...lanes, lane].sort((a, b) => b.priority - a.priority)
    return lane
  }

  const mayRun = (namespace: string): boolean => (running.get(namespace) ?? 0) < mostOfOneNamespace

  const groupOf = (lane: Lane<K>, namespace: string): Group<K> => {
    const known = lane.groups.get(namespace)
    if (known) return known
    const group: Group<K> = { namespace, keys: createLinkedList(), turn: undefined }
    lane.groups.set(namespace, group)
    return group
  }

  /** Takes a key out; a namespace with nothing left waiting leaves the lane. */
  const take = (key: K, { lane, group, link }: Waiting<K>): void => {
    waiting.delete(key)
    group.keys.remove(link)
    if (group.keys.first !== undefined) return
    lane.groups.delete(group.namespace)
    if (group.turn !== undefined) lane.turns.remove(group.turn)
  }

  /** The lane that the next key comes from. */
  const next = (): Lane<K> | undefined => {
    const [high, lower] = lanes.filter(({ turns }) => turns.first !== undefined)
    if (lower === undefined) {
      passedOver = 0
      return high
    }
    passedOver = (passedOver + 1) % PICKS_FOR_ONE_LOWER
    return passedOver === 0 ? lower : high
  }

  return {
    push(key, priority, now) {
      const known = waiting.get(key)
      if (known !== undefined) {
        if (known.lane.priority >= priority) return
        take(key, known)
      }
      const lane = laneOf(priority)
      const group = groupOf(lane, namespaceOf(key))
      waiting.set(key, { since: known?.since ?? now, lane, group, link: group.keys.push(key) })
      if (group.turn === undefined && mayRun(group.namespace)) group.turn = lane.turns.push(group)
    },
    shift() {
      const lane = next()
      const turn = lane?.turns.first
      const link = turn?.item.keys.first
      if (lane === undefined || turn === undefined || link === undefined) return undefined
      const group = turn.item
      const key = link.item
      const since = waiting.get(key)?.since ?? 0
      take(key, { since, lane, group, link })
      namespaces.set(key, group.namespace)
      running.set(group.namespace, (running.get(group.namespace) ?? 0) + 1)
      if (group.keys.first !== undefined) {
        lane.turns.remove(turn)
        group.turn = undefined
      }
      for (const { groups, turns } of lanes) {
        const other = groups.get(group.namespace)
        if (other === undefined) continue
        if (mayRun(group.namespace)) other.turn ??= turns.push(other)
        else if (other.turn !== undefined) {
          turns.remove(other.turn)
          other.turn = undefined
        }
      }
      return { key, priority: lane.priority, since }
    },
    release(key) {
      const namespace = namespaces.get(key)
      if (namespace === undefined) return
      namespaces.delete(key)
      const left = (running.get(namespace) ?? 0) - 1
      if (left > 0) running.set(namespace, left)
      else running.delete(namespace)
      for (const { groups, turns } of lanes) {
        const group = groups.get(namespace)
        if (group !== undefined && mayRun(namespace)) group.turn ??= turns.push(group)
      }
    },
    has: (key) => waiting.has(key),
    get size() {
      return waiting.size
    },
  }
}

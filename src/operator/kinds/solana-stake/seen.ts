import type { SolanaProtocol } from '../../../resources/solana-stake.ts'

/** What this process has read from the chain and written to status, by the resource's origin: a number of each, so that what others write is noticed. */
export interface SeenStakes {
  note(uid: string, protocol: SolanaProtocol): void
  /** Whether status says something else than this process has seen last. What it has never looked at is believed until it does. */
  isAnother(uid: string, protocol: SolanaProtocol | undefined): boolean
  /** The chain and the staking API say that nothing was ever staked for it, nor can be. */
  noteNothing(uid: string): void
  isNothing(uid: string): boolean
  forget(uid: string): void
}

export function createSeenStakes(): SeenStakes {
  const seen = new Map<string, number>()
  const nothing = new Set<string>()
  return {
    note: (uid, protocol) => void seen.set(uid, digest(protocol)),
    isAnother: (uid, protocol) => protocol !== undefined && seen.has(uid) && seen.get(uid) !== digest(protocol),
    noteNothing: (uid) => void nothing.add(uid),
    isNothing: (uid) => nothing.has(uid),
    forget(uid) {
      seen.delete(uid)
      nothing.delete(uid)
    },
  }
}

/** FNV-1a, 32 bits: whoever wants to collide with it gains the display of his own status. */
function digest(protocol: SolanaProtocol): number {
  const text = JSON.stringify(Object.entries(protocol).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash
}

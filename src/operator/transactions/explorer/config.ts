import * as limits from '../limits.ts'
import * as protocol from '../protocol.ts'

/** The product's rules, as the explorer carries them out. */
export type Rules = Pick<
  typeof protocol,
  | 'nextPlaces'
  | 'holesOf'
  | 'useOf'
  | 'openAttempts'
  | 'isCancelling'
  | 'mayTakePlace'
  | 'mayBeHandedOver'
  | 'withPlace'
  | 'withAttempt'
  | 'mayAttempt'
  | 'conclude'
  | 'testimony'
  | 'wish'
  | 'isFilled'
  | 'mayGoOn'
  | 'forgottenPlaces'
  | 'isMissing'
  | 'takenBack'
  | 'takenOver'
  | 'recordMayBePruned'
  | 'mayBePruned'
> &
  Pick<typeof limits, 'usesOf' | 'overLimit'>
export const productRules: Rules = { ...protocol, ...limits }

/**
 * A rule that the explorer's leaders leave out: some by what they do, some by what they tell the product's functions. Each stands in the design with
 * a ▸, or is one that the others lean on.
 */
export const ablations = {
  oneName: 'two records can be made for one purpose',
  fence: "records are written without a look at what is in the store: the last writer's word stays",
  placeNames: 'a place that is given out is given out again',
  namedOnly: 'the call is sent as soon as its place is made, before the record names it',
  lowestPlace: 'the next place is what the pools count, not the lowest number above the final count that has no place',
  waitForPools: 'places are taken while the pools show transactions that no place accounts for',
  witnesses: 'the witnesses are not asked',
  witnessesEach: 'the witnesses are asked before the first place only',
  freshOwner: 'the owner is not read again before the first signature',
  toldFirst: 'the staking API is not told the hash',
  content: 'what used a nonce is compared by its hash',
  allNodes: "one node's word that a place is closed is enough",
  nobodyContradicts: "one node's word that it landed is enough, whatever the others say",
  cancels: 'a call that may not be sent keeps its place',
  fillers: 'a place that no record names is left alone',
  fillsUnnamed: 'a place that its record has not named is left alone, whatever becomes of the record',
  freshUse: 'whether a place is a filler is judged by a cached record',
  freshCancel: 'a cancel is written because a cached owner is suspended',
  versionsOfLane: 'versions of another lane count as versions under the same number here',
  shownPlaces: 'a record goes on with a place under which a node shows something already',
  forgottenPlaces: 'a place is taken while others, taken for the same record, may hold what a restored log forgot',
  finalByAll: 'what is not in the log counts as final when one node says so',
  recordPruned: 'a record is pruned as soon as it says Landed',
  takenBack: 'an outcome stays, whatever the nodes say later',
  heirsCount: 'nobody who waits for the record itself counts as waiting',
  holes: 'a number without a place is left alone',
  handOverClosed: 'a record passes to another resource while a transaction of it may land',
  placeMadeAgain: 'a place that a record names and that is missing is not made again',
  endsWhenSetBack: 'leaders go on when etcd is set back',
  apiRefuses: 'the staking API takes any hash, also of another nonce while the earlier one may land',
  followed: 'a place under which a record follows what a witness knew is filled, since it was taken for nobody',
  legacyFillers: 'what an earlier version has signed for a resource that is gone is filled, and forgotten',
  importFirst: 'a lane signs before what an earlier version has signed is in the log',
  freshStart: 'a new leader decides by the caches that it has, however old they are',
  limit: 'the limit of the signer is not looked at',
  limitPlaces: 'a place counts for a limit only once its record names it',
  attemptWritten: 'a bumped version is sent without being written down',
} as const
export type Ablation = keyof typeof ablations

/** Once for each fault: how many times it may come. */
export interface Faults {
  readonly crash?: number
  readonly setBack?: number
  readonly foreign?: number
  /** A node's pool forgets everything. What was sent may still land. */
  readonly drop?: number
  /** An owner is suspended, released from that, deleted, followed by another; a signer gets another key. */
  readonly owner?: number
  readonly reorg?: number
  /** A node leaves its healthy mode for one of `nodeModes`. */
  readonly node?: number
  readonly prune?: number
  /** Somebody deletes the newest place by hand. */
  readonly handDelete?: number
  /** A record of which nothing can land any more is pruned: one that has landed even while its owner is there. */
  readonly pruneRecord?: number
  readonly bump?: number
  readonly revert?: number
  /** A person acknowledges what the chain and the pools show. */
  readonly acknowledge?: number
}
export const faultNames = [
  'crash',
  'setBack',
  'foreign',
  'drop',
  'owner',
  'reorg',
  'node',
  'prune',
  'handDelete',
  'pruneRecord',
  'bump',
  'revert',
  'acknowledge',
] as const satisfies readonly (keyof Faults)[]

export const NODE_MODES = ['ok', 'lag', 'down', 'lie', 'fork'] as const
export type NodeMode = (typeof NODE_MODES)[number]

export interface Config extends Faults {
  readonly id: string
  readonly title: string
  /** 1 or 2 addresses; up to 4 numbers in each. */
  readonly lanes: 1 | 2
  readonly nonces: number
  readonly leaders: 1 | 2
  /** What each of three owners wants: purpose 0 or 1, or nothing; and in which lane. The third comes when the first is deleted. */
  readonly wants: readonly [number, number, number]
  readonly laneOf?: readonly [number, number, number]
  readonly nodeModes?: readonly NodeMode[]
  /** So many transactions the signer may sign, ever: the window of its limit does not end. */
  readonly limit?: number
  /** The key is used elsewhere on purpose. */
  readonly shared?: boolean
  /** The signer's key may change once, while its lane has no open place. */
  readonly rotates?: boolean
  /** The first owner's fee cap is below the market. */
  readonly lowCap?: boolean
  /** An earlier version has signed for both purposes, in the other order, and left a ledger: what it sent may land at any time. */
  readonly ledger?: boolean
  /** Leaders see changes of owners late. */
  readonly lateOwners?: boolean
  /** What a leader that starts has in its caches is from before anything was done. */
  readonly lateStart?: boolean
  /** The staking API takes a hash only after it was sent. */
  readonly toldAfter?: boolean
  readonly remakeAfterRevert?: boolean
  readonly without?: readonly Ablation[]
  /** Some waits of this world need a person. Otherwise every one of them is a fault. */
  readonly mayWait?: boolean
}

export const isFor = (config: Config, ablation: Ablation): boolean => config.without?.includes(ablation) !== true

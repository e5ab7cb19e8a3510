import type { Gwei } from '../../lib/amounts.ts'
import type { Address, Hex, Pubkey } from './chain.ts'
import type { Standing } from './request-queue.ts'

/** The statuses of the Beacon API (ethereum/beacon-APIs, ValidatorStatus). */
export const beaconStatuses = [
  'pending_initialized',
  'pending_queued',
  'active_ongoing',
  'active_exiting',
  'active_slashed',
  'exited_unslashed',
  'exited_slashed',
  'withdrawal_possible',
  'withdrawal_done',
] as const
export type BeaconStatus = (typeof beaconStatuses)[number]

/** A validator in one state of the beacon chain. An epoch that is not set (FAR_FUTURE_EPOCH) is undefined. */
export interface BeaconValidator {
  readonly index: number
  readonly pubkey: Pubkey
  readonly status: BeaconStatus
  readonly balanceGwei: Gwei
  /** What counts for duties and rules: whole ETH, and behind the balance (consensus-specs, process_effective_balance_updates). */
  readonly effectiveBalanceGwei: Gwei
  readonly withdrawalCredentials: Hex
  readonly slashed: boolean
  readonly activationEligibilityEpoch: number | undefined
  readonly activationEpoch: number | undefined
  readonly exitEpoch: number | undefined
  readonly withdrawableEpoch: number | undefined
}

/** A deposit that the deposit contract logged and the registry does not show yet. */
export interface PendingDeposit {
  readonly pubkey: Pubkey
  readonly withdrawalCredentials: Hex
  readonly amountGwei: Gwei
  readonly signature: Hex
  readonly slot: number
}

/** A partial withdrawal that the consensus layer has accepted and not yet paid. */
export interface PendingPartialWithdrawal {
  readonly validatorIndex: number
  readonly amountGwei: Gwei
  readonly withdrawableEpoch: number
}

export interface PendingConsolidation {
  readonly sourceIndex: number
  readonly targetIndex: number
}

/** Constants of the network, by its own `/eth/v1/config/spec`; names are those of consensus-specs. */
export interface BeaconSpec {
  readonly slotDurationMs: number
  readonly slotsPerEpoch: number
  readonly shardCommitteePeriod: number
  readonly minValidatorWithdrawabilityDelay: number
  readonly maxSeedLookahead: number
  readonly minActivationBalanceGwei: Gwei
  readonly maxEffectiveBalanceElectraGwei: Gwei
  readonly pendingPartialWithdrawalsLimit: number
  readonly depositChainId: number
  readonly depositContractAddress: Address
  /** From this epoch on, a block's requests are processed by the next block (EIP-7732). Undefined: the network has no date for it. */
  readonly gloasForkEpoch?: number | undefined
}

export interface BeaconGenesis {
  /** Seconds since 1970. */
  readonly genesisTime: number
  readonly genesisValidatorsRoot: Hex
  readonly genesisForkVersion: Hex
}

export interface BeaconHead {
  readonly slot: number
  readonly epoch: number
  readonly justifiedEpoch: number
  readonly finalizedEpoch: number
}

/**
 * Which state is asked about. A slot means the state after its block, or what the state is there without one. Whoever names a slot or the finalized state
 * decides for good: every node that has the slot must then have the same state there. The head is for people and timing.
 */
export type StateAt = 'head' | 'finalized' | number

/** A block of the beacon chain: its root outlives nothing but itself, while a slot may get another block. */
export interface BeaconBlock {
  readonly slot: number
  readonly root: Hex
}

/** Blocks of the execution layer that a block of the beacon chain names. */
export interface BlockExecution {
  /** That of its own payload; undefined from Gloas on, where payloads come apart from blocks (EIP-7732). */
  readonly carries: Hex | undefined
  /** The one that its payload builds on: from Gloas on, the one whose requests it processes. */
  readonly confirms: Hex | undefined
}

/** Everything here is of one state. */
export interface BeaconView {
  readonly slot: number
  readonly epoch: number
  /** By public key in lower case; a key that the registry does not know is absent. */
  readonly validators: ReadonlyMap<Pubkey, BeaconValidator>
}
export interface WithdrawalView {
  readonly slot: number
  readonly epoch: number
  /** The last block that the state has seen: at its slot, or before it where slots were missed. */
  readonly block: BeaconBlock
  readonly validator: BeaconValidator | undefined
  /** Of all validators, in the order in which they are paid. */
  readonly pendingPartialWithdrawals: readonly PendingPartialWithdrawal[]
  /** Of all validators; empty where the node does not serve them. */
  readonly pendingConsolidations: readonly PendingConsolidation[]
}

export interface DepositView extends BeaconView {
  /** All of them, in order; empty, and not asked for, where the registry knows every key. On a busy network tens of thousands. */
  readonly pendingDeposits: readonly PendingDeposit[]
}

export type BeaconErrorCode =
  /** Time-out, reset, 5xx, another shape, too large, no URL answered: nothing is known. */
  | 'unavailable'
  /** The node lets us in for nothing (401, 402, 403): its URL's key is wrong or has ended; or nothing is served under its path (404). */
  | 'access-denied'
  /** The node is not at the head of the chain, or the slot that is asked for lies ahead of it: wait. */
  | 'behind'
  /** Another chain id, deposit contract, genesis validators root or genesis fork version than the configuration's. */
  | 'wrong-network'
  /** The nodes don't keep the state that is asked for any more. */
  | 'state-not-kept'
  /** Two nodes have different states at a slot: one of them is on a fork, and nothing is concluded from either. */
  | 'disagreement'

/** An error of the beacon chain. Its message never holds a URL (which often is a credential) nor a response body. */
export class BeaconError extends Error {
  override readonly name = 'BeaconError'
  readonly code: BeaconErrorCode
  readonly retryAfterMs: number | undefined
  /** The endpoint that the node does not serve, or not to us. */
  readonly refused: string | undefined
  /** The status of that, where it is 401, 402 or 403. */
  readonly denied: number | undefined
  /** The status was 404: nothing is served under this URL, or not this. */
  readonly isNotFound: boolean
  constructor(
    code: BeaconErrorCode,
    message: string,
    retryAfterMs?: number,
    refused?: string,
    more: { readonly denied?: number | undefined; readonly isNotFound?: boolean } = {},
  ) {
    super(message)
    this.code = code
    this.retryAfterMs = retryAfterMs
    this.refused = refused
    this.denied = more.denied
    this.isNotFound = more.isNotFound === true
  }
}

/**
 * One network's beacon chain by the standard Beacon API: the first configured URL that answers, on the right network and at the head.
 * Every call throws `BeaconError`, or the signal's reason when that aborts.
 */
export interface BeaconChain {
  readonly network: string
  spec(signal: AbortSignal): Promise<BeaconSpec>
  genesis(signal: AbortSignal): Promise<BeaconGenesis>
  head(signal: AbortSignal): Promise<BeaconHead>
  validators(pubkeys: readonly Pubkey[], at: StateAt, signal: AbortSignal): Promise<BeaconView>
  /** What the rules of exits and withdrawals look at. */
  withdrawalView(pubkey: Pubkey, at: StateAt, signal: AbortSignal): Promise<WithdrawalView>
  /** The canonical chain's block at a slot; undefined for one that was missed. Slots ahead of the head are `behind`. */
  blockAt(slot: number, signal: AbortSignal): Promise<BeaconBlock | undefined>
  /** Whether a block that something was judged by is still in the chain, by all nodes that have its slot. Never throws for nodes that fail. */
  standing(block: BeaconBlock, signal: AbortSignal): Promise<Standing>
  /** Which blocks of the execution layer a block names: what ties the two chains. Undefined where no node serves blocks. */
  executionOf(block: BeaconBlock, signal: AbortSignal): Promise<BlockExecution | undefined>
  /** What becomes of deposits for these keys. */
  depositView(pubkeys: readonly Pubkey[], at: StateAt, signal: AbortSignal): Promise<DepositView>
  /** All of them, in order; on a busy network tens of thousands. */
  pendingDeposits(at: StateAt, signal: AbortSignal): Promise<readonly PendingDeposit[]>
}

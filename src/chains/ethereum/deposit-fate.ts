import { type Gwei, gwei } from '../../lib/amounts.ts'
import { lowerCase } from '../../lib/chain-types.ts'
import { sameHex } from '../../lib/hex.ts'
import type { BeaconValidator, DepositView, PendingDeposit } from './beacon.ts'
import type { Hex } from './chain.ts'
import { verifyDepositSignature } from './deposit.ts'

/** What the consensus layer made of a deposit that the deposit contract took. */
export type DepositFate =
  /** Its turn has not come. `aheadGwei`: what is queued before it. */
  | { readonly is: 'queued'; readonly aheadGwei: Gwei }
  /** The registry has the validator. */
  | { readonly is: 'credited' }
  | Dropped
  | { readonly is: 'unknown'; readonly reason: string }
/** Its turn has passed, and it made nothing, or it topped up somebody else's validator: the money is lost. `reason` begins with a rule's code. */
interface Dropped {
  readonly is: 'dropped'
  readonly reason: string
}

type Deposit = Omit<PendingDeposit, 'slot'>

/**
 * What became of a deposit whose key the registry has. The first valid deposit fixes the credentials, and a later one is added to that validator whatever it says
 * (consensus-specs, electra/beacon-chain.md: apply_pending_deposit). A request may change their type, and nothing their address. Pure.
 */
export function creditedTo(
  { index, withdrawalCredentials: its }: Pick<BeaconValidator, 'index' | 'withdrawalCredentials'>,
  { pubkey, withdrawalCredentials }: Pick<Deposit, 'pubkey' | 'withdrawalCredentials'>,
): { readonly is: 'credited' } | Dropped {
  if (sameHex(addressPart(its), addressPart(withdrawalCredentials))) return { is: 'credited' }
  return {
    is: 'dropped',
    reason: `other-credentials: validator ${index} has public key ${pubkey} with the withdrawal credentials ${its}, and not those of this deposit: somebody else's deposit came first, and this one topped up that validator`,
  }
}
const addressPart = (credentials: Hex): Hex => `0x${credentials.slice(-40)}`

/**
 * The deposit contract takes a deposit whatever its signature is; the consensus layer queues it, and when its turn comes it drops one for a new key whose
 * signature is not valid, and says nothing (consensus-specs, electra and gloas/beacon-chain.md: process_deposit_request, process_pending_deposits,
 * apply_pending_deposit). A signature over another network's fork version is not valid either.
 *
 * That it is nowhere proves nothing by itself: it counts as dropped only where its signature is computed to be wrong, too. Pure.
 * @param view Of a finalized state: what it says is for good.
 * @param queuedAt The slot whose block queued the deposit.
 */
export function depositFate(given: {
  readonly deposit: Deposit
  readonly view: DepositView
  readonly queuedAt: number
  readonly genesisForkVersion: Hex
}): DepositFate {
  const { deposit, view, queuedAt, genesisForkVersion } = given
  const { validators, pendingDeposits, slot } = view
  const validator = validators.get(lowerCase(deposit.pubkey))
  if (validator !== undefined) return creditedTo(validator, deposit)
  const place = pendingDeposits.findIndex((one) => isSame(one, deposit))
  if (place >= 0) return { is: 'queued', aheadGwei: sumOf(pendingDeposits.slice(0, place)) }
  if (slot < queuedAt)
    return { is: 'unknown', reason: `the finalized state is of slot ${slot}, and the deposit was queued in slot ${queuedAt}` }
  if (verifyDepositSignature(deposit, genesisForkVersion)) {
    return {
      is: 'unknown',
      reason: `the finalized state of slot ${slot} has neither a validator nor a queued deposit for this key, and the deposit's signature is valid: look at other nodes`,
    }
  }
  return {
    is: 'dropped',
    reason: `invalid-signature: the deposit's signature is not valid under this network's genesis fork version ${genesisForkVersion}; its turn has passed by slot ${slot}, and the consensus layer has made no validator of it`,
  }
}

const sumOf = (deposits: readonly PendingDeposit[]): Gwei => gwei(deposits.reduce((sum, { amountGwei }) => sum + amountGwei, 0n))

const isSame = (one: PendingDeposit, other: Deposit): boolean =>
  sameHex(one.pubkey, other.pubkey) &&
  sameHex(one.signature, other.signature) &&
  sameHex(one.withdrawalCredentials, other.withdrawalCredentials) &&
  one.amountGwei === other.amountGwei

import { epochStart } from '../../../chains/ethereum/beacon-time.ts'
import { StakingApiError } from '../../../contract/client-error.ts'
import type { WithdrawalCapacityBody } from '../../../contract/schemas/ethereum-requests.ts'
import { formatEth, type Gwei, gwei } from '../../../lib/amounts.ts'
import { timestamp } from '../../../resources/conditions.ts'
import type { Reason } from '../../../resources/reasons.ts'
import { type Halt, stall, wait } from '../../engine/verdict.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { meaningsOf } from './rules.ts'
import type { FoundValidator, RequestOrder } from './steps.ts'

/** Seconds since 1970 of slot 0, from the networks' published configurations. Their slots take 12 s, 32 make an epoch. */
const genesisTimes: Readonly<Record<string, number>> = { mainnet: 1_606_824_023, sepolia: 1_655_733_600, hoodi: 1_742_213_400 }
const spec = { slotDurationMs: 12_000, slotsPerEpoch: 32 }

/** An epoch in words, with its time where the network's is known. */
export function whenEpoch(network: string, epoch: number): string {
  const genesisTime = genesisTimes[network]
  return `epoch ${epoch}${genesisTime === undefined ? '' : ` (${timestamp(epochStart({ genesisTime }, spec, epoch))})`}`
}

/** What forbids it for good, or until a person does something: the first of these that is broken is what is said. */
const forbids: readonly (readonly [readonly string[], Reason])[] = [
  [['invalid-pubkey'], 'InvalidSpec'],
  [['unknown-validator', 'several-networks'], 'UnknownValidator'],
  [['slashed'], 'ValidatorSlashed'],
  [['already-exiting'], 'AlreadyExiting'],
  [['credentials-not-execution', 'credentials-not-compounding'], 'ValidatorNotEligible'],
  [['sender-not-withdrawal-address'], 'SignerNotWithdrawalAddress'],
]
/** What passes by time. */
const passes: readonly (readonly [string, Reason])[] = [
  ['not-active', 'ValidatorNotActive'],
  ['too-young', 'ValidatorTooYoung'],
  ['pending-withdrawals', 'PendingWithdrawals'],
  ['withdrawal-queue-full', 'PendingWithdrawals'],
]
/** What may pass (the balance grows), but more likely needs another amount. */
const lacks: readonly (readonly [readonly string[], Reason])[] = [
  [['effective-balance-too-low'], 'ValidatorNotEligible'],
  [['nothing-available', 'amount-over-available', 'amount-not-positive'], 'OverAvailable'],
]

export interface Refusal {
  readonly halt: Halt
  /** It was refused for withdrawals of the validator that the beacon chain, by its own numbers, does not show. */
  readonly isForUnseen: boolean
}

const UNSEEN_EXIT =
  'Partial withdrawals were asked for that the beacon chain does not show yet, and a full exit is possible after they are paid (rule pending-withdrawals). It goes on by itself. Delete the ValidatorWithdrawals that are not to be sent any more; one that has no resource is cancelled at the staking API.'

/**
 * What to do about a request that the staking API didn't make. Codes are the contract's; the numbers come from the withdrawal capacity, which is
 * asked for here.
 * @returns undefined for errors that have nothing to do with the validator.
 */
export async function refusalOf(
  error: unknown,
  order: RequestOrder,
  validator: FoundValidator,
  network: EthereumNetwork,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  if (!(error instanceof StakingApiError)) return undefined
  if (error.status === 404 || error.code === 'not-found')
    return seen(
      stall(
        'UnknownValidator',
        'The staking API knows no such validator, or it belongs to another account (404). Check spec.validator, and with which account the operator calls.',
      ),
    )
  const rules = error.rules ?? []
  if ((error.code !== 'validation-failed' && error.code !== 'invalid-request') || rules.length === 0) return undefined
  const numbers = await network.requests.withdrawalCapacity(validator.pubkey, signal).catch((failure: unknown) => {
    signal.throwIfAborted()
    if (!(failure instanceof StakingApiError)) throw failure
    return undefined
  })
  const because = (codes: readonly string[]) => codes.filter((code) => rules.includes(code))

  for (const [codes, reason] of forbids) {
    const broken = because(codes)
    if (broken.length > 0) return seen(stall(reason, forbidden(reason, broken), reason !== 'InvalidSpec'))
  }
  for (const [code, reason] of passes)
    if (rules.includes(code))
      return {
        halt: wait(reason, passing(code, validator, numbers), network.config.pollIntervalMs * 5),
        isForUnseen: code === 'pending-withdrawals' && numbers?.pendingWithdrawalsGwei === 0n,
      }
  for (const [codes, reason] of lacks) {
    const broken = because(codes)
    if (broken.length === 0) continue
    const isForUnseen = broken.includes('amount-over-available') && numbers !== undefined && askedOf(order) <= numbers.availableGwei
    return { halt: stall(reason, lacking(reason, broken, order, numbers, isForUnseen)), isForUnseen }
  }
  return undefined
}

const seen = (halt: Halt): Refusal => ({ halt, isForUnseen: false })

const askedOf = ({ amountGwei = '' }: RequestOrder): Gwei => gwei(/^[0-9]{1,20}$/.test(amountGwei) ? BigInt(amountGwei) : 0n)

function forbidden(reason: Reason, broken: readonly string[]): string {
  if (reason === 'InvalidSpec') return "spec.validator.pubkey is not a BLS public key: it is not a point of the curve's subgroup."
  if (broken.includes('several-networks'))
    return 'Several networks of the staking API have a validator with this public key, and it cannot tell which is meant.'
  return `The staking API refused the request, as the consensus layer would drop it: ${meaningsOf(broken)}. Nothing was signed.`
}

function passing(code: string, { network }: FoundValidator, numbers: WithdrawalCapacityBody | undefined): string {
  switch (code) {
    case 'not-active':
      return 'The validator is not active yet: it waits for its activation. It goes on by itself.'
    case 'too-young': {
      const from = numbers?.earliestEligibleEpoch
      return `The validator has to be active for some time before it may do this (rule too-young; 256 epochs on public networks)${from === undefined ? '' : `: it may from ${whenEpoch(network, from)} on`}. It goes on by itself.`
    }
    case 'pending-withdrawals':
      return numbers?.pendingWithdrawalsGwei === 0n
        ? UNSEEN_EXIT
        : `Partial withdrawals${numbers === undefined ? '' : ` of ${formatEth(numbers.pendingWithdrawalsGwei)} ETH in all`} are still to be paid, and a full exit is possible after them (rule pending-withdrawals). It goes on by itself.`
    default:
      return "The network's queue of partial withdrawals is full (rule withdrawal-queue-full). It goes on by itself."
  }
}

/** Down to a hundredth: a balance grows with every epoch, and the message would change with it. */
const roundly = (amount: Gwei): string => formatEth(gwei(amount - (amount % 10_000_000n)))

function lacking(
  reason: Reason,
  broken: readonly string[],
  order: RequestOrder,
  numbers: WithdrawalCapacityBody | undefined,
  isForUnseen: boolean,
): string {
  const refused = `The staking API refused the request: ${meaningsOf(broken)}`
  if (numbers === undefined) return `${refused}. Nothing was signed.`
  const { balanceGwei, effectiveBalanceGwei, pendingWithdrawalsGwei, availableGwei } = numbers
  if (reason === 'ValidatorNotEligible') return `${refused}: it is ${formatEth(effectiveBalanceGwei)} ETH. Nothing was signed.`
  const asked = askedOf(order)
  if (isForUnseen)
    return `${refused}. ${asked} gwei (${formatEth(asked)} ETH) are asked for, and of some ${roundly(availableGwei)} ETH that are available, too much is promised to other withdrawals of this validator that the beacon chain does not show yet. Nothing was signed. It is asked again. Delete the ValidatorWithdrawals that are not to be sent any more, or create a resource with a lower amount.`
  return `${refused}. ${asked} gwei (${formatEth(asked)} ETH) are asked for, and some ${roundly(availableGwei)} ETH are available: the balance is some ${roundly(balanceGwei)} ETH, of which 32 ETH must stay and ${formatEth(pendingWithdrawalsGwei)} ETH are in withdrawals that are still to be paid. Nothing was signed. Create a resource with a lower amount.`
}

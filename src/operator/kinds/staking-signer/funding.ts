import { AmountError, formatSol, formatWeiAsEth, lamports, parseEth, wei } from '../../../lib/amounts.ts'
import type { Instant } from '../../../lib/clock.ts'
import { type Statement, someOf, timestamp } from '../../../resources/conditions.ts'
import type { StakingSigner, StakingSignerStatus } from '../../../resources/staking-signer.ts'
import { say } from '../../engine/progress.ts'

/** What an address holds, by the last reading, and what waits to be paid from it: in wei or lamports. */
export interface Funds {
  readonly balance: bigint
  readonly needed: bigint
  readonly at: Instant
  /** It can't be read any more. */
  readonly isStale: boolean
}

export interface NetworkFunds {
  readonly name: string
  /** Undefined where the chain has never answered. */
  readonly funds?: Funds
  /** It isn't configured any more. */
  readonly isElsewhere?: true
}

/** Without news, the time of the last reading is written once in so long. */
const REFRESH_MS = 3_600_000

const inCoin = ({ spec }: StakingSigner, amount: bigint): string =>
  spec.chain === 'Solana' ? `${formatSol(lamports(amount))} SOL` : `${formatWeiAsEth(wei(amount))} ETH`

/** spec.minimumBalance in wei or lamports. Both coins have it with 9 decimals at most. */
function minimumOf({ spec }: StakingSigner): bigint {
  if (spec.minimumBalance === undefined) return 0n
  try {
    const billionths = parseEth(spec.minimumBalance)
    return spec.chain === 'Solana' ? billionths : billionths * 1_000_000_000n
  } catch (error) {
    // A spec that can't be read has its own condition.
    if (error instanceof AmountError) return 0n
    throw error
  }
}

const isShort = ({ funds }: NetworkFunds): boolean => funds !== undefined && funds.needed > funds.balance
/** Something waits that it can't pay. */
export const isShortOf = (networks: readonly NetworkFunds[]): boolean => networks.some(isShort)

/** The balances for people, and when they were read. */
export function balanceOf(
  signer: StakingSigner,
  networks: readonly NetworkFunds[],
): Pick<StakingSignerStatus, 'balance' | 'balanceReadAt'> {
  const known = networks.flatMap(({ name, funds }) => (funds === undefined ? [] : [{ name, ...funds }]))
  if (known.length === 0) return {}
  const balance = known
    .map((one) => `${inCoin(signer, one.balance)} on ${one.name}`)
    .join(', ')
    .slice(0, 1024)
  const at = known.map((one) => one.at).reduce((latest, one) => (one > latest ? one : latest))
  const { balance: before, balanceReadAt: readAt } = signer.status ?? {}
  const isFresh = readAt !== undefined && balance === before && at.getTime() - Date.parse(readAt) < REFRESH_MS
  return { balance, balanceReadAt: isFresh ? readAt : timestamp(at) }
}

/** Whether it can pay what waits, and holds what it should. */
export function fundingOf(signer: StakingSigner, networks: readonly NetworkFunds[]): Statement {
  const text = (amount: bigint): string => inCoin(signer, amount)
  const { address, minimumBalance } = signer.spec
  const short = networks.find(isShort)
  if (short?.funds !== undefined) {
    const { balance, needed } = short.funds
    return say(
      'False',
      'InsufficientFunds',
      `It has ${text(balance)} on ${short.name}, and ${text(needed)} wait to be paid from it, fees and all. Fund ${address} with ${text(needed - balance)} or more; it goes on by itself.`,
    )
  }
  const known = networks.flatMap(({ name, funds }) => (funds === undefined ? [] : [{ name, ...funds }]))
  const minimum = minimumOf(signer)
  const low = known.find(({ balance }) => balance < minimum && (balance > 0n || known.length === 1))
  if (low !== undefined)
    return say(
      'False',
      'BalanceLow',
      `It has ${text(low.balance)} on ${low.name}, and spec.minimumBalance is ${minimumBalance}. Fund ${address}.`,
    )
  const unread = networks.find(({ funds, isElsewhere }) => isElsewhere !== true && (funds === undefined || funds.isStale))
  if (unread?.funds !== undefined)
    return say(
      'Unknown',
      'ChainUnavailable',
      `Its balance on ${unread.name} cannot be read now. It was ${text(unread.funds.balance)} at ${timestamp(unread.funds.at)}.`,
    )
  if (unread !== undefined || known.length === 0)
    return say(
      'Unknown',
      'Pending',
      `${unread?.name ?? 'No network'} could ${unread === undefined ? '' : 'not '}be asked for the balance yet.`,
    )
  const funded = known.filter(({ balance }) => balance > 0n).map(({ name }) => name)
  if (funded.length > 0) return say('True', 'Succeeded', `It has funds on ${someOf(funded)}, and nothing waits for more.`)
  return say(
    'False',
    'InsufficientFunds',
    `Its balance is 0 on ${someOf(known.map(({ name }) => name))}. Fund ${address} before it is used.`,
  )
}

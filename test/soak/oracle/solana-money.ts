import type { Evidence } from './evidence.ts'
import { paidWhileHeld } from './money.ts'
import type { Action } from './solana.ts'
import { ofKind, type SolanaWish, wishName } from './wishes.ts'

/** How a stake account was funded: what it was given before or as it was made. */
interface Funded {
  readonly account: string
  readonly lamports: bigint
  readonly staker: string
  readonly withdrawer: string
  readonly vote: string | undefined
  readonly signature: string
  readonly block: number
}

/** The stake accounts that were made, each by one transaction. */
export const funded = ({ solana }: Pick<Evidence, 'solana'>): readonly Funded[] =>
  solana.landed.flatMap(({ signature, slot, actions }) =>
    actions.flatMap((made) => {
      if (made.is !== 'initialize') return []
      const { account, staker, withdrawer } = made
      const delegated = actions.find((one) => one.is === 'delegate' && one.account === account)
      return [
        {
          account,
          staker,
          withdrawer,
          lamports: actions.reduce((sum, one) => sum + given(one, account), 0n),
          vote: delegated?.is === 'delegate' ? delegated.vote : undefined,
          signature,
          block: slot,
        },
      ]
    }),
  )

const given = (action: Action, account: string): bigint =>
  (action.is === 'create' && action.account === account) || (action.is === 'transfer' && action.to === account) ? action.lamports : 0n

export const fundedFor = (all: readonly Funded[], wish: SolanaWish): readonly Funded[] =>
  all.filter(({ lamports, staker, withdrawer }) => lamports === wish.lamports && staker === wish.staker && withdrawer === wish.withdrawer)

const order = ['Active', 'Inactive', 'Withdrawn'] as const
const isAsked = (wish: SolanaWish | undefined, state: (typeof order)[number]): boolean =>
  wish !== undefined && order.indexOf(wish.desired) >= order.indexOf(state)

/** Each stake was made once at the most, as it was asked for; money moves to stake accounts and, when it is asked for, back to its owner. */
export function solanaMoney(evidence: Evidence): readonly string[] {
  const wishes = ofKind(evidence.wishes, 'SolanaStake')
  const all = funded(evidence)
  const wishOf = (account: string): SolanaWish | undefined => {
    const found = all.find((one) => one.account === account)
    return found === undefined ? undefined : wishes.find((wish) => fundedFor([found], wish).length > 0)
  }
  const actions = evidence.solana.landed.flatMap((one) => one.actions.map((action) => ({ ...one, action })))
  return [
    ...wishes.flatMap((wish) => {
      const own = fundedFor(all, wish)
      return [
        ...(own.length <= 1 ? [] : [`${wishName(wish)} was paid ${own.length} times: ${own.map(({ account }) => account).join(', ')}`]),
        ...own
          .filter(({ vote }) => vote !== wish.vote)
          .map(({ account, vote }) => `${wishName(wish)}: ${account} was delegated to ${vote}, not to ${wish.vote}`),
        ...paidWhileHeld(wish, own),
      ]
    }),
    ...all
      .filter(({ account }) => wishOf(account) === undefined)
      .map(({ account, lamports }) => `stake account ${account} of ${lamports} lamports is nobody's wish`),
    ...actions.flatMap(({ action, signature }) => unasked(action, wishOf, all).map((what) => `${what} (${signature})`)),
  ]
}

function unasked(action: Action, wishOf: (account: string) => SolanaWish | undefined, all: readonly Funded[]): readonly string[] {
  switch (action.is) {
    case 'unknown':
      return [`an instruction that is none of a stake's: ${action.what}`]
    case 'create':
      return all.some(({ account }) => account === action.account) ? [] : [`${action.account} was funded and is no stake account`]
    case 'transfer':
      return all.some(({ account }) => account === action.to) ? [] : [`${action.lamports} lamports went to ${action.to}`]
    case 'deactivate':
      return isAsked(wishOf(action.account), 'Inactive') ? [] : [`${action.account} was deactivated, and nobody asked for that`]
    case 'withdraw': {
      const wish = wishOf(action.account)
      if (!isAsked(wish, 'Withdrawn')) return [`${action.account} was withdrawn from, and nobody asked for that`]
      return action.to === wish?.withdrawer ? [] : [`${action.account} was withdrawn to ${action.to}`]
    }
    default:
      return []
  }
}

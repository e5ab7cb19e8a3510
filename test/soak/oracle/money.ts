import type { Deposit } from './ethereum.ts'
import type { Evidence } from './evidence.ts'
import { ofKind, type StakeWish, type Validator, type Wish, wishName } from './wishes.ts'

/** Groups of a list, made once: thousands of wishes are judged by each look, and a look must not hold up the chains that live in the same process. */
function groupedOnce<T>(keyOf: (one: T) => string): (list: readonly T[], key: string) => readonly T[] {
  const known = new WeakMap<readonly T[], Map<string, T[]>>()
  return (list, key) => {
    const groups = known.get(list) ?? Map.groupBy(list, keyOf)
    known.set(list, groups)
    return groups.get(key) ?? []
  }
}
const termsOf = ({ amountGwei, credentials }: { readonly amountGwei: bigint; readonly credentials: string }): string =>
  `${amountGwei} ${credentials}`
const depositsOf = groupedOnce<Deposit>(termsOf)
const asked = ({ pubkey, amountGwei }: { readonly pubkey: string; readonly amountGwei: bigint }): string => `${pubkey} ${amountGwei}`
const requestsOf = groupedOnce<Evidence['ethereum']['requests'][number]>(asked)
const wishesNamed = groupedOnce<Wish>(wishName)

/** The deposits that are for a stake: of its amount, to its credentials. */
export const depositsFor = ({ ethereum }: Pick<Evidence, 'ethereum'>, wish: StakeWish): readonly Deposit[] =>
  depositsOf(ethereum.deposits, termsOf(wish))

/** The public key of a validator; of a stake that one, if any, that was paid for it. */
function pubkeyOf(evidence: Evidence, namespace: string, validator: Validator): string | undefined {
  if ('pubkey' in validator) return validator.pubkey
  const [wish] = wishesNamed(evidence.wishes, wishName({ kind: 'EthereumStake', namespace, name: validator.stake }))
  return wish?.kind === 'EthereumStake' ? depositsFor(evidence, wish)[0]?.pubkey : undefined
}

/** What the chain has of EIP-7002 requests for an exit or a withdrawal. */
export function requestsFor(evidence: Evidence, wish: Wish & { readonly kind: 'ValidatorExit' | 'ValidatorWithdrawal' }) {
  const pubkey = pubkeyOf(evidence, wish.namespace, wish.validator)
  const amountGwei = wish.kind === 'ValidatorExit' ? 0n : wish.amountGwei
  return pubkey === undefined ? [] : requestsOf(evidence.ethereum.requests, asked({ pubkey, amountGwei }))
}

/** Each wish was paid once at the most, and nothing was paid that nobody asked for, nor otherwise than it was asked for. */
export function ethereumMoney(evidence: Evidence): readonly string[] {
  const { ethereum, wishes, terms } = evidence
  const stakes = ofKind(wishes, 'EthereumStake')
  const requests = [...ofKind(wishes, 'ValidatorExit'), ...ofKind(wishes, 'ValidatorWithdrawal')]
  const byKey = Map.groupBy(ethereum.deposits, ({ pubkey }) => pubkey)
  const wished = new Set(stakes.map(termsOf))
  const requested = new Set(requests.flatMap((wish) => requestsFor(evidence, wish)))
  return [
    ...stakes.flatMap((wish) => moreThanOne(wish, depositsFor(evidence, wish))),
    ...ethereum.deposits
      .filter((deposit) => !wished.has(termsOf(deposit)))
      .map(({ amountGwei, credentials, hash }) => `a deposit of ${amountGwei} gwei to ${credentials} is nobody's wish (${hash})`),
    ...[...byKey].filter(([, all]) => all.length > 1).map(([pubkey, all]) => `${all.length} deposits for validator ${pubkey}`),
    ...requests.flatMap((wish) => moreThanOne(wish, requestsFor(evidence, wish))),
    ...ethereum.requests
      .filter((request) => !requested.has(request))
      .map(({ pubkey, amountGwei, hash }) => `a request of ${amountGwei} gwei for ${pubkey} is nobody's wish (${hash})`),
    ...ethereum.requests
      .filter(({ source }) => source !== terms.signer)
      .map(({ source, hash }) => `a request was sent by ${source}, which is not the signer (${hash})`),
    ...stakes.flatMap((wish) => paidWhileHeld(wish, depositsFor(evidence, wish))),
    ...requests.flatMap((wish) => paidWhileHeld(wish, requestsFor(evidence, wish))),
  ]
}

const moreThanOne = (wish: Wish, paid: readonly { readonly hash: string; readonly block: number }[]): readonly string[] =>
  paid.length <= 1
    ? []
    : [`${wishName(wish)} was paid ${paid.length} times: ${paid.map(({ hash, block }) => `${hash} in block ${block}`).join(', ')}`]

/** Nothing of it was on its way when it was held: whatever lands after that was signed against the owner's word. */
export const paidWhileHeld = (wish: Wish, paid: readonly { readonly block: number }[]): readonly string[] =>
  wish.holds.flatMap(({ why, from, until = Number.POSITIVE_INFINITY }) =>
    paid
      .filter(({ block }) => block > from && block < until)
      .map(({ block }) => `${wishName(wish)} was ${why} at ${from} and was paid at ${block}`),
  )

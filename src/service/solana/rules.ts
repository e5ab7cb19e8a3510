import { isAddress, isOnCurve } from '../../chains/solana/addresses.ts'
import type { ChainAccount, VoteAccountAnswer } from '../../chains/solana/chain.ts'
import { unfitDestination } from '../../chains/solana/destination.ts'
import type { ProblemDetail } from '../../contract/problems.ts'

/** The largest amount that the builders of transactions take exactly: nine million SOL. */
const maxLamports = BigInt(Number.MAX_SAFE_INTEGER)

/**
 * What can be told of a new stake without the cluster. Who must sign has to be on the curve: for an address off it nobody can, and the stake
 * could never be deactivated or withdrawn.
 */
export function brokenAddressRules(given: {
  readonly stakeAuthority: string
  readonly withdrawAuthority: string
  readonly feePayer: string
  readonly voteAccount: string | undefined
}): readonly ProblemDetail[] {
  const { stakeAuthority, withdrawAuthority, feePayer, voteAccount } = given
  const signers = Object.entries({ stakeAuthority, withdrawAuthority, feePayer }).flatMap(([field, address]) => notASigner(field, address))
  if (voteAccount === undefined)
    return [
      ...signers,
      {
        pointer: '/body/voteAccount',
        code: 'vote-account-required',
        detail: 'name a vote account: the service has none of its own choice',
      },
    ]
  return isAddress(voteAccount) ? signers : [...signers, invalidAddress('voteAccount', voteAccount)]
}

/** Who pays for a transaction signs it. */
export const brokenFeePayerRules = (feePayer: string): readonly ProblemDetail[] => notASigner('feePayer', feePayer)

/**
 * Money goes where its owner can spend it again (see `unfitDestination`), and not to the stake account itself, which is closed by the withdrawal.
 * @param account What the cluster shows at the destination.
 * @param exception The client names the destination as an exception: a program is meant to give the money back.
 */
export function brokenDestinationRules(given: {
  readonly destination: string
  readonly stakeAccount: string
  readonly account: ChainAccount | undefined
  readonly exception: boolean
}): readonly ProblemDetail[] {
  const { destination, stakeAccount, account, exception } = given
  const broken = (code: string, detail: string): readonly ProblemDetail[] => [{ pointer: '/body/destination', code, detail }]
  if (destination === stakeAccount) return broken('destination-is-stake', 'the destination is the stake account itself')
  const unfit = unfitDestination(destination, account)
  if (unfit === undefined || (unfit.mayBeMeant && exception)) return []
  const hint = unfit.mayBeMeant ? ' (if a program gives it back to you, say destinationException: true)' : ''
  return broken(unfit.code, `the money would be lost at ${destination}: it ${unfit.what}${hint}`)
}

const notASigner = (field: string, address: string): readonly ProblemDetail[] =>
  isOnCurve(address)
    ? []
    : [invalidAddress(field, address, 'an address that can sign: no key has this one (off the curve, or of small order)')]

const invalidAddress = (field: string, address: string, what = ''): ProblemDetail =>
  isAddress(address)
    ? { pointer: `/body/${field}`, code: 'address-off-curve', detail: `${field} must be ${what}` }
    : { pointer: `/body/${field}`, code: 'invalid-address', detail: `${field} is not a Solana address: base58 of 32 bytes` }

/** The rules of the cluster for the amount: its rent reserve and its minimum delegation, both in lamports, as it tells them now. */
export function brokenAmountRules(amount: bigint, rent: bigint, minimumDelegation: bigint): readonly ProblemDetail[] {
  const least = rent + minimumDelegation
  if (amount >= least && amount <= maxLamports) return []
  const rule =
    amount < least
      ? `at least ${least} lamports are needed (${rent} of rent reserve, ${minimumDelegation} of minimum delegation)`
      : `at most ${maxLamports} lamports are possible`
  return [{ pointer: '/body/amountLamports', code: 'amount-out-of-range', detail: `${rule}, not ${amount}` }]
}

/** A validator that doesn't vote earns nothing. */
export function brokenVoteRules(answer: VoteAccountAnswer): readonly ProblemDetail[] {
  const broken = (code: string, detail: string) => [{ pointer: '/body/voteAccount', code, detail }]
  switch (answer.kind) {
    case 'missing':
      return broken('vote-account-missing', 'the vote account does not exist')
    case 'not-a-vote-account':
      return broken('not-a-vote-account', 'the account is not a vote account')
    case 'not-voting':
      return broken('vote-account-delinquent', 'the vote account has no stake and does not vote')
    case 'vote-account': {
      const { delinquent, commission, blsKey, needsBlsKey } = answer.account
      if (delinquent) return broken('vote-account-delinquent', "the vote account's validator is delinquent: it does not vote")
      if (commission !== undefined && commission >= 100) {
        return broken('vote-account-keeps-rewards', `the validator keeps ${commission} % of the rewards: a stake there earns nothing`)
      }
      if (needsBlsKey === true && blsKey !== true) {
        return broken(
          'vote-account-without-bls-key',
          'the vote account names no BLS key, by which the cluster admits validators: a stake there earns nothing',
        )
      }
      return []
    }
  }
}

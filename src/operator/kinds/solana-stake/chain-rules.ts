import type { VoteAccount } from '../../../chains/solana/chain.ts'
import { unfitDestination } from '../../../chains/solana/destination.ts'
import { stakeAccountSpace } from '../../../chains/solana/programs.ts'
import { formatSol, lamports } from '../../../lib/amounts.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { type Halt, stall, wait } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import type { Parties } from './parties.ts'
import type { SolanaRequests } from './request.ts'
import type { SolanaPlan, SolanaStakeRequest, StakeTerms } from './steps.ts'

const sol = (amount: bigint): string => formatSol(lamports(amount))

/** Why a stake with this validator earns nothing; undefined where it may. */
export const earnsNothing = ({ commission, blsKey, needsBlsKey }: VoteAccount): string | undefined =>
  commission !== undefined && commission >= 100
    ? `keeps ${commission} % of the rewards`
    : needsBlsKey === true && blsKey !== true
      ? 'names no BLS key, by which the cluster admits validators (SIMD-0357)'
      : undefined

/** A destination that the owner of the withdraw authority's key has named, though its account is a program's. */
export const isException = ({ spec }: StakingSigner, destination: string): boolean =>
  spec.policy.destinationExceptions?.includes(destination) === true

/** Lamports that are more than the rent reserve of an account without data has ever been (890,880): the cluster need not be asked. */
const ASK_FOR_RENT = 10_000_000n

/** What only the chain can say of a spec: whether its destination takes money, its vote account votes, its amount is enough and there. */
export function createSolanaStakeRules({ networkOf, amountOf }: Pick<SolanaRequests, 'networkOf' | 'amountOf'>) {
  /** What takes no lamports, or doesn't give them back. Asked before anything is paid, and again before it is withdrawn. */
  async function assertCanReceive(
    { kind }: SolanaPlan,
    network: SolanaNetwork,
    { destination, withdrawAuthority, withdrawer }: Parties,
    terms: StakeTerms,
    signal: AbortSignal,
  ): Promise<void> {
    const isItself = destination === terms.stakeAccount
    const unfit = isItself ? undefined : unfitDestination(destination, await network.chain.account(destination, 'confirmed', signal))
    if (!isItself && (unfit === undefined || (unfit.mayBeMeant && isException(withdrawer, destination)))) return
    const what = unfit?.what ?? 'is the stake account itself'
    const hint =
      unfit?.mayBeMeant === true
        ? ` If a program gives the money back from there, the owner of StakingSigner ${withdrawer.metadata.name} can add it to spec.policy.destinationExceptions.`
        : ''
    throw stall(
      'InvalidSpec',
      `${destination === withdrawAuthority ? "The withdraw authority's own address" : 'spec.destination'} ${destination} ${what}: money that goes there is lost.${hint} ${kind === 'stake' ? 'Nothing was paid. Delete this resource, and create one with another destination under another name.' : `Nothing was signed. Delete this resource (annotation staking.dev/confirm-delete: no money moves by that), and create one with another destination and spec.adopt.stakeId ${terms.stakeId}.`}`,
    )
  }

  /** A validator may have stopped since the stake was created, or since its transaction was; and what it keeps must be admitted by who pays. */
  async function assertVotes(
    network: SolanaNetwork,
    voteAccount: string,
    { metadata, spec }: StakingSigner,
    signal: AbortSignal,
  ): Promise<void> {
    const found = await network.chain.voteAccount(voteAccount, signal)
    if (found.kind === 'vote-account' && !found.account.delinquent) {
      const idle = earnsNothing(found.account)
      if (idle !== undefined)
        throw stall(
          'RequestRefused',
          `Vote account ${voteAccount} ${idle}: a stake with it earns nothing. No transaction was signed, and nothing was paid. To stake with another, delete this resource and create one under another name.`,
        )
      const most = spec.policy.maxCommissionPercent
      const { commission } = found.account
      if (most === undefined || (commission !== undefined && commission <= most)) return
      throw stall(
        'VoteAccountNotAllowed',
        `Vote account ${voteAccount} keeps ${commission === undefined ? 'a commission that its account does not tell' : `${commission} % of the rewards`}, and StakingSigner ${metadata.name} admits ${most} % (spec.policy.maxCommissionPercent). No transaction was signed, and nothing was paid.`,
      )
    }
    const goesOn = 'It goes on when it votes again; to stake with another, delete this resource and create one under another name.'
    const problem = {
      missing: 'does not exist. Create a resource under another name with the right one.',
      'not-a-vote-account': 'is not a vote account. Create a resource under another name with the right one.',
      'not-voting': `has no stake and does not vote. ${goesOn}`,
      'vote-account': `is delinquent: its validator does not vote now. ${goesOn}`,
    }[found.kind]
    throw stall('RequestRefused', `Vote account ${voteAccount} ${problem} No transaction was signed, and nothing was paid.`)
  }

  /** What is too little, or too much, with the cluster's numbers; undefined for an amount that is neither. */
  async function amountProblem(request: SolanaStakeRequest, signal: AbortSignal): Promise<Halt | undefined> {
    const { chain } = networkOf(request.network)
    const [rent, delegation] = await Promise.all([chain.rentExemption(stakeAccountSpace, signal), chain.minimumDelegation(signal)])
    const amount = amountOf(request)
    const most = BigInt(Number.MAX_SAFE_INTEGER)
    if (amount >= rent + delegation && amount <= most) return undefined
    const rule =
      amount > most
        ? `at most ${sol(most)} SOL can be staked at once`
        : `a stake needs at least ${sol(rent + delegation)} SOL on ${request.network} now: ${sol(rent)} of rent reserve, which come back, and ${sol(delegation)} of minimum delegation`
    return stall(
      'RequestRefused',
      `spec.amountLamports is ${amount} (${sol(amount)} SOL); ${rule}. No transaction was signed. Create a resource with another amount, under another name if a stake was made for this one.`,
    )
  }

  /** What the payer must have: said with numbers, before the cluster refuses without. */
  async function assertFunds(network: SolanaNetwork, plan: SolanaPlan, payer: string, fee: bigint, signal: AbortSignal) {
    const balance = await network.chain.balance(payer, 'confirmed', signal)
    const amount = plan.kind === 'stake' ? amountOf(plan.request) : 0n
    const left = balance - amount - fee
    const short = (more: string) =>
      wait(
        'InsufficientFunds',
        `${payer} has ${sol(balance)} SOL; ${amount === 0n ? '' : `the stake of ${sol(amount)} and `}a fee of ${sol(fee)} need ${sol(amount + fee)}${more}. Fund the address; it goes on by itself.`,
        30_000,
      )
    if (left < 0n) throw short('')
    if (left === 0n || left >= ASK_FOR_RENT) return
    const rent = await network.chain.rentExemption(0, signal)
    if (left < rent && balance >= rent) throw short(`, and an account keeps either nothing or at least ${sol(rent)}, not ${sol(left)}`)
  }

  return { assertCanReceive, assertVotes, assertFunds, amountProblem }
}

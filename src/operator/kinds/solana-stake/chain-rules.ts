import { stakeAccountSpace, sysvarOwner } from '../../../chains/solana/programs.ts'
import { type Halt, stall } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import type { Parties, SolanaRequests } from './request.ts'
import type { SolanaPlan, SolanaStakeRequest, StakeTerms } from './steps.ts'

/** What only the chain can say of a spec: whether its destination takes money, its vote account votes, its amount is enough. */
export function createSolanaStakeRules({ networkOf, amountOf }: Pick<SolanaRequests, 'networkOf' | 'amountOf'>) {
  /** What takes no lamports, or doesn't give them back. Asked before anything is paid, and again before it is withdrawn. */
  async function assertCanReceive(
    { kind }: SolanaPlan,
    network: SolanaNetwork,
    { destination, withdrawAuthority }: Parties,
    terms: StakeTerms,
    signal: AbortSignal,
  ): Promise<void> {
    if (destination === withdrawAuthority) return
    const account = destination === terms.stakeAccount ? undefined : await network.chain.account(destination, 'confirmed', signal)
    const what =
      destination === terms.stakeAccount
        ? 'the stake account itself'
        : account?.executable === true
          ? 'a program'
          : account?.owner === sysvarOwner
            ? 'a sysvar of the cluster'
            : undefined
    if (what === undefined) return
    throw stall(
      'InvalidSpec',
      `spec.destination ${destination} is ${what}, which no money can be withdrawn to. ${kind === 'stake' ? 'Nothing was paid. Delete this resource, and create one with another destination under another name.' : `Nothing was signed. Delete this resource (annotation staking.dev/confirm-delete: no money moves by that), and create one with another destination and spec.adopt.stakeId ${terms.stakeId}.`}`,
    )
  }

  /** A validator may have stopped since the stake was created, or since its transaction was. */
  async function assertVotes(network: SolanaNetwork, voteAccount: string, signal: AbortSignal): Promise<void> {
    const found = await network.chain.voteAccount(voteAccount, signal)
    if (found.kind === 'vote-account' && !found.account.delinquent) return
    const goesOn = 'It goes on when it votes again; to stake with another, delete this resource and create one under another name.'
    const problem = {
      missing: 'does not exist. Create a resource under another name with the right one.',
      'not-a-vote-account': 'is not a vote account. Create a resource under another name with the right one.',
      'not-voting': `has no stake and does not vote. ${goesOn}`,
      'vote-account': `is delinquent: its validator does not vote now. ${goesOn}`,
    }[found.kind]
    throw stall('RequestRefused', `Vote account ${voteAccount} ${problem} Nothing was signed or paid.`)
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
        ? `at most ${most} lamports can be staked at once`
        : `a stake needs at least ${rent + delegation} lamports on ${request.network} now: ${rent} of rent reserve, which come back, and ${delegation} of minimum delegation`
    return stall(
      'RequestRefused',
      `spec.amountLamports is ${amount}; ${rule}. Nothing was signed. Create a resource with another amount, under another name if a stake was made for this one.`,
    )
  }

  return { assertCanReceive, assertVotes, amountProblem }
}

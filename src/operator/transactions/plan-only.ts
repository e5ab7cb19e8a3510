import { formatEth, gwei } from '../../lib/amounts.ts'
import { type Plan, type ShownPlan, withHash } from '../../resources/plan.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import { Halt, wait } from '../engine/verdict.ts'
import { inWords, isRequired, requirementOf } from './approval-rules.ts'
import { LOOK_AGAIN_MS } from './owner.ts'

/**
 * The end of a resource that is only planned (spec.mode: Plan): everything was verified, nothing is written to the log. The step absorbs the plan, and what
 * else it found out. `signers`: whose keys would sign it. An approval of the plan may be given before it is applied: it has the same hash then.
 */
export function plannedOnly<Evidence extends object>(plan: Plan, signers: readonly StakingSigner[], found: Evidence): Halt {
  const shown = withHash(plan)
  return wait('Planned', `${wordsOf(shown)}${approvalsOf(shown, signers)}`, LOOK_AGAIN_MS).with({ ...found, plan: shown })
}

/** Which approvals it would wait for, as sentences. */
function approvalsOf(plan: ShownPlan, signers: readonly StakingSigner[]): string {
  const byName = new Map(signers.map((signer) => [signer.metadata.name, signer]))
  return [...byName.values()]
    .flatMap(({ metadata, spec }) => {
      const asked = requirementOf(spec)
      // A policy that can't be read admits nothing: that was told before.
      if (asked === undefined || 'problem' in asked || !isRequired(asked, plan)) return []
      return ` Before that, StakingSigner ${metadata.name} asks for ${inWords(asked)} (spec.policy.approval).`
    })
    .join('')
}

/** Why a step is not done says nothing of a plan that was shown before: that one is taken back. */
export async function forgettingPlan<T>(shown: object, take: () => Promise<T>): Promise<T> {
  try {
    return await take()
  } catch (error) {
    throw error instanceof Halt && error.evidence === undefined ? error.with(shown) : error
  }
}

const verbs = {
  Deposit: 'deposit',
  Exit: 'ask for the exit of',
  Withdrawal: 'ask for',
  SolanaStake: 'stake',
  SolanaDeactivation: 'deactivate',
  SolanaWithdrawal: 'withdraw all of',
  SolanaAuthorization: 'hand over the authorities of',
} as const satisfies Record<Plan['purpose'], string>

function wordsOf(plan: ShownPlan): string {
  const { purpose, amount, network, signer, from, subject, withdrawalAddress, destination, hash } = plan
  const coins = amount === undefined ? undefined : `${formatEth(gwei(BigInt(amount)))} ${plan.genesisHash === undefined ? 'ETH' : 'SOL'}`
  const what = coins === undefined ? subject : `${coins} ${purpose === 'Withdrawal' ? 'of' : 'for'} ${subject}`
  const home = withdrawalAddress ?? destination
  return `spec.mode is Plan, and nothing is signed. With Apply, StakingSigner ${signer} (${from}) would ${verbs[purpose]} ${what} on ${network}${home === undefined ? '' : `, which comes back to ${home}`}. status.plan has all of it (hash ${hash.slice(0, 16)}…).`
}

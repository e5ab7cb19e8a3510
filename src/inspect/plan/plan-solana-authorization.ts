import { isAddress, isOnCurve } from '../../chains/solana/addresses.ts'
import { ownSteps } from '../../operator/kinds/solana-stake/records.ts'
import { admitSolanaStake, admitSuccessor } from '../../operator/transactions/policy.ts'
import { handedOver } from '../../operator/transactions/solana/authorities.ts'
import type { SolanaStake } from '../../resources/solana-stake.ts'
import { type SolanaStakeAuthorizationSpec, solanaStakeAuthorization } from '../../resources/solana-stake-authorization.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import { tellApprovals } from './approvals.ts'
import { type Draft, refuse } from './draft.ts'
import { askPolicy, isSigned, type PlanContext, type Subject, signerNamed, tellIdle } from './subject.ts'

const { kind } = solanaStakeAuthorization

type Role = 'stake' | 'withdraw'
/** Who is to have an authority. */
interface Successor {
  readonly role: Role
  /** Undefined where its signer is not known. */
  readonly address: string | undefined
  readonly signer: StakingSigner | undefined
}

/** What applying a SolanaStakeAuthorization would do. */
export function planSolanaAuthorization(draft: Draft, subject: Subject<SolanaStakeAuthorizationSpec>, { world }: PlanContext): void {
  const { spec, own, former, namespace } = subject
  const signed = [...own, ...former].find(isSigned)
  if (signed !== undefined) {
    draft.does.push(`its hand-over was made before (StakingTransaction ${signed.metadata.name}): nothing is handed over again`)
    return
  }
  const successors = (['stake', 'withdraw'] as const).flatMap((role) => successorOf(draft, role, spec, world))
  for (const { role, address, signer } of successors)
    draft.does.push(
      `hands the ${role} authority of SolanaStake ${spec.stakeRef.name} over, once, to ${address ?? 'a signer that is not known here'}${signer === undefined ? '' : ` (StakingSigner ${signer.metadata.name})`}${role === 'withdraw' ? ': whoever has it owns the money' : ''}`,
    )
  const stake = stakeOf(draft, subject, world)
  if (stake !== undefined) askHolders(draft, { subject, stake, successors, world })
  for (const { address, signer } of successors) {
    if (signer === undefined || address === undefined) continue
    const destination = stake?.spec.destination ?? address
    askPolicy(draft, { world, signer, namespace }, `namespace ${namespace}, as the new holder of an authority`, (one, facts) =>
      admitSolanaStake(one, { namespace: facts, kind, destination }),
    )
  }
  tellIdle(draft, spec)
}

function successorOf(draft: Draft, role: Role, spec: SolanaStakeAuthorizationSpec, world: PlanContext['world']): readonly Successor[] {
  const given = spec[`${role}Authority`]
  if (given === undefined) return []
  if (given.signer !== undefined) {
    const signer = signerNamed(draft, world, given.signer)
    if (signer === undefined && world.knowsAllSigners)
      refuse(draft, { by: 'operator', reason: 'SignerNotFound', message: `There is no StakingSigner ${given.signer}.` })
    return [{ role, signer, address: signer?.spec.address }]
  }
  const { address = '' } = given
  if (!isAddress(address))
    refuse(draft, {
      by: 'operator',
      reason: 'InvalidSpec',
      message: `spec.${role}Authority.address is not a Solana address: it is not base58 of 32 bytes.`,
    })
  else if (!isOnCurve(address)) draft.unknown.push(`whether a program signs for ${address}: no key does, it is off the curve`)
  else draft.unknown.push(`whether anybody has the key of ${address}: nothing proves it`)
  return [{ role, signer: undefined, address }]
}

/** The stake; undefined where it is not known, or not there, which is told. */
function stakeOf(
  draft: Draft,
  { spec, namespace }: Subject<SolanaStakeAuthorizationSpec>,
  world: PlanContext['world'],
): SolanaStake | undefined {
  const { name } = spec.stakeRef
  const { known, all } = world.solanaStakes(namespace)
  const stake = known.find(({ metadata }) => metadata.name === name)
  if (stake === undefined && all)
    draft.waits.push({
      by: 'operator',
      reason: 'WaitingForStake',
      message: `There is no SolanaStake ${name} in namespace ${namespace}. It goes on when there is, and once it is paid.`,
    })
  else if (stake === undefined)
    draft.unknown.push(`who has the authorities now: SolanaStake ${name} is not in these manifests, and no cluster tells of it`)
  else if (stake.status?.transactions?.stake?.state !== 'Confirmed')
    draft.waits.push({
      by: 'operator',
      reason: 'WaitingForStake',
      message: `SolanaStake ${name} is not paid yet, for good. It goes on by itself.`,
    })
  return stake
}

/** Asks the policies of whoever has the authorities now, by the log. */
function askHolders(
  draft: Draft,
  {
    subject,
    stake,
    successors,
    world,
  }: {
    readonly subject: Subject<unknown>
    readonly stake: SolanaStake
    readonly successors: readonly Successor[]
    readonly world: PlanContext['world']
  },
): void {
  const { name } = stake.metadata
  const { namespace } = subject
  const records = (world.records ?? []).filter(({ spec }) => spec.chain === 'Solana')
  const { stake: paid } = ownSteps(
    {
      ofOwner: (of) =>
        records.filter(({ spec: { owner } }) => owner.kind === of.kind && owner.namespace === of.namespace && owner.name === of.name),
    },
    { kind: stake.kind, namespace, name, uid: undefined },
  )
  if (world.records === undefined) draft.unknown.push(`whether SolanaStake ${name} was handed over before: the log was not read`)
  const now = handedOver(paid === undefined ? [] : records.filter(({ spec }) => spec.subject === paid.spec.subject))
  const holders = {
    stake: now.stake === undefined ? stake.spec.stakeAuthority.signer : now.stake.signer,
    withdraw: now.withdraw === undefined ? stake.spec.withdrawAuthority.signer : now.withdraw.signer,
  }
  const successorAs = (role: Successor['role']): Successor | undefined => successors.find((one) => one.role === role)
  const addressOf = (role: Successor['role']): string | undefined => successorAs(role)?.address
  const asked = new Map<string, StakingSigner>()
  for (const role of ['stake', 'withdraw'] as const) {
    const holder = holders[role]
    const signer = holder === undefined ? undefined : signerNamed(draft, world, holder)
    if (signer === undefined) continue
    asked.set(signer.metadata.name, signer)
    const successor = addressOf(role)
    if (successor === undefined) continue
    askPolicy(draft, { world, signer, namespace }, `that its ${role} authority goes to ${successor}`, (one, facts) =>
      admitSuccessor(one, { namespace: facts, kind, role, successor, signer: successorAs(role)?.signer?.metadata.name }),
    )
  }
  for (const { signer } of successors) if (signer !== undefined) asked.set(signer.metadata.name, signer)
  if (draft.refusals.length === 0)
    for (const signer of asked.values())
      tellApprovals(draft, subject, signer, {
        purpose: 'SolanaAuthorization',
        amount: undefined,
        newStakeAuthority: addressOf('stake'),
        newWithdrawAuthority: addressOf('withdraw'),
      })
}

import { isRequired, requirementOf } from '../../operator/transactions/approval-rules.ts'
import { REQUESTED_BY_ANNOTATION } from '../../resources/meta.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import type { TransactionPurpose } from '../../resources/staking-transaction.ts'
import { type Draft, refuse } from './draft.ts'
import type { Subject } from './subject.ts'

/** Says whose approvals a signer's policy asks for before anything is signed. @param amount gwei or lamports; undefined where all that is there moves */
export function tellApprovals(
  draft: Draft,
  { isUnrecorded, live }: Pick<Subject<unknown>, 'isUnrecorded' | 'live'>,
  signer: StakingSigner,
  {
    purpose,
    amount,
    step,
    newStakeAuthority,
    newWithdrawAuthority,
  }: {
    readonly purpose: TransactionPurpose
    readonly amount: bigint | undefined
    /** Which of several steps it is, such as `its withdrawal`. */
    readonly step?: string
    readonly newStakeAuthority?: string | undefined
    readonly newWithdrawAuthority?: string | undefined
  },
): void {
  const requirement = requirementOf(signer.spec)
  if (requirement === undefined) return
  const { name } = signer.metadata
  if ('problem' in requirement) {
    refuse(draft, {
      by: 'operator',
      reason: 'PolicyUnreadable',
      message: `StakingSigner ${name}: ${requirement.problem}. It admits nothing until that is mended.`,
    })
    return
  }
  if (!isRequired(requirement, { purpose, amount: amount?.toString(), newStakeAuthority, newWithdrawAuthority })) return
  const { count, by } = requirement
  const whom = by.map(({ group, user }) => (user === undefined ? `group ${group}` : `user ${user}`)).join(' or ')
  const words = `${count} approval${count === 1 ? '' : 's'} of ${whom}${step === undefined ? '' : ` for ${step}`}, by StakingSigner ${name} (spec.policy.approval)`
  draft.approvals.push(words)
  if (isUnrecorded && !requirement.allowUnrecorded) {
    refuse(draft, { by: 'operator', reason: 'ApprovalUnproven', message: `It needs ${words}, and ${unprovable(live !== undefined)}` })
    return
  }
  draft.waits.push({
    by: 'operator',
    reason: 'ApprovalRequired',
    message: `It needs ${words}, of somebody else than who asks for it, before anything is signed.`,
  })
}

/** Why nobody can prove who has asked, and what to do about it. */
const unprovable = (isThere: boolean): string =>
  `nobody could prove who has asked for it: ${
    isThere
      ? `it was created without annotation ${REQUESTED_BY_ANNOTATION}, which cannot be added later. Create it anew with the user name of whoever applies it as that annotation.`
      : `this cluster does not write annotation ${REQUESTED_BY_ANNOTATION}. Add it, with the user name of whoever applies it: it cannot be added once it is there.`
  } Where that can't be, the owner of the signer can set policy.approval.allowUnrecorded.`

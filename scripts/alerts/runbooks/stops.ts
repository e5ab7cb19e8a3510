import { describe, goOn, keepFinalizers, keepLog, operatorLog, signers, stopSigner, transactions } from './commands.ts'
import type { Runbook } from './runbook.ts'

export const stopRunbooks: Readonly<Record<string, Runbook>> = {
  StakingOperatorSuspended: {
    meaning:
      'It may be meant: an incident that is still open. The alert is there so that nobody forgets the switch once the incident is over.',
    money:
      'No. Nothing is signed or sent. What was sent before the stop may still land, and is followed to its end; nothing is paid twice afterwards.',
    impact:
      'New stakes, exits and withdrawals wait with `OperatorSuspended`. A transaction that is too cheap is not outbid, and nothing is cancelled. Validators are not affected, but one that has to leave can’t.',
    look: [
      {
        shows: 'The switch, and who turned it, with what and when: look for the entry of `kubectl-annotate`.',
        run: `kubectl -n staking-system get lease staking-operator --show-managed-fields -o jsonpath='{.metadata.annotations}{"\\n"}{range .metadata.managedFields[*]}{.manager} {.operation} {.time}{"\\n"}{end}'`,
      },
      operatorLog('Since when, in the operator’s own words.', 'suspended by the annotation|not suspended any more', '48h'),
      { ...transactions, shows: 'What was signed before the stop. `Open` may still land; no higher price is signed for it now.' },
      {
        shows: 'How many resources wait for it.',
        query: 'sum by (kind) (staking_operator_waiting_resources{reason="OperatorSuspended"})',
      },
    ],
    causes: [
      { seen: 'an incident is open', cause: 'It is meant. Silence the alert until the incident ends, not for ever.' },
      { seen: 'the incident is closed', cause: 'It was forgotten.' },
      { seen: 'nobody knows of an incident', cause: 'Somebody who may change the Lease did it: ask the owner of that account first.' },
    ],
    mend: ['Find out who stopped it, and why: they saw something. Ask whether it is over.', goOn],
    escalate: 'To the person who stopped it, and then to the lead of the incident. At once, if an exit or a withdrawal has a deadline.',
    never: [
      'Let it go on because the alert is a nuisance. It was stopped for a reason.',
      'Delete the Lease to get rid of the annotation: nobody would know afterwards that it was there.',
      keepLog,
    ],
  },
  StakingSignerSuspended: {
    meaning:
      'It may be meant: a key that is being rotated, or that may have been stolen. The alert is there so that nobody forgets the switch.',
    money:
      'No. Nothing is signed with the key but what cancels, and nothing that it has signed is sent again. What was sent may still land.',
    impact: 'Resources of this signer wait with `SignerSuspended`. Other signers go on.',
    look: [
      { ...signers, shows: 'The signers: which are suspended, and what they hold.' },
      {
        shows: 'Who turned the switch, with what and when.',
        run: `kubectl get stakingsigner SIGNER --show-managed-fields -o jsonpath='{.spec.suspend}{"\\n"}{range .metadata.managedFields[*]}{.manager} {.operation} {.time}{"\\n"}{end}'`,
      },
      { shows: 'What the key has signed, and what of it may still land.', run: 'kubectl get stx --field-selector spec.signer=SIGNER' },
      {
        shows: 'How many resources wait for a signer that is suspended.',
        query: 'sum by (kind) (staking_operator_waiting_resources{reason="SignerSuspended"})',
      },
    ],
    causes: [
      { seen: 'the key is being rotated', cause: 'It is meant: [Rotate keys](../how-to/rotate-keys.md#a-signers-key).' },
      { seen: 'the key may be known to somebody else', cause: 'It is meant, and must stay so: the key is never used again.' },
      { seen: 'Git says `suspend: true`', cause: 'Whoever keeps the manifests did it; a change by hand would be put back.' },
      { seen: 'neither', cause: 'It was forgotten.' },
    ],
    mend: [
      'Ask whoever suspended it whether that is over.',
      {
        does: 'Once it is known why, let it go on. Where Git holds the signer, change it there:',
        run: stopSigner.run.replace('true', 'false'),
      },
      'A signer that is never used again: delete it once nothing of it is open and nothing names it, or silence the alert for its name.',
    ],
    escalate: 'To the owner of the key. At once, if nobody knows who suspended it.',
    never: ['Let a key go on that may have been stolen, however much waits for it.', keepLog],
  },
  StakingLimitReached: {
    meaning: 'A limit does what it is for: it gives somebody the time to look.',
    money:
      'Not beyond the limit. What fitted in was signed, and can’t be taken back. The rest is not signed; without you it goes by itself, as the window frees.',
    impact: 'What is over the limit waits, in its order. Other signers, and namespaces with limits of their own, go on.',
    look: [
      { shows: 'What waits, of whom, and when it goes.', run: 'kubectl get staking -A -o wide | grep LimitReached' },
      {
        shows: 'Each limit: what is used, what is left, and when the first of it frees.',
        run: `kubectl get stakingsigners -o jsonpath='{range .items[*]}{.metadata.name}{"\\n"}{range .status.limits[*]}  {.network} {.window} {.namespace} {.count} left {.countLeft} frees {.freesAt}{"\\n"}{end}{end}'`,
      },
      describe,
      {
        shows: 'What went in already: each transaction, with whose it is.',
        run: 'kubectl get stx --sort-by=.metadata.creationTimestamp -o wide',
      },
      { shows: 'How many wait, by kind.', query: 'sum by (kind) (staking_operator_waiting_resources{reason="LimitReached"})' },
      {
        shows: 'How long it takes until room is made, by limit.',
        query: 'max by (signer, network, window, per, namespace) (staking_operator_signer_limit_frees_timestamp_seconds) - time()',
      },
    ],
    causes: [
      {
        seen: 'many resources of one time and one owner',
        cause: 'A mistake: a loop, a wrong folder in Git, a script. Hold the key back first.',
      },
      { seen: 'nobody knows whose they are', cause: 'Somebody has got rights that they should not have.' },
      { seen: 'as many as were planned', cause: 'The limit is too tight for the plan, or the plan takes longer. Waiting is fine.' },
      { seen: 'one that is “more than that by itself”', cause: 'It never fits: the limit is lower than this amount.' },
    ],
    mend: [
      {
        ...stopSigner,
        does: 'If it is not plain that all of it is meant: stop the key, so that nothing goes as the window frees:',
      },
      'Take back what was a mistake: delete those that say `LimitReached`, in Git first where they come from there. What is not signed costs nothing.',
      { does: 'Once what is left is meant, let the key go on:', run: stopSigner.run.replace('true', 'false') },
      'Only if the owner of the key agrees: raise the limit (`spec.policy.limits`). It counts at once, for all that waits.',
    ],
    escalate: 'To the owner of the signer. At once, and to security, if nobody knows whose they are.',
    never: ['Raise a limit to get rid of the alert.', 'Delete resources that do not say `LimitReached`: those are paid.', keepFinalizers],
  },
  StakingApprovalsWait: {
    meaning: 'Four eyes are asked for, and two have not looked. It may be meant: whoever may approve it does not want it.',
    money: 'No. Nothing of it is signed before it is approved. Nothing else waits for it, and it takes no room of a limit.',
    impact: 'What waits does not happen: a deposit earns nothing yet, a validator that has to leave stays.',
    look: [
      { shows: 'What waits, and since when it is there.', run: 'kubectl get staking -A -o wide | grep ApprovalRequired' },
      {
        ...describe,
        shows:
          'What one of them says: whose approvals are asked for, who has given one, which ones do not count and why, and the command that approves it.',
      },
      {
        shows: 'The approvals that are there: of whom, for what, until when.',
        run: 'kubectl get stakingapprovals -A -o wide',
      },
      { shows: 'How many wait, by kind.', query: 'sum by (kind) (staking_operator_waiting_resources{reason="ApprovalRequired"})' },
      {
        shows: 'How long the oldest of each kind has waited, in seconds.',
        query: 'max by (kind) (staking_operator_oldest_wait_seconds{reason="ApprovalRequired"})',
      },
    ],
    causes: [
      { seen: 'no StakingApproval', cause: 'Nobody has looked: the approvers don’t know of it, or are away.' },
      { seen: '`its approver has asked for this`', cause: 'Whoever created or changed it has approved it: somebody else has to.' },
      {
        seen: '`it has expired`, or fewer than asked for',
        cause: 'The approvals came too far apart, or something was changed since: another plan.',
      },
      {
        seen: '`its approver may not approve this resource`',
        cause: 'They lack the verb `approve`: [Approvals](../how-to/approvals.md#who-may-approve).',
      },
    ],
    mend: [
      'Tell the approvers, with the name of the resource. They look at the plan themselves: what you tell them about it proves nothing.',
      'An approver looks at it with `kubectl staking approve NAME -n NAMESPACE`, which shows the plan and asks, and approves it or not.',
      'What nobody wants: its owner deletes it, in Git first where it comes from there.',
    ],
    escalate: 'To the owner of the signer, who says in its policy who approves. At once, if an exit or a withdrawal has a deadline.',
    never: [
      'Approve what you have not asked about, to get rid of the alert.',
      'Take approvals out of the signer’s policy to let one resource through: all others go as well.',
      keepFinalizers,
    ],
  },
}

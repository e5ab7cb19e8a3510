import { describe, goOn, keepFinalizers, keepLog, lookAgain, operatorLog, signers, stopAll, stopSigner, transactions } from './commands.ts'
import type { Runbook } from './runbook.ts'

export const moneyRunbooks: Readonly<Record<string, Runbook>> = {
  StakingMoneyInQuestion: {
    meaning:
      'The operator compared what it was told with what the resource asks for, or with what the chain shows, and they differ. It has stopped work on the resource by itself.',
    money:
      '**Possibly.** Nothing more is signed for the resource. With `FrontRun` a deposit has already gone to somebody else’s validator; with the others nothing is lost so far. Other resources that use the same staking API may be next.',
    impact: 'The resources named by the alert wait for a person. All others go on: decide first whether they should.',
    look: [
      { shows: 'Which resources are stalled, each with its reason.', run: 'kubectl get staking -A -o wide | grep Stalled' },
      describe,
      { ...signers, shows: 'Whether it is a signer: those aren’t in the list above by their phase.' },
      transactions,
      {
        shows: 'Whether it is one resource, or everything that goes through one staking API.',
        query: 'sum by (kind, reason) (staking_operator_stalled_resources) > 0',
      },
    ],
    causes: [
      {
        seen: '`VerificationFailed`',
        cause: 'The staking API’s answer differs from the spec: a wrong database or network behind it, or an attacker.',
      },
      { seen: '`PubkeyAlreadyDeposited`', cause: 'Somebody has deposited for this validator key before. Nothing was signed.' },
      { seen: '`FrontRun`', cause: 'Somebody else’s deposit for the key landed first: their withdrawal credentials count.' },
      { seen: '`DoneElsewhere`', cause: 'Another transaction, or another key, has done what the resource asks for.' },
      {
        seen: '`UnknownSubmission`',
        cause: 'The staking API was told of a transaction that no node knows: the log was lost or set back after it was signed.',
      },
      { seen: '`RemadeTooOften`', cause: 'Its transaction was reverted, or its nonce taken, three times.' },
      {
        seen: '`UnaccountedTransactions`',
        cause: 'The key has sent transactions that the log doesn’t have: a rebuilt cluster, or a second user of the key.',
      },
    ],
    mend: [
      { ...stopAll, does: `For \`VerificationFailed\` and \`FrontRun\`: treat the staking API as compromised. ${stopAll.does}` },
      'Find out who made the other deposit, or why the API answers so. The message names the hash or the field. [When a stake is stalled](../how-to/stalled.md) has a part for each reason, with the command that ends it.',
      'After a restore or a move of the cluster, follow [Restore, rebuild, move](../how-to/restore.md) instead: these reasons are expected there.',
      goOn,
      lookAgain,
    ],
    escalate:
      'At once for `FrontRun`, and for `VerificationFailed` that nobody can explain within 15 minutes: to the owner of the money, to the team that runs the staking API, and to security.',
    never: [
      'Delete the resource and apply it again to get rid of the alert.',
      'Say `allow-remakes`, `disregard-submission` or `acknowledgedNonce` before you have seen each transaction on a block explorer.',
      keepLog,
      keepFinalizers,
    ],
  },
  StakingValidatorSlashed: {
    money:
      '**Yes.** The validator has lost a part of its balance, and loses more the more validators are slashed within 18 days before and after it. Others that run the same way are at risk now.',
    impact:
      'The validator leaves by itself, and its stake stays stalled with `Slashed`. The rest of its balance is paid to the withdrawal address once it has left.',
    look: [
      { shows: 'Which validators were slashed, with their public keys.', run: 'kubectl get ethstake -A -o wide | grep Slashed' },
      { shows: 'How many, by network.', query: 'sum by (network) (staking_operator_slashed_validators)' },
      {
        shows: 'Its public key, for a beacon chain explorer, which shows what was signed twice and when.',
        run: "kubectl get ethstake NAME -n NAMESPACE -o jsonpath='{.status.validator.pubkey}'",
      },
    ],
    causes: [
      {
        seen: 'two attestations or blocks for one slot',
        cause: 'The key runs in two validator clients: a failover, a restored backup, a migration.',
      },
      {
        seen: 'a surround vote after a restore',
        cause: 'The slashing protection database of the client was lost or is older than the key’s last signature.',
      },
      { seen: 'several at once', cause: 'A whole client runs twice, or the seed of the keys is in other hands.' },
    ],
    mend: [
      'Stop every validator client that may hold keys of the same origin. To be offline for hours costs cents; a second slashing costs ETH.',
      'Find the second place: the service writes down each place that it gave a key to ([The validators’ keystores](../how-to/run-the-service.md#the-validators-keystores)).',
      'Start one client again, with the slashing protection database of the last that signed, after you have made sure that no other has the keys.',
      'Nothing can be done for the slashed validator itself: no exit is needed, and a request for one is refused.',
    ],
    escalate: 'At once, to the team that runs the validators and to the owner of the money. To security, if the second place is not yours.',
    never: [
      'Start a validator client “to be safe” while another one may run.',
      'Import keys without their slashing protection data.',
      'Delete the stake: it is the record of what happened, and its rest is still to be paid.',
    ],
  },
  StakingResourcesStalled: {
    money:
      'No. Nothing more is signed for a stalled resource. Reasons that put money in question have an alert of their own: [StakingMoneyInQuestion](StakingMoneyInQuestion.md).',
    impact: 'The resources wait for a person, mostly for the team that wrote them.',
    look: [{ shows: 'Which ones, with their reason.', run: 'kubectl get staking -A -o wide | grep Stalled' }, describe, signers],
    causes: [
      { seen: '`InvalidSpec`, `UnknownNetwork`', cause: 'The manifest.' },
      {
        seen: '`NamespaceNotAllowed`, `WithdrawalAddressNotAllowed`, `SuccessorNotAllowed`, `OverLimit`, `SignerNotFound`',
        cause: 'The signer’s policy doesn’t admit it, perhaps on purpose.',
      },
      { seen: '`KeyMissing`, `KeyMalformed`, `KeyAddressMismatch`', cause: 'The mounted Secret of the signer.' },
      { seen: '`Unauthorized`, `ApiKeyUnreadable`', cause: 'The API key of the staking API was revoked, has expired or is not mounted.' },
      { seen: '`NodeAccessDenied`, `MethodNotServed`, `HistoryMissing`', cause: 'The RPC nodes: a key in a URL, or what they serve.' },
      { seen: '`AlreadyStaked`, `CopiedResource`', cause: 'A resource was moved or restored: [Restore](../how-to/restore.md).' },
    ],
    mend: [
      'Do what the message of the condition says; [Reasons](../reference/reasons.md) has each reason, [When a stake is stalled](../how-to/stalled.md) those that take more than one step.',
      'A manifest or a policy belongs to a team: tell its owner instead of changing it.',
      lookAgain,
    ],
    escalate: 'In the morning, to the team that owns the namespace; to the owner of the signer for its policy or key.',
    never: [
      'Widen a signer’s policy so that the alert stops.',
      'Copy a key or an address from a message without comparing it with its owner.',
      keepFinalizers,
    ],
  },
  StakingAlarm: {
    money:
      '**Possibly, and it may be going on.** `KeyUsedElsewhere` and `UnaccountedTransactions`: somebody can sign with the key, and what its address holds can be taken. `FrontRun`: a deposit is lost. `NoFinality`: not by this alone.',
    impact:
      '`UnaccountedTransactions` stops the signer by itself; **with `KeyUsedElsewhere` it goes on signing until you stop it**. Other signers go on. What is staked can’t be taken with a signer’s key: it goes to the withdrawal address alone.',
    look: [
      {
        shows: 'What the signer says: the conditions and the events name the transaction, and who it is from.',
        run: 'kubectl describe stakingsigner SIGNER',
      },
      {
        shows: 'What the log has for that signer. A hash on the block explorer that is not here is somebody else’s.',
        run: 'kubectl get stx -o wide --field-selector spec.signer=SIGNER',
      },
      operatorLog('When each was signed, sent and seen, with nonce and hash.', '"signer":"SIGNER"'),
      { shows: 'Which alarm, where.', query: 'sum by (network, signer, reason) (increase(staking_operator_alarms_total[1h])) > 0' },
    ],
    causes: [
      {
        seen: '`KeyUsedElsewhere`, and you know the transaction',
        cause: 'The key is used by a second cluster, a script, or a person with a wallet.',
      },
      { seen: '`KeyUsedElsewhere`, and nobody knows it', cause: 'The key was stolen.' },
      { seen: '`UnaccountedTransactions` after a restore', cause: 'The log is older than the chain.' },
      { seen: '`FrontRun`', cause: 'The staking API gave out a key that somebody else knew.' },
      { seen: '`NoFinality`', cause: 'The chain, or every node that is configured, makes no final blocks.' },
    ],
    mend: [
      stopSigner,
      'If the key was stolen: move what its address holds with your wallet, now, at a high fee. It is a race. Then follow [When a key was stolen](../how-to/emergency-stop.md#when-a-key-was-stolen).',
      'If it was a second user that you know: end that use, then set `spec.acknowledgedNonce` as the message says, and take `spec.suspend` back.',
      'For `FrontRun` see [StakingMoneyInQuestion](StakingMoneyInQuestion.md), for `NoFinality` see [StakingNetworkUnreachable](StakingNetworkUnreachable.md).',
    ],
    escalate: 'At once, to the owner of the key and to security, for everything but a second user that you know and `NoFinality`.',
    never: [
      'Set `acknowledgedNonce` before each unknown transaction is explained.',
      'Fund the signer while somebody else may have its key.',
      keepLog,
    ],
  },
  StakingTransactionsLost: {
    money:
      'Not by this alone. A reverted transaction has cost its fee, and the amount stays with the signer. `closed:Foreign` means that somebody else used the nonce: treat it as [StakingAlarm](StakingAlarm.md).',
    impact:
      'The operator makes the transaction again under another nonce where that is safe; after three times it stalls with `RemadeTooOften`.',
    look: [
      transactions,
      { shows: 'How the places of one of them were closed, and by which hash.', run: "kubectl get stx STX -o jsonpath='{.status.closed}'" },
      {
        shows: 'What happened, by network and purpose.',
        query: 'sum by (network, purpose, event) (increase(staking_operator_transactions_total{event=~"Reverted|closed:.+"}[1h])) > 0',
      },
      operatorLog('The audit lines, with nonce and hash for a block explorer.', 'Revert|Foreign|closed'),
    ],
    causes: [
      { seen: '`Reverted`, a deposit', cause: 'The deposit contract refused it: its data or its gas. The block explorer shows which.' },
      {
        seen: '`Reverted`, an exit or withdrawal',
        cause: 'The request’s fee rose between signing and mining, or the queue’s contract refused it.',
      },
      { seen: '`closed:Foreign`', cause: 'The key is used elsewhere.' },
    ],
    mend: [
      'One revert that is followed by a landing needs nothing.',
      '`closed:Foreign`: go to [StakingAlarm](StakingAlarm.md) now.',
      'A stall with `RemadeTooOften`: mend the cause, then follow [its part](../how-to/stalled.md#the-ones-to-take-seriously).',
    ],
    escalate: 'At once for `closed:Foreign`. Otherwise in the morning, if it repeats.',
    never: ['Send the transaction by hand with a wallet. The operator then finds a second one, and stops.', keepLog],
  },
}

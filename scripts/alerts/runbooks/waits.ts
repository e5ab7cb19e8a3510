import { describe, keepFinalizers, keepLog, lookAgain, operatorLog, operatorReady, signers, transactions, waiting } from './commands.ts'
import type { Runbook } from './runbook.ts'

export const waitRunbooks: Readonly<Record<string, Runbook>> = {
  StakingWaitsTooLong: {
    money: 'No. Whatever waits is not signed yet, or is followed to its end however long that takes.',
    impact: 'The resources named by the query get nowhere, and no change of a manifest helps. Validators that run are not affected.',
    look: [
      waiting,
      { shows: 'What the resources say, with the time since which they do.', run: 'kubectl events -A --types=Warning | grep REASON' },
      describe,
      operatorLog('What the operator has tried.', 'still waiting'),
    ],
    causes: [
      { seen: '`ChainUnavailable`, `HistorySyncing`', cause: 'The RPC nodes: [StakingNetworkUnreachable](StakingNetworkUnreachable.md).' },
      {
        seen: '`NodesDisagree`, `NonceUseUnproven`',
        cause:
          'Nodes show different chains, or one of them is gone: [StakingNodesDisagree](StakingNodesDisagree.md), [StakingNodeUnhealthy](StakingNodeUnhealthy.md).',
      },
      { seen: '`NoFinality`', cause: 'The chain makes no final blocks. Look at a public explorer.' },
      { seen: '`ServiceUnavailable`', cause: 'The staking API: [StakingApiFailing](StakingApiFailing.md).' },
      {
        seen: '`WaitingForNonce`',
        cause: 'An earlier transaction of the signer holds it up: [StakingTransactionsDontLand](StakingTransactionsDontLand.md).',
      },
      { seen: '`SignerNotReady`', cause: 'The signer’s own conditions say why: `kubectl describe stakingsigner SIGNER`.' },
      { seen: '`Pending`, `InProgress`', cause: 'The operator doesn’t get to it: look at its load and its log.' },
      { seen: '`Retrying`, `Importing`', cause: 'The message has the last error.' },
    ],
    mend: ['Mend what the reason names, by the runbook beside it. Work resumes without you afterwards.', lookAgain],
    escalate: 'After two hours without a known cause, or at once where an exit or a withdrawal has a deadline.',
    never: ['Delete and apply again what waits: it may have been sent, and goes to the end of the queue.', keepLog, keepFinalizers],
  },
  StakingStakesNotSeen: {
    money: 'Not by this alone. Nothing of these resources is signed or sent. But a validator that is slashed would not be noticed here.',
    impact: 'Their status is as old as `status.observedAt`; what they do on the chain goes on.',
    look: [
      {
        shows: 'How many, of which kind, and why.',
        query: 'count by (kind, reason) (staking_operator_resource_condition_age_seconds{type="Observed"} > 3600)',
      },
      {
        shows: 'Since when a resource was not seen, and what the last look said.',
        run: `kubectl get KIND NAME -n NAMESPACE -o jsonpath='{.status.observedAt}{"\\n"}{.status.conditions[?(@.type=="Observed")].message}{"\\n"}'`,
      },
      operatorLog('What keeps it from looking.', 'could not be looked at'),
    ],
    causes: [
      { seen: '`Unauthorized`', cause: 'The API key of the staking API was revoked or has expired.' },
      { seen: '`UnknownNetwork`', cause: 'The network was taken out of the configuration while stakes on it remain.' },
      { seen: '`ChainUnavailable`', cause: 'The nodes: [StakingNetworkUnreachable](StakingNetworkUnreachable.md).' },
      { seen: '`ServiceUnavailable`', cause: 'The staking API: [StakingApiFailing](StakingApiFailing.md).' },
    ],
    mend: [
      '`Unauthorized`: [give the operator a new API key](../how-to/rotate-keys.md#the-api-key-of-the-operator).',
      '`UnknownNetwork`: put the network back ([Add a network](../how-to/add-a-network.md)).',
      'Until it is mended, watch the validators on a beacon chain explorer.',
      lookAgain,
    ],
    escalate: 'In the morning, to the person who changed the key or the networks.',
    never: ['Delete the resources because they look dead: their stakes are alive.'],
  },
  StakingSignerShortOfFunds: {
    money: 'No. Nothing is sent that the signer can’t pay for with its fee.',
    impact: 'Transactions that the balance covers are sent in their order. The others wait with `InsufficientFunds`.',
    look: [
      signers,
      {
        shows: 'What is missing, in ETH. (With `_sol` in place of `_eth`: in SOL.)',
        query: 'max by (signer, network) (staking_operator_signer_needed_eth - staking_operator_signer_balance_eth) > 0',
      },
      {
        shows: 'What it is wanted for: each transaction with its amount and its resource.',
        run: 'kubectl get stx --field-selector spec.signer=SIGNER',
      },
    ],
    causes: [
      { seen: 'as much waits as you expect', cause: 'It was not funded in time.' },
      { seen: 'much more waits than you expect', cause: 'A mistake, or somebody who applies stakes that nobody has agreed to.' },
      {
        seen: 'the balance has dropped, and the log shows no transaction',
        cause: 'Somebody else spends with the key: [StakingAlarm](StakingAlarm.md).',
      },
    ],
    mend: [
      'Compare the address that `kubectl get signer` shows with your own records, then send what is missing, and a little for fees. Work resumes without you.',
      {
        does: 'If more waits than should, hold it back first, and ask the team:',
        run: `kubectl patch KIND NAME -n NAMESPACE --type=merge -p '{"spec":{"suspend":true}}'`,
      },
    ],
    escalate: 'To the treasury team. At once, if the balance dropped and nobody knows why.',
    never: ['Send funds to an address from a message, a ticket or a chat.', 'Fund a signer that a second user may have the key of.'],
  },
  StakingSignerBalanceLow: {
    money: 'No. It is an early warning that you asked for with `spec.minimumBalance`.',
    impact: 'None yet: the signer is used, and pays for what it can.',
    look: [
      signers,
      {
        shows: 'How fast it goes down. A step that no stake explains is somebody else’s.',
        query: 'min by (signer, network) (staking_operator_signer_balance_eth)',
      },
      { shows: 'What it has paid for lately.', run: 'kubectl get stx --field-selector spec.signer=SIGNER -o wide' },
    ],
    causes: [
      { seen: 'stakes and fees explain it', cause: 'It is used, and nobody has funded it since.' },
      { seen: 'nothing explains it', cause: 'Somebody else spends with the key: [StakingAlarm](StakingAlarm.md).' },
    ],
    mend: ['Compare the address with your own records, and fund it.', 'If the limit is wrong, change `spec.minimumBalance` of the signer.'],
    escalate: 'In the morning, to the treasury team.',
    never: ['Send funds to an address from a message, a ticket or a chat.'],
  },
  StakingSignerBalanceOld: {
    money: 'No. Before each transaction the operator reads the balance again.',
    impact: '`BALANCE`, `Funded` and the alerts on funds are as old as this alert says.',
    look: [
      { shows: 'What keeps the signer from being looked at.', run: 'kubectl describe stakingsigner SIGNER' },
      {
        shows: 'Whether it is one signer, or a whole network.',
        query: 'time() - max by (signer, network) (staking_operator_signer_balance_read_timestamp_seconds)',
      },
    ],
    causes: [
      { seen: 'all signers of one network', cause: 'The nodes: [StakingNetworkUnreachable](StakingNetworkUnreachable.md).' },
      { seen: 'one signer, stalled', cause: 'Its key or its policy is looked at before its balance, and is wrong.' },
      {
        seen: 'the network was taken out of the configuration',
        cause: 'Nobody reads it any more. The series ends when the operator is restarted.',
      },
    ],
    mend: ['Mend the nodes, or the signer’s key: its condition `Stalled` says what is wrong.'],
    escalate: 'In the morning.',
    never: ['Fund a signer by what its old balance says: look at a block explorer.'],
  },
  StakingFeeOverCap: {
    money: 'No. Nothing is sent above a cap, and this is what caps are for.',
    impact:
      'Resources wait with `FeeTooHigh` or `RequestFeeTooHigh`. Behind a transaction that can’t be sent nobody waits: its nonce is cancelled, and it gets another one later.',
    look: [
      { shows: 'What gas costs now.', query: 'max by (network) (staking_operator_network_base_fee_gwei)' },
      { shows: 'What each signer’s policy allows.', query: 'max by (signer) (staking_operator_signer_fee_cap_gwei)' },
      {
        shows: 'Which resources wait, and which cap it is: the resource’s or the policy’s.',
        run: 'kubectl get staking -A -o wide | grep FeeTooHigh',
      },
    ],
    causes: [
      { seen: 'gas is high on a public explorer too', cause: 'The market. It mostly passes within hours.' },
      { seen: 'gas is low on a public explorer', cause: 'A node shows a wrong price: [StakingNodesDisagree](StakingNodesDisagree.md).' },
      { seen: '`RequestFeeTooHigh`', cause: 'Many exits or withdrawals are asked for at once; the fee falls as the queue drains.' },
      { seen: 'the cap is far below any price', cause: 'A mistake in the policy or the resource.' },
    ],
    mend: [
      'Wait, unless something has a deadline.',
      {
        does: 'With the owner’s consent, raise the cap of the policy. It counts at once, for all that the signer pays:',
        run: `kubectl patch signer SIGNER --type=merge -p '{"spec":{"policy":{"maxFeePerGasGwei":"150"}}}'`,
      },
    ],
    escalate: 'To the owner of the signer, if an exit or a withdrawal has a deadline.',
    never: ['Raise the cap without its owner: it is their limit on what fees may cost.', 'Send the transaction by hand.'],
  },
  StakingTransactionsDontLand: {
    money: 'Not lost. But each of them may still land, at any time: count its amount as spent.',
    impact: 'Later nonces of the same signer land after it. Other signers go on.',
    look: [
      transactions,
      {
        shows: 'The signer’s lanes: the lowest nonce without an outcome holds up all above it.',
        run: "kubectl get signer SIGNER -o jsonpath='{.status.lanes}'",
      },
      {
        shows: 'The age of the oldest, by signer and purpose.',
        query: 'max by (signer, network, purpose, state) (staking_operator_transactions_open_oldest_seconds)',
      },
      {
        shows: 'What gas costs now, beside `PRICE` of the first command (in wei).',
        query: 'max by (network) (staking_operator_network_base_fee_gwei)',
      },
    ],
    causes: [
      {
        seen: 'its price is below the base fee',
        cause: 'It is too cheap, and the cap keeps the operator from outbidding it: [StakingFeeOverCap](StakingFeeOverCap.md).',
      },
      {
        seen: 'its hash is mined on an explorer, and it stays `Open`',
        cause: 'Its block is not final yet, or the nodes disagree: [StakingNodesDisagree](StakingNodesDisagree.md).',
      },
      { seen: 'no explorer knows its hash', cause: 'The nodes drop it. The operator sends the same bytes again; look at the nodes.' },
      {
        seen: 'a lower nonce is missing',
        cause: 'Somebody else uses the key, or a nonce was given out and never sent: the signer’s conditions say so.',
      },
    ],
    mend: [
      'Too cheap: wait, or raise the cap as in [StakingFeeOverCap](StakingFeeOverCap.md). The operator outbids it under the same nonce.',
      'Mend or remove a node that lies or is gone: what every configured node must confirm waits for it.',
      'To give a transaction up: suspend its resource. If others wait behind it, its nonce is cancelled.',
    ],
    escalate: 'After a day, or at once where it has a deadline. If a lower nonce is missing, as in [StakingAlarm](StakingAlarm.md).',
    never: [
      'Send another transaction with the same key from a wallet, not even a cancel.',
      'Assume that it won’t land any more because it is old.',
      keepLog,
    ],
  },
  StakingConfigRefused: {
    money: 'No. The operator goes on with the last good file.',
    impact:
      'The change is not in use. **If the operator is restarted now, it does not start**: put the file right before anything else happens.',
    look: [
      operatorLog('Which field is wrong, and why.', 'cannot be used'),
      { shows: 'Which file: `networks`, `api-keys` or `keys`.', query: 'staking_operator_config_last_reload_successful == 0' },
      { shows: 'Who changed it last: the releases.', run: 'helm -n staking-system history staking-operator' },
      operatorReady('Whether it is still there.'),
    ],
    causes: [
      { seen: '`networks`', cause: 'A typo in the networks of the chart’s values or in the Secret of `networksSecret`.' },
      { seen: '`api-keys`', cause: 'The Secret with the API key is empty, or has something else in it.' },
      { seen: '`keys`', cause: 'A file of a signer’s key is malformed.' },
    ],
    mend: [
      'Correct the values, or the Secret. The operator reloads the file within a minute or two.',
      { does: 'Or go back to the last revision that was good:', run: 'helm -n staking-system rollback staking-operator' },
    ],
    escalate: 'At once, if it can’t be corrected within half an hour: a node of the cluster that is drained takes the operator down.',
    never: ['Restart the operator, or drain its node, before the file is right.'],
  },
}

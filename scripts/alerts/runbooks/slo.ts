import { operatorLog, signers, waiting } from './commands.ts'
import type { Runbook } from './runbook.ts'

const look: Runbook['look'] = [
  {
    shows: 'Before which condition the time goes by: `Created` is the staking API, `Verified` the operator, `Broadcast` the signer’s lane.',
    query:
      'histogram_quantile(0.9, sum by (le, condition) (rate(staking_operator_time_to_condition_seconds_bucket{kind="EthereumStake"}[1h])))',
  },
  { shows: 'What waits now, by reason.', query: 'sort_desc(max by (kind, reason) (staking_operator_oldest_wait_seconds))' },
  waiting,
  signers,
  operatorLog('What the operator has to say.'),
]
const causes: Runbook['causes'] = [
  { seen: '`InsufficientFunds`', cause: 'Nobody has funded the signer: [StakingSignerShortOfFunds](StakingSignerShortOfFunds.md).' },
  { seen: '`FeeTooHigh`', cause: 'Gas is above a cap: [StakingFeeOverCap](StakingFeeOverCap.md).' },
  { seen: '`ServiceUnavailable`', cause: 'The staking API: [StakingApiFailing](StakingApiFailing.md).' },
  {
    seen: '`ChainUnavailable`, `HistorySyncing`',
    cause: 'The nodes, or a fresh start: [StakingNetworkUnreachable](StakingNetworkUnreachable.md).',
  },
  {
    seen: '`WaitingForNonce`',
    cause:
      'One signer pays for many stakes at once, or an earlier transaction doesn’t land: [StakingTransactionsDontLand](StakingTransactionsDontLand.md).',
  },
]
const mend: Runbook['mend'] = [
  'Mend what most of them wait for, by the runbook beside it.',
  'If one signer has the whole load, spread it: a signer for each team ([Size it](../how-to/size.md#one-signer)).',
  'A stake that waits for funds or for a lower fee counts too: its owner waits either way. If that is how you work, raise the objective’s time or fund in advance.',
]
const never: Runbook['never'] = [
  'Raise caps or limits to meet the objective: they are their owner’s.',
  'Apply the waiting stakes again under other names: each one is paid.',
]
const money = 'No. They are late, and are paid once.'

export const sloRunbooks: Readonly<Record<string, Runbook>> = {
  StakingBroadcastSloBurnsFast: {
    meaning:
      'Stakes whose spec was changed after their creation do not count; stakes that are not broadcast at all are told by [StakingWaitsTooLong](StakingWaitsTooLong.md).',
    money,
    impact:
      'Of the stakes of the last hour one in seven or more took longer than ten minutes, or of the last six hours one in seventeen. Each later activation is a later reward.',
    look,
    causes,
    mend,
    escalate: 'After an hour without a known cause, to the owner of what most of them wait for.',
    never,
  },
  StakingBroadcastSloBurnsSlowly: {
    meaning: 'Nothing is on fire: a small share has been late for a day or more.',
    money,
    impact: 'The objective of these 30 days will be missed if it goes on like this.',
    look,
    causes,
    mend,
    escalate: 'In the morning, to the owner of what most of them wait for.',
    never,
  },
}

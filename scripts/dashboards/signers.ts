import type { Board } from './board.ts'

/** Keys: what they have, what waits for it, and what became of their transactions. */
export const signers: Board = {
  uid: 'staking-signers',
  title: 'Staking / Signers',
  description: 'Balances against what waits for them, lanes, fees, and what became of transactions.',
  rows: [
    {
      title: 'Money',
      panels: [
        {
          shows: 'graph',
          title: 'ETH: balance, and what waits for it',
          description: 'Read with each look at a signer.',
          queries: [
            { expr: 'max by (signer, network) (staking_operator_signer_balance_eth)', legend: '{{signer}} {{network}} has' },
            { expr: 'max by (signer, network) (staking_operator_signer_needed_eth)', legend: '{{signer}} {{network}} needs' },
          ],
        },
        {
          shows: 'graph',
          title: 'SOL: balance, and what waits for it',
          description: 'Read with each look at a signer.',
          queries: [
            { expr: 'max by (signer, network) (staking_operator_signer_balance_sol)', legend: '{{signer}} {{network}} has' },
            { expr: 'max by (signer, network) (staking_operator_signer_needed_sol)', legend: '{{signer}} {{network}} needs' },
          ],
        },
        {
          shows: 'table',
          title: 'Age of the balances',
          description: 'Time since each was read.',
          unit: 's',
          queries: [{ expr: 'time() - max by (signer, network) (staking_operator_signer_balance_read_timestamp_seconds)', legend: '' }],
        },
        {
          shows: 'graph',
          title: 'Price of gas, and caps, in gwei',
          description: 'Read while something is to be sent. Nothing is sent above a cap.',
          queries: [
            { expr: 'max by (network) (staking_operator_network_base_fee_gwei)', legend: '{{network}} base fee' },
            { expr: 'max by (network) (staking_operator_network_priority_fee_gwei)', legend: '{{network}} tip' },
            { expr: 'max by (signer) (staking_operator_signer_fee_cap_gwei)', legend: 'cap of {{signer}}' },
          ],
        },
      ],
    },
    {
      title: 'Limits and switches',
      panels: [
        {
          shows: 'graph',
          title: 'Transactions left, by limit',
          description: 'Of limits with a maxCount. At 0 the next one waits with LimitReached.',
          queries: [
            {
              expr: 'min by (signer, network, window, per, namespace) (staking_operator_signer_limit_count_left)',
              legend: '{{signer}} {{network}} {{window}} {{namespace}}',
            },
          ],
        },
        {
          shows: 'graph',
          title: 'ETH and SOL left, by limit',
          description: 'Of limits with a total.',
          queries: [
            {
              expr: 'min by (signer, network, window, per, namespace) (staking_operator_signer_limit_eth_left)',
              legend: '{{signer}} {{network}} {{window}} {{namespace}} ETH',
            },
            {
              expr: 'min by (signer, network, window, per, namespace) (staking_operator_signer_limit_sol_left)',
              legend: '{{signer}} {{network}} {{window}} {{namespace}} SOL',
            },
          ],
        },
        {
          shows: 'table',
          title: 'When a limit makes room',
          description: 'Time until the first of what it counts now counts no more.',
          unit: 's',
          queries: [
            {
              expr: 'max by (signer, network, window, per, namespace) (staking_operator_signer_limit_frees_timestamp_seconds) - time()',
              legend: '',
            },
          ],
        },
        {
          shows: 'graph',
          title: 'Stopped by a switch',
          description: '1: by the annotation of the Lease, or by spec.suspend of the signer.',
          queries: [
            { expr: 'max(staking_operator_suspended)', legend: 'everything' },
            { expr: 'max by (signer) (staking_operator_signer_suspended)', legend: '{{signer}}' },
          ],
          alarmFrom: 1,
        },
      ],
    },
    {
      title: 'Transactions',
      panels: [
        {
          shows: 'graph',
          title: 'Without an outcome',
          description: 'waiting: for a nonce. open: it may land.',
          queries: [
            {
              expr: 'sum by (signer, network, purpose, state) (staking_operator_transactions_open)',
              legend: '{{signer}} {{network}} {{purpose}} {{state}}',
            },
          ],
        },
        {
          shows: 'graph',
          title: 'The oldest of them',
          description: 'Since it was made, or since its first version under its nonce was written down.',
          unit: 's',
          queries: [
            {
              expr: 'max by (signer, network, purpose, state) (staking_operator_transactions_open_oldest_seconds)',
              legend: '{{signer}} {{network}} {{purpose}} {{state}}',
            },
          ],
        },
        {
          shows: 'graph',
          title: 'What happened to transactions, by the hour',
          description: 'Written down, outbid, sent, landed, or closed without an outcome.',
          queries: [
            {
              expr: 'sum by (network, purpose, event) (increase(staking_operator_transactions_total[1h]))',
              legend: '{{network}} {{purpose}} {{event}}',
            },
          ],
        },
        {
          shows: 'graph',
          title: 'Reverted, or lost to another',
          description: 'Each has cost its fee.',
          queries: [
            {
              expr: 'sum by (network, purpose, event) (increase(staking_operator_transactions_total{event=~"Reverted|FrontRun|closed:.+"}[1d]))',
              legend: '{{network}} {{purpose}} {{event}}',
            },
          ],
          alarmFrom: 1,
        },
        {
          shows: 'graph',
          title: 'Nonces',
          description: 'In flight, and the next to be given out.',
          queries: [
            { expr: 'max by (signer, network) (staking_operator_signer_in_flight)', legend: '{{signer}} {{network}} in flight' },
            { expr: 'max by (signer, network) (staking_operator_signer_next_nonce)', legend: '{{signer}} {{network}} next' },
          ],
        },
        {
          shows: 'graph',
          title: 'Refused signatures and alarms, by the day',
          description: 'Verification or policy refused; or a person should look now.',
          queries: [
            { expr: 'sum by (kind, reason) (increase(staking_operator_signatures_refused_total[1d]))', legend: '{{kind}} {{reason}}' },
            { expr: 'sum by (signer, network, reason) (increase(staking_operator_alarms_total[1d]))', legend: '{{signer}} {{reason}}' },
          ],
          alarmFrom: 1,
        },
      ],
    },
  ],
}

import { serviceLog, serviceReady } from './commands.ts'
import type { Runbook } from './runbook.ts'

const restored = '[Back up and restore the staking service](../how-to/back-up-and-restore-the-service.md#restore)'
const missing = {
  shows: 'The deposits that the database doesn’t know. The exit code is 1 while there are any.',
  run: 'kubectl -n staking-system exec deploy/staking-operator-service -- node /app/dist/main.js service missing-stakes --config /etc/staking-service/service.yaml || true',
}

export const serviceRunbooks: Readonly<Record<string, Runbook>> = {
  StakingServiceNetworkDown: {
    money: 'No. The service sends nothing itself, and hands out no new validator key while the chain that would know it doesn’t answer.',
    impact: 'What needs these nodes answers 503 `chain-unavailable`; reading, and other networks, go on. `/readyz` stays 200.',
    look: [
      serviceReady('For each network, what is wrong with its nodes.'),
      serviceLog('The errors of the nodes.'),
      { shows: 'What the nodes’ errors are, by code.', query: 'sum by (network, code) (rate(staking_service_chain_errors_total[5m])) > 0' },
      {
        shows: 'Whether the operator reaches its own nodes of that network.',
        query: 'max by (network, node) (staking_operator_rpc_node_unhealthy)',
      },
    ],
    causes: [
      { seen: 'kind `beacon`', cause: 'The Beacon API is down, behind, or of another network.' },
      { seen: 'kind `chain`', cause: 'The RPC nodes are down, or the key in a URL has expired.' },
      { seen: 'the operator reaches its nodes, the service doesn’t', cause: 'The service’s own network policy, proxy or URLs.' },
    ],
    mend: [
      'Mend the node, or put another one into the service’s configuration (`networks`, or `service.config.networks`).',
      {
        does: 'The service reads its networks at its start:',
        run: 'kubectl -n staking-system rollout restart deployment staking-operator-service',
      },
    ],
    escalate: 'After 30 minutes, to the team that runs the nodes.',
    never: ['Take `beaconApiUrls` out to get rid of the alert: exits and withdrawals then answer 503 for good.'],
  },
  StakingServiceKnownKey: {
    money:
      '**Possibly.** The key was skipped, so this one is safe. But a seed that is used in two places can have its keys signed with twice, and slashed.',
    impact: 'Stakes are made, with the next key.',
    look: [
      serviceLog('Which key and which path, and since when.', 'validator key'),
      missing,
      { shows: 'How many, by network.', query: 'sum by (network) (increase(staking_service_known_keys_skipped_total[1d]))' },
      {
        shows: 'Which services run in the cluster. One seed belongs to one database.',
        run: 'kubectl get deploy -A -l app.kubernetes.io/component=service',
      },
    ],
    causes: [
      { seen: 'the database was restored lately', cause: 'Its keys of the time since the copy come again, and are skipped.' },
      { seen: 'it was not restored', cause: 'The seed is used by a second service, or by somebody else.' },
    ],
    mend: [
      `After a restore: go through ${restored}.`,
      {
        does: 'If another service has the same seed, stop this one until it is clear which of them owns it:',
        run: 'kubectl -n staking-system scale deployment staking-operator-service --replicas=0',
      },
    ],
    escalate: 'At once, if the database was not restored: to security, and to the keeper of the seed.',
    never: ['Run two services with one seed on two databases.', 'Export keystores while it is open who else has the keys.'],
  },
  StakingServiceMissingStakes: {
    money:
      'Not lost: the deposits are in the chain, and their keys can be made again from the seed. Their validators earn nothing and pay penalties as long as nobody runs them.',
    impact: 'The service answers for what it knows. It does nothing of the missing stakes by itself.',
    look: [
      missing,
      serviceReady('The number by network: `missingStakes`.'),
      serviceLog('Each of them, with its key and its deposit.', 'does not know|missing in the database'),
    ],
    causes: [
      { seen: 'the database was restored from an older copy', cause: 'Stakes that were made since are missing.' },
      { seen: 'the database is another one', cause: 'The service was pointed at the wrong database.' },
      {
        seen: 'nothing was restored',
        cause: 'Somebody has staked to the same withdrawal address with a validator that was made elsewhere.',
      },
    ],
    mend: [
      `Go through ${restored}: clients repeat their requests with the same Idempotency-Key, and the stakes leave the list.`,
      'The operator repeats its requests by itself once their resources are looked at.',
      'A validator that was made elsewhere: dismiss it, with the command of that page.',
    ],
    escalate: 'To the person who restored the database. At once, if nobody did.',
    never: [
      'Dismiss a stake because the list is long: it is somebody’s validator.',
      'Restore an older copy over this one to “get back” what is missing.',
    ],
  },
  StakingServiceTrackerBehind: {
    money: 'No. The operator looks at the chain itself before it concludes anything.',
    impact: 'What the service says of transactions, validators and requests is old; clients that follow it wait.',
    look: [
      serviceReady('Whether its database and the nodes answer.'),
      serviceLog('Why a round did not end.'),
      {
        shows: 'How old the last round is, by network.',
        query: 'time() - max by (network) (staking_service_tracker_last_success_timestamp_seconds)',
      },
    ],
    causes: [
      { seen: 'the nodes are down', cause: '[StakingServiceNetworkDown](StakingServiceNetworkDown.md).' },
      { seen: 'the database is slow or locked', cause: 'Its load, a long transaction, a full volume.' },
      { seen: 'all networks, and nothing in the log', cause: 'No instance runs.' },
    ],
    mend: [
      'Mend the nodes or the database: it catches up without you.',
      { does: 'If nothing is wrong with either:', run: 'kubectl -n staking-system rollout restart deployment staking-operator-service' },
    ],
    escalate: 'In the morning, unless clients wait for it.',
    never: ['Write into the service’s database by hand.'],
  },
  StakingServiceErrors: {
    money: 'No. A request that failed is repeated under the same Idempotency-Key, and makes one stake.',
    impact: 'Clients, the operator among them, wait and repeat.',
    look: [
      {
        shows: 'Which routes, with which status.',
        query: 'sum by (route, status) (rate(staking_service_http_request_duration_seconds_count{status=~"5.."}[10m])) > 0',
      },
      serviceReady('Whether it is the database: `database: unavailable`.'),
      serviceLog('The cause of each 500.', 'not expected|"level":"(error|fatal)"'),
      { shows: 'Whether it sheds load.', query: 'sum(rate(staking_service_requests_shed_total[5m]))' },
      {
        shows: 'The pods, and how often each has ended.',
        run: 'kubectl -n staking-system get pods -l app.kubernetes.io/component=service',
      },
    ],
    causes: [
      { seen: '503 and `database: unavailable`', cause: 'The database is down, full or out of connections.' },
      { seen: '503 of the routes of one network', cause: '[StakingServiceNetworkDown](StakingServiceNetworkDown.md).' },
      { seen: '503, and requests are shed', cause: 'More requests at a time than the instances serve.' },
      { seen: '500', cause: 'A fault of the service: the log has its cause.' },
      { seen: '`OOMKilled`', cause: 'The memory limit: the embedded database needs 1 GiB.' },
    ],
    mend: [
      'The database: bring it back. The service resumes without you.',
      {
        does: 'Too many requests, and the database is PostgreSQL: more instances:',
        run: 'kubectl -n staking-system scale deployment staking-operator-service --replicas=4',
      },
      'A 500: keep the log lines with their `requestId`, and go back to the version before if it came with an upgrade.',
    ],
    escalate: 'After 15 minutes, to the database team; for a 500, to the developers with the log.',
    never: ['Run a second instance on the embedded database.', 'Restore a copy of the database that is only slow.'],
  },
  StakingServiceWebhooksBehind: {
    money: 'No. Webhooks are news, and clients can ask for the same by `GET`.',
    impact:
      'Clients hear late. Each delivery is tried again for three days; of more than 10,000 for one endpoint (`webhooks.maxPending`) the oldest are dropped, which the endpoint counts and its receiver is told.',
    look: [
      { shows: 'How attempts end.', query: 'sum by (outcome) (rate(staking_service_webhook_attempts_total[10m]))' },
      { shows: 'Whether the number still grows.', query: 'deriv(staking_service_webhook_deliveries_pending[30m])' },
      serviceLog('Endpoints that were disabled, and deliveries that were given up or dropped.', 'webhook'),
    ],
    causes: [
      { seen: 'time-outs or refusals of one endpoint', cause: 'A client’s endpoint is down.' },
      { seen: 'every endpoint fails', cause: 'Egress from the service: DNS, a proxy, a network policy.' },
      { seen: 'attempts succeed, and the number grows', cause: 'More news than are delivered: more instances help.' },
    ],
    mend: [
      'Tell the client whose endpoint is down; the account’s endpoints say how their last deliveries ended ([Follow stakes and requests](../how-to/follow.md)).',
      'Put egress right; deliveries resume without you.',
    ],
    escalate: 'In the morning.',
    never: ['Delete deliveries from the database: clients count on each.'],
  },
}

import { keepFinalizers, keepLog, operatorLog, operatorReady, pods } from './commands.ts'
import type { Runbook } from './runbook.ts'

export const leadingRunbooks: Readonly<Record<string, Runbook>> = {
  StakingOperatorNoLeader: {
    money:
      'No. Nothing is signed without a leader, and what was sent lands or not without the operator. The next leader reads the transaction log before it signs anything.',
    impact:
      'No stake is made, no fee of a stuck transaction is raised, no status is current, and no other alert about the fleet can fire. Validators are not affected.',
    look: [
      pods,
      {
        shows: 'Why a pod can’t start: a missing Secret, an image that can’t be pulled, no room on a node, an admission policy.',
        run: 'kubectl -n staking-system describe pods -l app.kubernetes.io/name=staking-operator,app.kubernetes.io/component=operator\nkubectl -n staking-system get events --sort-by=.lastTimestamp | tail -n 20',
      },
      operatorReady('Of a pod that runs and is not ready: which cache it waits for.'),
      operatorLog('Why it ended, or can’t take the lease. A process that ends says why in its last line.'),
    ],
    causes: [
      { seen: 'no pods at all', cause: 'The Deployment is scaled to 0, perhaps on purpose, or its pods are refused at admission.' },
      { seen: '`ContainerCreating`', cause: 'A Secret is missing, mostly `staking-api-key`; `describe` names it.' },
      { seen: '`CrashLoopBackOff`', cause: 'A flag or a file of the configuration is wrong: the last line of the log names it.' },
      { seen: 'pods run, none is ready', cause: 'The API server refuses a list: a right or a definition is missing.' },
      { seen: '`the lease could not be taken`', cause: 'The API server is away, or the right to the Lease is missing.' },
      {
        seen: 'a pod leads, and the alert still fires',
        cause: 'Prometheus doesn’t scrape them: see `up` and the ServiceMonitor’s labels.',
      },
    ],
    mend: [
      'Put right what the last command named. A pod that is started again takes the lease within 20 seconds.',
      {
        does: 'After a change that broke it, go back to the revision before:',
        run: 'helm -n staking-system history staking-operator',
      },
      {
        does: 'Where it was scaled down and nobody knows why, ask first; then:',
        run: 'kubectl -n staking-system scale deployment staking-operator --replicas=2',
      },
    ],
    escalate:
      'After 30 minutes, or at once where a deposit, an exit or a withdrawal has a deadline. Wake the cluster team if the API server or admission is the cause.',
    never: [
      'Start a second operator elsewhere with the same keys to “help out”. Two logs don’t know of each other’s nonces.',
      'Delete the Lease to speed things up. It expires by itself, and an emergency stop is an annotation of it.',
      keepLog,
    ],
  },
  StakingLeaderChanges: {
    money:
      'No. An instance that can’t renew its lease ends before another one may lead, and a signature is written down before it is sent.',
    impact: 'Each new leader fills its caches first. Little gets done as long as the lead moves every few minutes.',
    look: [
      pods,
      operatorLog('Who lost the lease, and why.', 'lease|leadership'),
      {
        shows: 'Whether the container has a limit on its processor. The chart sets none: a leader that is throttled loses its lease.',
        run: "kubectl -n staking-system get deploy staking-operator -o jsonpath='{.spec.template.spec.containers[0].resources}'",
      },
      {
        shows: 'How long the API server takes to answer; a renewal has ten seconds.',
        query: 'histogram_quantile(0.99, sum by (le, verb) (rate(staking_operator_kube_request_duration_seconds_bucket[5m])))',
      },
    ],
    causes: [
      { seen: 'a limit on the processor', cause: 'The process is throttled and can’t renew in time.' },
      { seen: 'requests that take seconds', cause: 'The API server or etcd is slow.' },
      { seen: 'restarts with `OOMKilled`', cause: 'The memory limit is too low for the fleet.' },
      { seen: 'pods move between nodes', cause: 'Evictions: the nodes are short of something, or are being drained.' },
    ],
    mend: [
      'Remove the limit on the processor, or raise the memory limit ([Size it](../how-to/size.md)).',
      {
        does: 'For an API server that stays slow, give the lease more time. A new leader then takes as much longer to take over:',
        run: 'helm upgrade staking-operator charts/staking-operator -n staking-system --reset-then-reuse-values --set leaderElection.leaseDuration=60s --set leaderElection.renewDeadline=40s --set leaderElection.retryPeriod=5s',
      },
    ],
    escalate: 'To the cluster team, if the API server is slow for others too. Otherwise it can wait for the morning.',
    never: [
      'Switch leader election off or run one replica “so that nobody competes”. The lease is what keeps two from working against each other.',
    ],
  },
  StakingCacheSilent: {
    money: 'No. Before the operator signs for the first time it reads the resource and its log past its cache, from the API server itself.',
    impact: 'New resources and changes are not seen, and neither is `spec.suspend`. What is known goes on.',
    look: [
      { shows: 'Whether the API server answers, to you.', run: "kubectl get --raw '/readyz?verbose' | tail -n 5" },
      operatorReady('Whether the operator finds itself ready.'),
      operatorLog('What the operator’s watches say.'),
      {
        shows: 'Which kinds are silent: all of them, or one.',
        query: 'max by (resource) (staking_operator_informer_silence_seconds)',
      },
    ],
    causes: [
      {
        seen: 'all kinds are silent, and the API server answers',
        cause: 'Something between them holds a dead connection: a proxy, a load balancer, a NAT.',
      },
      { seen: 'all kinds are silent, and the API server doesn’t answer', cause: 'The API server or etcd is down.' },
      { seen: 'one kind is silent', cause: 'Its definition was changed or deleted, or the right to watch it is missing.' },
    ],
    mend: [
      { does: 'Make the operator reconnect:', run: 'kubectl -n staking-system rollout restart deployment staking-operator' },
      'If it comes back: set the idle time-out of what is in between above two minutes; the API server sends a bookmark about every minute.',
      {
        does: 'If one kind is silent, see that its definition and the right are there:',
        run: 'kubectl get crd -o name | grep staking.dev\nkubectl auth can-i watch ethereumstakes.staking.dev --as=system:serviceaccount:staking-system:staking-operator',
      },
    ],
    escalate:
      'To the cluster team if the API server is down. If a definition is gone, see [Restore](../how-to/restore.md) and wake the owner of the stakes.',
    never: ['Recreate the definitions by hand while resources exist. The chart applies those of the running version.', keepFinalizers],
  },
  StakingKubeApiFailing: {
    money: 'No. A write that fails is repeated, and nothing is sent that was not written down before.',
    impact: 'Work is slow, or one kind of it does not happen at all, by which request fails.',
    look: [
      {
        shows: 'Which requests fail, and how. `0` means no answer.',
        query:
          'sum by (verb, resource, status) (rate(staking_operator_kube_request_duration_seconds_count{status=~"0|403|429|5.."}[10m])) > 0',
      },
      operatorLog('The API server’s own words.'),
      {
        shows: 'What the operator’s account may do.',
        run: 'kubectl auth can-i --list --as=system:serviceaccount:staking-system:staking-operator | grep -E "staking|lease|event|Resources"',
      },
    ],
    causes: [
      { seen: '403 of one resource', cause: 'A right is missing: the role is older than the program, or somebody changed it.' },
      { seen: '429', cause: 'The API server throttles the operator (API priority and fairness), or everybody.' },
      { seen: '0 or 5xx', cause: 'The API server is away, restarts, or a webhook that it calls is broken.' },
    ],
    mend: [
      {
        does: 'A missing right: bring the role of the running version back by the chart:',
        run: 'helm upgrade staking-operator charts/staking-operator -n staking-system --reset-then-reuse-values',
      },
      '429 or 5xx: see what else is slow in the cluster. The operator backs off and repeats by itself.',
    ],
    escalate: 'To the cluster team. It can wait for the morning unless [StakingOperatorNoLeader](StakingOperatorNoLeader.md) fires too.',
    never: ['Give the operator `cluster-admin` to get rid of a 403. The right that is missing stands in the log.'],
  },
}

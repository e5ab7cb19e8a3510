import { stringify } from 'yaml'
import { kinds } from '../../src/resources/kinds.ts'
import { GROUP, type KindDefinition, VERSION } from '../../src/resources/meta.ts'

type Path = readonly string[]

/** A metric of kube-state-metrics, and the kinds that have its field. */
export interface StateMetric {
  readonly name: string
  readonly help: string
  readonly kinds: readonly string[]
  /** Where the value is, or the list with a value in each entry. */
  readonly path: Path
  /** In an entry of the list. */
  readonly value?: Path
  /** Labels of an entry of the list. */
  readonly labels?: Readonly<Record<string, Path>>
  /** A field that is absent counts as 0. */
  readonly absentIsZero?: true
}

const sagas = ['EthereumStake', 'ValidatorExit', 'ValidatorWithdrawal', 'SolanaStake', 'SolanaStakeAuthorization']
const people = [...sagas, 'StakingSigner']
const conditions = { type: ['type'], reason: ['reason'] } as const

/** Every metric but `staking_resource_info`. The log's own kinds are left out: they are nobody's to apply, and a fleet has many. */
export const stateMetrics: readonly StateMetric[] = [
  { name: 'created', help: 'Unix time of the creation.', kinds: people, path: ['metadata', 'creationTimestamp'] },
  { name: 'deleted', help: 'Unix time of the deletion, while it waits.', kinds: people, path: ['metadata', 'deletionTimestamp'] },
  { name: 'generation', help: 'Generation of the spec.', kinds: people, path: ['metadata', 'generation'] },
  { name: 'observed_generation', help: 'Generation that the status is of.', kinds: people, path: ['status', 'observedGeneration'] },
  {
    name: 'condition',
    help: '1 where the condition is True; 0 where it is False or Unknown.',
    kinds: people,
    path: ['status', 'conditions'],
    labels: conditions,
    value: ['status'],
  },
  {
    name: 'condition_last_transition_time',
    help: 'Unix time at which the status of the condition last changed.',
    kinds: people,
    path: ['status', 'conditions'],
    labels: conditions,
    value: ['lastTransitionTime'],
  },
  {
    name: 'suspended',
    help: '1 where spec.suspend is true.',
    kinds: sagas,
    path: ['spec', 'suspend'],
    absentIsZero: true,
  },
  { name: 'amount_eth', help: 'Amount of the stake in ETH.', kinds: ['EthereumStake'], path: ['spec', 'amountEth'] },
  { name: 'amount_eth', help: 'Amount of the stake in ETH.', kinds: ['ValidatorWithdrawal'], path: ['status', 'amountEth'] },
  { name: 'amount_sol', help: 'Amount of the stake in SOL.', kinds: ['SolanaStake'], path: ['status', 'amountSol'] },
  {
    name: 'validator_slashed',
    help: '1 where the validator was slashed.',
    kinds: ['EthereumStake'],
    path: ['status', 'validator', 'slashed'],
    absentIsZero: true,
  },
  {
    name: 'observed_at',
    help: 'Unix time at which a resource that is done was looked at last: written with every change, and otherwise once a day.',
    kinds: sagas,
    path: ['status', 'observedAt'],
  },
]

/** Labels of `staking_resource_info`, by kind. */
export const infoLabels: Readonly<Record<string, Readonly<Record<string, Path>>>> = {
  EthereumStake: { network: ['spec', 'network'], signer: ['spec', 'signer'], phase: ['status', 'phase'] },
  ValidatorExit: { network: ['status', 'network'], signer: ['spec', 'signer'], phase: ['status', 'phase'] },
  ValidatorWithdrawal: { network: ['status', 'network'], signer: ['spec', 'signer'], phase: ['status', 'phase'] },
  SolanaStake: { network: ['spec', 'network'], signer: ['spec', 'stakeAuthority', 'signer'], phase: ['status', 'phase'] },
  SolanaStakeAuthorization: {
    network: ['status', 'network'],
    stake: ['spec', 'stakeRef', 'name'],
    phase: ['status', 'phase'],
  },
  StakingSigner: { chain: ['spec', 'chain'], address: ['spec', 'address'] },
}

const gauge = ({ name, help, path, value, labels, absentIsZero }: StateMetric) => ({
  name,
  help,
  // A field that is not there yet, such as the time of a deletion, is no error.
  errorLogV: 4,
  each: {
    type: 'Gauge',
    gauge: {
      path,
      ...(labels === undefined ? {} : { labelsFromPath: labels }),
      ...(value === undefined ? {} : { valueFrom: value }),
      ...(absentIsZero === undefined ? {} : { nilIsZero: true }),
    },
  },
})

const resourceOf = ({ kind, scope, plural }: KindDefinition, labels: Readonly<Record<string, Path>>) => ({
  groupVersionKind: { group: GROUP, version: VERSION, kind },
  resourcePlural: plural,
  metricNamePrefix: 'staking_resource',
  labelsFromPath: { name: ['metadata', 'name'], ...(scope === 'Cluster' ? {} : { namespace: ['metadata', 'namespace'] }) },
  metrics: [
    {
      name: 'info',
      help: 'What a resource is, and in which phase. Always 1.',
      each: { type: 'Info', info: { labelsFromPath: labels } },
    },
    ...stateMetrics.filter((metric) => metric.kinds.includes(kind)).map(gauge),
  ],
})

const shown = kinds.flatMap((kind) => {
  const labels = infoLabels[kind.kind]
  return labels === undefined ? [] : [{ kind, labels }]
})

const header = '# Generated from scripts/kube-state-metrics by `npm run generate`. Do not edit.\n'

/** What `--custom-resource-state-config-file` of kube-state-metrics takes. */
export const kubeStateMetricsConfig = (): string =>
  `${header}${stringify(
    { kind: 'CustomResourceStateMetrics', spec: { resources: shown.map(({ kind, labels }) => resourceOf(kind, labels)) } },
    { lineWidth: 0, aliasDuplicateObjects: false },
  )}`

/** What kube-state-metrics may read for that. */
export const kubeStateMetricsRole = (): string =>
  `${header}# Bind it to the ServiceAccount of your kube-state-metrics:\n# kubectl create clusterrolebinding staking-state --clusterrole=staking-state --serviceaccount=monitoring:kube-state-metrics\n${stringify(
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'staking-state' },
      rules: [
        { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['list', 'watch'] },
        { apiGroups: [GROUP], resources: shown.map(({ kind }) => kind.plural), verbs: ['list', 'watch'] },
      ],
    },
    { lineWidth: 0 },
  )}`

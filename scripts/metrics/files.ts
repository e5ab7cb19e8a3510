import type { Registry } from 'prom-client'
import { createNodeBoard } from '../../src/chains/nodes/board.ts'
import type { Readings } from '../../src/operator/gauges.ts'
import { createOperatorMetrics } from '../../src/operator/metrics.ts'
import { createMetrics } from '../../src/service/metrics.ts'
import { infoLabels, stateMetrics } from '../kube-state-metrics/files.ts'

/** A metric, as its program declares it. */
export interface DeclaredMetric {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly labels: readonly string[]
  readonly help: string
}

const none = () => []
/** Readings of a program that has nothing to show. */
const nothing: Readings = {
  leader: () => false,
  knowsFleet: () => false,
  leaseTransitions: () => undefined,
  suspended: () => false,
  suspendedSigners: none,
  queues: none,
  informers: none,
  resources: none,
  signers: none,
  limits: none,
  balances: none,
  nodes: none,
  fleet: {
    conditions: () => ({ shown: [], omitted: 0 }),
    waits: none,
    transactions: none,
    amounts: none,
    slashed: none,
    prices: none,
    feeCaps: none,
  },
}

/** Every metric of the operator, but those of Node.js. */
export function operatorMetrics(): readonly DeclaredMetric[] {
  const metrics = createOperatorMetrics({ version: '0' })
  metrics.read(nothing)
  return declaredIn(metrics.registry)
}

/** Every metric of the service, but those of Node.js. */
export function serviceMetrics(): readonly DeclaredMetric[] {
  const metrics = createMetrics()
  const empty = async () => []
  metrics.showNodes(createNodeBoard())
  metrics.onScrape(empty)
  metrics.onScrapeInFlight(() => 0)
  metrics.onScrapeMissing(empty)
  metrics.onScrapeNetworks(async () => ({}))
  metrics.onScrapePool(() => ({ busy: 0, idle: 0, waiting: 0 }))
  metrics.onScrapeWaiting(() => 0)
  metrics.onScrapeWebhooks(async () => 0n)
  return declaredIn(metrics.registry)
}

const declaredIn = (registry: Registry): readonly DeclaredMetric[] =>
  (registry.getMetricsAsArray() as unknown as { name: string; type: DeclaredMetric['type']; labelNames: string[]; help: string }[])
    .filter(({ name }) => name.startsWith('staking_'))
    .map(({ name, type, labelNames, help }) => ({ name, type, labels: labelNames.filter((label) => label !== 'le'), help }))

const table = (metrics: readonly DeclaredMetric[]): string =>
  `| metric | type | labels | meaning |\n|---|---|---|---|\n${metrics
    .map(({ name, type, labels, help }) => `| \`${name}\` | ${type} | ${labels.join(', ')} | ${help.replaceAll('|', '\\|')} |`)
    .join('\n')}`

/** What kube-state-metrics makes of the resources: a row for each name. */
function stateTable(): string {
  const info = `| \`staking_resource_info\` | ${Object.entries(infoLabels)
    .map(([kind, labels]) => `${kind}: ${Object.keys(labels).join(', ')}`)
    .join('; ')} | What a resource is, and in which phase. Always 1. |`
  const rows = [...Map.groupBy(stateMetrics, ({ name }) => name)].map(
    ([name, [first, ...others]]) =>
      `| \`staking_resource_${name}\` | ${[first, ...others].flatMap((one) => one?.kinds ?? []).join(', ')}${first?.labels === undefined ? '' : ` (${Object.keys(first.labels).join(', ')})`} | ${first?.help ?? ''} |`,
  )
  return ['| metric | kinds (labels beside name and namespace) | meaning |', '|---|---|---|', info, ...rows].join('\n')
}

/** The page that names every metric, in the words of the programs themselves. */
export const metricReference = (): string => `# Metrics

<!-- Generated from the programs' own metrics by \`npm run generate\`. Do not edit. -->

Both programs serve \`/metrics\` in the Prometheus format: the operator on \`--listen\`, the service on its own port. The default metrics of Node.js are there as well. [Alerts](alerts.md) for both come with the chart, and so do four dashboards for Grafana (\`grafanaDashboard.enabled: true\`; or import their files: [fleet](../../charts/staking-operator/files/dashboards/staking-fleet.json), [signers](../../charts/staking-operator/files/dashboards/staking-signers.json), [chains and API](../../charts/staking-operator/files/dashboards/staking-chains.json), [service](../../charts/staking-operator/files/dashboards/staking-service.json)).

## Operator

What the fleet is like, only the instance that leads exports, once its caches are whole: resources, conditions, waits, transactions, amounts, signers, prices and nodes. What an instance knows of itself each exports: its lead, caches, queues and requests. So nothing is counted twice, and \`sum\` needs no \`max by\`.

Ages are in seconds. Amounts are in ETH or SOL and prices in gwei, as the resources have them. No label holds a hash, a key or a URL. \`node\` is the number of a node in the order of the configuration, from 1; a beacon node's has \`beacon-\` before it.

${table(operatorMetrics())}

## Service

${table(serviceMetrics())}

## kube-state-metrics

The operator names only resources that are not settled, and at most 500. For every resource by name, [kube-state-metrics](https://github.com/kubernetes/kube-state-metrics) reads them itself: give it [config.yaml](../../examples/kube-state-metrics/config.yaml) with \`--custom-resource-state-config-file\`, and the rights in [role.yaml](../../examples/kube-state-metrics/role.yaml). Every series has the labels \`customresource_kind\`, \`name\` and, but for signers, \`namespace\`. That is about thirty series for each resource: count them before you do this with a fleet of many thousands.

${stateTable()}
`

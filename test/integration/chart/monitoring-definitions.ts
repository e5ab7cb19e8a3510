import { untilEstablished } from '../../cluster/apply.ts'
import type { ControlPlane } from '../../cluster/control-plane.ts'
import { applyAll } from '../../stack/resources.ts'

const definitionOf = (plural: string, kind: string) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.monitoring.coreos.com` },
  spec: {
    group: 'monitoring.coreos.com',
    scope: 'Namespaced',
    names: { plural, kind, singular: kind.toLowerCase(), listKind: `${kind}List` },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
})

/** The Prometheus operator's own definitions aren't here: their names are enough to keep objects of them. */
export async function defineMonitoring(cluster: ControlPlane): Promise<void> {
  await applyAll(cluster, [definitionOf('servicemonitors', 'ServiceMonitor'), definitionOf('prometheusrules', 'PrometheusRule')])
  await untilEstablished(cluster)
}

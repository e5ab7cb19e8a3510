import type { KubeApi } from '../../../src/operator/kube/api.ts'
import type { KubeObject, NewObject } from '../../../src/operator/kube/objects.ts'
import type { ResourceClient, ResourceDefinition } from '../../../src/operator/kube/resource-client.ts'
import { untilEstablished } from '../../cluster/apply.ts'
import type { ControlPlane } from '../../cluster/control-plane.ts'

/** A custom resource of these tests' own. */
export interface Widget extends KubeObject {
  readonly spec?: { readonly size?: number; readonly colour?: string }
  readonly status?: { readonly step?: number; readonly note?: string }
}

export const widgets: ResourceDefinition = {
  group: 'test.kube-runtime.dev',
  version: 'v1',
  plural: 'widgets',
  kind: 'Widget',
  namespaced: true,
}
const apiVersion = `${widgets.group}/${widgets.version}`

export const widgetCrd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: widgets.test.kube-runtime.dev }
spec:
  group: test.kube-runtime.dev
  scope: Namespaced
  names: { plural: widgets, singular: widget, kind: Widget, listKind: WidgetList }
  versions:
    - name: v1
      served: true
      storage: true
      subresources: { status: {} }
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: { type: object, properties: { size: { type: integer }, colour: { type: string } } }
            status: { type: object, x-kubernetes-preserve-unknown-fields: true }
`

export const widget = (name: string, spec: Widget['spec'] = {}, namespace = 'default'): NewObject<Widget> => ({
  apiVersion,
  kind: 'Widget',
  metadata: { name, namespace },
  spec,
})

export async function installWidgets(cluster: ControlPlane): Promise<void> {
  await cluster.apply(widgetCrd)
  await untilEstablished(cluster)
}

export const widgetClient = (api: KubeApi): ResourceClient<Widget> => api.resource<Widget>(widgets)

/** Creates `names` sixteen at a time. */
export async function createWidgets(client: ResourceClient<Widget>, names: readonly string[], signal: AbortSignal): Promise<void> {
  const left = [...names]
  const worker = async (): Promise<void> => {
    for (let name = left.pop(); name !== undefined; name = left.pop()) await client.create(widget(name), signal)
  }
  await Promise.all(Array.from({ length: 16 }, worker))
}

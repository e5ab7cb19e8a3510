import { readFileSync } from 'node:fs'
import { stringify } from 'yaml'
import { tellsGeneration } from '../../src/resources/crd.ts'
import { kinds } from '../../src/resources/kinds.ts'
import { GROUP } from '../../src/resources/meta.ts'

const lua = (name: string): string => readFileSync(new URL(`../../examples/argocd/${name}.lua`, import.meta.url), 'utf8')

/** What Argo CD is told of the kinds: a part of its ConfigMap argocd-cm. The log's own kinds are nobody's to sync. */
export function argoCdConfig(): string {
  const actions = {
    'discovery.lua': lua('discovery'),
    definitions: ['reconcile', 'suspend', 'resume'].map((name) => ({ name, 'action.lua': lua(name) })),
  }
  const data: Record<string, string> = {}
  // An approval is there or not: it has no state of its own.
  for (const { kind } of kinds.filter(tellsGeneration)) {
    data[`resource.customizations.health.${GROUP}_${kind}`] = lua('health')
    if (kind !== 'StakingSigner') data[`resource.customizations.actions.${GROUP}_${kind}`] = stringify(actions, { lineWidth: 0 })
  }
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'argocd-cm', namespace: 'argocd' }, data }
  return `# Generated from the .lua files beside it by \`npm run generate\`. Do not edit.\n# kubectl -n argocd patch configmap argocd-cm --patch-file examples/argocd/argocd-cm.yaml\n${stringify(map, { lineWidth: 0 })}`
}

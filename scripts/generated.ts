import { readFileSync } from 'node:fs'
import { stringify } from 'yaml'
import { openApiDocument } from '../src/contract/openapi.ts'
import { problemHelp } from '../src/contract/problem-help.ts'
import { problems, problemType } from '../src/contract/problems.ts'
import { approvalPolicy, recordingPolicy, requesterPolicy } from '../src/resources/admission-policies.ts'
import { customResourceDefinition, type JsonObject, structuralSchema } from '../src/resources/crd.ts'
import { kinds } from '../src/resources/kinds.ts'
import { API_VERSION, GROUP, type KindDefinition, type RootRule } from '../src/resources/meta.ts'
import { type Reason, reasons, warnAfterMs } from '../src/resources/reasons.ts'
import { alertReference, alertRules, onCallPage } from './alerts/files.ts'
import { runbookPages } from './alerts/runbooks/pages.ts'
import { argoCdConfig } from './argocd/files.ts'
import { chartFiles } from './chart/files.ts'
import { dashboardFiles } from './dashboards/files.ts'
import { decisionList } from './docs/decisions.ts'
import { kubeStateMetricsConfig, kubeStateMetricsRole } from './kube-state-metrics/files.ts'
import { metricReference } from './metrics/files.ts'

const version = (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version
const header = (source: string) => `Generated from ${source} by \`npm run generate\`. Do not edit.`

/** Every generated file with its content, by path. */
export async function generatedFiles(): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>()
  for (const kind of kinds) {
    const yaml = `# ${header('src/resources')}\n${stringify(customResourceDefinition(kind), { lineWidth: 0 })}`
    files.set(`crds/${kind.plural}.${GROUP}.yaml`, yaml)
    files.set(`charts/staking-operator/files/crds/${kind.plural}.${GROUP}.yaml`, yaml)
  }
  for (const [name, spec] of Object.entries({
    approvals: approvalPolicy.spec,
    requesters: requesterPolicy.spec,
    recording: recordingPolicy.spec,
  }))
    files.set(
      `charts/staking-operator/files/policies/${name}.yaml`,
      `# ${header('src/resources/admission-policies.ts')}\n${stringify(spec, { lineWidth: 0 })}`,
    )
  for (const [path, content] of chartFiles(version)) files.set(`charts/staking-operator/${path}`, content)
  for (const [path, content] of dashboardFiles()) files.set(`charts/staking-operator/${path}`, content)
  files.set('charts/staking-operator/files/alerts.yaml', alertRules())
  files.set('docs/reference/alerts.md', alertReference())
  files.set('docs/how-to/on-call.md', onCallPage())
  for (const [path, content] of runbookPages()) files.set(path, content)
  files.set('docs/adr/README.md', decisionList())
  files.set('examples/argocd/argocd-cm.yaml', argoCdConfig())
  files.set('examples/kube-state-metrics/config.yaml', kubeStateMetricsConfig())
  files.set('examples/kube-state-metrics/role.yaml', kubeStateMetricsRole())
  files.set('docs/reference/metrics.md', metricReference())
  files.set('docs/reference/resources.md', resourceReference())
  files.set('docs/reference/reasons.md', reasonReference())
  files.set('docs/reference/problems.md', problemReference())
  files.set('docs/reference/openapi.json', `${JSON.stringify(openApiDocument({ version }), null, 2)}\n`)
  return files
}

function resourceReference(): string {
  const parts = kinds.map(
    (kind) =>
      `## ${kind.kind}\n\n${kind.description}\n\n${namesOf(kind)}\n\n### spec\n\n${fieldTable(kind.spec, rulesOf(kind))}\n\n### status\n\n${fieldTable(kind.status)}\n`,
  )
  return `# Custom resources\n\n<!-- ${header('src/resources')} -->\n\nAll are of \`${API_VERSION}\` and in the category \`staking\`: \`kubectl get staking -A\` lists them.\n\n${parts.join('\n')}`
}

const namesOf = ({ plural, shortNames, scope }: KindDefinition): string =>
  `${scope === 'Cluster' ? 'Cluster-scoped' : 'Namespaced'}; \`kubectl get ${plural}\`, short \`${shortNames[0]}\`.`

/** The rules at a definition's root, by the field that they speak of. */
function rulesOf(kind: KindDefinition): ReadonlyMap<string, string> {
  const { spec } = customResourceDefinition(kind) as unknown as { spec: { versions: { schema: { openAPIV3Schema: JsonObject } }[] } }
  const rules = (spec.versions[0]?.schema.openAPIV3Schema['x-kubernetes-validations'] ?? []) as unknown as readonly RootRule[]
  return new Map(rules.map(({ fieldPath = '', message }) => [fieldPath.replace(/^\.spec\./, ''), message]))
}

function fieldTable(schema: KindDefinition['spec'], ofRoot: ReadonlyMap<string, string> = new Map()): string {
  const rows: string[] = []
  const walk = (node: JsonObject, path: string): void => {
    const required = new Set((node.required ?? []) as string[])
    for (const [name, child] of Object.entries((node.properties ?? {}) as { [name: string]: JsonObject })) {
      const here = path === '' ? name : `${path}.${name}`
      const rules = ((child['x-kubernetes-validations'] ?? []) as { message: string }[]).map(({ message }) => message)
      const details = [
        child.default === undefined ? '' : `Default: \`${String(child.default)}\`.`,
        ...[...rules, ofRoot.get(here) ?? ''].filter((rule) => rule !== '').map((rule) => `Rule: ${rule}.`),
      ].filter((text) => text !== '')
      rows.push(
        `| \`${here}\` | ${typeOf(child)} | ${required.has(name) ? 'yes' : ''} | ${cell([child.description, ...details].filter(Boolean).join(' '))} |`,
      )
      if (child.type === 'object') walk(child, here)
      if (child.type === 'array' && (child.items as JsonObject).type === 'object' && name !== 'conditions')
        walk(child.items as JsonObject, `${here}[]`)
    }
  }
  walk(structuralSchema(schema), '')
  return `| field | type | required | meaning |\n|---|---|---|---|\n${rows.join('\n')}`
}

/** A text in a table. What stands in angle brackets is no HTML, which a reader would not see. */
const cell = (text: string): string =>
  text
    .replaceAll('|', '\\|')
    .split('`')
    .map((part, at) => (at % 2 === 0 ? part.replaceAll('<', '&lt;') : part))
    .join('`')

function typeOf(schema: JsonObject): string {
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => `\`${String(value)}\``).join(' or ')
  if (schema.type === 'array') return `list of ${typeOf(schema.items as JsonObject)}`
  return String(schema.type)
}

function warning(reason: Reason): string {
  const after = warnAfterMs(reason)
  return after === undefined ? '' : ` A Warning event after ${after / 60_000} minutes, and each hour.`
}

function reasonReference(): string {
  const table = (stalled: boolean) =>
    Object.entries(reasons)
      .filter(([, reason]) => reason.stalled === stalled)
      .map(([name, { means }]) => `| \`${name}\` | ${cell(means)}${warning(name as Reason)} |`)
      .join('\n')
  return `# Reasons\n\n<!-- ${header('src/resources/reasons.ts')} -->\n\nWhat the conditions and events of the resources can say.\n\n## A person must act\n\nThe condition \`Stalled\` is True with one of these.\n\n| reason | meaning |\n|---|---|\n${table(true)}\n\n## On the way\n\n| reason | meaning |\n|---|---|\n${table(false)}\n`
}

function problemReference(): string {
  const help = Object.entries(problemHelp).map(([code, { means, todo }]) => `\n## ${code}\n\n${means}\n\n**What to do:** ${todo}\n`)
  const rows = Object.entries(problems).map(
    ([code, { status, title }]) => `| \`${code}\` | ${status} | ${title} | \`${problemType(code as keyof typeof problems)}\` |`,
  )
  return `# Problems of the staking API\n\n<!-- ${header('src/contract/problems.ts')} -->\n\nErrors are \`application/problem+json\` (RFC 9457) with a \`code\`.\n\nIts \`type\` leads to a page of the service that says the same as this one.\n\n| code | status | title | type |\n|---|---|---|---|\n${rows.join('\n')}\n${help.join('\n')}`
}

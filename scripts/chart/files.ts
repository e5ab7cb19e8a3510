import { stringify } from 'yaml'
import { z } from 'zod'
import { chartValues } from './values.ts'

type Node = { readonly [key: string]: unknown }
const header = 'Generated from scripts/chart/values.ts by `npm run generate`. Do not edit.'

/** The chart's generated files, by path within the chart. */
export function chartFiles(version: string): ReadonlyMap<string, string> {
  const schema = z.toJSONSchema(chartValues, { target: 'draft-7', io: 'input' }) as Node
  const defaults = chartValues.parse({}) as unknown as Node
  return new Map([
    ['values.schema.json', `${JSON.stringify({ ...schema, title: 'Values of the chart staking-operator' }, null, 2)}\n`],
    ['values.yaml', `# ${header}\n\n${valuesYaml(schema, defaults)}`],
    ['Chart.yaml', chartYaml(version)],
    ['README.md', readme(schema, defaults)],
  ])
}

const chartYaml = (version: string): string =>
  `# ${header}\n${stringify({
    apiVersion: 'v2',
    name: 'staking-operator',
    description: 'Stakes as Kubernetes resources: an operator and a staking service for Ethereum and Solana',
    type: 'application',
    version,
    appVersion: version,
    // ValidatingAdmissionPolicy, and selectable fields of custom resources.
    kubeVersion: '>=1.31.0-0',
    keywords: ['staking', 'ethereum', 'solana', 'operator'],
  })}`

const childrenOf = (schema: Node): readonly [string, Node][] => Object.entries((schema.properties ?? {}) as { [name: string]: Node })
const isSection = (schema: Node): boolean => childrenOf(schema).length > 0

/** Each field under its description. */
function valuesYaml(schema: Node, defaults: Node, indent = ''): string {
  return childrenOf(schema)
    .flatMap(([name, child]) => {
      const value = defaults[name]
      if (value === undefined) return []
      const comment = typeof child.description === 'string' ? [`${indent}# ${child.description}`] : []
      if (isSection(child) && value !== undefined && Object.keys(value as Node).length > 0)
        return [...comment, `${indent}${name}:`, valuesYaml(child, value as Node, `${indent}  `).trimEnd()]
      return [
        ...comment,
        stringify({ [name]: value }, { lineWidth: 0 })
          .trimEnd()
          .split('\n')
          .map((line) => `${indent}${line}`)
          .join('\n'),
      ]
    })
    .join('\n')
    .concat('\n')
}

function readme(schema: Node, defaults: Node): string {
  const rows: string[] = []
  const walk = (node: Node, values: Node, path: string): void => {
    for (const [name, child] of childrenOf(node)) {
      const here = path === '' ? name : `${path}.${name}`
      const value = values[name]
      if (value === undefined) continue
      if (isSection(child) && value !== undefined && Object.keys(value as Node).length > 0) {
        if (typeof child.description === 'string') rows.push(`| \`${here}\` | | ${cell(child.description)} |`)
        walk(child, value as Node, here)
      } else rows.push(`| \`${here}\` | \`${JSON.stringify(value)}\` | ${cell(child.description ?? '')} |`)
    }
  }
  walk(schema, defaults, '')
  return `# staking-operator\n\n<!-- ${header} -->\n\nStakes as Kubernetes resources. [Install the operator](../../docs/how-to/install.md) goes through it step by step.\n\n\`\`\`sh\nhelm install staking-operator charts/staking-operator --namespace staking-system --create-namespace --values my-values.yaml\n\`\`\`\n\n## Values\n\n| value | default | meaning |\n|---|---|---|\n${rows.join('\n')}\n`
}
const cell = (text: unknown): string => String(text).replaceAll('|', '\\|')

import { globSync } from 'node:fs'
import { basename } from 'node:path'
import { repository, titleOf } from './pages.ts'

/** docs/adr/README.md: all decisions, by their titles. */
export function decisionList(): string {
  const files = globSync('docs/adr/[0-9]*.md', { cwd: repository }).toSorted()
  const items = files.map((file) => `- [${titleOf(file)}](${basename(file)})`.replace(/\[(\d+)\. /, '[$1 · '))
  return `# Decisions

<!-- Generated from the titles of the decisions by \`npm run generate\`. Do not edit. -->

What was decided that someone will question: the context, the decision, and what follows from it. A decision that is replaced says by which.

${items.join('\n')}
`
}

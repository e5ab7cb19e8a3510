import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const repository = fileURLToPath(new URL('../..', import.meta.url))

/** A group of pages as the site's navigation shows it. Paths are those of the repository. */
export interface Section {
  readonly title: string
  readonly pages: readonly string[]
  /** Shown as its title only, until it is opened. */
  readonly collapsed?: boolean
}

const howTo = (...names: readonly string[]) => names.map((name) => `docs/how-to/${name}.md`)
const all = (pattern: string) => globSync(pattern, { cwd: repository }).toSorted()

/** The navigation, by what a reader comes for (https://diataxis.fr): to learn, to get something done, to look something up, to understand. */
export const sections: readonly Section[] = [
  { title: 'Tutorial', pages: ['docs/tutorial/first-stake.md'] },
  {
    title: 'Install',
    pages: howTo(
      'first-stake-on-hoodi',
      'install',
      'build-the-image',
      'run-the-service',
      'argo-cd',
      'flux',
      'add-a-network',
      'tenants',
      'remote-signers',
      'size',
    ),
  },
  { title: 'Stake', pages: howTo('plan', 'exit-and-withdraw', 'limits', 'approvals', 'stake-solana', 'follow') },
  {
    title: 'When it matters',
    pages: howTo(
      'on-call',
      'monitor',
      'look-at-the-fleet',
      'look-into-it',
      'trace',
      'troubleshoot',
      'stalled',
      'emergency-stop',
      'rotate-keys',
    ),
  },
  { title: 'Keep it', pages: howTo('upgrade', 'back-up-and-restore-the-service', 'restore', 'uninstall') },
  { title: 'Runbooks', pages: ['docs/reference/alerts.md', ...all('docs/runbooks/*.md')], collapsed: true },
  {
    title: 'Reference',
    pages: [
      ...['resources', 'reasons', 'configuration'].map((name) => `docs/reference/${name}.md`),
      'charts/staking-operator/README.md',
      ...['metrics', 'problems'].map((name) => `docs/reference/${name}.md`),
      'examples/README.md',
      'examples/gitops/README.md',
    ],
  },
  {
    title: 'Explanation',
    pages: [...['exactly-once', 'security', 'operability', 'performance'].map((name) => `docs/explanation/${name}.md`), 'ARCHITECTURE.md'],
  },
  { title: 'Decisions', pages: ['docs/adr/README.md', ...all('docs/adr/[0-9]*.md')], collapsed: true },
  {
    title: 'Project',
    pages: ['README.md', 'CHANGELOG.md', 'SECURITY.md', 'CONTRIBUTING.md', 'test/README.md', 'test/devnet/README.md'],
    collapsed: true,
  },
]

/** Every page of the site, in the order of its navigation. */
export const sitePages: readonly string[] = ['docs/index.md', ...sections.flatMap(({ pages }) => pages)]

/** Pages that stand outside docs/ in the repository, by where the site has them. */
const elsewhere: Readonly<Record<string, string>> = {
  'README.md': 'project/readme.md',
  'CHANGELOG.md': 'project/changelog.md',
  'SECURITY.md': 'project/security.md',
  'CONTRIBUTING.md': 'project/contributing.md',
  'ARCHITECTURE.md': 'explanation/architecture.md',
  'charts/staking-operator/README.md': 'reference/chart.md',
  'examples/README.md': 'reference/examples.md',
  'examples/gitops/README.md': 'reference/examples-gitops.md',
  'test/README.md': 'project/tests.md',
  'test/devnet/README.md': 'project/devnet.md',
}

/** Where the site has a page of the repository: `docs/how-to/flux.md` is at `how-to/flux.md`. Undefined where it is none of the site's. */
export function sitePathOf(page: string): string | undefined {
  if (page.startsWith('docs/')) return page.slice('docs/'.length).replace(/(^|\/)README\.md$/, '$1index.md')
  return elsewhere[page]
}

/** The first heading of a page, without its marks. */
export function titleOf(page: string): string {
  const heading = /^# (.+)$/m.exec(readFileSync(join(repository, page), 'utf8'))?.[1]
  if (heading === undefined) throw new Error(`${page} has no heading of the first order`)
  return heading.replaceAll('`', '')
}

/** As Git hosts make an anchor of a heading: links lead to the same place there and on the site. */
export const anchorOf = (heading: string): string =>
  heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

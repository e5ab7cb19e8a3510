import { cpSync, globSync, mkdirSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { type DefaultTheme, defineConfig } from 'vitepress'
import { deadLinksOf, siteLink } from './links.ts'
import { anchorOf, repository, type Section, sections, sitePages, sitePathOf, titleOf } from './pages.ts'

/**
 * The site has the repository's own pages, docs/ and those beside it, at addresses that sort them by what a reader comes for. `npm run docs:build` writes it to
 * docs/.vitepress/dist: static files that ask no other host for anything. A link that leads nowhere fails it.
 */
const linkOf = (page: string): string =>
  `/${sitePathOf(page)
    ?.replace(/(^|\/)index\.md$/, '$1')
    .replace(/\.md$/, '')}`
const itemOf = (page: string): DefaultTheme.SidebarItem => ({ text: titleOf(page), link: linkOf(page) })
const groupOf = ({ title, pages, collapsed }: Section): DefaultTheme.SidebarItem => ({
  text: title,
  items: pages.map(itemOf),
  collapsed: collapsed ?? false,
})

/** Files of the repository that pages link: they are copied beside them. */
const linkedFiles = new Set<string>()
const rewrites = Object.fromEntries(sitePages.map((page) => [page, sitePathOf(page) ?? page]))
const pageAt = new Map(Object.entries(rewrites).map(([page, path]) => [path, page]))
const known = new Set(sitePages)

/** Shiki has no PromQL: texts, numbers and durations, functions. */
const promql = {
  name: 'promql',
  scopeName: 'source.promql',
  repository: {},
  patterns: [
    { name: 'string.quoted', match: '"[^"]*"' },
    { name: 'constant.numeric', match: '\\b\\d[\\d.]*(ms|[smhdwy])?\\b' },
    { name: 'keyword.control', match: '\\b(by|without|on|ignoring|and|or|unless|offset)\\b' },
    { name: 'entity.name.function', match: '\\b[a-z_]+(?=\\s*\\()' },
  ],
}

/** In the page itself, so that no browser asks for one. */
const icon = `data:image/svg+xml,${encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#3451b2" d="M8 0 14 8 8 16 2 8z"/></svg>')}`

export default defineConfig({
  lang: 'en',
  title: 'staking-operator',
  description: 'Stakes as Kubernetes resources: an operator and a staking service for Ethereum and Solana',
  base: '/',
  srcDir: '..',
  srcExclude: globSync('**/*.md', { cwd: repository, exclude: (name) => name === 'node_modules' || name === 'vectors' }).filter(
    (page) => !known.has(page),
  ),
  rewrites,
  cacheDir: join(repository, '.cache/vitepress'),
  head: [['link', { rel: 'icon', href: icon }]],
  lastUpdated: false,
  // An address that a command opens on the reader's own machine.
  ignoreDeadLinks: 'localhostLinks',
  metaChunk: true,
  themeConfig: {
    nav: [
      { text: 'Tutorial', link: linkOf('docs/tutorial/first-stake.md') },
      { text: 'How-to', link: linkOf('docs/how-to/first-stake-on-hoodi.md'), activeMatch: '/how-to/' },
      { text: 'Runbooks', link: linkOf('docs/reference/alerts.md'), activeMatch: '/(runbooks/|reference/alerts)' },
      { text: 'Reference', link: linkOf('docs/reference/resources.md'), activeMatch: '/reference/(?!alerts)' },
      { text: 'Explanation', link: linkOf('docs/explanation/exactly-once.md'), activeMatch: '/explanation/' },
    ],
    sidebar: sections.map(groupOf),
    outline: [2, 3],
    search: { provider: 'local' },
    externalLinkIcon: true,
  },
  markdown: {
    languages: [promql],
    anchor: { slugify: anchorOf },
    config(md) {
      md.core.ruler.push('links-of-the-repository', ({ tokens, env }) => {
        const {
          realPath,
          path,
          relativePath = '',
        } = env as { readonly realPath?: string; readonly path?: string; readonly relativePath?: string }
        const file = realPath ?? path
        const page = pageAt.get(relativePath) ?? (file === undefined ? undefined : relative(repository, file))
        // Titles are rendered by themselves, without a page.
        if (page === undefined) return
        for (const token of tokens.flatMap(({ children }) => children ?? []))
          if (token.type === 'link_open') {
            const link = siteLink(page, token.attrGet('href') ?? '')
            if (link === undefined) continue
            token.attrSet('href', link.href)
            if (link.to === 'file') {
              linkedFiles.add(link.file)
              token.attrSet('target', '_blank')
            }
          }
      })
    },
  },
  buildEnd({ outDir }) {
    for (const file of linkedFiles) {
      mkdirSync(dirname(join(outDir, file)), { recursive: true })
      cpSync(join(repository, file), join(outDir, file))
    }
    const dead = deadLinksOf(outDir)
    if (dead.length > 0) throw new Error(`links that lead nowhere:\n${dead.join('\n')}`)
  },
})

import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize, posix } from 'node:path'
import { repository, sitePages, sitePathOf } from './pages.ts'

/** Where a link of a page leads on the site. */
export type SiteLink =
  | { readonly to: 'page'; readonly href: string }
  /** A file of the repository that is no page: the site has a copy of it. */
  | { readonly to: 'file'; readonly href: string; readonly file: string }

const isPage = new Set(sitePages)

/**
 * Pages link one another and files as they lie in the repository, so that a Git host follows the links as they are; the site has them elsewhere.
 * @returns undefined for a link that stays as it is: within the page, or to another host @throws where it leads nowhere
 */
export function siteLink(page: string, href: string): SiteLink | undefined {
  if (href.startsWith('#') || /^[a-z][a-z0-9+.-]*:/i.test(href) || href.startsWith('//')) return undefined
  const [path = '', anchor] = href.split('#')
  const target = posix.normalize(posix.join(posix.dirname(page), decodeURI(path))).replace(/\/$/, '')
  const trouble = `${page}: the link ${href}`
  if (target.startsWith('..') || !existsSync(join(repository, target))) throw new Error(`${trouble} leads nowhere`)
  const readme = statSync(join(repository, target)).isDirectory() ? `${target}/README.md` : target
  const suffix = anchor === undefined ? '' : `#${anchor}`
  if (isPage.has(readme)) return { to: 'page', href: `/${sitePathOf(readme)}${suffix}` }
  if (readme !== target) throw new Error(`${trouble} leads to a folder without a page: link a file of it`)
  if (target.endsWith('.md')) throw new Error(`${trouble} leads to a page that the site does not have: see scripts/docs/pages.ts`)
  return { to: 'file', href: `/${target}`, file: target }
}

/**
 * Links of a built site that lead nowhere: to a page or file that is not there, or to a part that a page has no anchor for.
 * @returns each as `page → link`
 */
export function deadLinksOf(outDir: string): readonly string[] {
  const pages = new Map(globSync('**/*.html', { cwd: outDir }).map((name) => [name, readFileSync(join(outDir, name), 'utf8')]))
  const idsOf = new Map([...pages].map(([name, html]) => [name, new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id = '']) => id))]))
  const dead: string[] = []
  for (const [name, html] of pages)
    for (const [, raw = ''] of html.matchAll(/<a\s[^>]*?href="([^"]*)"/g)) {
      const href = raw.replaceAll('&amp;', '&')
      if (/^[a-z][a-z0-9+.-]*:/i.test(href)) continue
      const [path = '', anchor = ''] = href.split('#')
      const beside = path.startsWith('/') ? path.slice(1) : path === '' ? name : join(dirname(name), path)
      const target = normalize(beside === '' || beside.endsWith('/') ? `${beside}index.html` : beside)
      const found = pages.has(target) || existsSync(join(outDir, target))
      const id = decodeURIComponent(anchor)
      if (!found || (id !== '' && idsOf.get(target)?.has(id) === false)) dead.push(`${name} → ${href}`)
    }
  return [...new Set(dead)]
}

import { globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { deadLinksOf, siteLink } from './links.ts'
import { repository, sitePages, sitePathOf } from './pages.ts'

test('every page of docs/ is in the navigation, once', () => {
  expect(sitePages.filter((page) => page.startsWith('docs/')).toSorted()).toEqual(
    globSync('docs/**/*.md', { cwd: repository, exclude: (name) => name === '.vitepress' }).toSorted(),
  )
  const paths = sitePages.map(sitePathOf)
  expect(paths).not.toContain(undefined)
  expect(new Set(paths).size).toBe(sitePages.length)
})

describe('a link of a page', () => {
  test.each([
    { what: 'to a page beside it', page: 'docs/how-to/flux.md', href: 'argo-cd.md', href2: '/how-to/argo-cd.md' },
    {
      what: 'to a part of a page',
      page: 'docs/how-to/flux.md',
      href: '../reference/metrics.md#operator',
      href2: '/reference/metrics.md#operator',
    },
    {
      what: 'to a page outside docs/',
      page: 'docs/how-to/flux.md',
      href: '../../charts/staking-operator/README.md',
      href2: '/reference/chart.md',
    },
    { what: 'from a page outside docs/', page: 'README.md', href: 'docs/how-to/install.md', href2: '/how-to/install.md' },
    { what: 'to a folder that has a page', page: 'README.md', href: 'docs/adr', href2: '/adr/index.md' },
    {
      what: 'to a file',
      page: 'docs/how-to/monitor.md',
      href: '../../charts/staking-operator/files/alerts.yaml',
      href2: '/charts/staking-operator/files/alerts.yaml',
    },
    { what: 'within the page', page: 'README.md', href: '#a-stake', href2: undefined },
    { what: 'to another host', page: 'README.md', href: 'https://example.org/x', href2: undefined },
  ])('$what is $href2', ({ page, href, href2 }) => {
    expect(siteLink(page, href)?.href).toBe(href2)
  })

  test.each([
    { what: 'to what is not there', href: 'no-such.md', says: /leads nowhere/ },
    { what: 'out of the repository', href: '../../../elsewhere.md', says: /leads nowhere/ },
    { what: 'to a folder without a page', href: '../../charts/staking-operator/files', says: /folder without a page/ },
  ])('$what is refused', ({ href, says }) => {
    expect(() => siteLink('docs/how-to/flux.md', href)).toThrow(says)
  })
})

describe('a built site', () => {
  let dir = ''
  afterEach(() => rmSync(dir, { recursive: true, force: true }))
  const site = (files: Readonly<Record<string, string>>): string => {
    dir = mkdtempSync(join(tmpdir(), 'site-'))
    for (const [name, html] of Object.entries(files)) {
      mkdirSync(dirname(join(dir, name)), { recursive: true })
      writeFileSync(join(dir, name), html)
    }
    return dir
  }

  test.each([
    { what: 'to a page', link: '/a/b.html', dead: false },
    { what: 'to a page beside it', link: './b.html', dead: false },
    { what: 'to a part of a page', link: '/a/b.html#part', dead: false },
    { what: 'to the start page', link: '/', dead: false },
    { what: 'to another host', link: 'https://example.org/', dead: false },
    { what: 'to a page that is not there', link: '/a/c.html', dead: true },
    { what: 'to a part that the page does not have', link: '/a/b.html#other', dead: true },
    { what: 'to a part of its own that it does not have', link: '#other', dead: true },
  ])('a link $what is dead: $dead', ({ link, dead }) => {
    const out = site({ 'index.html': '<p id="top">', 'a/index.html': `<a class="x" href="${link}">y</a>`, 'a/b.html': '<h2 id="part">' })
    expect(deadLinksOf(out)).toEqual(dead ? [`a/index.html → ${link}`] : [])
  })
})

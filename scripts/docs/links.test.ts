import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { anchorOf } from './pages.ts'

const repository = join(import.meta.dirname, '../..')
const pages = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md', 'charts/**/*.md', 'test/**/*.md'], { cwd: repository }).toSorted()

const withoutCode = (text: string): string =>
  text.replaceAll(/```.*?```/gs, '').replaceAll(/`[^`\n]*`/g, (code) => code.replaceAll(/[[\]()]/g, ''))
const anchorsOf = (path: string): readonly string[] =>
  [
    ...readFileSync(path, 'utf8')
      .replaceAll(/```.*?```/gs, '')
      .matchAll(/^#+ (.*)$/gm),
  ].map(([, heading = '']) => anchorOf(heading))

test.each(pages)('each link of %s leads somewhere', (page) => {
  const links = [...withoutCode(readFileSync(join(repository, page), 'utf8')).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link)
  for (const link of links.filter((each) => !/^[a-z]+:/.test(each))) {
    const [path = '', anchor] = link.split('#')
    const target = path === '' ? join(repository, page) : join(repository, dirname(page), path)
    expect(existsSync(target), `${page}: ${link}`).toBe(true)
    if (anchor !== undefined && statSync(target).isFile()) expect(anchorsOf(target), `${page}: ${link}`).toContain(anchor)
  }
})

test('every how-to and explanation is reached from the README', () => {
  const readme = readFileSync(join(repository, 'README.md'), 'utf8')
  for (const page of pages.filter((each) => /^docs\/(how-to|explanation|tutorial|reference)\//.test(each)))
    expect(readme.includes(`(${page})`), page).toBe(true)
})

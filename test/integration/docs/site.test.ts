import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deadLinksOf } from '../../../scripts/docs/links.ts'
import { repository, sections, sitePages, sitePathOf, titleOf } from '../../../scripts/docs/pages.ts'
import { chromiumProgram, openPage, startBrowser } from '../../browser/browser.ts'
import { type StaticServer, serveFolder } from '../../browser/static-server.ts'
import { runToEnd } from '../../cluster/run.ts'

/** The documentation's site, built as `npm run docs:build` builds it, and looked at. */
const outDir = mkdtempSync(join(tmpdir(), 'docs-site-'))
const htmlOf = (page: string): string => `${sitePathOf(page)?.replace(/\.md$/, '.html')}`
let server: StaticServer
beforeAll(async () => {
  const { code, stdout, stderr } = await runToEnd({
    command: process.execPath,
    args: [join(repository, 'node_modules/vitepress/bin/vitepress.js'), 'build', 'docs', '--outDir', outDir],
    cwd: repository,
    signal: AbortSignal.timeout(400_000),
  })
  if (code !== 0) throw new Error(`the site can't be built: ${stdout}\n${stderr}`)
  server = await serveFolder(outDir)
}, 420_000)
afterAll(async () => {
  await server?.stop()
  rmSync(outDir, { recursive: true, force: true })
})

test('every page of the navigation is there, and no link of any of them leads nowhere', () => {
  for (const page of sitePages) expect(existsSync(join(outDir, htmlOf(page))), page).toBe(true)
  expect(deadLinksOf(outDir)).toEqual([])
})

test('files of the repository that pages link are beside them, as they are', () => {
  for (const file of ['charts/staking-operator/files/alerts.yaml', 'examples/10-signer.yaml', 'docs/reference/openapi.json'])
    expect(readFileSync(join(outDir, file), 'utf8'), file).toBe(readFileSync(join(repository, file), 'utf8'))
})

const program = chromiumProgram()
describe.skipIf(program === undefined)(
  `in Chromium${program === undefined ? ' (skipped: install chromium, or name it in CHROMIUM)' : ''}`,
  () => {
    let browser: Browser
    beforeAll(async () => {
      browser = await startBrowser(program ?? '')
    })
    afterAll(() => browser?.close())
    const shot = (name: string) =>
      process.env.SCREENSHOTS === undefined ? undefined : { path: `${process.env.SCREENSHOTS}/site-${name}.png` }

    test('each section is reached from the start page, without an error and without asking another host', {
      timeout: 240_000,
    }, async () => {
      const { page, wrong, origins } = await openPage(browser, `${server.url}/`)
      await page.getByRole('heading', { name: 'staking-operator' }).first().waitFor()
      const start = shot('start')
      if (start) await page.screenshot(start)
      for (const name of ['Tutorial', 'How-to', 'Runbooks', 'Reference', 'Explanation']) {
        await page.locator('.VPNavBarMenu').getByRole('link', { name, exact: true }).click()
        await page.locator('.vp-doc h1').waitFor()
        const path = shot(name.toLowerCase())
        if (path) await page.screenshot(path)
      }
      // The sidebar leads to the first page of each section; those that are folded are opened first.
      for (const { title, pages, collapsed } of sections) {
        const group = page.locator('.VPSidebarItem.level-0').filter({ has: page.locator('h2', { hasText: new RegExp(`^${title}$`) }) })
        if (collapsed && (await group.getAttribute('class'))?.includes('collapsed')) await group.locator('.item').first().click()
        const heading = titleOf(pages[0] ?? '')
        await group.getByRole('link', { name: heading, exact: true }).click()
        await page.locator('.vp-doc h1').filter({ hasText: heading }).waitFor()
      }
      expect(wrong).toEqual([])
      expect([...origins]).toEqual([server.url])
      await page.close()
    })

    test('the search finds a reason, and leads to it', async () => {
      const { page, wrong, origins } = await openPage(browser, `${server.url}/how-to/install.html`)
      await page.locator('.DocSearch-Button').click()
      await page.locator('#localsearch-input').fill('FeeTooHigh')
      const results = page.locator('#localsearch-list .result')
      await results.first().waitFor()
      const found = await results.allTextContents()
      expect(found.some((text) => text.includes('StakingFeeOverCap') || text.includes('Reasons'))).toBe(true)
      const path = shot('search')
      if (path) await page.screenshot(path)
      await results.first().click()
      await page.locator('.vp-doc', { hasText: 'FeeTooHigh' }).waitFor()
      expect(wrong).toEqual([])
      expect([...origins]).toEqual([server.url])
      await page.close()
    })

    test("an alert's runbook reads as well on a telephone, in the dark", async () => {
      const { page, wrong } = await openPage(browser, `${server.url}/runbooks/StakingAlarm.html`, {
        viewport: { width: 390, height: 844 },
        colorScheme: 'dark',
      })
      await page.locator('html.dark').waitFor()
      expect(await page.locator('.vp-doc h2').allTextContents()).toHaveLength(7)
      // Nothing is wider than the screen but what scrolls within itself.
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390)
      const path = shot('runbook-dark')
      if (path) await page.screenshot({ ...path, fullPage: true })
      expect(wrong).toEqual([])
      await page.close()
    })
  },
)

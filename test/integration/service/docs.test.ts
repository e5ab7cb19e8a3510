import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { problemCodes, problems, problemType } from '../../../src/contract/problems.ts'
import { routes } from '../../../src/contract/routes.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { startService, type TestService } from './harness.ts'

let service: TestService
beforeAll(async () => {
  service = await startService(await memoryDatabase())
})
afterAll(() => service?.close())

const get = async (path: string) => {
  const response = await fetch(service.url + path)
  return { status: response.status, headers: response.headers, text: await response.text() }
}

test('the type of every problem leads to a page that says what it means and what to do', async () => {
  for (const code of problemCodes) {
    const { status, headers, text } = await get(problemType(code))
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'self'; /)
    for (const part of [code, String(problems[code].status), 'What it means', 'What to do']) expect(text).toContain(part)
  }
  expect((await get('/problems/no-such')).status).toBe(404)
  const list = (await get('/problems')).text
  for (const code of problemCodes) expect(list).toContain(`problems/${code}"`)
})

test('what the pages are made of never changes under its path, and no other file of the package is served', async () => {
  const { text, headers } = await get('/docs')
  expect(headers.get('content-security-policy')).toContain("script-src 'self'; connect-src 'self'")
  const paths = [...text.matchAll(/(?:src|href)="\.(\/docs\/assets\/[^"]+)"/g)].map(([, path]) => path ?? '')
  expect(paths).toHaveLength(5)
  for (const path of paths) {
    const asset = await get(path)
    expect([path, asset.status, asset.headers.get('cache-control')]).toEqual([path, 200, 'public, max-age=31536000, immutable'])
  }
  const [first = ''] = paths
  for (const path of [
    first.replace(/[^/]+$/, 'index.html'),
    first.replace(/[^/]+$/, '..%2Fpackage.json'),
    first.replace(/assets\/[^/]+/, 'assets/0'),
  ])
    expect((await get(path)).status).toBe(404)
})

const program = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser'].find(
  (path) => path !== undefined && existsSync(path),
)

// `.ci/run` installs it: there, nothing is skipped.
describe.skipIf(program === undefined)(
  `in Chromium${program === undefined ? ' (skipped: install chromium, or name it in CHROMIUM)' : ''}`,
  () => {
    let browser: Browser
    beforeAll(async () => {
      browser = await chromium.launch({
        ...(program === undefined ? {} : { executablePath: program }),
        args: [
          ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
          ...['--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
        ],
      })
    })
    afterAll(() => browser?.close())

    /** A page with what went wrong on it, and where it asked for things. */
    async function open(path: string) {
      const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
      page.setDefaultTimeout(60_000)
      const wrong: string[] = []
      const origins = new Set<string>()
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) wrong.push(message.text())
      })
      page.on('pageerror', (error) => wrong.push(error.message))
      page.on('request', (request) => {
        if (!request.url().startsWith('data:')) origins.add(new URL(request.url()).origin)
      })
      page.on('requestfailed', (request) => wrong.push(`${request.url()} failed`))
      await page.goto(service.url + path)
      return { page, wrong, origins }
    }

    test('/docs shows every operation and its problems, from this origin alone and without an error', async () => {
      const { page, wrong, origins } = await open('/docs')
      await page.waitForSelector('.opblock')
      const shown = await page.locator('.opblock-summary-path').evaluateAll((all) => all.map((one) => one.getAttribute('data-path')))
      expect(shown.sort()).toEqual(
        Object.values(routes)
          .map(({ path }) => path)
          .sort(),
      )
      await page.locator('#operations-ethereum-createEthereumStake .opblock-summary-control').click()
      const link = page.locator('#operations-ethereum-createEthereumStake a', { hasText: 'reference-exists' })
      await link.waitFor()
      expect(await link.getAttribute('href')).toBe('/problems/reference-exists')
      if (process.env.SCREENSHOTS !== undefined) await page.screenshot({ path: `${process.env.SCREENSHOTS}/docs.png` })
      expect(wrong).toEqual([])
      expect([...origins]).toEqual([service.url])
      await page.close()
    })

    test("a problem's page is styled, and leads back", async () => {
      const { page, wrong, origins } = await open('/problems/validation-failed')
      expect(await page.locator('h1').textContent()).toBe(problems['validation-failed'].title)
      expect(await page.evaluate('getComputedStyle(document.querySelector("h1")).fontFamily')).toContain('system-ui')
      if (process.env.SCREENSHOTS !== undefined) await page.screenshot({ path: `${process.env.SCREENSHOTS}/problem.png` })
      await page.getByText("The API's reference").click()
      await page.waitForSelector('.opblock')
      expect(wrong).toEqual([])
      expect([...origins]).toEqual([service.url])
      await page.close()
    })
  },
)

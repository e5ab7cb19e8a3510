import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser } from 'playwright-core'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type HealthServer, serveHealth } from '../../../src/operator/health.ts'
import { chromiumProgram, launchChromium, openPage } from './browser.ts'
import { exampleFleet, HOSTILE } from './example-fleet.ts'

/** The web page as the operator serves it, of a fleet in memory: what a browser makes of it, in both schemes, on wide and on narrow screens. */
let leader: HealthServer
let standby: HealthServer
const failures: unknown[] = []
const serve = (leads: boolean): Promise<HealthServer> => {
  const fleet = exampleFleet({ leads })
  failures.push(fleet.failures)
  const well = () => undefined
  return serveHealth({ host: '127.0.0.1', port: 0, registry: new Registry(), healthy: well, ready: well, page: fleet.page })
}
beforeAll(async () => {
  leader = await serve(true)
  standby = await serve(false)
})
afterAll(async () => {
  await leader?.close()
  await standby?.close()
})

const get = (path: string, method = 'GET') => fetch(`http://${leader.address}${path}`, { method, redirect: 'manual' })

test('GET and HEAD are answered alike, all else is refused, and health and metrics are as before', async () => {
  const [got, head] = [await get('/ui/'), await get('/ui/', 'HEAD')]
  expect([got.status, head.status, head.headers.get('content-length'), await head.text()]).toEqual([
    200,
    200,
    String(Buffer.byteLength(await got.text())),
    '',
  ])
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) expect((await get('/ui/', method)).status, method).toBe(405)
  expect((await get('/')).headers.get('location')).toBe('ui/')
  expect(await (await get('/healthz')).text()).toBe('ok')
  expect((await get('/metrics')).status).toBe(200)
})

test('an operator that was not asked for a page has none', async () => {
  const well = () => undefined
  const bare = await serveHealth({ host: '127.0.0.1', port: 0, registry: new Registry(), healthy: well, ready: well })
  for (const path of ['/', '/ui', '/ui/', '/ui/style.css']) expect((await fetch(`http://${bare.address}${path}`)).status, path).toBe(404)
  await bare.close()
})

const paths = {
  fleet: '/ui/',
  stake: '/ui/resources/EthereumStake/treasury-team/validator-039',
  signers: '/ui/signers',
  signer: '/ui/signers/treasury',
  hostile: '/ui/resources/EthereumStake/growth/hostile',
  missing: '/ui/resources/EthereumStake/growth/none',
} as const
const looks = [
  { width: 1280, dark: false },
  { width: 1280, dark: true },
  { width: 390, dark: false },
  { width: 390, dark: true },
]
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

// `.ci/run` installs it: there, nothing is skipped.
describe.skipIf(chromiumProgram === undefined)(
  `in Chromium${chromiumProgram === undefined ? ' (skipped: install chromium, or name it in CHROMIUM)' : ''}`,
  () => {
    let browser: Browser
    beforeAll(async () => {
      browser = await launchChromium()
    })
    afterAll(() => browser?.close())
    const open = (path: string, options: Parameters<typeof openPage>[2] = {}, { address } = leader) =>
      openPage(browser, `http://${address}${path}`, options)

    test.each(looks)(
      'at $width pixels, dark: $dark, every page fits, breaks no rule of WCAG 2.2 AA that a program can see, and has no error',
      async (look) => {
        for (const [name, path] of Object.entries(paths)) {
          const { page, wrong, origins, close } = await open(path, look)
          if (process.env.SCREENSHOTS !== undefined) {
            mkdirSync(process.env.SCREENSHOTS, { recursive: true })
            const file = `${process.env.SCREENSHOTS}/${name}-${look.width}-${look.dark ? 'dark' : 'light'}.png`
            await page.screenshot({ path: file, fullPage: name !== 'fleet' })
          }
          expect(
            await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
            `${name} is too wide`,
          ).toBe(0)
          // What a table is too narrow for is out of sight: on a desk, nothing of the fleet is.
          if (look.width === 1280 && ['fleet', 'signers'].includes(name))
            expect(
              await page.evaluate('[...document.querySelectorAll(".scroll")].map((one) => one.scrollWidth - one.clientWidth)'),
              `a table of ${name} is cut`,
            ).toEqual([0])
          await page.evaluate(axe)
          const found = (await page.evaluate(
            // In the dark, only colours differ.
            `axe.run(document, { runOnly: ${JSON.stringify(look.dark ? ['cat.color'] : RULES)} })`,
          )) as { violations: { id: string; help: string; nodes: { html: string; failureSummary: string }[] }[] }
          expect(
            found.violations.map(({ id, help, nodes }) => ({ id, help, first: nodes[0]?.html, why: nodes[0]?.failureSummary })),
            name,
          ).toEqual([])
          expect(await page.locator('h1').count()).toBe(1)
          expect(wrong.filter((line) => !/404/.test(line) || name !== 'missing')).toEqual([])
          expect([...origins]).toEqual([`http://${leader.address}`])
          await close()
        }
        expect(failures).toEqual([[], []])
      },
    )

    test('a stake is found by the filter and the keyboard alone, without any script', async () => {
      const { page, close } = await open('/ui/', { scripts: false })
      expect(await page.locator('tbody tr').count()).toBe(50)
      const skip = page.locator('a.skip')
      await page.keyboard.press('Tab')
      expect(await skip.isVisible()).toBe(true)
      await page.locator('#name').focus()
      await page.keyboard.type('validator-039')
      await Promise.all([page.waitForURL(/name=validator-039/), page.keyboard.press('Enter')])
      expect(await page.locator('tbody tr').count()).toBe(1)
      await page.locator('tbody th a').focus()
      await Promise.all([page.waitForURL(/resources\/EthereumStake/), page.keyboard.press('Enter')])
      expect(await page.locator('h1').textContent()).toBe('EthereumStake validator-039')
      expect(await page.locator('ol.timeline > li').count()).toBeGreaterThan(6)
      await page.getByRole('link', { name: 'treasury' }).first().click()
      await page.waitForURL(/signers\/treasury/)
      const nonces = await page.getByRole('rowheader').allTextContents()
      expect(nonces.slice(0, 3)).toEqual(['1203', '1204', '1205'])
      await close()
    })

    test('texts that hold markup are texts, and run nothing', async () => {
      const { page, wrong, close } = await open(paths.hostile)
      expect(await page.getByText(HOSTILE).count()).toBeGreaterThan(0)
      expect(await page.title()).toBe('hostile · EthereumStake · staking-operator')
      expect(await page.locator('main img, main script, main a[href^="javascript"]').count()).toBe(0)
      expect(wrong).toEqual([])
      await close()
    })

    test('a standby says that it is one, and who leads', async () => {
      const { page, close } = await open('/ui/', {}, standby)
      expect(await page.locator('.instance').textContent()).toContain('Standby')
      expect(await page.locator('.instance').textContent()).toContain('staking-operator-7d9c5b-q8k4z leads')
      await close()
    })
  },
)

import { existsSync } from 'node:fs'
import { type Browser, chromium, type Page } from 'playwright-core'

/** Chromium, where it is installed; `CHROMIUM` names another one. `.ci/run` installs it: there, nothing is skipped. */
export const chromiumProgram = (): string | undefined =>
  [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) => path !== undefined && existsSync(path))

/** Headless, without a word to anybody but the pages that it is told to open. */
export const startBrowser = (executablePath: string | undefined): Promise<Browser> =>
  chromium.launch({
    ...(executablePath === undefined ? {} : { executablePath }),
    args: [
      ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
      ...['--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
    ],
  })

export interface WatchedPage {
  readonly page: Page
  /** Errors and warnings of the console, requests that failed or were answered with an error. */
  readonly wrong: readonly string[]
  /** Where the page asked for things. */
  readonly origins: ReadonlySet<string>
}

/** A page with what went wrong on it, and where it asked for things. */
export async function openPage(
  browser: Browser,
  url: string,
  options: { readonly viewport?: { width: number; height: number }; readonly colorScheme?: 'light' | 'dark' } = {},
): Promise<WatchedPage> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options })
  page.setDefaultTimeout(60_000)
  const wrong: string[] = []
  const origins = new Set<string>()
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) wrong.push(message.text())
  })
  page.on('pageerror', (error) => wrong.push(error.message))
  page.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url())) origins.add(new URL(request.url()).origin)
  })
  page.on('response', (response) => {
    if (response.status() >= 400) wrong.push(`${response.url()}: ${response.status()}`)
  })
  page.on('requestfailed', (request) => {
    // What a page no longer wants when it is left has not failed.
    if (request.failure()?.errorText !== 'net::ERR_ABORTED') wrong.push(`${request.url()} failed`)
  })
  await page.goto(url)
  return { page, wrong, origins }
}

import type { Browser } from 'playwright-core'
import { chromiumProgram as findChromium, startBrowser } from '../../browser/browser.ts'

/** Undefined where there is none. */
export const chromiumProgram = findChromium()

export const launchChromium = (): Promise<Browser> => startBrowser(chromiumProgram)

/** A page of this width with what went wrong on it, and where it asked for things. */
export async function openPage(
  browser: Browser,
  url: string,
  { width = 1280, dark = false, scripts = true }: { readonly width?: number; readonly dark?: boolean; readonly scripts?: boolean } = {},
) {
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme: dark ? 'dark' : 'light',
    javaScriptEnabled: scripts,
  })
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  const wrong: string[] = []
  const origins = new Set<string>()
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) wrong.push(message.text())
  })
  page.on('pageerror', (error) => wrong.push(error.message))
  page.on('dialog', (dialog) => {
    wrong.push(`a dialog: ${dialog.message()}`)
    dialog.dismiss().catch(() => undefined)
  })
  page.on('request', (request) => void origins.add(new URL(request.url()).origin))
  page.on('requestfailed', (request) => wrong.push(`${request.url()} failed`))
  await page.goto(url)
  return { page, wrong, origins, close: () => context.close() }
}

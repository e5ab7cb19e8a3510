import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../cluster/ports.ts'
import { createProgram, type Program } from '../../stack/program.ts'
import { applyAll, eventually, getStake, namespace, SIGNER, signer, stake, untilHolds } from '../../stack/resources.ts'
import { mainEntry } from '../../stack/stack.ts'
import { chromiumProgram, launchChromium, openPage } from '../page/browser.ts'
import { PATIENT_LEASE, patchSigner, untilPaidOnce, untilStalls, useStack } from './harness.ts'

/** The web page of a real operator over a real API server, of its leader and of a standby. How it looks is tried by `page/look.test.ts`. */
const stack = useStack({ operatorArgs: ['--ui'] })

let standby: Program
let standbyUrl = ''
const leaderUrl = (): string => stack().operatorMetrics.replace(/\/metrics$/, '')
const textAt = async (url: string): Promise<string> => {
  const response = await fetch(url)
  expect(response.status, url).toBe(200)
  return (await response.text()).replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')
}

beforeAll(async () => {
  const { cluster, dir, operatorKubeconfig, networksFile, keysDir } = stack()
  const port = await freePort()
  standbyUrl = `http://127.0.0.1:${port}`
  standby = createProgram({
    name: 'standby',
    command: process.execPath,
    args: [
      ...[mainEntry, 'operator', '--ui', '--identity', 'standby-1', '--listen', `127.0.0.1:${port}`],
      ...['--kubeconfig', operatorKubeconfig, '--networks', networksFile, '--keys-dir', keysDir, ...PATIENT_LEASE],
    ],
    logFile: join(dir, 'standby.log'),
    readyUrl: `${standbyUrl}/readyz`,
  })
  await applyAll(cluster, [namespace('team-a'), signer(), stake('paid'), stake('refused', { signer: 'nobody' })])
  await Promise.all([standby.start(), untilPaidOnce(stack(), 'paid', { timeoutMs: 150_000 })])
  await untilStalls(cluster, 'refused', 'SignerNotFound', /no StakingSigner nobody/)
}, 300_000)
afterAll(() => standby?.stop())

describe.each([
  { who: 'the leader', url: leaderUrl, says: /Leads \(/ },
  { who: 'a standby', url: () => standbyUrl, says: /Standby \(standby-1\); \S+ leads/ },
])('$who', ({ url, says }) => {
  test('shows the fleet, with what needs a person first, and says who it is', async () => {
    await untilHolds(
      'both stakes are seen',
      () => textAt(`${url()}/ui/?kind=EthereumStake`),
      (text) => {
        expect(text).toMatch(/ refused default EthereumStake Stalled .* paid default EthereumStake Ready /)
        expect(text).toMatch(says)
        expect(text).toContain('There is no StakingSigner nobody')
      },
    )
  })

  test('shows what was signed for a stake, as the chain has it', async () => {
    const { transaction } = (await getStake(stack().cluster, 'paid'))?.status ?? {}
    expect(transaction?.minedHash).toMatch(/^0x/)
    // The page goes by two informers: one of the stakes, and one of the log.
    await untilHolds(
      'the outcome is seen',
      () => textAt(`${url()}/ui/resources/EthereumStake/default/paid`),
      (text) => {
        for (const part of [
          `Outcome Landed in block ${transaction?.blockNumber}`,
          transaction?.minedHash ?? '',
          'version 1 written down and signed',
          `nonce ${transaction?.nonce}`,
          'Confirmed: Succeeded',
        ])
          expect(text).toContain(part)
      },
    )
  })

  test('shows the signer with its balance', async () => {
    await untilHolds(
      'the balance is seen',
      () => textAt(`${url()}/ui/signers`),
      (text) => expect(text).toMatch(new RegExp(`${SIGNER} Ready Ethereum 0x[0-9a-fA-F]{40} [0-9.]+ ETH on`)),
    )
    // Its status is written at the next look at the signer.
    await eventually(
      'the next nonce is seen',
      () => textAt(`${url()}/ui/signers/${SIGNER}`),
      (text) => /Next nonce [1-9]/.test(text),
    )
  })
})

test('only the leader knows the events that were told', async () => {
  const [of, at] = ['Event Confirmed', '/ui/resources/EthereumStake/default/paid']
  await untilHolds(
    'the event is seen',
    () => textAt(leaderUrl() + at),
    (text) => expect(text).toContain(of),
  )
  expect(await textAt(standbyUrl + at)).not.toContain(of)
})

test('views ask the API server, the nodes and the staking API for nothing', async () => {
  // A standby does nothing by itself but look at the lease.
  const counted = async () => {
    const text = await (await fetch(`${standbyUrl}/metrics`)).text()
    return text
      .split('\n')
      .filter(
        (line) =>
          /^staking_operator_(kube|rpc|staking_api)_request_duration_seconds_count/.test(line) && !line.includes('resource="leases"'),
      )
      .filter((line) => !/verb="(watch|list)"/i.test(line))
  }
  const before = await counted()
  for (const path of ['', 'signers', `signers/${SIGNER}`, 'resources/EthereumStake/default/paid', 'resources/EthereumStake/default/none'])
    for (let n = 0; n < 4; n++) await (await fetch(`${standbyUrl}/ui/${path}`)).text()
  expect(await counted()).toEqual(before)
})

test('a change is seen within seconds', async () => {
  await patchSigner(stack().cluster, SIGNER, { suspend: true })
  await eventually(
    'the signer is suspended on the page',
    () => textAt(`${leaderUrl()}/ui/?kind=StakingSigner`),
    (text) => text.includes(`${SIGNER} StakingSigner Suspended`),
  )
  await patchSigner(stack().cluster, SIGNER, { suspend: null })
})

// `.ci/run` installs it: there, nothing is skipped.
describe.skipIf(chromiumProgram === undefined)(
  `in Chromium${chromiumProgram === undefined ? ' (skipped: install chromium, or name it in CHROMIUM)' : ''}`,
  () => {
    let browser: Browser
    beforeAll(async () => {
      browser = await launchChromium()
    })
    afterAll(() => browser?.close())

    test('the way from the fleet to a stalled stake, to the paid one and its signer has no error and leaves the origin nowhere', async () => {
      const { page, wrong, origins, close } = await openPage(browser, `${leaderUrl()}/`)
      await page.locator('#state').selectOption('Stalled')
      await page.getByRole('button', { name: 'Filter' }).click()
      await page.waitForURL(/state=Stalled/)
      await page.getByRole('link', { name: 'refused', exact: true }).click()
      await page.locator('h1', { hasText: 'EthereumStake refused' }).waitFor()
      await page.getByRole('link', { name: 'Fleet' }).click()
      await page.getByRole('link', { name: 'paid', exact: true }).click()
      await page.locator('ol.timeline').waitFor()
      await page.getByRole('link', { name: SIGNER }).first().click()
      await page.locator('h1', { hasText: `StakingSigner ${SIGNER}` }).waitFor()
      if (process.env.SCREENSHOTS !== undefined)
        await page.screenshot({ path: `${process.env.SCREENSHOTS}/real-signer.png`, fullPage: true })
      expect(wrong).toEqual([])
      expect([...origins]).toEqual([leaderUrl()])
      await close()
    })
  },
)

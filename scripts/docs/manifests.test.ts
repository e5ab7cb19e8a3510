import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { makePlan } from '../../src/inspect/plan/plan.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { blocksOf } from './blocks.ts'
import { repository, sitePages } from './pages.ts'

/** What a reader fills in. */
const PLACEHOLDERS: Readonly<Record<string, string>> = {
  'ADDRESS-OF-THE-SIGNER': '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
  'WITHDRAWAL-ADDRESS': '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  'STAKE-2026': 'stake-2026',
  STAKE: 'stake',
  NAMESPACE: 'team-a',
  'STAKER-ADDRESS': '3VQzXBat22ya8p9uZWSGaza5rwLyMLx8yDPjANcyKene',
  'WITHDRAWER-ADDRESS': '3d76mYbzs5Mt3xRpbJN27q9Fd2ZqiejNvtmY8SfoinPW',
  'NEW-STAKER': 'staker',
  'NEW-WITHDRAWER': 'withdrawer',
}
const filled = (text: string): string =>
  Object.entries(PLACEHOLDERS).reduce((rest, [name, value]) => rest.replace(new RegExp(`(?<!\\w)${name}(?!\\w)`, 'g'), value), text)

/** The manifests of this operator's kinds in a page: in blocks of YAML, and within commands. */
const manifestsOf = (page: string): readonly string[] =>
  blocksOf(readFileSync(join(repository, page), 'utf8')).flatMap(({ text }) =>
    [text, ...Array.from(text.matchAll(/<<'YAML'\n([\s\S]*?)\nYAML/g), ([, within = '']) => within)].filter((each) =>
      each.startsWith('apiVersion: staking.dev/'),
    ),
  )

test('each manifest of each page is one that the definitions take, once its placeholders are filled in', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'manifests-'))
  const refused: string[] = []
  let tried = 0
  try {
    for (const page of sitePages)
      for (const text of manifestsOf(page)) {
        const file = join(dir, `${tried}.yaml`)
        writeFileSync(file, filled(text))
        const options = { recursive: false, namespace: 'default', networksFile: undefined, server: undefined, clock: systemClock }
        const { resources } = await makePlan({ paths: [file], ...options }, AbortSignal.timeout(10_000))
        expect(resources.length, page).toBe(parseAllDocuments(text).length)
        tried += resources.length
        // What only other manifests could say, such as the policy of a signer, is not the page's fault.
        for (const { kind, name, refusals } of resources)
          refused.push(...refusals.filter(({ by }) => by !== 'operator').map(({ message }) => `${page}, ${kind} ${name}: ${message}`))
      }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
  expect(tried).toBeGreaterThan(12)
  // The tutorial shows one that is refused, and says so.
  expect(refused).toEqual([
    expect.stringMatching(
      /^docs\/tutorial\/first-stake\.md, EthereumStake wrong: .*must be at least 32 ETH: a validator needs 32 ETH to become active/,
    ),
  ])
})

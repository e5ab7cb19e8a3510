import { beforeAll, describe, expect, test } from 'vitest'
import type { StakingTransaction } from '../../../src/resources/staking-transaction.ts'
import { pageCommands } from '../../cluster/page-commands.ts'
import { applyAll, eventually, getSigner, getStakes, PAYER, SIGNER, seen, signer, stake } from '../../stack/resources.ts'
import { metric, patchSigner, staysFor, useStack } from './harness.ts'

/** Rolling limits against a real API server, whose rules refuse what makes no sense, and a real chain. */
// A block a second: with more than that anvil's time runs ahead of the clock, and nothing is signed under a limit while the clock is behind.
const stack = useStack({ anvil: { mining: 1, accounts: 6 } })

const MOST = 3
const names = Array.from({ length: 9 }, (_, n) => `mistake-${n}`)

beforeAll(async () => {
  const { cluster } = stack()
  await applyAll(cluster, [signer({ policy: { limits: [{ window: '1h', maxCount: MOST }] } })])
  await eventually(
    'the signer is ready',
    () => getSigner(cluster, SIGNER),
    (value) => seen(value).ready === 'True',
  )
})

/** When each deposit was signed for first, Unix seconds, in order. */
async function signedAt(): Promise<readonly number[]> {
  const { items } = JSON.parse(
    await stack().cluster.kubectlOk(['get', 'stx', '--field-selector', 'spec.purpose=Deposit', '-o', 'json']),
  ) as {
    items: readonly StakingTransaction[]
  }
  return items
    .flatMap(({ status }) => (status?.attempts?.[0] === undefined ? [] : [Date.parse(status.attempts[0].at) / 1_000]))
    .toSorted((a, b) => a - b)
}

test('stakes that are applied at once by a mistake stop at the limit, say when they go, and go on when it is raised', {
  timeout: 600_000,
}, async () => {
  const { cluster } = stack()
  await applyAll(
    cluster,
    names.map((name) => stake(name)),
  )
  const waiting = async () => (await getStakes(cluster)).filter((one) => seen(one).reason === 'LimitReached')
  const [one] = await eventually('some wait for the limit', waiting, (found) => found.length > 0, 180_000)
  expect(seen(one)).toMatchObject({ ready: 'False', stalled: false })
  expect(seen(one).message).toMatch(
    /^StakingSigner treasury may sign 3 transactions in 1h \(spec\.policy\.limits\)\. (There is no room for this one now|An earlier one of namespace default waits for room, and has its turn first)\. It goes on (at \d{4}-|when what is in flight)/,
  )
  await eventually(
    'the signer shows what is used',
    () => getSigner(cluster, SIGNER),
    ({ status }) => status?.limits?.some(({ window, count }) => window === '1h' && count > 0) === true,
    60_000,
  )
  const page = await pageCommands(cluster, { page: 'docs/how-to/limits.md' }, AbortSignal.timeout(60_000))
  try {
    expect(await page.run('What is left')).toMatch(/^local 1h {2}[1-3] left [0-2] frees (\d{4}-\S+Z)?$/m)
  } finally {
    page.stop()
  }
  expect(await metric(stack(), 'staking_operator_signer_limit_count_left', { signer: SIGNER, window: '1h' })).toBeLessThanOrEqual(MOST)

  await eventually('as many are signed as may be', signedAt, (all) => all.length === MOST, 60_000)
  await staysFor(5_000, signedAt)
  await patchSigner(cluster, SIGNER, { policy: { limits: [{ window: '1h', maxCount: names.length }] } })
  await eventually('all go once the limit is raised', signedAt, (all) => all.length === names.length, 180_000)
})

test('a window frees on a real chain: the next goes once it is over, by both clocks, and no sooner', { timeout: 180_000 }, async () => {
  const { cluster } = stack()
  const before = (await signedAt()).length
  const WINDOW_S = 15
  await patchSigner(cluster, SIGNER, { policy: { limits: [{ window: `${WINDOW_S}s`, maxCount: 1 }] } })
  await applyAll(cluster, [stake('window-1'), stake('window-2')])
  await eventually('both have gone', signedAt, (all) => all.length === before + 2, 120_000)
  const { items } = JSON.parse(await cluster.kubectlOk(['get', 'stx', '-o', 'json'])) as { items: readonly StakingTransaction[] }
  const times = items
    .filter(({ spec }) => spec.owner.name.startsWith('window-'))
    .flatMap(({ status }) => status?.attempts?.[0] ?? [])
    .map(({ at, blockAt = '' }) => ({ clock: Date.parse(at), block: Date.parse(blockAt) }))
    .toSorted((a, b) => a.clock - b.clock)
  const [first, second] = times
  expect(times).toHaveLength(2)
  // Both are written down in whole seconds.
  expect((second?.clock ?? 0) - (first?.clock ?? 0)).toBeGreaterThanOrEqual((WINDOW_S - 1) * 1_000)
  expect((second?.block ?? 0) - (first?.block ?? 0)).toBeGreaterThanOrEqual((WINDOW_S - 1) * 1_000)
})

describe('a signer is refused with a word', () => {
  test.each([
    ['no unit', { window: '86400', maxCount: 1 }, /must be a whole number of seconds, minutes, hours or days/],
    ['milliseconds', { window: '500ms', maxCount: 1 }, /must be a whole number of seconds, minutes, hours or days/],
    ['a window of nothing', { window: '0h', maxCount: 1 }, /must be a whole number of seconds, minutes, hours or days, more than 0/],
    ['a negative window', { window: '-1h', maxCount: 1 }, /must be a whole number of seconds, minutes, hours or days/],
    ['more than a year', { window: '8761h', maxCount: 1 }, /must be at most a year: 365d/],
    ['more than a year, in days', { window: '366d', maxCount: 1 }, /must be at most a year: 365d/],
    ['a total in wei', { window: '24h', maxTotalEth: '32000000000000000000' }, /must be a plain decimal number of ETH/],
    ['a total with its unit', { window: '24h', maxTotalEth: '32 ETH' }, /must be a plain decimal number of ETH/],
    ['a total of nothing', { window: '24h', maxTotalEth: '0.0' }, /must be more than 0: to stop a key, set spec\.suspend/],
    ['a total in SOL', { window: '24h', maxTotalSol: '32' }, /limits of an Ethereum signer are in ETH \(maxTotalEth\)/],
    ['no maximum', { window: '24h' }, /a limit needs maxCount, maxTotalEth \(Ethereum\) or maxTotalSol \(Solana\)/],
    ['an unknown per', { window: '24h', maxCount: 1, per: 'Team' }, /Unsupported value: "Team"/],
    ['a count of nothing', { window: '24h', maxCount: 0 }, /greater than or equal to 1/],
  ])('that has %s', async (_what, limit, words) => {
    const object = signer({ address: PAYER, policy: { limits: [limit] } }, 'refused')
    const { code, stderr } = await stack().cluster.kubectl(['apply', '--dry-run=server', '-f', '-'], { input: JSON.stringify(object) })
    expect(code).not.toBe(0)
    expect(stderr).toMatch(words)
  })

  test.each([
    ['as it is', '24h', /Duplicate value/],
    ['in days', '1d', /has two limits for windows of the same length/],
    ['in seconds', '86400s', /has two limits for windows of the same length/],
  ])('that has one window twice, %s', async (_how, window, words) => {
    const limits = [
      { window: '24h', maxCount: 1 },
      { window, maxCount: 2 },
    ]
    const object = signer({ policy: { limits } }, 'refused')
    const { code, stderr } = await stack().cluster.kubectl(['apply', '--dry-run=server', '-f', '-'], { input: JSON.stringify(object) })
    expect(code).not.toBe(0)
    expect(stderr).toMatch(words)
  })

  test('and one that is as it should be is not', async () => {
    const limits = [
      { window: '365d', maxTotalEth: '320' },
      { window: '24h', maxCount: 10, per: 'Namespace' },
      { window: '1d', maxCount: 100, per: 'Signer' },
    ]
    const object = signer({ policy: { limits } }, 'fine')
    await stack().cluster.kubectlOk(['apply', '--dry-run=server', '-f', '-'], { input: JSON.stringify(object) })
  })
})

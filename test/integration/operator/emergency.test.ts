import { afterEach, describe, expect, test } from 'vitest'
import { SUSPEND_ANNOTATION } from '../../../src/resources/meta.ts'
import type { StakingTransaction } from '../../../src/resources/staking-transaction.ts'
import { applyAll, eventually, PAYER, SIGNER, signer, stake } from '../../stack/resources.ts'
import { comesToRest, metric, patchSigner, untilPaidOnce, untilShows, useStack, whileMining } from './harness.ts'

/** A person stops everything while twenty stakes are on their way: the lease is renewed as often as by default. */
const stack = useStack({
  anvil: { mining: 'manual' },
  operatorArgs: ['--lease-duration', '15s', '--renew-deadline', '10s', '--retry-period', '2s'],
})
/** After so long no call is signed any more. */
const SIGNED_WITHIN_MS = 2_000
/** A line of the log is written once the nodes have answered, which on a machine that is busy with other tests takes seconds more: what was signed by then is sent. */
const SENT_WITHIN_MS = 20_000

const lease = (annotation: string) =>
  stack().cluster.kubectlOk(['-n', 'staking-system', 'annotate', 'lease', 'staking-operator', '--overwrite', annotation])

interface Line {
  readonly time: string | number
  readonly msg?: string
  readonly hash?: string
}
/** When the operator has signed or sent something, Unix ms, by its own log. */
const acts = (): readonly number[] =>
  stack()
    .logs()
    .split('\n')
    .flatMap((line) => {
      if (!line.startsWith('{')) return []
      const { time, msg = '', hash } = JSON.parse(line) as Line
      return hash !== undefined && /^a transaction is (written down and signed|sent)$/.test(msg) ? [new Date(time).getTime()] : []
    })
/** When each call was signed, by the records, Unix ms, whole seconds. */
async function signatures(): Promise<readonly number[]> {
  const { items } = JSON.parse(await stack().cluster.kubectlOk(['get', 'stakingtransactions', '-o', 'json'])) as {
    readonly items: readonly StakingTransaction[]
  }
  return items.flatMap(({ status }) => (status?.attempts ?? []).filter(({ kind }) => kind === 'Call').map(({ at }) => Date.parse(at)))
}
const sent = async (): Promise<number> => stack().anvil.transactionCount(PAYER, 'pending')

const stops = [
  {
    how: 'by spec.suspend of the signer',
    reason: 'SignerSuspended',
    stop: () => patchSigner(stack().cluster, 'treasury', { suspend: true }),
    goOn: () => patchSigner(stack().cluster, 'treasury', { suspend: false }),
  },
  {
    how: "by the annotation of the operator's lease",
    reason: 'OperatorSuspended',
    stop: () => lease(`${SUSPEND_ANNOTATION}=true`),
    goOn: () => lease(`${SUSPEND_ANNOTATION}-`),
  },
] as const

// Of a test that failed: the next one is not to suffer from it.
afterEach(async () => {
  for (const { goOn } of stops) await goOn()
})

describe.each(stops)('stopped $how', ({ reason, stop, goOn }) => {
  test('nothing more is signed or sent, and all go on afterwards, once', { timeout: 240_000 }, async () => {
    const { cluster } = stack()
    const names = (part: string, length: number) => Array.from({ length }, (_, n) => `${reason.toLowerCase()}-${part}-${n}`)
    const [first, later] = [names('a', 20), names('b', 3)]
    const signedBefore = (await signatures()).length
    await applyAll(cluster, [signer(), ...first.map((name) => stake(name))])
    await eventually(
      'some are on their way',
      async () => (await signatures()).length - signedBefore,
      (count) => count > 0,
    )
    await stop()
    const stoppedAt = Date.now()
    await applyAll(
      cluster,
      later.map((name) => stake(name)),
    )
    // All of them wait, and nothing is under way any more.
    for (const name of later) await untilShows(cluster, name, reason, /suspended/)
    await comesToRest(8_000, async () => acts().length, 60_000)
    const before = await sent()
    // What the alerts on a stop that somebody forgot go by.
    const told = () =>
      reason === 'OperatorSuspended'
        ? metric(stack(), 'staking_operator_suspended')
        : metric(stack(), 'staking_operator_signer_suspended', { signer: SIGNER })
    await eventually('the metrics say so', told, (value) => value === 1)
    expect((await signatures()).filter((at) => at > stoppedAt + SIGNED_WITHIN_MS)).toEqual([])
    expect(acts().filter((at) => at > stoppedAt + SENT_WITHIN_MS)).toEqual([])
    const until = acts().length
    await new Promise((resolve) => setTimeout(resolve, 4_000))
    expect(acts()).toHaveLength(until)
    expect(await sent()).toBe(before)

    await goOn()
    await whileMining(stack(), async () => {
      for (const name of [...first, ...later]) await untilPaidOnce(stack(), name, { timeoutMs: 120_000 })
    })
  })
})

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { EthereumStake } from '../../src/resources/ethereum-stake.ts'
import { programFile } from '../stack/programs.ts'
import { applyAll, getStake, SIGNER, seen } from '../stack/resources.ts'
import { type Stack, startStack } from '../stack/stack.ts'
import { dropLease } from './exactly-once.ts'

/** Where the operator is to die: at the n-th time (from 1) that it passes this point for this stake, or for its signer from then on. */
export interface Target {
  /** namespace/name */
  readonly key: string
  readonly signer: string
  readonly point: string
  readonly occurrence: number
  /** Counted from when the stake is first seen; otherwise from now. */
  readonly fromFirstSight: boolean
}

/** A point as it was passed. */
export interface Passed {
  readonly point: string
  readonly occurrence: number
}

/** What a test does to a stake: once `until` holds, `act`, then on to the next. The last `until` ends the life. */
export type Life = readonly {
  readonly what: string
  readonly until: (stack: Stack, stake: EthereumStake | undefined) => boolean | Promise<boolean>
  readonly act?: (stack: Stack, name: string) => Promise<unknown>
}[]

export interface PointsStack {
  readonly stack: Stack
  /** How often the operator died at its target. */
  readonly deaths: () => number
  readonly stop: () => Promise<void>
  /**
   * Lets a stake live its life, and starts the operator again when it has died on the way. Points count from right before what is done at the
   * end of step `from - 1` of the life; 0 is the beginning.
   * @returns the points that it passed from there on.
   */
  live(
    manifest: Readonly<Record<string, unknown>>,
    life: Life,
    options?: { readonly target?: Passed; readonly from?: number },
  ): Promise<readonly Passed[]>
}

const LIFE_MS = 120_000

/** The whole system with an operator that dies where it is told to. */
export async function startPointsStack(): Promise<PointsStack> {
  let deaths = 0
  const dir = mkdtempSync(join(tmpdir(), 'staking-points-'))
  const pointsFile = join(dir, 'points')
  const targetFile = join(dir, 'target')
  writeFileSync(pointsFile, '')
  const stack = await startStack({
    startOperator: false,
    bumpAfterMs: 300,
    operatorEntry: programFile('test/crash/operator-at-point.ts'),
    operatorEnv: { STAKING_POINTS_FILE: pointsFile, STAKING_TARGET_FILE: targetFile },
    // The lease of a dead operator is taken away; on a machine under load no living one should lose it.
    operatorArgs: [
      '--signer-interval',
      '1h',
      '--stall-recheck',
      '1s',
      '--lease-duration',
      '30s',
      '--renew-deadline',
      '20s',
      '--retry-period',
      '2s',
    ],
  })
  stack.writeNetworks({
    ...stack.networks,
    networks: stack.networks.networks.map((network) => ({ ...network, pollIntervalMs: 100 })),
  })

  const linesPassed = (): readonly string[] => readFileSync(pointsFile, 'utf8').split('\n').slice(0, -1)

  /** The points of one stake and its signer in these lines. */
  function passedIn(lines: readonly string[], key: string, fromFirstSight: boolean): readonly Passed[] {
    const counts = new Map<string, number>()
    const passed: Passed[] = []
    let isSeen = !fromFirstSight
    for (const [point = '', of] of lines.map((line) => line.split('\t'))) {
      isSeen ||= of === key
      if (!isSeen || (of !== key && of !== SIGNER)) continue
      const occurrence = (counts.get(point) ?? 0) + 1
      counts.set(point, occurrence)
      passed.push({ point, occurrence })
    }
    return passed
  }

  const reviveOperator = async (): Promise<void> => {
    const { code, signal } = await stack.operator.process().exited
    if (signal !== 'SIGKILL') throw new Error(`the operator ended by itself with ${code ?? signal}: ${stack.logs().slice(-2_000)}`)
    deaths += 1
    await dropLease(stack.cluster)
    await stack.operator.start()
  }

  return {
    stack,
    deaths: () => deaths,
    async stop() {
      await stack.stop()
      rmSync(dir, { recursive: true, force: true })
    },
    async live(manifest, life, { target, from = 0 } = {}) {
      const { name, namespace } = manifest.metadata as { name: string; namespace: string }
      const key = `${namespace}/${name}`
      const deathsBefore = deaths
      let before = linesPassed().length
      rmSync(targetFile, { force: true })
      const arm = (): void => {
        before = linesPassed().length
        if (target !== undefined)
          writeFileSync(targetFile, JSON.stringify({ ...target, key, signer: SIGNER, fromFirstSight: from === 0 } satisfies Target))
      }
      if (from === 0) arm()
      await stack.operator.start()
      await applyAll(stack.cluster, [manifest])
      const deadline = Date.now() + LIFE_MS
      for (const [index, { what, until, act }] of life.entries()) {
        for (;;) {
          if (!stack.operator.process().alive()) await reviveOperator()
          const now = await getStake(stack.cluster, name, namespace)
          if (await until(stack, now)) break
          if (Date.now() > deadline)
            throw new Error(
              `${key} killed at ${JSON.stringify(target)}: not ${what} in time: ${JSON.stringify(seen(now))} ${stack.logs().slice(-3_000)}`,
            )
          await delay(30)
        }
        if (index === from - 1) arm()
        await act?.(stack, name)
      }
      // It may be past the last thing that can be seen from outside and not yet past the last point.
      for (let waited = 0; waited < 1_000 && target !== undefined && existsSync(targetFile); waited += 30) await delay(30)
      if (target !== undefined && !existsSync(targetFile) && deaths === deathsBefore) await reviveOperator()
      return passedIn(linesPassed().slice(before), key, from === 0)
    },
  }
}

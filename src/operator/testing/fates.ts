import type { Around } from './mortal.ts'
import { seededRandom } from './test-clock.ts'

/** One misfortune of a life: `after` as many points as passed since the one before, `arg` from 0 to 1 says which of its kind. */
export interface Fate<Peril extends string = string> {
  readonly after: number
  readonly peril: Peril
  readonly arg: number
}
/** What a misfortune does to the call or to the operator at whose point it strikes; undefined: it strikes elsewhere. */
export type Blow = 'ends' | Error | undefined
/** How a misfortune strikes. */
export type Strikes<Peril extends string> = Readonly<Record<Peril, (arg: number) => Blow>>

/** How a life with misfortunes has come out. */
export interface Walked {
  readonly log: readonly string[]
  /** Ready, gone, held while it is deleted, or why it needs a person. */
  readonly end: string
  readonly message: string
  /** What must not have been. */
  readonly problems: readonly string[]
}

/** A life's misfortunes, the same for the same seed. `weights`: how often each comes. */
export function fatesOf<Peril extends string>(
  seed: number,
  weights: Readonly<Record<Peril, number>>,
  { least, most, apart }: { readonly least: number; readonly most: number; readonly apart: number },
): readonly Fate<Peril>[] {
  const random = seededRandom(seed)
  const all = (Object.keys(weights) as Peril[]).flatMap((peril) => Array.from({ length: weights[peril] }, () => peril))
  return Array.from({ length: least + Math.floor(random() * (most - least + 1)) }, () => ({
    // Often close together, sometimes far apart.
    after: Math.floor(random() ** 2 * apart),
    peril: all[Math.floor(random() * all.length)] as Peril,
    arg: random(),
  }))
}

/** The item that a misfortune's `arg` (from 0 to 1) says; undefined where there is none. */
export const pick = <T>(items: readonly T[], arg: number): T | undefined => items[Math.floor(arg * items.length)]

/** Strikes with one misfortune after the other, whichever operator's point it is. `log` tells where each has struck. */
export function createFatal<Peril extends string>(fates: readonly Fate<Peril>[], strikes: Strikes<Peril>) {
  const log: string[] = []
  let next = 0
  let passed = 0
  const due = (): Fate<Peril> | undefined => {
    const fate = fates[next]
    if (fate === undefined || passed < fate.after) return undefined
    next++
    passed = 0
    return fate
  }
  /** @returns how the call or the operator is struck that is at this point */
  function strike(point: string): Blow {
    for (let fate = due(); fate !== undefined; fate = due()) {
      log.push(`${fate.peril} (${fate.arg.toFixed(2)}) at ${point}`)
      const blow = strikes[fate.peril](fate.arg)
      if (blow !== undefined) return blow
    }
    return undefined
  }
  const around: Around = (point, operator) => {
    passed++
    const blow = strike(point)
    if (blow === 'ends') operator.kill()
    // Between two calls nothing can fail.
    else if (blow !== undefined && point.includes('.')) throw blow
  }
  return {
    around,
    log,
    /** Time passes without a call of anybody. */
    pass(points: number): void {
      passed += points
      strike('rest')
    },
    /** Nothing strikes from now on. */
    stop(): void {
      next = fates.length
    },
    get isOver() {
      return next >= fates.length
    },
  }
}

/** The fewest of the misfortunes that still come to a problem: for whoever looks for the cause. */
async function fewest<Peril extends string>(
  fates: readonly Fate<Peril>[],
  walk: (fates: readonly Fate<Peril>[]) => Promise<Walked>,
): Promise<readonly Fate<Peril>[]> {
  let left = fates
  for (let index = 0; index < left.length; ) {
    const gone = left[index]
    // What comes after it comes when it came.
    const without = left.toSpliced(index, 1).map((fate, at) => (at === index ? { ...fate, after: fate.after + (gone?.after ?? 0) } : fate))
    if ((await walk(without)).problems.length > 0) left = without
    else index++
  }
  return left
}

/** Walks once. @throws with the fewest misfortunes that come to a problem, to be walked again as they are */
export async function assertWalks<Peril extends string>(
  fates: readonly Fate<Peril>[],
  walk: (fates: readonly Fate<Peril>[]) => Promise<Walked>,
): Promise<Walked> {
  const walked = await walk(fates)
  if (walked.problems.length === 0) return walked
  const few = await fewest(fates, walk)
  const { problems, end, message, log } = await walk(few)
  throw new Error([...problems, `${end}: ${message}`, ...log, JSON.stringify(few)].join('\n'))
}

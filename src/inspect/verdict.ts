/** One rule, and whether it holds. `unknown`: it could not be looked at; `says` says why. */
export interface Verdict {
  readonly rule: string
  readonly holds: boolean | 'unknown'
  readonly says: string
  /** Unknown because nobody asked for it: what it needs was left out of the command. */
  readonly notAsked?: true
}

export const verdict = (rule: string, holds: boolean | 'unknown', says: string): Verdict => ({ rule, holds, says })

/** @param given as it was claimed; without a claim there is no verdict */
export function sameAs(rule: string, given: string | number | undefined, right: string | number): readonly Verdict[] {
  if (given === undefined) return []
  const isSame = String(given).toLowerCase() === String(right).toLowerCase()
  return [verdict(rule, isSame, isSame ? String(given) : `${given}, and it should be ${right}`)]
}

/**
 * What the rules come to together. `holds` is unknown while one could not be looked at that was asked for: what is not final, or not there, is not verified
 * yet. `exitCode`: 1 for a broken rule, 2 for what is not known.
 */
export function conclusionOf(verdicts: readonly Verdict[]) {
  const broken = verdicts.filter(({ holds }) => holds === false).length
  const notAsked = verdicts.filter((one) => one.holds === 'unknown' && one.notAsked === true).length
  const unknown = verdicts.filter(({ holds }) => holds === 'unknown').length - notAsked
  const holds: Verdict['holds'] = broken > 0 ? false : unknown > 0 ? 'unknown' : true
  return { holds, broken, unknown, notAsked, exitCode: broken > 0 ? 1 : unknown > 0 ? 2 : 0 }
}

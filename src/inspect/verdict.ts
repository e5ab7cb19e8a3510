/** One rule, and whether it holds. `unknown`: it could not be looked at; `says` says why. */
export interface Verdict {
  readonly rule: string
  readonly holds: boolean | 'unknown'
  readonly says: string
}

export const verdict = (rule: string, holds: boolean | 'unknown', says: string): Verdict => ({ rule, holds, says })

/** @param given as it was claimed; without a claim there is no verdict */
export function sameAs(rule: string, given: string | number | undefined, right: string | number): readonly Verdict[] {
  if (given === undefined) return []
  const isSame = String(given).toLowerCase() === String(right).toLowerCase()
  return [verdict(rule, isSame, isSame ? String(given) : `${given}, and it should be ${right}`)]
}

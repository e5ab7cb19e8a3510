import type { Progress } from './progress.ts'

/**
 * What a refusal says of what was done, by the moment that it is said in. Checks refuse before each signature, the first and all later ones: only the engine
 * knows whether something of the resource was signed before. Texts are written for the first; `claims` has each of their phrases.
 */
export const claims: readonly (readonly [first: string, later: string])[] = [
  ['othing was signed or paid', 'othing more is signed or paid'],
  ['othing was signed', 'othing more is signed'],
  ['othing was sent', 'othing more is sent'],
  ['othing was paid', 'othing more is paid'],
  ['o transaction was signed', 'o other transaction is signed'],
]
/** That nothing was done a second time is true whenever it is said. */
const pattern = new RegExp(`\\b([Nn])(${claims.map(([first]) => first).join('|')})\\b(?! again)`, 'g')
const later = new Map(claims)

export const inTime = (message: string, hasSigned: boolean): string =>
  hasSigned ? message.replace(pattern, (_all, initial: string, claim: string) => `${initial}${later.get(claim) ?? claim}`) : message

export const progressInTime = (progress: Progress, hasSigned: boolean): Progress =>
  progress.at === 'halted' && hasSigned
    ? { ...progress, verdict: { ...progress.verdict, message: inTime(progress.verdict.message, hasSigned) } }
    : progress

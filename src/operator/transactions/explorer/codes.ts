/** Transactions, purposes and addresses by number. */

/** What may use a nonce: version 0 to 2 of the call of purpose 0 or 1, a cancel, another user's, and a call that reverts. 0: nothing. */
export const CANCEL = 7
export const FOREIGN = 8
export const callOf = (purpose: number, version: number): number => 1 + 3 * purpose + version
export const revertOf = (purpose: number): number => 9 + purpose
export const purposeOf = (code: number): number => (code >= 1 && code <= 6 ? Math.floor((code - 1) / 3) : -1)
export const revertedPurposeOf = (code: number): number => (code >= 9 ? code - 9 : -1)

/** One transaction: lane, nonce and code in one number, never 0. */
export const transactionId = (lane: number, nonce: number, code: number): number => 1 + ((lane * 4 + nonce) << 4) + code
export const laneOfId = (id: number): number => (id - 1) >> 6
export const nonceOfId = (id: number): number => ((id - 1) >> 4) & 3
export const codeOfId = (id: number): number => (id - 1) & 15
/** What an earlier version has signed, by nonce: the purpose of each, in the other order than it comes to the log. */
export const LEDGER: readonly { readonly nonce: number; readonly purpose: number; readonly code: number }[] = [
  { nonce: 0, purpose: 1, code: callOf(1, 0) },
  { nonce: 1, purpose: 0, code: callOf(0, 0) },
]
export const subjectOf = (purpose: number): string => `purpose${purpose}`
/** A filler under which an earlier version may have done a purpose: 130 and 131. */
export const MAY_DO = 130
export const hashOf = (id: number): string => `0x${id}`
export const idOf = (hash: string): number => Number(hash.slice(2))
export const addressOf = (lane: number): string => `0xlane${lane}`

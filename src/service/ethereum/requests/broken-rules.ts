import type { BrokenRule, RuleCode } from '../../../chains/ethereum/withdrawal-rules.ts'
import type { ProblemDetail } from '../../../contract/problems.ts'

const ofAmount: ReadonlySet<RuleCode> = new Set(['amount-not-positive', 'amount-over-available'])
const maxDetail = 1024

/** The rules as a problem names them, each at the part of the request that breaks it. */
export const asDetails = (broken: readonly BrokenRule[]): readonly ProblemDetail[] =>
  broken.map(({ code, message }) => ({
    pointer: ofAmount.has(code) ? '/body/amountGwei' : '/params/pubkey',
    code,
    detail: message.slice(0, maxDetail),
  }))

import type { Evidence, LastEvidence } from './evidence.ts'
import { foreignTransactions, openLane, overLimit, unseenNonces } from './lane.ts'
import { ethereumMoney } from './money.ts'
import { falselyReady } from './ready.ts'
import { lostDeposits, unsettled } from './settled.ts'
import { solanaMoney } from './solana-money.ts'

/** What must never be, at no moment. */
export const violations = (evidence: Evidence): readonly string[] => [
  ...ethereumMoney(evidence),
  ...solanaMoney(evidence),
  ...falselyReady(evidence),
]

/** What must not be once the faults are over and there was time for everything. */
export const unfinished = (evidence: LastEvidence): readonly string[] => [...openLane(evidence), ...unsettled(evidence)]

/** All of it. */
export const lastViolations = (evidence: LastEvidence): readonly string[] => [
  ...violations(evidence),
  ...foreignTransactions(evidence),
  ...unseenNonces(evidence),
  ...overLimit(evidence),
  ...lostDeposits(evidence),
  ...unfinished(evidence),
]

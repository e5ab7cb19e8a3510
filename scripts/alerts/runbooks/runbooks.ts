import { leadingRunbooks } from './leading.ts'
import { moneyRunbooks } from './money.ts'
import type { Runbook } from './runbook.ts'
import { serviceRunbooks } from './service.ts'
import { sloRunbooks } from './slo.ts'
import { stopRunbooks } from './stops.ts'
import { surroundingRunbooks } from './surroundings.ts'
import { waitRunbooks } from './waits.ts'

/** The runbook of each alert, by its name. */
export const runbooks: Readonly<Record<string, Runbook>> = {
  ...leadingRunbooks,
  ...stopRunbooks,
  ...moneyRunbooks,
  ...waitRunbooks,
  ...sloRunbooks,
  ...surroundingRunbooks,
  ...serviceRunbooks,
}

/** @throws where an alert has none */
export function runbookOf(alert: string): Runbook {
  const runbook = runbooks[alert]
  if (runbook === undefined) throw new Error(`the alert ${alert} has no runbook: write it in scripts/alerts/runbooks`)
  return runbook
}

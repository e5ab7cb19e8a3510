import type { Alert } from './alert.ts'
import { leadingAlerts } from './leading.ts'
import { moneyAlerts } from './money.ts'
import { serviceAlerts } from './service.ts'
import { sloAlerts } from './slo.ts'
import { stopAlerts } from './stops.ts'
import { surroundingAlerts } from './surroundings.ts'
import { waitAlerts } from './waits.ts'

/** All alerts, in the order of the reference: what is most urgent first. */
export const alerts: readonly Alert[] = [
  ...leadingAlerts,
  ...stopAlerts,
  ...moneyAlerts,
  ...waitAlerts,
  ...sloAlerts,
  ...surroundingAlerts,
  ...serviceAlerts,
]

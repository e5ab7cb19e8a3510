import type { Clock } from '../lib/clock.ts'
import type { ObservationIntervals } from './engine/saga-kind.ts'

export interface OperatorOptions {
  /** Path of a kubeconfig; undefined inside a cluster. */
  readonly kubeconfig: string | undefined
  readonly networksFile: string
  readonly keysDir: string
  /** File of remote signers; undefined where there are none. */
  readonly remoteSignersFile: string | undefined
  readonly leaseNamespace: string
  readonly leaseName: string
  /** Who holds the lease and reports events: the pod's name. */
  readonly identity: string | undefined
  readonly leaseDurationMs: number
  readonly renewDeadlineMs: number
  readonly retryPeriodMs: number
  readonly host: string
  readonly port: number
  /** Serves the web page beside health and metrics. */
  readonly ui: boolean
  readonly workers: number
  /** How often a stalled resource whose cause no watch can see is looked at again, in ms. */
  readonly stallRecheckMs: number
  readonly signerIntervalMs: number
  readonly observation: ObservationIntervals
  /** How long the record of an exit or withdrawal is kept after its resource, in ms. */
  readonly retentionMs: number
  readonly version: string
}

/** For tests that end the process at every point before and after an effect or a write. */
export interface OperatorHooks {
  readonly onPoint?: (point: string, key: string) => void
  readonly clock?: Clock
}

import { StakingApiError } from '../../contract/client-error.ts'
import { KubeError, KubeTransportError } from '../kube/errors.ts'
import { KeyError } from '../ports.ts'
import type { Around } from './mortal.ts'

/** Lets others go first, now and then: another order of events for each seed, and the same for the same. */
export const shuffle = async (random: () => number): Promise<void> => {
  for (let turns = Math.floor(random() * 6); turns > 0; turns--) await null
}

/** What each port throws when there was no answer, whether or not it did what was asked. `ofChain`: what the chain's port throws. */
export function failureOf(point: string, random: () => number, ofChain: () => Error): Error {
  switch (point.split(' ')[1]?.split('.')[0]) {
    case 'chain':
      return ofChain()
    case 'api':
    case 'requests':
      return new StakingApiError('no answer', { kind: random() < 0.5 ? 'timeout' : 'invalid-response', outcomeUnknown: true })
    case 'keys':
      return new KeyError('missing', 'the Secret is being replaced')
    default:
      return random() < 0.5 ? new KubeTransportError('TIMEOUT', 'no answer') : new KubeError(500, 'InternalError', 'etcd has no leader')
  }
}

/** Ends the operator at any point, and fails any call of a port, now and then and up to `most` times in all, which the log tells. */
export const misfortune =
  (given: {
    readonly random: () => number
    readonly log: string[]
    readonly most: number
    /** Chances, from 0 to 1. */
    readonly ends: number
    readonly fails: number
    readonly ofChain: () => Error
    /** What a call that does not fail waits for. */
    readonly order?: () => Promise<void>
  }): Around =>
  (point, operator) => {
    const { random, log, most, ends, fails } = given
    if (log.length < most && random() < ends) {
      log.push(`ended at ${point}`)
      operator.kill()
    }
    if (!point.includes('.')) return undefined
    if (log.length < most && random() < fails) {
      log.push(`failed at ${point}`)
      throw failureOf(point, random, given.ofChain)
    }
    return given.order?.()
  }

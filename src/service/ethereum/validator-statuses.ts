import { type BeaconChain, BeaconError, type BeaconValidator } from '../../chains/ethereum/beacon.ts'
import type { Hex, Pubkey } from '../../chains/ethereum/chain.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/log.ts'
import type { EthereumNetworks } from './networks.ts'

type Stake = { readonly network: string; readonly pubkey: Pubkey; readonly status: string }

/** What the beacon chain shows of the stakes' validators. For display: nothing is decided by it. */
export interface ValidatorStatuses {
  /**
   * Brings what is known of these stakes' validators up to date, in one question for each network. It never fails and takes a few seconds at most:
   * without an answer, what was known before goes on being known.
   */
  refresh(stakes: readonly Stake[], signal: AbortSignal | (() => AbortSignal)): Promise<void>
  /** Whether {@link refresh} would ask for it. */
  isDue(stake: Stake): boolean
  /** Undefined: never seen. */
  known(stake: Omit<Stake, 'status'>): BeaconValidator | undefined
}

interface Entry {
  /** Of the clock's monotonic milliseconds. */
  readonly askedAt: number
  readonly validator: BeaconValidator | undefined
}

/** Balances change once an epoch and statuses at its end, so this is young; it keeps a client that polls many stakes from asking for each. */
const maxAgeMs = 3_000
/** After a failure the beacon chain is left alone for so long. */
const coolDownMs = 5_000
/** A stake's answer waits no longer than this for the beacon chain, which goes on and fills in what the next one shows. */
const patienceMs = 2_000
/** Enough for a large fleet; beyond it the oldest are asked for again. */
const maxEntries = 50_000

export function createValidatorStatuses(deps: {
  readonly networks: EthereumNetworks
  readonly clock: Clock
  readonly log: Logger
  readonly maxAgeMs?: number
}): ValidatorStatuses {
  const { networks, clock, log } = deps
  const age = deps.maxAgeMs ?? maxAgeMs
  const entries = new Map<string, Entry>()
  const restUntil = new Map<string, number>()
  /** Questions on their way, by key: two clients that ask for the same share one. */
  const running = new Map<string, Promise<void>>()

  function remember(key: string, entry: Entry): void {
    entries.delete(key)
    entries.set(key, entry)
    if (entries.size > maxEntries) for (const oldest of entries.keys()) return void entries.delete(oldest)
  }

  async function ask(network: string, beacon: BeaconChain, pubkeys: readonly Pubkey[]): Promise<void> {
    const askedAt = clock.monotonicMs()
    try {
      // Not the client's signal: others wait for the same answer. The beacon chain has time-outs of its own.
      const { validators } = await beacon.validators(pubkeys, 'head', new AbortController().signal)
      for (const pubkey of pubkeys) {
        const key = keyOf(network, pubkey)
        // The registry never forgets: one that is missing after it was seen is an answer of another node.
        remember(key, { askedAt, validator: validators.get(pubkey) ?? entries.get(key)?.validator })
      }
    } catch (error) {
      if (!restUntil.has(network) || clock.monotonicMs() >= (restUntil.get(network) ?? 0)) {
        const level = error instanceof BeaconError ? 'debug' : 'warn'
        log[level]({ err: error, network }, 'the validators of stakes could not be read: their last known status is shown')
      }
      restUntil.set(network, clock.monotonicMs() + coolDownMs)
    }
  }

  function start(network: string, beacon: BeaconChain, pubkeys: readonly Pubkey[]): Promise<void> {
    const asking = ask(network, beacon, pubkeys).finally(() => {
      for (const pubkey of pubkeys) running.delete(keyOf(network, pubkey))
    })
    for (const pubkey of pubkeys) running.set(keyOf(network, pubkey), asking)
    return asking
  }

  const isRead = (network: string, now: number): boolean =>
    networks.get(network)?.validators !== undefined && now >= (restUntil.get(network) ?? 0)

  const isStale = ({ network, pubkey, status }: Stake, now: number): boolean =>
    // A deposit that nobody has reported, or that failed, has no validator to look for.
    (status === 'submitted' || status === 'confirmed') &&
    now - (entries.get(keyOf(network, pubkey))?.askedAt ?? Number.NEGATIVE_INFINITY) >= age

  return {
    isDue(stake) {
      const now = clock.monotonicMs()
      return isRead(stake.network, now) && isStale(stake, now)
    },
    known: ({ network, pubkey }) => entries.get(keyOf(network, pubkey))?.validator,
    async refresh(stakes, signal) {
      const now = clock.monotonicMs()
      const waits = new Set<Promise<void>>()
      for (const [network, { validators }] of networks) {
        if (validators === undefined || !isRead(network, now)) continue
        const stale = stakes.filter((stake) => stake.network === network && isStale(stake, now))
        const fresh: Hex[] = []
        for (const { pubkey } of stale) {
          const already = running.get(keyOf(network, pubkey))
          if (already === undefined) fresh.push(pubkey)
          else waits.add(already)
        }
        if (fresh.length > 0) waits.add(start(network, validators.beacon, fresh))
      }
      if (waits.size === 0) return
      const done = new AbortController()
      const asked = typeof signal === 'function' ? signal() : signal
      await Promise.race([Promise.all(waits), clock.sleep(patienceMs, AbortSignal.any([asked, done.signal])).catch(() => undefined)])
      done.abort()
    },
  }
}

/** Whether an answer shows the same of both. */
export const isSameValidator = (one: BeaconValidator | undefined, other: BeaconValidator | undefined): boolean =>
  one === other ||
  (one !== undefined &&
    other !== undefined &&
    one.index === other.index &&
    one.status === other.status &&
    one.balanceGwei === other.balanceGwei &&
    one.activationEpoch === other.activationEpoch &&
    one.exitEpoch === other.exitEpoch)

const keyOf = (network: string, pubkey: Pubkey): string => `${network} ${pubkey}`

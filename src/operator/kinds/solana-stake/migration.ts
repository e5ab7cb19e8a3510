import { isSignature } from '../../../chains/solana/addresses.ts'
import type { SolanaStakeBody } from '../../../contract/schemas/solana.ts'
import { timestamp } from '../../../resources/conditions.ts'
import { isDeletionConfirmed } from '../../../resources/meta.ts'
import type { SolanaStake, SolanaTransaction } from '../../../resources/solana-stake.ts'
import type { TransactionAttempt } from '../../../resources/staking-transaction.ts'
import type { Origin } from '../../engine/origin.ts'
import type { SolanaNetwork } from '../../ports.ts'
import { isBegun, ownSteps, stepName, stepSpec } from './records.ts'
import type { SolanaRequests, SolanaStakeDeps } from './request.ts'
import { type ActionKind, isWitness, signaturesOf, solanaRequestOf, termsOf } from './steps.ts'

const kinds = ['stake', 'deactivation', 'withdrawal'] as const satisfies readonly ActionKind[]

/** Blocks that a transaction lives which was signed before now, and as many again for a node that is behind. */
const MAX_LIFE = 300n
/** Slots a second, at most: they are longer than 200 ms. */
const SLOTS_A_SECOND = 5
/** Clocks differ. */
const MARGIN_S = 3_600

/**
 * Versions before the log kept their transactions in status. What stands there, and is not in the log, is taken in before anything is decided: each
 * signature becomes an attempt to be followed to its end. Status may have been forged, so it proves nothing, neither that something was paid nor that it
 * was not: the staking API says whose the stake is, the chain what became of each signature, and none is taken as dead by what status says of it.
 */
export function createSolanaMigration(deps: Pick<SolanaStakeDeps, 'log' | 'clock' | 'assertMayAct'>, requests: SolanaRequests) {
  const { log, clock } = deps

  /** The attempts of a step that status names. When they end is not taken from status: they are as old as the stake, or as young as now. */
  function attemptsOf(shown: SolanaTransaction, { height, sinceSlot }: Bounds): readonly TransactionAttempt[] {
    return signaturesOf(shown)
      .filter(isSignature)
      .map((hash) => ({
        hash,
        kind: 'Call',
        found: true,
        ...(hash === shown.signature && shown.message !== undefined ? { message: shown.message } : {}),
        ...(hash === shown.signature && shown.txId !== undefined ? { apiId: shown.txId } : {}),
        lastValidBlockHeight: Number(height + MAX_LIFE),
        sinceSlot,
        at: timestamp(clock.now()),
      }))
  }

  async function boundsOf({ chain }: SolanaNetwork, body: SolanaStakeBody, resource: SolanaStake, signal: AbortSignal): Promise<Bounds> {
    const [looks, latest] = [await chain.looks(body.stakeAccount, [], signal), await chain.epochInfo('confirmed', signal)]
    const heights = looks.flatMap((look) => look?.finalizedBlockHeight ?? [])
    const height = heights.reduce((most, one) => (one > most ? one : most), latest.blockHeight)
    // The API server's word, and the staking API's: neither can be written by a tenant.
    const ages = [resource.metadata.creationTimestamp, body.createdAt].map((at) => Date.parse(at ?? '')).filter((at) => !Number.isNaN(at))
    const seconds = ages.length < 2 ? Number.POSITIVE_INFINITY : Math.max(0, clock.now().getTime() - Math.min(...ages)) / 1_000 + MARGIN_S
    return { height, sinceSlot: Math.max(0, Number(latest.slot) - Math.ceil(seconds * SLOTS_A_SECOND)) }
  }

  /** @returns what was taken in, in words */
  return async function takeIn(resource: SolanaStake, origin: Origin, signal: AbortSignal): Promise<readonly string[]> {
    const { status = {}, spec } = resource
    const terms = termsOf(status)
    const { transactions } = status
    if (terms === undefined || transactions === undefined) return []
    if (isDeletionConfirmed(resource)) return []
    const own = ownSteps(log, origin)
    // What stands in status is another's, or nobody's: the log knows better.
    if (own.stake !== undefined && isBegun(own.stake) && own.stake.spec.subject !== terms.stakeAccount) return []
    const missing = kinds.filter((kind) => isWitness(transactions[kind]) && (own[kind] === undefined || !isBegun(own[kind])))
    if (missing.length === 0) return []

    const network = requests.networkOf(spec.network)
    const request = solanaRequestOf({ origin, spec })
    const body = await requests.ownStake(request, terms.stakeId, signal)
    const bounds = await boundsOf(network, body, resource, signal)
    const taken: string[] = []
    for (const kind of missing) {
      const shown = transactions[kind]
      if (shown === undefined) continue
      deps.assertMayAct()
      const name = stepName(network.config.genesisHash, body.stakeAccount, kind)
      const record = await log.ensure(name, stepSpec({ request, kind }, body, network), signal)
      const attempts = attemptsOf(shown, bounds)
      await log.witness(record, attempts, signal)
      const what = `${attempts.length === 1 ? 'a signature' : `${attempts.length} signatures`} of the ${kind} transaction`
      taken.push(
        `An earlier version has left ${what} in status. They were taken into StakingTransaction ${name}, and are followed to their end there: the chain says what became of them.`,
      )
    }
    return taken
  }
}

interface Bounds {
  /** The highest block height that any node shows. */
  readonly height: bigint
  /** A slot before which the stake's transactions can't have landed. */
  readonly sinceSlot: number
}

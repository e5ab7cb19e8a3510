import { SolanaError } from '../../../chains/solana/chain.ts'
import { noneOf, StakingApiError } from '../../../contract/client-error.ts'
import type { SolanaStakeBody } from '../../../contract/schemas/solana.ts'
import { externalReference, type Place } from '../../engine/origin.ts'
import type { SolanaNetwork } from '../../ports.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import { isReached, stakeStateOf } from './chain.ts'
import type { LoggedStake } from './deletion.ts'
import { derived } from './ownership.ts'

/**
 * Whether a resource of which neither the log nor its status knows a stake holds money all the same: its status may have been lost, as by a restore, before
 * the log began or together with it. The staking API says which stakes were made in its name, and has the one that its spec adopts; each account is made of the stake's id; the chain says
 * what is there, and ▸ that nothing is only where every node says so, beyond everything that may land.
 * @returns `unknown` while one of them does not answer
 */
export function createUnlogged(log: Pick<TransactionLog, 'ofSubject'>) {
  async function holds(network: SolanaNetwork, account: string, body: SolanaStakeBody, signal: AbortSignal): Promise<LoggedStake> {
    const looks = await network.chain.looks(account, [], signal)
    if (looks.some((look) => look !== undefined && isReached('stake', { state: stakeStateOf(look.account), slot: look.slot }, 0)))
      return { is: 'landed', stakeAccount: account }
    const made = body.transactions.filter(({ kind, status }) => kind === 'stake' && status !== 'failed')
    const last = Math.max(0, ...made.map(({ lastValidBlockHeight }) => lastValidBlockHeight))
    const isCertain = looks.every((look) => look !== undefined && look.finalizedBlockHeight > BigInt(last))
    return isCertain ? { is: 'none' } : { is: 'unknown' }
  }

  return async (
    network: SolanaNetwork,
    place: Place & { readonly adoptStakeId: string | undefined },
    signal: AbortSignal,
  ): Promise<LoggedStake> => {
    const reference = externalReference(place)
    let worst: LoggedStake = { is: 'none' }
    try {
      const named = (await network.api.solanaStakesNamed?.(reference, signal)) ?? []
      const adopted = place.adoptStakeId === undefined ? undefined : await network.api.solanaStake(place.adoptStakeId, signal).catch(noneOf)
      const found = [...named.filter((body) => body.externalReference === reference), ...(adopted === undefined ? [] : [adopted])]
      for (const body of found) {
        if (body.network !== network.config.name) continue
        // Whatever the API says of the account: the one that the stake's id makes is the one that was paid.
        for (const account of new Set([derived(body.feePayer, body.stakeId), body.stakeAccount])) {
          // What the log has of it was made for another resource, which is held for that.
          if (account === undefined || log.ofSubject(account).length > 0) continue
          const held = await holds(network, account, body, signal)
          if (held.is === 'landed') return held
          if (held.is === 'unknown') worst = held
        }
      }
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof StakingApiError) && !(error instanceof SolanaError)) throw error
      return { is: 'unknown' }
    }
    return worst
  }
}

import { isGone, StakingApiError } from '../../../contract/client-error.ts'
import type { SolanaStakeBody } from '../../../contract/schemas/solana.ts'
import type { Origin } from '../../engine/origin.ts'
import type { Perform } from '../../engine/step.ts'
import { type Halt, stall, wait } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import type { RecordObject } from '../../transactions/store.ts'
import { isReached, stakeStateOf } from './chain.ts'
import { derived } from './ownership.ts'
import { isLive } from './records.ts'
import type { SolanaRequests, SolanaStakeDeps } from './request.ts'
import type { SolanaStakeEffects } from './steps.ts'

/** Cancels a deleted resource's stake at the staking API, as long as nothing of it was paid. */
export function createUndo(
  { log, assertMayAct }: Pick<SolanaStakeDeps, 'log' | 'assertMayAct'>,
  { networkOf }: Pick<SolanaRequests, 'networkOf'>,
): Perform<SolanaStakeEffects>['undoStake'] {
  /** What the log has of an account keeps its stake: it holds money, or may, or it is for a resource elsewhere. */
  const isHeld = (accounts: readonly string[], { namespace, name }: Origin): boolean =>
    accounts
      .flatMap((account) => log.ofSubject(account))
      .some(
        (record: RecordObject) =>
          record.spec.owner.namespace !== namespace ||
          record.spec.owner.name !== name ||
          record.status?.outcome !== undefined ||
          isLive(record),
      )

  /** That no node has the account, beyond everything that the staking API says was handed out. @throws Halt */
  async function assertAbsent(
    { chain, config }: SolanaNetwork,
    { stakeId, transactions }: SolanaStakeBody,
    accounts: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    const last = Math.max(
      0,
      ...transactions.filter(({ status }) => status !== 'failed').map(({ lastValidBlockHeight }) => lastValidBlockHeight),
    )
    for (const account of accounts) {
      const looks = await chain.looks(account, [], signal)
      if (looks.some((look) => look !== undefined && isReached('stake', { state: stakeStateOf(look.account), slot: look.slot }, 0)))
        throw wasPaid(stakeId, account)
      if (looks.some((look) => look === undefined || look.finalizedBlockHeight <= BigInt(last)))
        throw wait(
          'AwaitingFinality',
          `Stake ${stakeId} is cancelled at the staking API once it is certain that nothing was paid: every configured RPC node must have a block beyond height ${last} as final.`,
          config.pollIntervalMs,
        )
    }
  }

  /** @returns false where the staking API cancels no stakes */
  async function cancel(network: SolanaNetwork, body: SolanaStakeBody, origin: Origin, signal: AbortSignal): Promise<boolean> {
    const { api, config } = network
    const { stakeId } = body
    // Whatever the API says of the account: the one that the stake's id makes is the one that would be paid.
    const accounts = [...new Set([derived(body.feePayer, stakeId), body.stakeAccount])].filter((one) => one !== undefined)
    if (isHeld(accounts, origin) || body.protocol.status === 'WITHDRAWN') return true
    await assertAbsent(network, body, accounts, signal)
    try {
      assertMayAct()
      await api.cancelSolanaStake(stakeId, signal)
      return true
    } catch (error) {
      if (!(error instanceof StakingApiError)) throw error
      if (error.status === 404 || error.status === 405) return false
      if (error.code !== 'invalid-state') throw error
      if (error.retryAfterMs !== undefined)
        throw wait(
          'AwaitingFinality',
          `The staking API does not cancel stake ${stakeId} yet: a transaction that it has handed out may land, as far as its own nodes know.`,
          Math.max(error.retryAfterMs, config.pollIntervalMs),
        )
    }
    // Another look of ours, or another's.
    const { cancelledAt, protocol } = await api.solanaStake(stakeId, signal)
    if (cancelledAt !== undefined || protocol.status === 'WITHDRAWN') return true
    throw wasPaid(stakeId, body.stakeAccount)
  }

  return async ({ origin, network: name, stakeId, externalReference }, _visit, signal) => {
    const network = networkOf(name)
    const { api } = network
    const named = (await api.solanaStakesNamed?.(externalReference, signal)) ?? []
    const bodies = [...named]
    if (stakeId !== undefined && !named.some((body) => body.stakeId === stakeId)) {
      const body = await api.solanaStake(stakeId, signal).catch((error: unknown) => {
        if (isGone(error)) return undefined
        throw error
      })
      if (body !== undefined) bodies.push(body)
    }
    let cancelled = true
    for (const body of bodies) {
      // One that is another's is left alone: somebody changed status, or it was adopted.
      if (body.externalReference !== externalReference || body.network !== name || body.cancelledAt !== undefined) continue
      if (!(await cancel(network, body, origin, signal))) cancelled = false
    }
    return { cancelled }
  }
}

const wasPaid = (stakeId: string, account: string): Halt =>
  stall(
    'UnknownSubmission',
    `Stake ${stakeId} was paid, by the chain or by the staking API's word, and the log knows of no transaction that did so. Look at the stake account ${account} before you let this resource go.`,
  )

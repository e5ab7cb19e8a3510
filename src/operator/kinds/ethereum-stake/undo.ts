import type { Hex, Pubkey } from '../../../chains/ethereum/chain.ts'
import { isGone, StakingApiError } from '../../../contract/client-error.ts'
import type { EthereumStakeBody } from '../../../contract/schemas/ethereum-stake.ts'
import { lowerCase } from '../../../lib/chain-types.ts'
import { sameHex } from '../../../lib/hex.ts'
import { externalReference } from '../../engine/origin.ts'
import type { Perform } from '../../engine/step.ts'
import { stall } from '../../engine/verdict.ts'
import type { StakingApi } from '../../ports.ts'
import { attemptsOf, closedOf, mayBeHandedOver } from '../../transactions/protocol.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import { depositOnChain } from './evidence.ts'
import type { DepositRequests, EthereumStakeDeps } from './request.ts'
import type { EthereumStakeEffects } from './steps.ts'

/** Cancels a deleted resource's stakes at the staking API, that of its status and those of its name, as long as nothing of them was paid. */
export function createUndo(deps: EthereumStakeDeps, { networkOf }: DepositRequests): Perform<EthereumStakeEffects>['undoStake'] {
  const { log } = deps

  /** Whether what the staking API calls reported or paid is proven to be others' doing: every deposit for the key is shown, and was sent with no key of ours. */
  async function isByOthers(
    network: string,
    pubkey: Pubkey,
    reported: Hex | undefined,
    records: readonly RecordObject[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { chain } = networkOf(network)
    const ours = [...[...deps.signers.list()].map(({ spec }) => spec.address), ...records.map(({ spec }) => spec.from)]
    const deposits = (await chain.depositsFor(pubkey, signal)).map(({ transactionHash }) => transactionHash)
    const hashes = new Set([...deposits, ...(reported === undefined ? [] : [reported])].map((hash) => lowerCase(hash)))
    const senders = await Promise.all([...hashes].map(async (hash) => (await chain.transaction(hash, signal))?.from))
    return senders.length > 0 && senders.every((from) => from !== undefined && !ours.some((own) => sameHex(own, from)))
  }

  /** What the log has of a key holds its stake: it was paid, or may be, or it is for a resource elsewhere. */
  const isHeld = (pubkey: Pubkey, reference: string): boolean =>
    log.ofSubject(pubkey).some((record) => externalReference(record.spec.owner) !== reference || !mayBeHandedOver(recordOf(record)))

  const look = (api: StakingApi, stakeId: string, signal: AbortSignal) =>
    api.ethereumStake(stakeId, signal).catch((error: unknown) => {
      if (isGone(error)) return undefined
      throw error
    })

  /** Of a stake that the log has nothing of, the chain is asked: the log may have been set back. @throws Halt where it shows a deposit of it */
  async function refusePaid(network: string, { stakeId, depositData }: EthereumStakeBody, signal: AbortSignal): Promise<void> {
    const { pubkey } = depositData
    if (log.ofSubject(pubkey).length > 0) return
    const paid = await depositOnChain(networkOf(network), depositData, signal)
    if (paid === undefined) return
    throw stall(
      'UnknownSubmission',
      `The chain has a deposit for ${pubkey} (transaction ${paid.transactionHash}), and the log knows nothing of it: stake ${stakeId} is not cancelled.`,
    )
  }

  /** @throws Halt where it may have been paid with a key of ours */
  async function cancel(network: string, body: EthereumStakeBody, signal: AbortSignal): Promise<void> {
    const { api } = networkOf(network)
    const { stakeId } = body
    await refusePaid(network, body, signal)
    try {
      deps.assertMayAct()
      await api.cancelEthereumStake(stakeId, signal)
      return
    } catch (error) {
      if (!(error instanceof StakingApiError) || error.code !== 'invalid-state') throw error
    }
    const { transaction } = (await look(api, stakeId, signal)) ?? body
    // Another look of ours, or another's.
    if (transaction.status === 'cancelled' || transaction.status === 'failed') return
    const records = log.ofSubject(body.depositData.pubkey)
    const isKnown = records.some((record) =>
      [...attemptsOf(recordOf(record)), ...closedOf(recordOf(record))].some(({ hash }) => sameHex(hash, transaction.hash ?? '')),
    )
    // Told, and proven closed: nothing of it can land, and only the name stays taken.
    if (isKnown && records.every((record) => mayBeHandedOver(recordOf(record)))) return
    if (await isByOthers(network, body.depositData.pubkey, transaction.hash, records, signal)) return
    throw stall(
      'UnknownSubmission',
      `The staking API says that stake ${stakeId} was reported or paid${transaction.hash === undefined ? '' : ` (transaction ${transaction.hash})`}, and the log knows of no transaction of it that may land. Look for a deposit for ${body.depositData.pubkey} before you let this resource go.`,
    )
  }

  return async ({ network, stakeId, externalReference: reference }, _visit, signal) => {
    const { api } = networkOf(network)
    const own = stakeId === undefined ? undefined : await look(api, stakeId, signal)
    // Where status names none, or another's, its own is looked for by its name.
    const isOwn = own?.externalReference === reference
    const named = isOwn ? [] : ((await api.ethereumStakesNamed?.(reference, signal)) ?? [])
    for (const body of [...(own === undefined ? [] : [own]), ...named]) {
      // One that is another's is left alone: somebody changed status, or it was adopted.
      const isOurs = body.externalReference === reference
      // Of those that status does not name, what was paid or reported was looked for before.
      const isFree = body.transaction.status === 'awaiting_submission' && !isHeld(body.depositData.pubkey, reference)
      if (isOurs && (body === own || (body.network === network && isFree))) await cancel(network, body, signal)
    }
    return { cancelled: true }
  }
}

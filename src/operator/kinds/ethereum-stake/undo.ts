import type { Hex, Pubkey } from '../../../chains/ethereum/chain.ts'
import { StakingApiError } from '../../../contract/client-error.ts'
import { lowerCase } from '../../../lib/chain-types.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { Perform } from '../../engine/step.ts'
import { stall } from '../../engine/verdict.ts'
import { attemptsOf, closedOf, mayBeHandedOver } from '../../transactions/protocol.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import type { DepositRequests, EthereumStakeDeps } from './request.ts'
import type { EthereumStakeEffects } from './steps.ts'

/** Cancels a deleted resource's stake at the staking API, as long as nothing of it was paid. */
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

  return async ({ network, stakeId, externalReference }, _visit, signal) => {
    const undone = { cancelled: true } as const
    const { api } = networkOf(network)
    const look = () =>
      api.ethereumStake(stakeId, signal).catch((error: unknown) => {
        if (error instanceof StakingApiError && error.status === 404) return undefined
        throw error
      })
    // One that is another's is left alone: somebody changed status, or it was adopted.
    const body = await look()
    if (body === undefined || body.externalReference !== externalReference) return undone
    try {
      deps.assertMayAct()
      await api.cancelEthereumStake(stakeId, signal)
      return undone
    } catch (error) {
      if (!(error instanceof StakingApiError) || error.code !== 'invalid-state') throw error
    }
    const { transaction } = (await look()) ?? body
    // Another look of ours, or another's.
    if (transaction.status === 'cancelled' || transaction.status === 'failed') return undone
    const records = log.ofSubject(body.depositData.pubkey)
    const isKnown = records.some((record) =>
      [...attemptsOf(recordOf(record)), ...closedOf(recordOf(record))].some(({ hash }) => sameHex(hash, transaction.hash ?? '')),
    )
    // Told, and proven closed: nothing of it can land, and only the name stays taken.
    if (isKnown && records.every((record) => mayBeHandedOver(recordOf(record)))) return undone
    if (await isByOthers(network, body.depositData.pubkey, transaction.hash, records, signal)) return undone
    throw stall(
      'UnknownSubmission',
      `The staking API says that stake ${stakeId} was reported or paid${transaction.hash === undefined ? '' : ` (transaction ${transaction.hash})`}, and the log knows of no transaction of it that may land. Look for a deposit for ${body.depositData.pubkey} before you let this resource go.`,
    )
  }
}

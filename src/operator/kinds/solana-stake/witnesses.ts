import { isGone, StakingApiError } from '../../../contract/client-error.ts'
import { wait } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import { handedOver } from '../../transactions/solana/authorities.ts'
import type { SolanaTransactionKind } from '../../transactions/solana/kind.ts'
import type { RecordObject } from '../../transactions/store.ts'
import { ownerOf } from './admission.ts'
import { createStakeHistory } from './history.ts'
import { actionOf } from './records.ts'
import type { SolanaStakeDeps } from './request.ts'

/** Who knows of a step besides the log: the stake account's history, and the staking API, which is told of every transaction. */
export function createStepWitnesses(
  deps: Pick<SolanaStakeDeps, 'stake' | 'signers' | 'log'>,
  networkOfRecord: (record: RecordObject) => SolanaNetwork,
): Pick<SolanaTransactionKind, 'seek' | 'proves' | 'tell'> {
  const history = createStakeHistory()

  /** Where the resource wants the money; undefined where it, or its signer, is gone. */
  async function destinationFor(record: RecordObject, signal: AbortSignal): Promise<string | undefined> {
    const stake = await ownerOf(deps, record, false, signal)
    if (stake?.spec.destination !== undefined) return stake.spec.destination
    const { withdraw } = handedOver(deps.log.ofSubject(record.spec.subject))
    return withdraw?.address ?? (stake === undefined ? undefined : deps.signers.get(stake.spec.withdrawAuthority.signer)?.spec.address)
  }

  return {
    async seek(record, atSlot, signal) {
      const { chain } = networkOfRecord(record)
      const { subject } = record.spec
      const kind = actionOf(record)
      if (kind !== 'withdrawal') return history.doerOf(chain, { account: subject, kind, atSlot }, signal)
      return history.withdrawalOf(chain, { account: subject, destination: await destinationFor(record, signal), atSlot }, signal)
    },

    async proves(record, attempt, signal) {
      const kind = actionOf(record)
      const destination = kind === 'withdrawal' ? await destinationFor(record, signal) : undefined
      return history.proofOf(networkOfRecord(record).chain, attempt, { account: record.spec.subject, kind, destination }, signal)
    },

    async tell(record, { apiId, hash }, signal) {
      if (apiId === undefined || record.spec.apiId === undefined) return 'taken'
      const { api, config } = networkOfRecord(record)
      try {
        await api.submitTransaction(record.spec.apiId, apiId, hash, signal)
        return 'taken'
      } catch (error) {
        if (!(error instanceof StakingApiError)) throw error
        // It is looked for from now on; whoever wants to see it first is told again.
        if (error.code === 'transaction-not-visible') return 'later'
        // It has lost the stake, whose money still comes out. What pays is sent only once it is told.
        if (isGone(error) && actionOf(record) !== 'stake') return 'taken'
        if (error.status !== 409 && error.status !== 422) throw error
        throw wait(
          'AwaitingFinality',
          `The staking API does not take the signature ${hash}: for it, the transaction has expired or was made anew. It is not sent; what becomes of it, the chain tells.`,
          config.pollIntervalMs,
        )
      }
    },
  }
}

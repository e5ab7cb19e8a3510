import { StakingApiError } from '../../../contract/client-error.ts'
import { sameHex } from '../../../lib/hex.ts'
import { externalReference } from '../../engine/origin.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { hashIn, pubkeyOf, senderOf } from '../../transactions/ethereum-texts.ts'
import { cancelOf, isOpen, mayBeHandedOver } from '../../transactions/protocol.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import type { ValidatorRequestDeps } from './deps.ts'
import { requestTypes } from './request-type.ts'
import type { FoundValidator } from './steps.ts'

const type = requestTypes.ValidatorWithdrawal

/** Of so many withdrawals of a validator, the latest first, it is looked at what the staking API knows. A database is set back by hours, not by years. */
const LOOKED_AT = 32

/**
 * What the staking API holds to be promised to withdrawals, and refuses an exit or another withdrawal for, though the log knows that it is over: its database was set back to before it was
 * told, and nobody else tells it, as the resources are Ready or gone. It is told once more. Nothing is signed for that.
 */
export function createPromised({ log, resource, assertMayAct }: Pick<ValidatorRequestDeps, 'log' | 'resource' | 'assertMayAct'>) {
  /** Past the cache. A later one of its name may have taken the request over. */
  const isAnyThere = async ({ spec: { owner } }: RecordObject, signal: AbortSignal): Promise<boolean> =>
    (await resource(type.kind, owner, true, signal)) !== undefined

  async function tellOf(record: RecordObject, apiId: string, { requests }: EthereumNetwork, signal: AbortSignal): Promise<void> {
    const pubkey = pubkeyOf(record)
    const body = await type.read(requests, pubkey, apiId, signal)
    if (body.externalReference !== externalReference(record.spec.owner)) return
    const told = body.transaction.hash
    const isUnsent = body.status === 'awaiting_submission' && told === undefined
    if (!isUnsent && body.status !== 'submitted') return
    const { outcome } = recordOf(record).status
    if (outcome === undefined && (await isAnyThere(record, signal))) return
    assertMayAct()
    if (outcome === undefined && isUnsent) {
      await type.cancel(requests, pubkey, apiId, signal)
      return
    }
    const over = outcome ?? (told === undefined ? undefined : cancelOf(recordOf(record), told))
    if (over === undefined || (told !== undefined && sameHex(told, over.hash))) return
    const sentBy = over.nonce === undefined ? undefined : { from: senderOf(record), nonce: over.nonce }
    await type.submit(requests, pubkey, apiId, hashIn(over), signal, sentBy)
  }

  /** Tells the staking API what became of the validator's withdrawals that are over. What it does not take now is told again at the next refusal. */
  return async function tellWhatIsOver(validator: FoundValidator, network: EthereumNetwork, signal: AbortSignal): Promise<void> {
    const over = log
      .ofSubject(validator.pubkey)
      .filter(({ spec }) => spec.purpose === type.purpose && spec.owner.kind === type.kind && spec.chainId === network.config.chainId)
      .filter((record) => !isOpen(recordOf(record)) && (record.status?.outcome !== undefined || mayBeHandedOver(recordOf(record))))
      .toSorted((a, b) => (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? ''))
    for (const record of over.slice(0, LOOKED_AT)) {
      const { apiId } = record.spec
      if (apiId === undefined) continue
      try {
        await tellOf(record, apiId, network, signal)
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof StakingApiError)) throw error
      }
    }
  }
}

import { isGone, StakingApiError } from '../../../contract/client-error.ts'
import type { EthereumStakeBody } from '../../../contract/schemas/ethereum-stake.ts'
import { parseEth } from '../../../lib/amounts.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { EthereumStake } from '../../../resources/ethereum-stake.ts'
import type { EthereumNetwork } from '../../ports.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import type { RecordObject } from '../../transactions/store.ts'
import { creationOf } from './request.ts'
import { stakeRequestOf } from './steps.ts'

/**
 * What the staking API says of a stake whose deposit has landed. Where it has forgotten the stake (404), as after a restore of its database, the resource's own request is
 * made again: the same request gets the same validator key, so that it is known again under another id, which the log is told. Nothing is signed for that.
 * @throws the 404 where nothing is made again, or the staking API has another validator for the request
 */
export function createStakeLook({ log }: { readonly log: Pick<TransactionLog, 'renamed'> }) {
  async function madeAgain(
    { spec }: EthereumStake,
    record: RecordObject,
    { api }: Pick<EthereumNetwork, 'api'>,
    signal: AbortSignal,
  ): Promise<EthereumStakeBody | undefined> {
    const { owner } = record.spec
    const { originUid: uid, namespace, name } = owner
    const request = stakeRequestOf({ origin: { kind: 'EthereumStake', namespace, name, uid }, spec })
    const body = await api.createEthereumStake(creationOf(request, parseEth(spec.amountEth), spec.withdrawalAddress), signal)
    if (!sameHex(body.depositData.pubkey, record.spec.subject)) return undefined
    await log.renamed(record, body.stakeId, signal)
    return body
  }

  /** `record`: the log's, of this very resource; undefined where it has none. */
  return async (
    stakeId: string,
    resource: EthereumStake,
    record: RecordObject | undefined,
    network: Pick<EthereumNetwork, 'api'>,
    signal: AbortSignal,
  ): Promise<EthereumStakeBody> => {
    try {
      return await network.api.ethereumStake(stakeId, signal)
    } catch (error) {
      if (!isGone(error)) throw error
      if (!mayBeMadeAgain(resource, record)) throw error
      const again = await madeAgain(resource, record, network, signal).catch((refused: unknown) => {
        signal.throwIfAborted()
        if (refused instanceof StakingApiError) return undefined
        throw refused
      })
      if (again === undefined) throw error
      return again
    }
  }
}

/** What has landed is this very resource's. One that was adopted was asked for by others, under a key that nobody here has. */
const mayBeMadeAgain = ({ metadata, spec, status }: EthereumStake, record: RecordObject | undefined): record is RecordObject =>
  spec.adopt === undefined &&
  record?.status?.outcome?.is === 'Landed' &&
  record.spec.owner.namespace === metadata.namespace &&
  record.spec.owner.name === metadata.name &&
  sameHex(record.spec.subject, status?.depositData?.pubkey ?? '')

import type { Hash } from '../../../chains/ethereum/chain.ts'
import { StakingApiError } from '../../../contract/client-error.ts'
import { externalReference, idempotencyKey } from '../../engine/origin.ts'
import { Halt, stall, wait } from '../../engine/verdict.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { pubkeyOf } from '../../transactions/ethereum-texts.ts'
import type { RecordObject } from '../../transactions/store.ts'
import type { ValidatorRequestDeps } from './deps.ts'
import { refusalOf } from './refusal.ts'
import { type RequestBody, type RequestType, typeOf } from './request-type.ts'
import type { RequestService } from './service.ts'
import type { FoundValidator, Renamed, RequestOrder } from './steps.ts'

/**
 * Requests that the staking API does not know any more (404) though their transaction has landed, as after a restore of its database. Only the staking API
 * says what the consensus layer made of a transaction, so it is told of it again, under a request of the same name and key. Nothing is signed for that: the
 * record of what has landed keeps its outcome.
 */
export type LostRequests = ReturnType<typeof createLostRequests>

export function createLostRequests(deps: Pick<ValidatorRequestDeps, 'assertMayAct'>, service: Pick<RequestService, 'create'>) {
  /**
   * The resource's own: @returns the wait in which status learns the new id, under which the transaction is reported next; `fulfilled` where the staking API does
   * not take an exit again because the validator leaves: that is all that there was to learn
   */
  async function madeAgain(
    order: RequestOrder,
    validator: FoundValidator,
    lost: { readonly requestId: string; readonly hash: string },
    network: EthereumNetwork,
    signal: AbortSignal,
  ): Promise<Halt | 'fulfilled'> {
    deps.assertMayAct()
    const made = await service.create(order, validator, network, signal).catch((error: unknown) => {
      if (!(error instanceof Halt)) throw error
      if (isFulfilled(order, error)) return 'fulfilled' as const
      throw notTaken(error, lost.hash)
    })
    if (made === 'fulfilled') return made
    const { requestId } = made
    if (requestId === lost.requestId)
      return stall(
        'ServiceUnavailable',
        `The staking API gives request ${requestId} for this resource and says that it knows no such request (404). What the consensus layer makes of transaction ${lost.hash} is not told before that is mended.`,
      )
    return wait(
      'AwaitingConsensus',
      `The staking API did not know the request any more (404). It was made again as ${requestId}, and transaction ${lost.hash}, which is final, is reported under it. Nothing is asked for again.`,
      1_000,
    ).with({ requestId } satisfies Renamed)
  }

  /**
   * That of the resource which a record was made for, told of the transaction that landed. @returns undefined where the staking API has another request in its name
   * @throws Halt where it is not taken again
   */
  async function toldAgain(
    record: RecordObject,
    hash: Hash,
    order: RequestOrder,
    { requests, ...network }: EthereumNetwork,
    signal: AbortSignal,
  ): Promise<RequestBody | undefined> {
    const type: RequestType = typeOf(order)
    const { kind, namespace, name, originUid: uid } = record.spec.owner
    const origin = { kind, namespace, name, uid }
    const pubkey = pubkeyOf(record)
    try {
      deps.assertMayAct()
      const given = {
        idempotencyKey: idempotencyKey(origin, type.step),
        externalReference: externalReference(origin),
        pubkey,
        terms: order,
      }
      const { requestId } = await type.create(requests, given, signal)
      await type.submit(requests, pubkey, requestId, hash, signal, undefined)
      return await type.read(requests, pubkey, requestId, signal)
    } catch (error) {
      if (!(error instanceof StakingApiError)) throw error
      if (error.code === 'reference-exists' || error.code === 'idempotency-key-reused') return undefined
      const validator = { network: network.config.name, pubkey }
      throw (await refusalOf(error, order, validator, { requests, ...network }, signal))?.halt ?? error
    }
  }

  return { madeAgain, toldAgain }
}

const isFulfilled = ({ origin }: RequestOrder, { verdict }: Halt): boolean =>
  origin.kind === 'ValidatorExit' && verdict.kind === 'stall' && verdict.reason === 'AlreadyExiting'

/** The request would break rules now, often since it has worked. */
function notTaken(refused: Halt, hash: string): Halt {
  const { verdict } = refused
  if (verdict.kind === 'conflict') return refused
  return new Halt({
    ...verdict,
    message: `Transaction ${hash} has made this request and is final. The staking API does not know the request any more (404) and does not take it again (${verdict.reason}), so that it can't say what the consensus layer made of it. Look at the validator; nothing is asked for again.`,
  })
}

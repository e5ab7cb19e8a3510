import { isGone } from '../../../contract/client-error.ts'
import type { Hash } from '../../../lib/chain-types.ts'
import { sameHex } from '../../../lib/hex.ts'
import { externalReference } from '../../engine/origin.ts'
import { Halt, retry, stall, wait } from '../../engine/verdict.ts'
import type { Visit } from '../../engine/visit.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { blockHashIn, hashIn, pubkeyOf } from '../../transactions/ethereum-texts.ts'
import type { Admission, TransactionKind } from '../../transactions/kind.ts'
import { mayBeHandedOver } from '../../transactions/protocol.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import { cancelled } from './admission.ts'
import { askedSince } from './asked-since.ts'
import type { ValidatorRequestDeps } from './deps.ts'
import type { LostRequests } from './lost.ts'
import { requestSpec } from './records.ts'
import { type RequestBody, typeOf } from './request-type.ts'
import { rulesIn } from './rules.ts'
import type { RequestService } from './service.ts'
import type { FoundValidator, Renamed, RequestOrder, RequestPlan } from './steps.ts'
import type { RequestTargets } from './target.ts'
import type { Turns } from './turn.ts'

/** From a verified request to its record: made anew, or taken over from who has no more use for it. */
export function createMaking(
  deps: ValidatorRequestDeps,
  targets: RequestTargets,
  service: RequestService,
  kind: TransactionKind,
  lost: Pick<LostRequests, 'toldAgain'>,
  turns: Pick<Turns, 'hasHadItsTurn'>,
) {
  const { log } = deps
  const { networkOf, admittedSigner, targetOf, assertOwned, assertMaySend } = targets

  const nameOf = (order: RequestOrder, { network, pubkey }: FoundValidator): string =>
    typeOf(order).nameOf(order.origin, networkOf(network).config.chainId, pubkey)

  /** Everything that must hold of a request before something is made of it, as spec, stake, signer and staking API stand now. */
  async function checked(plan: RequestPlan, visit: Visit, signal: AbortSignal) {
    const { order, validator, requestId } = plan
    const network = networkOf(validator.network)
    const signer = await admittedSigner(order, signal)
    const target = await targetOf(order, visit, signal)
    if (target.network !== validator.network || !sameHex(target.pubkey, validator.pubkey)) throw forgedValidator()
    await assertOwned(order, signer, target, visit, signal)
    if (target.withdrawalAddress !== undefined) assertMaySend(signer, target.withdrawalAddress)
    const body = (await service.look(order, validator, requestId, network, visit, signal)) ?? (await forgotten(plan, network, signal))
    const calldata = service.verify(body, plan, network, signer)
    if (body.status === 'cancelled') throw cancelled(requestId)
    return { network, signer, body, calldata }
  }

  /**
   * The staking API has no request of the id in status (404): its database was set back, or somebody wrote another id. The request is asked for again, under its own
   * key; nothing is signed for that. @returns never: @throws the retry in which status learns the right id
   */
  async function forgotten({ order, validator, requestId }: RequestPlan, network: EthereumNetwork, signal: AbortSignal): Promise<never> {
    deps.assertMayAct()
    const again = await service.create(order, validator, network, signal)
    if (again.requestId === requestId) throw givenAndDenied(requestId)
    // An API that goes on forgetting is asked at growing delays.
    throw retry(
      'InProgress',
      `The staking API has no request ${requestId} (404): its database was set back, or somebody changed status.requestId. It has made ${again.requestId} for this resource. Nothing was signed for either yet.`,
    ).with({ requestId: again.requestId } satisfies Renamed)
  }

  /** Makes the request's record, or takes over one that its former owner has no more use for. @throws Halt */
  async function made(plan: RequestPlan, visit: Visit, signal: AbortSignal): Promise<RecordObject> {
    const { order, validator } = plan
    const { network, signer, body } = await checked(plan, visit, signal)
    const name = nameOf(order, validator)
    const spec = requestSpec(order, validator, body, network, signer, await askedSince(deps, order, network, signal))
    const before = log.find(name)
    if (before !== undefined && before.spec.owner.originUid !== order.origin.uid) {
      assertSameAsBefore(before, spec)
      await assertMayPass(before, order, network, signal)
    }
    return log.ensure(name, spec, signal, (one) => givesWay({ kind, turns, network }, one, spec, signal))
  }

  /** ▸ What somebody else has asked for in this name, or of this validator, is not asked for again by itself. @throws Halt */
  async function assertMayPass(cached: RecordObject, order: RequestOrder, network: EthereumNetwork, signal: AbortSignal): Promise<void> {
    const record = (await log.read(cached.metadata.name, signal)) ?? cached
    const { metadata, spec, status } = record
    const whose = `${spec.owner.kind} ${spec.owner.namespace}/${spec.owner.name}`
    const outcome = status?.outcome
    if (outcome === undefined) {
      if (mayBeHandedOver(recordOf(record))) return
      throw stall(
        'AlreadyRequested',
        `StakingTransaction ${metadata.name} was made for ${whose} (UID ${spec.owner.originUid}), and may still land. Nothing is asked again before it is proven that it did not.`,
      )
    }
    if (typeOf(order).passesWhenDropped && outcome.is === 'Landed' && (await wasDropped(record, hashIn(outcome), order, network, signal))) {
      const block = { number: BigInt(outcome.blockNumber), hash: blockHashIn(outcome.blockHash ?? '0x'), holds: { hash: hashIn(outcome) } }
      if ((await network.chain.finalEverywhere(block, signal)) !== 'agreed')
        throw wait(
          'AwaitingFinality',
          `What ${whose} has asked for was dropped. Before it is asked for again, every configured RPC node must have block ${outcome.blockNumber} as final.`,
          network.config.pollIntervalMs,
        )
      if ((await log.drop(record, outcome.hash, signal)) !== undefined) return
    }
    throw stall(
      'AlreadyRequested',
      `${whose} (UID ${spec.owner.originUid}) has asked for this before: transaction ${outcome.hash} is final in block ${outcome.blockNumber} (kubectl get stx ${metadata.name}). Nothing was asked again. ${typeOf(order).onceMore}`,
    )
  }

  /**
   * By the staking API's word on that very transaction, and only with a rule that it broke: dropped without one may be waiting still. Where it does not know of it (any more, as after a restore of its database), it is told again.
   * @throws Halt as long as it does not say
   */
  async function wasDropped(
    record: RecordObject,
    landed: Hash,
    order: RequestOrder,
    network: EthereumNetwork,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { spec } = record
    if (spec.apiId === undefined) return false
    const known = await typeOf(order)
      .read(network.requests, pubkeyOf(record), spec.apiId, signal)
      .catch((error: unknown) => {
        if (isGone(error)) return undefined
        throw error
      })
    const isKnown = known?.transaction.hash !== undefined && isFor(known, spec.owner)
    const body = isKnown ? known : await lost.toldAgain(record, landed, order, network, signal)
    if (body === undefined || !sameHex(body.transaction.hash ?? '', landed)) return false
    if (!isKnown && (body.status !== 'confirmed' || body.consensus.status === 'pending'))
      throw wait(
        'AwaitingConsensus',
        `${spec.owner.kind} ${spec.owner.namespace}/${spec.owner.name} has asked for this before. The staking API did not know of it any more, and was told of transaction ${landed} again. Only if the consensus layer has dropped that is it asked for once more.`,
        network.config.pollIntervalMs,
      )
    return body.consensus.status === 'dropped' && rulesIn(order.origin.kind, body.consensus.reason).length > 0
  }

  return { nameOf, checked, made }
}

/** An earlier resource of this name has asked for something else, and nothing of that is on its way. @throws Halt */
function assertSameAsBefore(record: RecordObject, wanted: RecordObject['spec']): void {
  const { metadata, spec } = record
  const isSame = sameHex(spec.subject, wanted.subject) && sameHex(spec.call?.data ?? '', wanted.call?.data ?? '')
  if (isSame || record.status?.outcome !== undefined || !mayBeHandedOver(recordOf(record))) return
  throw stall(
    'AlreadyRequested',
    `StakingTransaction ${metadata.name} was made for an earlier ${spec.owner.kind} ${spec.owner.namespace}/${spec.owner.name}, for ${spec.amount} of validator ${spec.subject}. Nothing of it can land, and nothing is signed. Create this one under another name, or have that record deleted (kubectl delete stx ${metadata.name}): then this one goes on.`,
  )
}

const givenAndDenied = (requestId: string) =>
  stall(
    'VerificationFailed',
    `The staking API gives request ${requestId} for this resource and says that it knows no such request (404). Nothing was signed.`,
  )

/** The owner of a record does not ask for it now, or may not, or has had its turn and waits on, and the one that wants it would be admitted. */
async function givesWay(
  {
    kind,
    turns,
    network,
  }: { readonly kind: TransactionKind; readonly turns: Pick<Turns, 'hasHadItsTurn'>; readonly network: EthereumNetwork },
  record: RecordObject,
  wanted: RecordObject['spec'],
  signal: AbortSignal,
): Promise<boolean> {
  /** `turn`: it waits for its turn alone. */
  const admissionOf = async (as: RecordObject): Promise<Admission | 'turn' | undefined> => {
    try {
      const admission = await kind.mayBeSigned(as, false, signal)
      await kind.value(as, admission, signal)
      return admission
    } catch (error) {
      if (!(error instanceof Halt)) throw error
      const { verdict } = error
      if (verdict.kind === 'wait' && verdict.reason === 'WaitingForValidator') return 'turn'
      if (verdict.kind === 'wait' || verdict.kind === 'stall') return undefined
      throw error
    }
  }
  // Whose turn it is on the validator, is the same for both.
  const isAdmitted = async (as: RecordObject): Promise<boolean> => (await admissionOf(as)) !== undefined
  const own = async (): Promise<Admission | undefined> => {
    const admission = await admissionOf(record)
    return admission === 'turn' ? undefined : admission
  }
  if (!(await turns.hasHadItsTurn(record, network, own, signal)) && (await isAdmitted(record))) return false
  const { owner, signer, from, apiId } = wanted
  return isAdmitted({ ...record, spec: { ...record.spec, owner, signer, from, ...(apiId === undefined ? {} : { apiId }) } })
}

const forgedValidator = () =>
  stall(
    'VerificationFailed',
    'status.validator is not the validator that spec.validator names: somebody changed it. Nothing was signed. Remove status.validator and status.requestId: they are looked up again.',
  )

const isFor = ({ externalReference: reference }: RequestBody, owner: RecordObject['spec']['owner']): boolean =>
  reference === externalReference(owner)

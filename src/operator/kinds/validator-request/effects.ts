import { type Address, ChainError, type Hex } from '../../../chains/ethereum/chain.ts'
import { StakingApiError } from '../../../contract/client-error.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { EthereumTransaction } from '../../../resources/ethereum-transaction.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import type { Perform } from '../../engine/step.ts'
import { retry, stall, wait } from '../../engine/verdict.ts'
import type { Visit } from '../../engine/visit.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { attemptsOf } from '../../transactions/transaction-evidence.ts'
import { isKnownRule } from './rules.ts'
import { createRequestService, isGone, type RequestBody } from './service.ts'
import {
  type Consensus,
  type FoundValidator,
  type InFlightRequest,
  type InFlightSend,
  type RequestOrder,
  type RequestPlan,
  requestStep,
  type SendPlan,
  type ValidatorRequestEffects,
} from './steps.ts'
import { createRequestTargets, type ValidatorRequestDeps } from './target.ts'
import { createRequestTransactions } from './transaction.ts'

/** The effects of the saga of ValidatorExit and ValidatorWithdrawal: everything that it does to the world. */
export function createValidatorRequestEffects(deps: ValidatorRequestDeps): Perform<ValidatorRequestEffects> {
  const { ledger } = deps
  const targets = createRequestTargets(deps)
  const { networkOf, requestOf, admittedSigner, targetOf, assertMaySend, assertTurn } = targets
  const service = createRequestService(deps, targets)
  const { reserve, recordOf, recordOfLanded, forged, broadcast, confirm, dueOf, isThis } = createRequestTransactions(deps, targets, service)

  const sendPlan = ({ order, validator, ...rest }: RequestPlan): SendPlan => ({ ...rest, request: { ...order, ...validator } })
  const inFlightSend = (request: InFlightRequest): InFlightSend => ({ ...sendPlan(request), transaction: request.transaction })

  /** Everything that must hold of a request before something is made of it, as spec, stake, signer and staking API stand now. */
  async function checked(plan: RequestPlan, visit: Visit, signal: AbortSignal) {
    const { order, validator, requestId } = plan
    const network = networkOf(validator.network)
    const signer = await admittedSigner(order, signal)
    const target = await targetOf(order, visit, signal)
    if (target.network !== validator.network || !sameHex(target.pubkey, validator.pubkey)) throw forged('validator')
    if (target.withdrawalAddress !== undefined) assertMaySend(signer, target.withdrawalAddress)
    const body = await service.current(order, validator, requestId, network, visit, signal)
    const calldata = service.verify(body, plan, network, signer)
    if (body.status === 'cancelled') throw cancelled(requestId)
    return { network, signer, body, calldata }
  }

  /** What the ledger has for this request already, unless its nonce was lost to another transaction. */
  async function recorded(
    plan: SendPlan,
    network: EthereumNetwork,
    signer: StakingSigner,
    signal: AbortSignal,
  ): Promise<EthereumTransaction | undefined> {
    const { signer: name, origin, pubkey } = plan.request
    const entry = await ledger.claim(name, network.config.name, origin, requestStep(origin.kind))
    if (entry === undefined) return undefined
    if (entry.pubkey !== undefined && !sameHex(entry.pubkey, pubkey))
      throw stall(
        'VerificationFailed',
        `The signer's ledger has a transaction of this resource (nonce ${entry.nonce}) for another validator. Nothing was signed. Find out why spec.validator means another one now.`,
      )
    const record = recordOf(plan, network, signer, entry)
    const isUsed = (await network.chain.transactionCount(signer.spec.address as Address, 'final', signal)) > entry.nonce
    if (!isUsed) return record
    for (const hash of [...(entry.earlierHashes ?? []), entry.hash])
      if ((await network.chain.receipt(hash as Hex, signal)) !== undefined) return record
    return undefined
  }

  /** Status and ledger have no transaction of this request, and the staking API was told of one: it is this resource's, or nobody may go on. */
  async function toldOf(
    body: RequestBody,
    plan: Pick<SendPlan, 'request' | 'requestId' | 'superseded'>,
    network: EthereumNetwork,
    signer: StakingSigner | undefined,
    signal: AbortSignal,
  ): Promise<EthereumTransaction | undefined> {
    const { hash } = body.transaction
    if (hash === undefined) return undefined
    // One that lost its nonce is nowhere in the chain. That it did, status alone doesn't say.
    const isLost = plan.superseded.some((attempt) => sameHex(attempt.hash, hash))
    if (isLost && (await network.chain.receipt(hash, signal)) === undefined) return undefined
    const transaction = await network.chain.transaction(hash, signal)
    if (transaction !== undefined && signer !== undefined && isThis(transaction, plan, signer.spec.address))
      return recordOfLanded(transaction, plan, network)
    throw stall(
      'AlreadyRequested',
      `The staking API was told of transaction ${hash} for this request, and ${transaction === undefined ? 'the chain does not show it' : 'that is no transaction of this signer for this request'}. Nothing was signed. Look for it; to ask again, create a resource with another name.`,
    )
  }

  return {
    async resolveValidator(order, visit, signal) {
      requestOf(order, '0x')
      return foundBy(await targetOf(order, visit, signal))
    },

    async createRequest({ order }, visit, signal) {
      // By the spec, whatever status says: nothing was made of that yet.
      const { withdrawalAddress, ...validator } = await targetOf(order, visit, signal)
      const network = networkOf(validator.network)
      const signer = await admittedSigner(order, signal)
      if (withdrawalAddress !== undefined) assertMaySend(signer, withdrawalAddress)
      if (ledger.find(order.signer, validator.network, order.origin, requestStep(order.origin.kind)) === undefined)
        assertTurn(order, validator)
      deps.assertMayAct()
      const { requestId } = await service.create(order, validator, network, signal)
      return { requestId, validator }
    },

    async verifyRequest(plan, visit, signal) {
      const { calldata } = await checked(plan, visit, signal)
      return { verifiedCalldata: calldata }
    },

    async prepareRequest(plan, visit, signal) {
      const { network, signer, body } = await checked(plan, visit, signal)
      const send = sendPlan(plan)
      const known = (await recorded(send, network, signer, signal)) ?? (await toldOf(body, send, network, signer, signal))
      if (known !== undefined) return known
      assertTurn(plan.order, plan.validator)
      const { value } = await dueOf(send, network, signer, signal)
      const entry = await reserve(send, network, signer, value, signal).catch((error: unknown) => {
        // The fee was read in another block than the estimate was made in.
        if (error instanceof ChainError && error.code === 'reverted')
          throw retry(
            'Retrying',
            'The EIP-7002 contract would revert the request now, most likely since its fee has just risen. It is tried again.',
          )
        throw error
      })
      return recordOf(send, network, signer, entry)
    },

    async broadcastRequest(request, visit, signal) {
      const network = networkOf(request.validator.network)
      await assertNotCancelled(request, network, visit, signal)
      return broadcast(inFlightSend(request), network, signal)
    },

    async reportRequest({ order, validator, requestId, hash }, _visit, signal) {
      await service.report(order, validator, requestId, hash, networkOf(validator.network), signal)
      return { reportedHash: hash }
    },

    async confirmRequest(request, visit, signal) {
      const network = networkOf(request.validator.network)
      // Whose validator it is, is said by the spec: what is watched is compared with that too.
      const { pubkey, network: named } = request.order.validator
      if (pubkey !== undefined && (!sameHex(pubkey, request.validator.pubkey) || named !== request.validator.network))
        throw forged('validator')
      return confirm(inFlightSend(request), network, visit, signal)
    },

    async awaitConsensus({ order, validator, requestId, transaction }, visit, signal): Promise<Consensus> {
      const { config, ...network } = networkOf(validator.network)
      visit.delete('request')
      const body = await service.current(order, validator, requestId, { config, ...network }, visit, signal)
      const { status, consensus } = body
      const pending = (why: string) =>
        wait('AwaitingConsensus', `The request is in final block ${transaction.blockNumber}. ${why}`, config.pollIntervalMs)
      if (body.requestId !== requestId || body.externalReference !== order.externalReference || !sameHex(body.pubkey, validator.pubkey))
        throw stall(
          'VerificationFailed',
          'What the staking API has as this request is for another resource or validator: what became of this one is not known.',
        )
      if (status === 'cancelled' || status === 'failed')
        throw stall(
          status === 'cancelled' ? 'RequestCancelled' : 'RequestMissing',
          `The staking API has request ${requestId} as ${status}, but transaction ${transaction.minedHash} has made it, and is final. What the consensus layer makes of it is not told; look at the validator.`,
        )
      if (status !== 'confirmed' || body.transaction.hash === undefined || !sameHex(body.transaction.hash, transaction.minedHash ?? ''))
        throw pending('The staking API has not seen it there yet.')
      if (consensus.status === 'pending') throw pending('The consensus layer has not decided on it yet.')
      if (consensus.status === 'accepted') return { status: 'Accepted' }
      const rules = [...(consensus.reason ?? '').matchAll(/(?:^|; )([a-z][a-z0-9-]{0,63}): /g)]
        .map(([, code = '']) => code)
        .filter(isKnownRule)
      return { status: 'Dropped', ...(rules.length === 0 ? {} : { rules: [...new Set(rules)].slice(0, 16) }) }
    },

    async undoRequest({ order, validator: seen, requestId: given, superseded }, visit, signal) {
      const validator = seen ?? foundBy(await targetOf(order, visit, signal))
      const network = networkOf(validator.network)
      const signer = deps.signers.get(order.signer)
      const undone = { is: 'undone' } as const
      const requestId = given ?? (await madeBefore(order, validator, network, signal))
      const entry = ledger.find(order.signer, validator.network, order.origin, requestStep(order.origin.kind))
      if (entry !== undefined && signer !== undefined) {
        if (requestId === undefined)
          throw stall(
            'RequestMissing',
            `The signer's ledger has a transaction of this resource (${entry.hash}, nonce ${entry.nonce}), and the staking API has no request for it. Look for what became of it; then confirm the deletion.`,
          )
        const transaction = recordOf({ request: { ...order, ...validator }, requestId, superseded }, network, signer, entry)
        return { is: 'found', transaction, requestId, validator }
      }
      if (requestId === undefined || order.origin.kind !== 'ValidatorExit') return undone
      const pubkey = validator.pubkey as Hex
      const look = () =>
        network.requests.exitRequest(pubkey, requestId, signal).catch((error: unknown) => {
          if (isGone(error)) return undefined
          throw error
        })
      // One that is another's is left alone: somebody changed status.
      if ((await look())?.externalReference !== order.externalReference) return undone
      try {
        await network.requests.cancelExitRequest(pubkey, requestId, signal)
        return undone
      } catch (error) {
        if (isGone(error)) return undone
        if (!(error instanceof StakingApiError) || error.code !== 'invalid-state') throw error
      }
      // It was submitted: by this resource, whose status and ledger have lost that, or by somebody else.
      const body = await look()
      if (body === undefined || body.status === 'cancelled' || body.status === 'failed') return undone
      const transaction = await toldOf(body, { request: { ...order, ...validator }, requestId, superseded }, network, signer, signal)
      return transaction === undefined ? undone : { is: 'found', transaction, requestId, validator }
    },
  }

  /** An exit that was prepared and may never have been sent, while somebody took it back at the staking API. One that is away says nothing. */
  async function assertNotCancelled(
    { order, validator, requestId, transaction }: InFlightRequest,
    network: EthereumNetwork,
    visit: Visit,
    signal: AbortSignal,
  ): Promise<void> {
    if (order.origin.kind !== 'ValidatorExit' || transaction.broadcastHash !== undefined) return
    const said = visit.get('request') as RequestBody | undefined
    const body =
      said ??
      (await service.read(order, validator, requestId, network, signal).catch((error: unknown) => {
        if (error instanceof StakingApiError) return undefined
        throw error
      }))
    if (body?.status !== 'cancelled' || body.externalReference !== order.externalReference) return
    for (const { hash } of attemptsOf(transaction)) if ((await network.chain.receipt(hash as Hex, signal)) !== undefined) return
    throw cancelled(requestId)
  }

  /** The visit that made the request may have ended before it was written down: it is made once more, and is the same, or made to be cancelled. */
  async function madeBefore(
    order: RequestOrder,
    validator: FoundValidator,
    network: EthereumNetwork,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    try {
      deps.assertMayAct()
      return (await service.post(order, validator, network, signal)).requestId
    } catch (error) {
      if (!(error instanceof StakingApiError)) throw error
      if (error.code === 'reference-exists') return error.existingId
      if (error.code === 'validation-failed' || error.code === 'invalid-request' || isGone(error)) return undefined
      throw error
    }
  }
}

const cancelled = (requestId: string) =>
  stall(
    'RequestCancelled',
    `Request ${requestId} was cancelled at the staking API. Nothing was sent. To ask again, delete this resource and create it anew.`,
  )

const foundBy = ({ network, pubkey }: FoundValidator): FoundValidator => ({ network, pubkey })

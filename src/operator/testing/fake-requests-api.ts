import { createHash } from 'node:crypto'
import type { Address, Hash, Hex, Pubkey } from '../../chains/ethereum/chain.ts'
import type { EthereumNetworkConfig } from '../../chains/ethereum/networks.ts'
import { encodeRequestCalldata, type ValidatorRequest, withdrawalRequestContract, withFeeHeadroom } from '../../chains/ethereum/requests.ts'
import { StakingApiError, type StakingApiErrorFields } from '../../contract/client-error.ts'
import type { ExitRequestBody, WithdrawalCapacityBody, WithdrawalRequestBody } from '../../contract/schemas/ethereum-requests.ts'
import { gwei, wei } from '../../lib/amounts.ts'
import type { ValidatorRequestsApi } from '../ports.ts'
import type { FakeChain } from './fake-chain.ts'
import { copyOf, setBack } from './set-back.ts'

export type FakeRequestBody = ExitRequestBody | WithdrawalRequestBody
interface Stored {
  readonly request: ValidatorRequest
  readonly body: FakeRequestBody
  readonly hashes: readonly Hex[]
  readonly cancelled: boolean
}

const refuse = (fields: Partial<StakingApiErrorFields>): StakingApiError =>
  new StakingApiError('refused', { kind: 'problem', outcomeUnknown: false, ...fields })
export const rulesBroken = (...rules: string[]): StakingApiError => refuse({ code: 'validation-failed', status: 422, rules })

/** Exits and withdrawals at the staking service, in memory, as far as the contract goes: it sees the fake chain, and can be made to lie. */
export function createFakeRequestsApi(config: EthereumNetworkConfig, fake: FakeChain) {
  const stored = new Map<string, Stored>()
  const byKey = new Map<string, { readonly fingerprint: string; readonly id: string; readonly body: FakeRequestBody }>()
  const byReference = new Map<string, string>()
  const calls: { readonly method: string; readonly pubkey: string }[] = []
  /** Requests made in all: an id is never given twice, even where the database was lost. */
  let made = 0
  const state = {
    /** Whose credentials the validators have. */
    withdrawalAddress: '0x' as Address,
    /** Rules that a request breaks. */
    broken: (_request: ValidatorRequest): readonly string[] => [],
    /** What creation answers besides. */
    refusal: undefined as StakingApiError | undefined,
    /** What the consensus layer makes of a final request. */
    consensus: (_request: ValidatorRequest, _hash: Hex): FakeRequestBody['consensus'] => ({ status: 'accepted' }),
    /** Requests are made, and the answer to that is lost. */
    losesAnswer: false,
    /** The service doesn't see the chain's pool. */
    blind: false,
    /** The chain shows the same asked for by a transaction that nobody has reported. */
    sentUnreported: false,
    /** The status with which an API of the bare interface answers to the cancelling of a withdrawal. */
    cancelsNoWithdrawals: undefined as number | undefined,
    /** An API of the bare interface lists no requests. */
    listsNothing: false,
    capacity: {} as Partial<WithdrawalCapacityBody>,
    lie: undefined as ((body: FakeRequestBody) => FakeRequestBody) | undefined,
  }

  function find(pubkey: Pubkey, id: string, kind: ValidatorRequest['kind']): Stored {
    const one = stored.get(id)
    if (one === undefined || one.request.kind !== kind || one.request.pubkey.toLowerCase() !== pubkey.toLowerCase())
      throw refuse({ code: 'not-found', status: 404 })
    return one
  }

  async function bodyOf({ request, body, hashes, cancelled }: Stored): Promise<FakeRequestBody> {
    const now = await (async (): Promise<Partial<FakeRequestBody>> => {
      if (cancelled) return { status: 'cancelled' } as Partial<FakeRequestBody>
      const hash = hashes.at(-1)
      if (hash === undefined) return {}
      const final = hashes.flatMap((one) => {
        const seen = fake.outcome(one)
        // A cancel succeeds, and asks for nothing.
        const asks = fake.requests().some((made) => made.hash === one)
        return seen?.final === true ? [{ one, success: seen.success && asks }] : []
      })
      const made = final.find(({ success }) => success)
      if (made !== undefined) return { status: 'confirmed', transaction: { hash: made.one }, consensus: state.consensus(request, made.one) }
      // One that was reverted may be followed by another.
      if (final.some(({ one }) => one === hash)) return { status: 'failed', transaction: { hash } }
      return { status: 'submitted', transaction: { hash } }
    })()
    const whole = { ...body, ...now } as FakeRequestBody
    return structuredClone(state.lie === undefined ? whole : state.lie(whole))
  }

  async function create(
    method: string,
    request: ValidatorRequest,
    idempotencyKey: string,
    externalReference: string,
  ): Promise<FakeRequestBody> {
    calls.push({ method, pubkey: request.pubkey })
    const fingerprint = JSON.stringify([encodeRequestCalldata(request), externalReference])
    const before = byKey.get(idempotencyKey)
    if (before !== undefined) {
      if (before.fingerprint !== fingerprint) throw refuse({ code: 'idempotency-key-reused', status: 409 })
      return structuredClone(before.body)
    }
    if (state.refusal !== undefined) throw state.refusal
    const existingId = byReference.get(externalReference)
    if (existingId !== undefined) {
      const held = stored.get(existingId) as Stored
      const { status } = await bodyOf(held)
      if (!['cancelled', 'failed'].includes(status)) throw refuse({ code: 'reference-exists', status: 409, existingId })
    }
    const broken = state.broken(request)
    if (broken.length > 0) throw rulesBroken(...broken)
    const id = createHash('sha256').update(`request ${made++}`).digest('hex').slice(0, 32)
    const feeWei = wei(fake.state.requestFee)
    const body = {
      requestId: id,
      pubkey: request.pubkey,
      externalReference,
      unsignedTransaction: {
        chainId: config.chainId,
        from: state.withdrawalAddress,
        to: withdrawalRequestContract,
        data: encodeRequestCalldata(request),
        valueWei: withFeeHeadroom(feeWei),
      },
      fee: { feeWei, quotedAtBlock: fake.height() },
      transaction: {},
      consensus: { status: 'pending' as const },
      createdAt: '2030-01-01T00:00:00Z',
      status: 'awaiting_submission' as const,
      ...(request.kind === 'exit' ? {} : { amountGwei: request.amountGwei }),
    } as FakeRequestBody
    const one: Stored = { request, body, hashes: [], cancelled: false }
    stored.set(id, one)
    byReference.set(externalReference, id)
    const answer = await bodyOf(one)
    byKey.set(idempotencyKey, { fingerprint, id, body: answer })
    if (state.losesAnswer) throw new StakingApiError('no answer', { kind: 'timeout', outcomeUnknown: true })
    return answer
  }

  async function submit(pubkey: Pubkey, id: string, hash: Hash, kind: ValidatorRequest['kind']): Promise<FakeRequestBody> {
    const one = find(pubkey, id, kind)
    if (one.cancelled) throw refuse({ code: 'invalid-state', status: 409 })
    const next = one.hashes.includes(hash) ? one : { ...one, hashes: [...one.hashes, hash] }
    stored.set(id, next)
    return bodyOf(next)
  }

  async function cancel(method: string, pubkey: Pubkey, id: string, kind: ValidatorRequest['kind']): Promise<FakeRequestBody> {
    calls.push({ method, pubkey })
    const one = find(pubkey, id, kind)
    if (one.hashes.length > 0 || state.sentUnreported) throw refuse({ code: 'invalid-state', status: 409 })
    stored.set(id, { ...one, cancelled: true })
    return bodyOf({ ...one, cancelled: true })
  }

  async function named(kind: ValidatorRequest['kind'], pubkey: Pubkey, reference: string): Promise<FakeRequestBody[]> {
    calls.push({ method: 'list', pubkey })
    if (state.listsNothing) return []
    const own = [...stored.values()].filter(
      ({ request, body }) => request.kind === kind && request.pubkey === pubkey && body.externalReference === reference,
    )
    return (await Promise.all(own.map(bodyOf))).toReversed()
  }

  const api: ValidatorRequestsApi = {
    createExitRequest: async ({ idempotencyKey, pubkey, externalReference }) =>
      (await create('createExitRequest', { kind: 'exit', pubkey }, idempotencyKey, externalReference)) as ExitRequestBody,
    exitRequest: async (pubkey, id) => (await bodyOf(find(pubkey, id, 'exit'))) as ExitRequestBody,
    exitRequestsNamed: async (pubkey, reference) => (await named('exit', pubkey, reference)) as ExitRequestBody[],
    withdrawalRequestsNamed: async (pubkey, reference) => (await named('withdrawal', pubkey, reference)) as WithdrawalRequestBody[],
    submitExitRequest: async (pubkey, id, hash) => (await submit(pubkey, id, hash, 'exit')) as ExitRequestBody,
    cancelExitRequest: async (pubkey, id) => (await cancel('cancelExitRequest', pubkey, id, 'exit')) as ExitRequestBody,
    cancelWithdrawalRequest: async (pubkey, id) => {
      if (state.cancelsNoWithdrawals !== undefined) throw refuse({ status: state.cancelsNoWithdrawals })
      return (await cancel('cancelWithdrawalRequest', pubkey, id, 'withdrawal')) as WithdrawalRequestBody
    },
    createWithdrawalRequest: async ({ idempotencyKey, pubkey, amountGwei, externalReference }) =>
      (await create(
        'createWithdrawalRequest',
        { kind: 'withdrawal', pubkey, amountGwei },
        idempotencyKey,
        externalReference,
      )) as WithdrawalRequestBody,
    withdrawalRequest: async (pubkey, id) => (await bodyOf(find(pubkey, id, 'withdrawal'))) as WithdrawalRequestBody,
    async submitWithdrawalRequest(pubkey, id, hash) {
      const body = (await submit(pubkey, id, hash, 'withdrawal')) as WithdrawalRequestBody
      return { body, retryAfterMs: state.blind ? 2_000 : undefined }
    },
    withdrawalCapacity: async (pubkey) => ({
      pubkey,
      asOfEpoch: 1_000,
      eligible: true,
      reasons: [],
      credentialsType: '0x02',
      validatorStatus: 'active_ongoing',
      balanceGwei: gwei(40_000_000_000n),
      effectiveBalanceGwei: gwei(40_000_000_000n),
      pendingWithdrawalsGwei: gwei(0n),
      availableGwei: gwei(8_000_000_000n),
      requestFeeWei: wei(fake.state.requestFee),
      ...state.capacity,
    }),
  }
  return {
    api,
    state,
    calls,
    requests: () => Promise.all([...stored.values()].map(bodyOf)),
    stored: () => [...stored.values()],
    cancel(id: string) {
      const one = stored.get(id)
      if (one !== undefined) stored.set(id, { ...one, cancelled: true })
    },
    /** The service's database is lost. @returns what brings it back */
    forget: (): (() => void) => setBack(stored, byKey, byReference),
    /** Its database as it is now, as in a backup. @returns what sets it to that */
    copy: (): (() => void) => copyOf(stored, byKey, byReference),
  }
}
export type FakeRequestsApi = ReturnType<typeof createFakeRequestsApi>

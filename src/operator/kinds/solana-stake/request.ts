import { isGone } from '../../../contract/client-error.ts'
import type { SolanaStakeBody } from '../../../contract/schemas/solana.ts'
import { AmountError, type Lamports, lamports, parseInteger } from '../../../lib/amounts.ts'
import type { Clock } from '../../../lib/clock.ts'
import type { SolanaStake } from '../../../resources/solana-stake.ts'
import { stall } from '../../engine/verdict.ts'
import { type Visit, visitNote } from '../../engine/visit.ts'
import type { Networks, SolanaKeys } from '../../ports.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import type { NamespaceFacts } from '../../transactions/policy.ts'
import type { SignerStore } from '../../transactions/signer-store.ts'
import type { RecordObject } from '../../transactions/store.ts'
import { createSolanaNetworks } from './networks.ts'
import { createOwnership } from './ownership.ts'
import { createParties, type Parties } from './parties.ts'
import { isBegun, ownSteps } from './records.ts'
import type { SolanaStakeRequest, StakeTerms } from './steps.ts'
import { createTerms } from './terms.ts'

export interface SolanaStakeDeps {
  readonly networks: Pick<Networks, 'solana' | 'names'>
  readonly signers: Pick<SignerStore, 'get' | 'read'>
  readonly log: TransactionLog
  /** The resource as it stands now: from the cache, or read past it. */
  readonly stake: (
    ref: { readonly namespace: string; readonly name: string },
    fresh: boolean,
    signal: AbortSignal,
  ) => Promise<SolanaStake | undefined>
  readonly keys: SolanaKeys
  readonly clock: Clock
  /** The namespace as policy sees it now. */
  readonly namespace: (name: string) => NamespaceFacts
  /** Reads a namespace past the cache, which `namespace` reads. */
  readonly refreshNamespace: (name: string, signal: AbortSignal) => Promise<void>
  /** Whether there is a resource of this namespace and name (`namespace/name`). */
  readonly exists: (key: string) => boolean
  /** Throws unless this process may act now: it leads, and the installed CRDs are what it was built for. Asked before every signature and broadcast. */
  readonly assertMayAct: () => void
  /** How often a stake that warms up or cools down is looked at, in ms. */
  readonly activatingMs: number
}

/** What of that says what a stake asks for, and whether its signers' policies admit it. Nothing is signed with it. */
export interface SolanaRequestDeps
  extends Pick<SolanaStakeDeps, 'networks' | 'signers' | 'clock' | 'namespace' | 'refreshNamespace' | 'exists'> {
  readonly keys: Pick<SolanaKeys, 'address'>
  readonly log: Pick<TransactionLog, 'ofOwner' | 'ofSubject'>
}

export type Refuse = (...why: Parameters<typeof stall>) => never

/** What a stake asks for, checked: network, amount, signers and terms, as they all stand now. */
export type SolanaRequests = ReturnType<typeof createSolanaRequests>

/** What a person does about a stake that the staking API does not know; any other error as it is. `record`: of what was signed for it. */
export function explainedUnknown(
  error: unknown,
  { adoptStakeId }: Pick<SolanaStakeRequest, 'adoptStakeId'>,
  record: Pick<RecordObject, 'spec'> | undefined,
): unknown {
  const unknown = 'The staking API does not know this (404): it has no stake'
  if (!isGone(error)) return error
  if (adoptStakeId !== undefined)
    return stall(
      'RequestRefused',
      `${unknown} ${adoptStakeId}, which spec.adopt.stakeId names. Nothing is signed. If its database was set back, have that brought back; otherwise correct spec.adopt, or take it away. It is asked again.`,
    )
  if (record === undefined) return error
  return stall(
    'RequestRefused',
    `${unknown} ${record.spec.apiId}, which is this resource's. Nothing is signed. If its database was set back, have that brought back: ${record.spec.subject} may hold the money. Where that can't be, and the chain has no such account two minutes later, nothing was paid: delete this resource and create it again. It is asked again.`,
  )
}

/** What the staking API has said of the stake. */
const saidOf = visitNote<SolanaStakeBody>('stake')

export function createSolanaRequests(deps: SolanaRequestDeps) {
  const { networkOf, networkOn } = createSolanaNetworks(deps.networks)
  const parties = createParties(deps, { amountOf, refuse })
  const { assertUnclaimed, assertOwn } = createOwnership(deps, refuse)

  function refuse(reason: Parameters<typeof stall>[0], message: string): never {
    throw stall(reason, message)
  }

  function amountOf(request: SolanaStakeRequest): Lamports {
    try {
      const amount = parseInteger(request.amountLamports, 'an amount in lamports')
      if (amount === 0n) throw new AmountError('0 lamports are no stake')
      return lamports(amount)
    } catch (error) {
      if (error instanceof AmountError) throw stall('InvalidSpec', `spec.amountLamports: ${error.message}.`, false)
      throw error
    }
  }

  /**
   * What the service says of the stake: by the idempotent creation itself, so that it is the one of this resource and no other; of one for which something was
   * signed, by the id that the log has, since a service that has lost its data would make another.
   */
  async function serviceStake(request: SolanaStakeRequest, parties: Parties, visit: Visit, signal: AbortSignal): Promise<SolanaStakeBody> {
    const said = saidOf.of(visit)
    if (said !== undefined) return said
    const { api } = networkOf(request.network)
    const knownId = request.adoptStakeId ?? begunStake(request)?.spec.apiId
    const body =
      knownId === undefined
        ? await api.createSolanaStake(
            {
              idempotencyKey: request.idempotencyKey,
              network: request.network,
              amountLamports: amountOf(request),
              stakeAuthority: parties.stakeAuthority,
              withdrawAuthority: parties.withdrawAuthority,
              feePayer: parties.stakeAuthority,
              ...(request.voteAccount === undefined ? {} : { voteAccount: request.voteAccount }),
              externalReference: request.externalReference,
            },
            signal,
          )
        : await api.solanaStake(knownId, signal)
    return saidOf.write(visit, body)
  }

  /** The stake that status names, as the staking API has it, once it is known to be this resource's own. Nothing is signed for it by that. @throws Halt */
  async function ownStake(request: SolanaStakeRequest, stakeId: string, signal: AbortSignal): Promise<SolanaStakeBody> {
    const body = await networkOf(request.network)
      .api.solanaStake(stakeId, signal)
      .catch((error: unknown) => {
        if (!isGone(error)) throw error
        return refuse(
          'VerificationFailed',
          `status.stakeId is ${stakeId}, and the staking API has no such stake. Nothing was signed. If the staking API has lost its data, have that brought back: the stake may hold money. Where that can't be, and the chain has no such account two minutes later, nothing was paid: delete this resource and create it again. If somebody changed status, remove status.stakeId and status.transactions: they are read again.`,
        )
      })
    if (body.externalReference === undefined && request.adoptStakeId === undefined) {
      // An API that doesn't show whose a stake is knows it by the key of its creation.
      const made = await serviceStake(request, await parties.partiesOf(request, undefined, signal, { signing: [] }), new Map(), signal)
      assertOwn(request, { ...body, ...(made.stakeId === stakeId ? { externalReference: request.externalReference } : {}) })
    } else assertOwn(request, body)
    return body
  }

  /** The record of what pays for a resource, once something of it was signed. */
  function begunStake({ origin }: SolanaStakeRequest): RecordObject | undefined {
    const { stake } = ownSteps(deps.log, origin)
    return stake !== undefined && isBegun(stake) ? stake : undefined
  }

  const termsIn = (
    stake: RecordObject | undefined,
    { voteAccount = '' }: SolanaStakeRequest,
    { stakeAuthority, withdrawAuthority }: Parties,
  ): StakeTerms | undefined =>
    stake?.spec.apiId === undefined
      ? undefined
      : { stakeId: stake.spec.apiId, stakeAccount: stake.spec.subject, stakeAuthority, withdrawAuthority, voteAccount }

  /** The terms of a stake that was paid and whose authorities have changed hands since: by the log. */
  const loggedTerms = (request: SolanaStakeRequest, parties: Parties): StakeTerms | undefined =>
    parties.isHandedOver ? termsIn(ownSteps(deps.log, request.origin).stake, request, parties) : undefined

  /** ▸ The terms of a stake that was paid, and that the staking API has lost (404), as after a restore of its database: by the log. @throws any other error */
  function lostTerms(error: unknown, request: SolanaStakeRequest, parties: Parties): StakeTerms {
    const stake = begunStake(request)
    const isPaid = stake?.status?.outcome?.is === 'Landed'
    const lost = isPaid && isGone(error) ? termsIn(stake, request, parties) : undefined
    if (lost === undefined) throw explainedUnknown(error, request, stake)
    return lost
  }

  return {
    ...parties,
    loggedTerms,
    lostTerms,
    networkOf,
    networkOn,
    amountOf,
    serviceStake,
    ownStake,
    ...createTerms({ amountOf, serviceStake, assertUnclaimed, loggedTerms, lostTerms, refuse }),
    refuse,
  }
}

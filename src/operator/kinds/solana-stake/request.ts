import { isAddress, type SolanaAddress } from '../../../chains/solana/addresses.ts'
import { stakeAccountAddress } from '../../../chains/solana/stake.ts'
import { StakingApiError } from '../../../contract/client-error.ts'
import type { SolanaStakeBody } from '../../../contract/schemas/solana.ts'
import { AmountError, type Lamports, lamports, parseInteger } from '../../../lib/amounts.ts'
import type { Clock } from '../../../lib/clock.ts'
import type { SolanaStake } from '../../../resources/solana-stake.ts'
import { stall } from '../../engine/verdict.ts'
import type { Visit } from '../../engine/visit.ts'
import type { Networks, SolanaKeys, SolanaNetwork } from '../../ports.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import type { NamespaceFacts } from '../../transactions/policy.ts'
import type { SignerStore } from '../../transactions/signer-store.ts'
import { createParties, type Parties } from './parties.ts'
import type { SolanaStakeRequest, StakeTerms } from './steps.ts'

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
  /** Whether there is a resource of this namespace and name (`namespace/name`). */
  readonly exists: (key: string) => boolean
  /** Throws unless this process may act now: it leads, and the installed CRDs are what it was built for. Asked before every signature and broadcast. */
  readonly assertMayAct: () => void
  /** How often a stake that warms up or cools down is looked at, in ms. */
  readonly activatingMs: number
  readonly onRefusal?: (reason: string) => void
}

/** What a stake asks for, checked: network, amount, signers and terms, as they all stand now. */
export type SolanaRequests = ReturnType<typeof createSolanaRequests>

export function createSolanaRequests(deps: SolanaStakeDeps) {
  const parties = createParties(deps, { amountOf, refuse })
  /**
   * Terms that the service gave this process for a resource and that were verified. They are what status is compared with, so that a transaction in
   * flight is sent again while the service is away.
   */
  const known = new Map<string, StakeTerms>()
  const keyOf = ({ origin, network, adoptStakeId = '' }: SolanaStakeRequest): string =>
    [origin.uid, origin.namespace, origin.name, network, adoptStakeId].join('/')

  function refuse(reason: Parameters<typeof stall>[0], message: string): never {
    deps.onRefusal?.(reason)
    throw stall(reason, message)
  }

  function networkOf(name: string): SolanaNetwork {
    const network = deps.networks.solana(name)
    if (network === undefined) {
      const names = deps.networks.names('Solana')
      throw stall(
        'UnknownNetwork',
        `The operator has no Solana network "${name}"${names.length === 0 ? '' : `; it has ${names.join(', ')}`}. Add it to the operator's networks file, or create this resource with another network.`,
      )
    }
    return network
  }

  /** The network of the cluster that something was done on, whatever its name is now. @throws Halt where it isn't configured any more */
  function networkOn(genesisHash: string | undefined, name: string): SolanaNetwork {
    const all = deps.networks.names('Solana').map((one) => deps.networks.solana(one))
    const found = genesisHash === undefined ? networkOf(name) : all.find((one) => one?.config.genesisHash === genesisHash)
    if (found !== undefined) return found
    throw stall(
      'WrongChain',
      `This stake is on the cluster with genesis ${genesisHash}, and the operator's networks file has none of that genesis any more. Nothing is signed, and nothing is known of it. Put its network back.`,
    )
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

  /** What the service says of the stake: by the idempotent creation itself, so that it is the one of this resource and no other. */
  async function serviceStake(request: SolanaStakeRequest, parties: Parties, visit: Visit, signal: AbortSignal): Promise<SolanaStakeBody> {
    const said = visit.get('stake')
    if (said !== undefined) return said as SolanaStakeBody
    const { api } = networkOf(request.network)
    const body =
      request.adoptStakeId === undefined
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
        : await api.solanaStake(request.adoptStakeId, signal)
    visit.set('stake', body)
    return body
  }

  /** What of the service's stake is not what the spec asks for. */
  function mismatches(request: SolanaStakeRequest, body: SolanaStakeBody, parties: Parties): readonly string[] {
    const { stakeAuthority, withdrawAuthority } = parties
    const adopted = request.adoptStakeId !== undefined
    const wrong = (holds: boolean, text: string): readonly string[] => (holds ? [] : [text])
    return [
      ...wrong(!adopted || body.stakeId === request.adoptStakeId, 'it is another stake'),
      ...wrong(body.network === request.network, `its network is not ${request.network}`),
      ...wrong(body.amountLamports === amountOf(request), `its amount is not ${request.amountLamports} lamports`),
      ...wrong(body.stakeAuthority === stakeAuthority, `its stake authority is not ${stakeAuthority}`),
      ...wrong(body.withdrawAuthority === withdrawAuthority, `its withdraw authority is not ${withdrawAuthority}`),
      ...wrong(body.feePayer === stakeAuthority, `its fee payer is not ${stakeAuthority}`),
      ...wrong(
        request.voteAccount === undefined || body.voteAccount === request.voteAccount,
        `its vote account is not ${request.voteAccount}`,
      ),
      ...wrong(isAddress(body.voteAccount), 'its vote account is not a Solana address'),
      ...wrong(
        body.stakeAccount === derived(stakeAuthority, body.stakeId),
        'its stake account is not the one that is made of its id and fee payer',
      ),
      // A service that mixes stakes up must not have one resource shown as paid by the stake of another.
      ...wrong(
        adopted || body.externalReference === undefined || body.externalReference === request.externalReference,
        'it belongs to another resource: its external reference is another',
      ),
    ]
  }

  /**
   * That no other resource has the stake, also where a service gives one stake to two; and of one that is taken over, that it was made in this namespace,
   * and not for a resource that is there still. Whoever may use the same signers could withdraw it to elsewhere.
   */
  function assertUnclaimed(
    { origin, adoptStakeId }: SolanaStakeRequest,
    { stakeId, stakeAccount, externalReference: made = '' }: SolanaStakeBody,
  ) {
    const adopted = adoptStakeId !== undefined
    const reason = adopted ? 'AdoptionMismatch' : 'VerificationFailed'
    for (const { spec, status } of deps.log.ofSubject(stakeAccount)) {
      const { kind, namespace, name, originUid } = spec.owner
      const where = `${namespace}/${name}`
      const isNamesake = kind === origin.kind && namespace === origin.namespace && name === origin.name
      if (isNamesake && originUid === origin.uid) continue
      if (namespace !== origin.namespace)
        refuse(reason, `Stake ${stakeId} belongs to another resource, in another namespace. Nothing was signed.`)
      if (!isNamesake && deps.exists(where))
        refuse(reason, `Stake ${stakeId} belongs to another resource of this cluster already: ${where}. Nothing was signed.`)
      // What was done for a resource that is gone is taken over where that is asked for, and not because a service says so.
      if (!adopted && status?.outcome !== undefined)
        refuse(
          reason,
          `Stake ${stakeId} was made for ${where}, which is gone. Nothing was signed. To take it over, set spec.adopt.stakeId.`,
        )
    }
    const prefix = `${origin.kind}/`
    if (!adopted || !made.startsWith(prefix)) return
    const key = made.slice(prefix.length)
    if (key === `${origin.namespace}/${origin.name}`) return
    if (!key.startsWith(`${origin.namespace}/`))
      refuse('AdoptionMismatch', `Stake ${adoptStakeId} was made in another namespace, where alone it can be adopted.`)
    if (deps.exists(key))
      refuse('AdoptionMismatch', `Stake ${adoptStakeId} was made for another resource of this cluster, which is there still.`)
  }

  /** The stake that status names, as the staking API has it, once it is known to be this resource's own. Nothing is signed for it by that. @throws Halt */
  async function ownStake(request: SolanaStakeRequest, stakeId: string, signal: AbortSignal): Promise<SolanaStakeBody> {
    const body = await networkOf(request.network)
      .api.solanaStake(stakeId, signal)
      .catch((error: unknown) => {
        if (!(error instanceof StakingApiError) || error.status !== 404) throw error
        return refuse(
          'VerificationFailed',
          `status.stakeId is ${stakeId}, and the staking API has no such stake. Nothing was signed. If the staking API has lost its data, bring that back: the stake may hold money. If somebody changed status, remove status.stakeId and status.transactions: they are read again.`,
        )
      })
    if (body.externalReference === undefined && request.adoptStakeId === undefined) {
      // An API that doesn't show whose a stake is knows it by the key of its creation.
      const made = await serviceStake(request, await parties.partiesOf(request, undefined, signal, { signing: [] }), new Map(), signal)
      assertOwn(request, { ...body, ...(made.stakeId === stakeId ? { externalReference: request.externalReference } : {}) })
    } else assertOwn(request, body)
    return body
  }

  /**
   * That a stake which status names is this resource's own, by the staking API's word: made for its name, or named by its spec. What is asked of its
   * terms before anything is signed is more. @throws Halt
   */
  function assertOwn(request: SolanaStakeRequest, body: SolanaStakeBody): void {
    const { adoptStakeId, network, externalReference } = request
    const isOurs = adoptStakeId === undefined ? body.externalReference === externalReference : body.stakeId === adoptStakeId
    if (!isOurs || body.network !== network || body.stakeAccount !== derived(body.feePayer, body.stakeId))
      refuse(
        'VerificationFailed',
        `status.stakeId is ${body.stakeId}, which the staking API has as another resource's stake${isOurs ? ', or on another network' : ''}. Nothing was signed. If somebody changed status, remove status.stakeId and status.transactions: they are read again.`,
      )
    assertUnclaimed(request, body)
  }

  /** The terms of the service's stake, verified against the spec. They are remembered. */
  function verifiedTerms(request: SolanaStakeRequest, body: SolanaStakeBody, parties: Parties): StakeTerms {
    const wrong = mismatches(request, body, parties)
    const adopted = request.adoptStakeId !== undefined
    if (wrong.length > 0)
      refuse(
        adopted ? 'AdoptionMismatch' : 'VerificationFailed',
        `${adopted ? `Stake ${request.adoptStakeId}` : "The staking API's stake"} does not match this resource: ${wrong.join('; ')}. Nothing was signed.`,
      )
    assertUnclaimed(request, body)
    const { stakeId, stakeAccount, stakeAuthority, withdrawAuthority, voteAccount } = body
    const terms = { stakeId, stakeAccount, stakeAuthority, withdrawAuthority, voteAccount }
    known.set(keyOf(request), terms)
    return terms
  }

  /** The terms of this resource's own stake, by the service, or as this process has verified them before. */
  async function termsFor(request: SolanaStakeRequest, parties: Parties, visit: Visit, signal: AbortSignal): Promise<StakeTerms> {
    const remembered = known.get(keyOf(request))
    if (remembered?.stakeAuthority === parties.stakeAuthority && remembered.withdrawAuthority === parties.withdrawAuthority)
      return remembered
    return verifiedTerms(request, await serviceStake(request, parties, visit, signal), parties)
  }

  /** The terms in status, once they are known to be those of this resource's own stake. Anything else was put there by somebody. */
  async function ownTerms(
    { request, terms }: { readonly request: SolanaStakeRequest; readonly terms: StakeTerms },
    parties: Parties,
    visit: Visit,
    signal: AbortSignal,
  ): Promise<StakeTerms> {
    for (const [field, signer] of [
      ['stakeAuthority', request.stakeSigner],
      ['withdrawAuthority', request.withdrawSigner],
    ] as const)
      if (terms[field] !== parties[field])
        refuse(
          'KeyAddressMismatch',
          `status.${field} is ${terms[field]}, and StakingSigner ${signer} has the key of ${parties[field]}. Nothing was signed. If the signer was replaced, bring back the one with the old key: nobody else can sign for this stake. If somebody changed status, remove the field: it is read again.`,
        )
    const own = await termsFor(request, parties, visit, signal)
    const forged = (Object.keys(own) as (keyof StakeTerms)[]).filter((field) => own[field] !== terms[field])
    if (forged.length > 0)
      refuse(
        'VerificationFailed',
        `${forged.map((field) => `status.${field}`).join(', ')} is not what the staking API has for this resource (stake ${own.stakeId}). Nothing was signed. If somebody changed status, remove these fields: they are read again. If the staking API has lost its data, don't: ${terms.stakeAccount} may hold the money, and the data must be brought back.`,
      )
    return own
  }

  const forget = (request: SolanaStakeRequest): void => {
    known.delete(keyOf(request))
  }

  return {
    ...parties,
    networkOf,
    networkOn,
    amountOf,
    serviceStake,
    ownStake,
    verifiedTerms,
    termsFor,
    ownTerms,
    forget,
    refuse,
  }
}

function derived(feePayer: SolanaAddress, stakeId: string): string | undefined {
  try {
    return stakeAccountAddress(feePayer, stakeId)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

import { isAddress } from '../../../chains/solana/addresses.ts'
import type { SolanaStakeBody } from '../../../contract/schemas/solana.ts'
import type { Lamports } from '../../../lib/amounts.ts'
import type { Visit } from '../../engine/visit.ts'
import { derived } from './ownership.ts'
import type { Parties } from './parties.ts'
import type { Refuse } from './request.ts'
import type { SolanaStakeRequest, StakeTerms } from './steps.ts'

/** What of the service's stake is not what the spec asks for. */
function mismatches(request: SolanaStakeRequest, amount: Lamports, body: SolanaStakeBody, parties: Parties): readonly string[] {
  const { stakeAuthority, withdrawAuthority } = parties
  const adopted = request.adoptStakeId !== undefined
  const wrong = (holds: boolean, text: string): readonly string[] => (holds ? [] : [text])
  return [
    ...wrong(!adopted || body.stakeId === request.adoptStakeId, 'it is another stake'),
    ...wrong(body.network === request.network, `its network is not ${request.network}`),
    ...wrong(body.amountLamports === amount, `its amount is not ${request.amountLamports} lamports`),
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

/** By which terms a stake is signed for: those that the staking API gave for this resource, verified against its spec. */
export function createTerms({
  amountOf,
  serviceStake,
  assertUnclaimed,
  loggedTerms,
  lostTerms,
  refuse,
}: {
  readonly loggedTerms: (request: SolanaStakeRequest, parties: Parties) => StakeTerms | undefined
  readonly lostTerms: (error: unknown, request: SolanaStakeRequest, parties: Parties) => StakeTerms
  readonly amountOf: (request: SolanaStakeRequest) => Lamports
  readonly serviceStake: (request: SolanaStakeRequest, parties: Parties, visit: Visit, signal: AbortSignal) => Promise<SolanaStakeBody>
  readonly assertUnclaimed: (request: SolanaStakeRequest, body: SolanaStakeBody) => void
  readonly refuse: Refuse
}) {
  /**
   * Terms that the service gave this process for a resource and that were verified. They are what status is compared with, so that a transaction in
   * flight is sent again while the service is away.
   */
  const known = new Map<string, StakeTerms>()
  const keyOf = ({ origin, network, adoptStakeId = '' }: SolanaStakeRequest): string =>
    [origin.uid, origin.namespace, origin.name, network, adoptStakeId].join('/')

  /** The terms of the service's stake, verified against the spec. They are remembered. */
  function verifiedTerms(request: SolanaStakeRequest, body: SolanaStakeBody, parties: Parties): StakeTerms {
    const wrong = mismatches(request, amountOf(request), body, parties)
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
    // ▸ The staking API knows a stake by the authorities that it was made with. Who has them now, the log alone says.
    const logged = loggedTerms(request, parties)
    if (logged !== undefined) return logged
    const remembered = known.get(keyOf(request))
    if (remembered?.stakeAuthority === parties.stakeAuthority && remembered.withdrawAuthority === parties.withdrawAuthority)
      return remembered
    return serviceStake(request, parties, visit, signal).then(
      (body) => verifiedTerms(request, body, parties),
      (error: unknown) => lostTerms(error, request, parties),
    )
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
    const found = await termsFor(request, parties, visit, signal)
    // Of one that only the log knows, and of one whose authorities have changed hands, the vote account matters no more: nothing is delegated again.
    const own = parties.isHandedOver || found.voteAccount === '' ? { ...found, voteAccount: terms.voteAccount } : found
    const forged = (Object.keys(own) as (keyof StakeTerms)[]).filter((field) => own[field] !== terms[field])
    if (forged.length > 0)
      refuse(
        'VerificationFailed',
        `${forged.map((field) => `status.${field}`).join(', ')} is not what the staking API has for this resource (stake ${own.stakeId}). Nothing was signed. If somebody changed status, remove these fields: they are read again. If the staking API has lost its data, don't: ${terms.stakeAccount} may hold the money. Have the data brought back; where that can't be, and the chain has no such account two minutes later, nothing was paid: delete this resource and create it again.`,
      )
    return own
  }

  return { verifiedTerms, termsFor, ownTerms }
}

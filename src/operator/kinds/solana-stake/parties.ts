import { isAddress, isOnCurve, type SolanaAddress } from '../../../chains/solana/addresses.ts'
import { AmountError, type Lamports } from '../../../lib/amounts.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import type { StakeAuthority } from '../../../resources/staking-transaction.ts'
import { stall } from '../../engine/verdict.ts'
import { admitSolanaStake, goesByLabels, haltBy, priorityFeeCap } from '../../transactions/policy.ts'
import { handedOver } from '../../transactions/solana/authorities.ts'
import { createMounted } from './mounted.ts'
import { isBegun, ownSteps } from './records.ts'
import type { SolanaRequestDeps } from './request.ts'
import { type Authority, authoritiesFor } from './required-keys.ts'
import type { ActionKind, SolanaStakeRequest } from './steps.ts'

/** The two signers, admitted by their policies as they stand now, with the addresses that their keys turned out to have. */
export interface Parties {
  readonly payer: StakingSigner
  readonly withdrawer: StakingSigner
  readonly stakeAuthority: SolanaAddress
  readonly withdrawAuthority: SolanaAddress
  /** Where withdrawn money goes. */
  readonly destination: SolanaAddress
  /** Who pays for what is made next: the stake authority; for a withdrawal while its key isn't mounted, or where no signer has it, the withdraw authority. */
  readonly feePayer: SolanaAddress
  /** An authority is not the one that the stake was made with: the staking API knows nothing of that. */
  readonly isHandedOver: boolean
}

/** The holder of an authority, with the signer that has its key where the log knows none. */
const known = (holder: StakeAuthority | undefined, as: StakeAuthority | undefined): StakeAuthority | undefined =>
  holder?.signer === undefined && holder?.address === as?.address ? (as ?? holder) : holder

/** Who signs for a stake: both signers, by their policies and keys as they stand now. */
export function createParties(
  deps: SolanaRequestDeps,
  {
    amountOf,
    refuse,
  }: { readonly amountOf: (request: SolanaStakeRequest) => Lamports; readonly refuse: (...why: Parameters<typeof stall>) => never },
) {
  const isMounted = createMounted(deps)

  const { signerOf, addressOf } = createReading(deps)

  /** What the signers' policies must admit. Paying is admitted by amount and vote account, whatever else by the namespace and where the money goes in the end. */
  function assertAdmitted(
    request: SolanaStakeRequest,
    { payer, withdrawer }: Pick<Parties, 'payer' | 'withdrawer'>,
    paying: { readonly voteAccount: string | undefined } | undefined,
  ): void {
    const namespace = deps.namespace(request.origin.namespace)
    const voteAccount = paying?.voteAccount ?? request.voteAccount
    const refusal =
      admitSolanaStake(payer, {
        namespace,
        ...(paying === undefined ? {} : { amountLamports: amountOf(request) }),
        ...(paying === undefined || voteAccount === undefined ? {} : { voteAccount }),
      }) ?? admitSolanaStake(withdrawer, { namespace, destination: request.destination ?? withdrawer.spec.address })
    if (refusal?.isWait === true) throw haltBy(refusal)
    if (refusal !== undefined) refuse(refusal.reason, refusal.message)
  }

  /**
   * Both signers, admitted. The keys of `signing` are read, so that one that is missing is told before anything is made; those that sign nothing now may be
   * kept offline. Every signature refuses the key of another address. `fresh`: signers and namespace are read past the cache.
   */
  async function partiesOf(
    request: SolanaStakeRequest,
    paying: { readonly voteAccount: string | undefined } | undefined,
    signal: AbortSignal,
    {
      fresh = false,
      signing,
      knownAs = {},
      byWithdrawer = false,
    }: {
      readonly fresh?: boolean
      readonly signing: readonly Authority[]
      /** Signers of addresses that have an authority, and of which the log knows none. */
      readonly knownAs?: { readonly stake?: StakeAuthority | undefined; readonly withdraw?: StakeAuthority | undefined }
      /** The withdraw authority pays and signs where no StakingSigner has the stake authority's key: the chain lets it replace that. */
      readonly byWithdrawer?: boolean
    },
  ): Promise<Parties> {
    for (const [field, address] of Object.entries({ voteAccount: request.voteAccount, destination: request.destination }))
      if (address !== undefined && !isAddress(address))
        throw stall(
          'InvalidSpec',
          `spec.${field} is not a Solana address: it is not base58 of 32 bytes. Delete this resource and create it with the right one.`,
          false,
        )
    const { stake: paid } = ownSteps(deps.log, request.origin)
    const now = handedOver(paid === undefined ? [] : deps.log.ofSubject(paid.spec.subject))
    const staker = known(now.stake, knownAs.stake)
    const away = byWithdrawer && staker?.signer === undefined ? staker?.address : undefined
    const withdrawer = await holderOf(signerOf, 'withdraw', request.withdrawSigner, known(now.withdraw, knownAs.withdraw), fresh, signal)
    const payer = away === undefined ? await holderOf(signerOf, 'stake', request.stakeSigner, staker, fresh, signal) : withdrawer
    const { namespace } = request.origin
    if (fresh && [payer, withdrawer].some((signer) => goesByLabels(signer, namespace))) await deps.refreshNamespace(namespace, signal)
    assertAdmitted(request, { payer, withdrawer }, paying)
    for (const authority of signing) await addressOf(authority === 'Stake' ? payer : withdrawer, signal)
    const stakeAuthority = away ?? payer.spec.address
    const withdrawAuthority = withdrawer.spec.address
    for (const { address } of [payer.spec, withdrawer.spec])
      if (!isOnCurve(address)) throw stall('KeyMalformed', `${address} is an address for which nobody can sign.`)
    return {
      payer,
      withdrawer,
      stakeAuthority,
      withdrawAuthority,
      destination: request.destination ?? withdrawAuthority,
      feePayer: payer.spec.address,
      isHandedOver: now.slot !== undefined,
    }
  }

  /** Who a transaction concerns, with the keys read that sign it; a stake is paid only where amount and vote account are admitted. */
  async function partiesFor(
    request: SolanaStakeRequest,
    kind: ActionKind,
    signal: AbortSignal,
    { fresh = false, signing }: { readonly fresh?: boolean; readonly signing: readonly Authority[] },
  ): Promise<Parties> {
    const parties = await partiesOf(request, kind === 'stake' ? { voteAccount: undefined } : undefined, signal, { fresh, signing })
    if (kind !== 'withdrawal' || signing.length === 0 || (await isMounted(parties.payer, signal))) return parties
    return { ...parties, feePayer: parties.withdrawAuthority }
  }

  /**
   * Of a step that signs nothing itself: its keys are read only where a stake is about to be paid, so that nothing is begun that can't go on.
   * `voteAccount` of a stake that the service has chosen.
   */
  const partiesToBegin = (request: SolanaStakeRequest, voteAccount: string | undefined, signal: AbortSignal): Promise<Parties> => {
    const { stake } = ownSteps(deps.log, request.origin)
    const isPaidNext = request.wanted && request.adoptStakeId === undefined && (stake === undefined || !isBegun(stake))
    return partiesOf(request, { voteAccount }, signal, { signing: isPaidNext ? authoritiesFor('stake', { isApproved: false }) : [] })
  }

  return {
    /** Highest priority fee, by the stake and the policies of both signers. @throws Halt */
    feeCapOf: (request: SolanaStakeRequest, { payer, withdrawer }: Pick<Parties, 'payer' | 'withdrawer'>): bigint =>
      feeCapOf(request.maxPriorityFeeLamports, [payer, withdrawer]),
    assertAdmitted,
    partiesOf,
    partiesFor,
    partiesToBegin,
    isMounted,
    signerOf,
    addressOf,
  }
}

/** Signers by their names, and the addresses of their keys. */
function createReading({ keys, signers }: Pick<SolanaRequestDeps, 'keys' | 'signers'>) {
  async function signerOf(name: string, fresh: boolean, signal: AbortSignal): Promise<StakingSigner> {
    const signer = fresh ? await signers.read(name, signal) : signers.get(name)
    if (signer === undefined)
      throw stall('SignerNotFound', `There is no StakingSigner ${name}. Create it, or create this resource with another signer.`)
    return signer
  }

  async function addressOf(signer: StakingSigner, signal: AbortSignal): Promise<SolanaAddress> {
    const { keyName, address } = signer.spec
    const found = await keys.address(keyName, signal)
    if (found !== address)
      throw stall(
        'KeyAddressMismatch',
        `The key mounted as ${keyName} belongs to ${found}, but StakingSigner ${signer.metadata.name} declares ${address}. Nothing was signed. Mount the right key.`,
      )
    return found
  }
  return { signerOf, addressOf }
}

/** Highest priority fee in lamports, by the resource's own cap and the policies of its signers. @throws Halt */
export function feeCapOf(own: string, signers: readonly StakingSigner[]): bigint {
  try {
    return priorityFeeCap(signers, own)
  } catch (error) {
    if (error instanceof AmountError)
      throw stall('InvalidSpec', `maxPriorityFeeLamports of this spec, or of a signer's policy: ${error.message}.`)
    throw error
  }
}

/** Whose key an authority is now: the signer of the spec, or the one that it was handed over to since. @throws Halt where that is none */
async function holderOf(
  signerOf: (name: string, fresh: boolean, signal: AbortSignal) => Promise<StakingSigner>,
  role: 'stake' | 'withdraw',
  given: string,
  to: StakeAuthority | undefined,
  fresh: boolean,
  signal: AbortSignal,
): Promise<StakingSigner> {
  if (to === undefined) return signerOf(given, fresh, signal)
  if (to.signer === undefined)
    throw stall(
      'AuthorityHandedOver',
      `The ${role} authority of this stake was handed over to ${to.address}, whose key no StakingSigner has. Nothing more is signed for it here: ${whatIsLeft[role]}`,
    )
  const signer = await signerOf(to.signer, fresh, signal)
  if (signer.spec.address !== to.address)
    throw stall(
      'SignerChanged',
      `The ${role} authority of this stake was handed over to ${to.address}, and StakingSigner ${to.signer} has the key of ${signer.spec.address} now. Bring back the signer with that key: nobody else can sign for this stake.`,
    )
  return signer
}

/** Who may do what with a stake then, and how the operator goes on. */
const whatIsLeft = {
  stake:
    'whoever has that key deactivates it, and only the withdraw authority withdraws it. To have the operator go on, create a SolanaStakeAuthorization that names a StakingSigner as stake authority: the withdraw authority signs that.',
  withdraw:
    'whoever has that key withdraws it, and can replace both authorities. To have the operator go on, make a StakingSigner of that key and a SolanaStakeAuthorization that names it.',
} as const

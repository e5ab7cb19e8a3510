import { isAddress, isOnCurve } from '../../../chains/solana/addresses.ts'
import { CONFIRM_DELETE_ANNOTATION } from '../../../resources/meta.ts'
import { asksForSignature } from '../../../resources/mode.ts'
import { noDestinations, type SolanaStake } from '../../../resources/solana-stake.ts'
import type { SolanaStakeAuthorization } from '../../../resources/solana-stake-authorization.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import type { StakeAuthority } from '../../../resources/staking-transaction.ts'
import { readOrigin } from '../../engine/origin.ts'
import { type Halt, stall, wait } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import type { Approvable } from '../../transactions/approvals.ts'
import { admitSolanaStake, admitSuccessor, goesByLabels, haltBy } from '../../transactions/policy.ts'
import type { RecordObject } from '../../transactions/store.ts'
import { isException } from './chain-rules.ts'
import { feeCapOf, type Parties } from './parties.ts'
import { ownSteps } from './records.ts'
import type { SolanaRequests, SolanaStakeDeps } from './request.ts'
import { type SolanaStakeRequest, solanaRequestOf } from './steps.ts'

/** Who is to have an authority. */
export interface Successor {
  readonly authority: StakeAuthority
  /** Undefined where no StakingSigner has its key. */
  readonly signer: StakingSigner | undefined
}

/** The same for one record, as it may be signed and approved. */
export interface AdmittedHandOver extends HandOver {
  readonly approvable: Approvable
}

/** What a SolanaStakeAuthorization asks for, checked against its stake, the log and all policies, as they stand now. */
export interface HandOver {
  readonly request: SolanaStakeRequest
  readonly network: SolanaNetwork
  /** The record of the stake, which was paid. */
  readonly paid: RecordObject
  /** Who has the authorities now. */
  readonly parties: Parties
  readonly stake: Successor | undefined
  readonly withdraw: Successor | undefined
  /** Highest priority fee, in lamports. */
  readonly feeCap: bigint
}

export const successorsOf = ({ stake, withdraw }: Pick<HandOver, 'stake' | 'withdraw'>): readonly Successor[] =>
  [stake, withdraw].filter((one) => one !== undefined)

const kind = 'SolanaStakeAuthorization'
/** How often a stake is looked at that is not there, or not paid, in ms; a change of it wakes. */
const LOOK_MS = 60_000

export type WantedOf = (
  resource: Pick<SolanaStakeAuthorization, 'metadata' | 'spec'>,
  fresh: boolean,
  signal: AbortSignal,
) => Promise<HandOver>

/** Reads what a SolanaStakeAuthorization asks for. `fresh`: stake, signers and namespace are read past the cache. */
export function createWanted(
  deps: Pick<SolanaStakeDeps, 'log' | 'stake' | 'namespace' | 'refreshNamespace'>,
  { networkOf, partiesOf, signerOf }: Pick<SolanaRequests, 'networkOf' | 'partiesOf' | 'signerOf'>,
): WantedOf {
  async function successor(
    given: NonNullable<SolanaStakeAuthorization['spec']['stakeAuthority']> | undefined,
    role: 'stake' | 'withdraw',
    acceptUnproven: boolean,
    fresh: boolean,
    signal: AbortSignal,
  ): Promise<Successor | undefined> {
    if (given === undefined) return undefined
    if (given.signer !== undefined && given.address === undefined) {
      const signer = await signerOf(given.signer, fresh, signal)
      const { address } = signer.spec
      if (!isAddress(address) || !isOnCurve(address)) throw stall('KeyMalformed', `${address} is an address for which nobody can sign.`)
      return { authority: { address, signer: given.signer }, signer }
    }
    const { address } = given
    if (address === undefined || given.signer !== undefined || !isAddress(address))
      throw stall(
        'InvalidSpec',
        `spec.${role}Authority must have either signer, or an address that is base58 of 32 bytes. Create another one.`,
        false,
      )
    if (!acceptUnproven)
      throw stall(
        'InvalidSpec',
        `spec.${role}Authority.address is ${address}, and spec.acceptUnproven is not true: nothing proves that anybody has a key for it. Create another one, with a signer or with acceptUnproven.`,
        false,
      )
    return { authority: { address }, signer: undefined }
  }

  /** ▸ Whoever has an authority has to name in its policy who may get it; whoever gets it has to admit the namespace, and where the money goes. @throws Halt */
  function assertAdmitted(handOver: Omit<HandOver, 'feeCap'>, namespace: string): void {
    const { parties, request, stake, withdraw, paid } = handOver
    const facts = { namespace: deps.namespace(namespace), kind }
    const refusals = [
      withdraw &&
        admitSuccessor(parties.withdrawer, {
          ...facts,
          role: 'withdraw',
          successor: withdraw.authority.address,
          signer: withdraw.authority.signer,
        }),
      stake &&
        admitSuccessor(parties.payer, { ...facts, role: 'stake', successor: stake.authority.address, signer: stake.authority.signer }),
      stake?.signer === undefined ? undefined : admitSolanaStake(stake.signer, facts),
      withdraw?.signer === undefined
        ? undefined
        : admitSolanaStake(withdraw.signer, { ...facts, destination: request.destination ?? withdraw.authority.address }),
    ]
    const [refusal] = refusals.filter((one) => one !== undefined)
    if (refusal !== undefined) throw haltBy(refusal)
    for (const { authority, signer } of successorsOf(handOver)) {
      if (noDestinations.some((one) => one === authority.address))
        throw stall(
          'InvalidSpec',
          `${authority.address} is a program, a sysvar or the incinerator: nobody can sign for it. Create another one.`,
          false,
        )
      if (authority.address === paid.spec.subject)
        throw stall('InvalidSpec', `${authority.address} is the stake account itself: nobody can sign for it. Create another one.`, false)
      if (signer === undefined && !isOnCurve(authority.address) && !isException(parties.withdrawer, authority.address))
        throw stall(
          'InvalidSpec',
          `No key signs for ${authority.address}: it is off the curve. If a program signs for it, such as a multisig's vault, the owner of StakingSigner ${parties.withdrawer.metadata.name} can add it to spec.policy.destinationExceptions.`,
        )
    }
  }

  return async ({ metadata, spec }, fresh, signal) => {
    const { namespace = '' } = metadata
    const { name } = spec.stakeRef
    const stake = await deps.stake({ namespace, name }, fresh, signal)
    const origin = stake === undefined ? undefined : readOrigin('SolanaStake', stake.metadata)
    if (stake === undefined || origin?.is !== 'own')
      throw notThere(name, stake === undefined ? 'is not there' : 'is new, or a copy of another')
    if (stake.metadata.deletionTimestamp !== undefined) throw wait('Deleting', deleted(stake), LOOK_MS)
    if (!asksForSignature(stake.spec))
      throw stake.spec.suspend === true
        ? wait('Suspended', `spec.suspend of SolanaStake ${name} is true: nothing is signed for it.`, LOOK_MS)
        : wait('Planned', `spec.mode of SolanaStake ${name} is Plan: nothing is signed for it.`, LOOK_MS)
    const request = solanaRequestOf({ origin: origin.origin, spec: stake.spec })
    const network = networkOf(request.network)
    const { stake: paid, withdrawal } = ownSteps(deps.log, origin.origin)
    if (paid?.status?.outcome === undefined) throw notThere(name, 'is not paid yet, or not for good')
    if (withdrawal?.status?.outcome !== undefined)
      throw stall('AlreadyWithdrawn', `SolanaStake ${name} was withdrawn: its account is closed, and has no authorities any more.`)
    if (paid.spec.genesisHash !== network.config.genesisHash)
      throw stall(
        'WrongChain',
        `SolanaStake ${name} is on the cluster with genesis ${paid.spec.genesisHash}, and network ${request.network} is another now. Nothing is signed.`,
      )
    const accept = spec.acceptUnproven === true
    const to = {
      stake: await successor(spec.stakeAuthority, 'stake', accept, fresh, signal),
      withdraw: await successor(spec.withdrawAuthority, 'withdraw', accept, fresh, signal),
    }
    if (to.stake === undefined && to.withdraw === undefined)
      throw stall('InvalidSpec', 'spec names neither stakeAuthority nor withdrawAuthority. Create another one.', false)
    const signers = successorsOf(to).flatMap(({ signer }) => signer ?? [])
    if (fresh && signers.some((signer) => goesByLabels(signer, namespace))) await deps.refreshNamespace(namespace, signal)
    const knownAs = { stake: to.stake?.authority, withdraw: to.withdraw?.authority }
    const parties = await partiesOf(request, undefined, signal, { fresh, signing: [], knownAs, byWithdrawer: true })
    const handOver = { request, network, paid, parties, ...to }
    assertAdmitted(handOver, namespace)
    return { ...handOver, feeCap: feeCapOf(spec.maxPriorityFeeLamports, [parties.payer, parties.withdrawer, ...signers]) }
  }
}

const deleted = ({ metadata: { namespace = '', name }, status }: SolanaStake): string =>
  `SolanaStake ${name} is being deleted: its authorities are not handed over. If it is held for its money, have Kubernetes forget it (no money moves by that): kubectl annotate solanastake ${name} -n ${namespace} ${CONFIRM_DELETE_ANNOTATION}=${name}. Then create it anew under this name with spec.adopt.stakeId: ${status?.stakeId ?? 'the id that its status shows'}, and this goes on.`

const notThere = (name: string, why: string): Halt =>
  wait('WaitingForStake', `SolanaStake ${name} ${why}: its authorities are handed over once it is paid.`, LOOK_MS)

import type { Address, Hex } from '../../../chains/ethereum/chain.ts'
import { isValidPubkey } from '../../../chains/ethereum/deposit.ts'
import type { EthereumStakeBody } from '../../../contract/schemas/ethereum-stake.ts'
import type { Wei } from '../../../lib/amounts.ts'
import { sameHex } from '../../../lib/hex.ts'
import { isTrue } from '../../../resources/conditions.ts'
import type { EthereumStake } from '../../../resources/ethereum-stake.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import type { ValidatorExit } from '../../../resources/validator-exit.ts'
import type { ValidatorWithdrawal } from '../../../resources/validator-withdrawal.ts'
import { externalReference, mayAdopt } from '../../engine/origin.ts'
import { Halt, stall, wait } from '../../engine/verdict.ts'
import type { Visit } from '../../engine/visit.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { createEthereumSigners, type EthereumDeps, type EthereumSigners, readCap } from '../../transactions/ethereum-signer.ts'
import { admitRequest, requestFeeCap } from '../../transactions/policy.ts'
import { whenEpoch } from './refusal.ts'
import type { RequestKindName } from './request-kind.ts'
import type { FoundValidator, RequestOrder, ValidatorRequestSpec } from './steps.ts'

export type ValidatorRequestResource = ValidatorExit | ValidatorWithdrawal

export interface ValidatorRequestDeps extends Omit<EthereumDeps, 'onRefusal'> {
  readonly onRefusal?: (reason: string, kind: RequestKindName) => void
  readonly stake: (namespace: string, name: string) => EthereumStake | undefined
  /** A request as it stands now: from the cache, or read past it. */
  readonly resource: (
    kind: RequestKindName,
    ref: { readonly namespace: string; readonly name: string },
    fresh: boolean,
    signal: AbortSignal,
  ) => Promise<ValidatorRequestResource | undefined>
  /** Every exit and withdrawal, of all namespaces, whose validator this is by its spec or its stake. */
  readonly requestsOn: (validator: FoundValidator) => Iterable<ValidatorRequestResource>
  /** Every EthereumStake, of all namespaces, whose status names this validator. */
  readonly stakesOn: (validator: FoundValidator) => Iterable<EthereumStake>
}

/** The validator of a spec by what the cluster says: for the order of requests, not for what is signed. */
export function validatorIn(
  { spec, namespace }: { readonly spec: Pick<ValidatorRequestSpec, 'validator'>; readonly namespace: string },
  stakeOf: ValidatorRequestDeps['stake'],
): FoundValidator | undefined {
  const { stakeRef, network, pubkey } = spec.validator
  if (stakeRef === undefined) return network === undefined || pubkey === undefined ? undefined : { network, pubkey: pubkey.toLowerCase() }
  const stake = stakeOf(namespace, stakeRef.name)
  const found = stake?.status?.depositData?.pubkey
  return stake === undefined || found === undefined ? undefined : { network: stake.spec.network, pubkey: found.toLowerCase() }
}

/** What a request asks for, of whom and in whose name, as spec, stake and signer stand now. */
export type RequestTargets = ReturnType<typeof createRequestTargets>

export function createRequestTargets(deps: ValidatorRequestDeps) {
  const signersFor = (kind: RequestKindName): EthereumSigners =>
    createEthereumSigners({ ...deps, onRefusal: (reason) => deps.onRefusal?.(reason, kind) })
  const signers = { ValidatorExit: signersFor('ValidatorExit'), ValidatorWithdrawal: signersFor('ValidatorWithdrawal') } as const
  const { networkOf, capOf } = signers.ValidatorExit

  /** The signer, admitted by its policy for this resource as both stand now. */
  const admittedSigner = async (order: RequestOrder, signal: AbortSignal, fresh = false): Promise<StakingSigner> => {
    if (fresh) await deps.refreshNamespace(order.origin.namespace, signal)
    return signers[order.origin.kind].admitted(
      order.signer,
      (signer) => admitRequest(signer, { namespace: deps.namespace(order.origin.namespace), kind: order.origin.kind }),
      signal,
      fresh,
    )
  }

  /** What the contract may be paid at most, in wei. */
  const feeCapOf = (signer: StakingSigner, ownCapGwei: string | undefined): Wei =>
    readCap('maxRequestFeeGwei', () => requestFeeCap(signer, ownCapGwei))

  /** The validator of the spec. @throws Halt where there is none (yet) */
  async function targetOf(
    order: RequestOrder,
    visit: Visit,
    signal: AbortSignal,
  ): Promise<FoundValidator & { withdrawalAddress?: Address }> {
    const { stakeRef, network, pubkey } = order.validator
    if (stakeRef !== undefined && network === undefined && pubkey === undefined) return ofStake(order, stakeRef.name, visit, signal)
    if (stakeRef !== undefined || network === undefined || pubkey === undefined)
      throw stall('InvalidSpec', 'spec.validator must have either stakeRef, or both network and pubkey.', false)
    networkOf(network)
    if (!/^0x[0-9a-fA-F]{96}$/.test(pubkey) || !isValidPubkey(pubkey.toLowerCase() as Hex))
      throw stall(
        'InvalidSpec',
        "spec.validator.pubkey is not a BLS public key: it is not a point of the curve's subgroup. A digit is mistyped; create this resource anew with the right key.",
        false,
      )
    return { network, pubkey: pubkey.toLowerCase() }
  }

  async function ofStake(order: RequestOrder, name: string, visit: Visit, signal: AbortSignal) {
    const { stake, body } = await stakeOf(order, name, visit, signal)
    const { status, activationEpoch } = body.validator
    if (status === 'unknown' || status === 'pending_initialized' || status === 'pending_queued')
      throw wait(
        'ValidatorNotActive',
        `The validator of EthereumStake ${name} is not active yet${activationEpoch === undefined ? ': its activation epoch is not set (the deposit is processed first, then it waits in the queue)' : `: it becomes active in ${whenEpoch(stake.spec.network, activationEpoch)}, and may exit or be withdrawn from some time later (256 epochs on public networks)`}. It goes on by itself.`,
        slowly(networkOf(stake.spec.network)),
      )
    return {
      network: stake.spec.network,
      pubkey: body.depositData.pubkey.toLowerCase(),
      withdrawalAddress: stake.spec.withdrawalAddress as Address,
    }
  }

  /** The stake, with what the staking API says of it: its status alone may have been forged. */
  async function stakeOf(order: RequestOrder, name: string, visit: Visit, signal: AbortSignal) {
    const { namespace } = order.origin
    const stake = deps.stake(namespace, name)
    if (stake === undefined)
      throw wait('WaitingForStake', `There is no EthereumStake ${name} in namespace ${namespace}. It goes on when there is.`, 30_000)
    const network = networkOf(stake.spec.network)
    const { stakeId, depositData, transaction, phase = 'Pending' } = stake.status ?? {}
    if (transaction?.state !== 'Confirmed' || stakeId === undefined || depositData === undefined) {
      const stalled = isTrue(stake.status?.conditions, 'Stalled') ? '; it is stalled and needs a person' : ''
      throw wait(
        'WaitingForStake',
        `The deposit of EthereumStake ${name} is not final yet (it is ${phase}${stalled}). It goes on by itself.`,
        slowly(network),
      )
    }
    const body = (visit.get('stakeOfRequest') as EthereumStakeBody | undefined) ?? (await network.api.ethereumStake(stakeId, signal))
    visit.set('stakeOfRequest', body)
    const reference = externalReference({ uid: '', kind: 'EthereumStake', namespace, name })
    const wrong = [
      body.stakeId === stakeId ? [] : ['id'],
      body.network === stake.spec.network ? [] : ['network'],
      sameHex(body.depositData.pubkey, depositData.pubkey) && sameHex(body.validator.pubkey, depositData.pubkey) ? [] : ['public key'],
      sameHex(body.withdrawalAddress, stake.spec.withdrawalAddress) ? [] : ['withdrawal address'],
      body.externalReference === reference ||
      (stake.spec.adopt?.stakeId === stakeId && mayAdopt('EthereumStake', body.externalReference, namespace))
        ? []
        : ['external reference'],
    ].flat()
    if (wrong.length > 0) {
      deps.onRefusal?.('VerificationFailed', order.origin.kind)
      throw stall(
        'VerificationFailed',
        `The status of EthereumStake ${name} is not what the staking API says of its stake (another ${wrong.join(', ')}). Nothing was signed. Find out who changed it.`,
      )
    }
    return { stake, body }
  }

  /** Whether the spec names this validator, as far as the cluster says: enough for what was checked before and is signed once more, the same bytes. */
  function isNamed(order: RequestOrder, chainId: number | undefined, pubkey: string): boolean {
    const named = validatorIn({ spec: order, namespace: order.origin.namespace }, deps.stake)
    // A stake that is gone takes nothing back.
    if (named === undefined) return order.validator.stakeRef !== undefined
    return networkOf(named.network).config.chainId === chainId && sameHex(named.pubkey, pubkey)
  }

  /**
   * Whether a policy that admits requests for a namespace's own validators alone admits this one: a stake of the namespace has paid for it, by the log, or has
   * it at the staking API. What a tenant can write decides nothing. @throws Halt
   */
  async function assertOwned(
    order: RequestOrder,
    signer: StakingSigner,
    target: FoundValidator,
    visit: Visit,
    signal: AbortSignal,
  ): Promise<void> {
    // That the stake is the namespace's, and the validator the stake's, was found out with the target.
    if (signer.spec.policy.validators === 'Any' || order.validator.stakeRef !== undefined) return
    const { namespace } = order.origin
    const { chainId } = networkOf(target.network).config
    const paid = deps.log
      .ofSubject(target.pubkey)
      .some(
        ({ spec, status }) =>
          spec.purpose === 'Deposit' && spec.chainId === chainId && spec.owner.namespace === namespace && status?.outcome?.is === 'Landed',
      )
    if (paid) return
    for (const { metadata } of deps.stakesOn(target)) {
      if (metadata.namespace !== namespace) continue
      try {
        const { body } = await stakeOf(order, metadata.name, new Map(visit), signal)
        if (sameHex(body.depositData.pubkey, target.pubkey)) return
      } catch (error) {
        // One that is not paid, or was forged, is none.
        if (!(error instanceof Halt) || (error.verdict.kind !== 'stall' && error.verdict.kind !== 'wait')) throw error
      }
    }
    deps.onRefusal?.('ValidatorNotOwned', order.origin.kind)
    throw stall(
      'ValidatorNotOwned',
      `No EthereumStake of namespace ${namespace} has validator ${target.pubkey} of ${target.network}, and StakingSigner ${signer.metadata.name} admits requests for a namespace's own validators only (spec.policy.validators: Own). Nothing was signed. Adopt its stake with an EthereumStake in this namespace (spec.adopt.stakeId), or ask the owner of the signer for validators: Any.`,
    )
  }

  /** Only the validator's withdrawal address may ask for anything. @throws Halt */
  function assertMaySend({ origin }: RequestOrder, signer: StakingSigner, withdrawalAddress: string): void {
    if (sameHex(signer.spec.address, withdrawalAddress)) return
    deps.onRefusal?.('SignerNotWithdrawalAddress', origin.kind)
    throw stall(
      'SignerNotWithdrawalAddress',
      `StakingSigner ${signer.metadata.name} has address ${signer.spec.address}, but only the validator's withdrawal address ${withdrawalAddress} may ask for this. Nothing was signed. Create this resource with the signer of that address.`,
    )
  }

  return { networkOf, capOf, admittedSigner, feeCapOf, targetOf, isNamed, assertOwned, assertMaySend }
}

/** For what takes epochs. */
export const slowly = ({ config }: Pick<EthereumNetwork, 'config'>): number => config.pollIntervalMs * 5

import { isValidPubkey } from '../../../chains/ethereum/deposit.ts'
import type { Wei } from '../../../lib/amounts.ts'
import { type Address, lowerCase } from '../../../lib/chain-types.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { stall } from '../../engine/verdict.ts'
import type { Visit } from '../../engine/visit.ts'
import { createEthereumSigners, readCap, type SignerAdmissionDeps } from '../../transactions/ethereum-signer.ts'
import { admitRequest, requestFeeCap } from '../../transactions/policy.ts'
import type { ValidatorRequestDeps } from './deps.ts'
import { createOwnership } from './ownership.ts'
import { createStakedValidators } from './staked.ts'
import type { FoundValidator, RequestOrder, ValidatorRequestSpec } from './steps.ts'

/** The validator of a spec by what the cluster says: for the order of requests, not for what is signed. */
export function validatorIn(
  { spec, namespace }: { readonly spec: Pick<ValidatorRequestSpec, 'validator'>; readonly namespace: string },
  stakeOf: ValidatorRequestDeps['stake'],
): FoundValidator | undefined {
  const { stakeRef, network, pubkey } = spec.validator
  if (stakeRef === undefined) return network === undefined || pubkey === undefined ? undefined : { network, pubkey: lowerCase(pubkey) }
  const stake = stakeOf(namespace, stakeRef.name)
  const found = stake?.status?.depositData?.pubkey
  return stake === undefined || found === undefined ? undefined : { network: stake.spec.network, pubkey: lowerCase(found) }
}

/** What a request asks for, of whom and in whose name, as spec, stake and signer stand now. */
export type RequestTargets = ReturnType<typeof createRequestTargets>

/** What of the kind's dependencies says what a request is for, and whether it may be asked. Nothing is signed with it. */
export interface RequestTargetDeps extends SignerAdmissionDeps, Pick<ValidatorRequestDeps, 'stake' | 'stakesOn'> {
  readonly log: Pick<ValidatorRequestDeps['log'], 'ofSubject'>
}

export function createRequestTargets(deps: RequestTargetDeps) {
  const signers = createEthereumSigners(deps)
  const { networkOf, networkOfRecord, capOf } = signers
  const staked = createStakedValidators(deps, networkOf)

  /** The signer, admitted by its policy for this resource as both stand now. */
  const admittedSigner = (
    { signer: name, origin: { kind, namespace } }: RequestOrder,
    signal: AbortSignal,
    how: { readonly fresh?: boolean; readonly isSigned?: boolean } = {},
  ): Promise<StakingSigner> =>
    signers.admitted({ name, namespace }, (signer, facts) => admitRequest(signer, { namespace: facts, kind }), signal, how)

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
    if (stakeRef !== undefined && network === undefined && pubkey === undefined)
      return staked.validatorOf(order, stakeRef.name, visit, signal)
    if (stakeRef !== undefined || network === undefined || pubkey === undefined)
      throw stall('InvalidSpec', 'spec.validator must have either stakeRef, or both network and pubkey.', false)
    networkOf(network)
    if (!/^0x[0-9a-fA-F]{96}$/.test(pubkey) || !isValidPubkey(lowerCase(pubkey)))
      throw stall(
        'InvalidSpec',
        "spec.validator.pubkey is not a BLS public key: it is not a point of the curve's subgroup. A digit is mistyped; create this resource anew with the right key.",
        false,
      )
    return { network, pubkey: lowerCase(pubkey) }
  }

  /** Whether the spec names this validator, as far as the cluster says: enough for what was checked before and is signed once more, the same bytes. */
  function isNamed(order: RequestOrder, chainId: number | undefined, pubkey: string): boolean {
    const named = validatorIn({ spec: order, namespace: order.origin.namespace }, deps.stake)
    // A stake that is gone takes nothing back.
    if (named === undefined) return order.validator.stakeRef !== undefined
    return networkOf(named.network).config.chainId === chainId && sameHex(named.pubkey, pubkey)
  }

  /** Only the validator's withdrawal address may ask for anything. @throws Halt */
  function assertMaySend(signer: StakingSigner, withdrawalAddress: string): void {
    if (sameHex(signer.spec.address, withdrawalAddress)) return
    throw stall(
      'SignerNotWithdrawalAddress',
      `StakingSigner ${signer.metadata.name} has address ${signer.spec.address}, but only the validator's withdrawal address ${withdrawalAddress} may ask for this. Nothing was signed. Create this resource with the signer of that address: a withdrawal address can never be changed, so that its key stays needed.`,
    )
  }

  return {
    networkOf,
    networkOfRecord,
    capOf,
    admittedSigner,
    feeCapOf,
    targetOf,
    isNamed,
    assertOwned: createOwnership(deps, networkOf, staked),
    assertMaySend,
  }
}

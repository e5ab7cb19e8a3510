import { AmountError, type Wei } from '../../lib/amounts.ts'
import type { Clock } from '../../lib/clock.ts'
import { sameHex } from '../../lib/hex.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import { stall } from '../engine/verdict.ts'
import type { EthereumKeys, EthereumNetwork, Networks } from '../ports.ts'
import type { TransactionLog } from './log.ts'
import { feeCap, goesByLabels, haltBy, type NamespaceFacts, type Refusal } from './policy.ts'
import type { SignerStore } from './signer-store.ts'
import type { RecordObject } from './store.ts'

/** What every kind that sends Ethereum transactions works with. */
export interface EthereumDeps {
  readonly networks: Networks
  readonly signers: SignerStore
  readonly log: TransactionLog
  readonly keys: EthereumKeys
  readonly clock: Clock
  /** The namespace as policy sees it now. */
  readonly namespace: (name: string) => NamespaceFacts
  /** Reads a namespace past the cache, which `namespace` reads. */
  readonly refreshNamespace: (name: string, signal: AbortSignal) => Promise<void>
  /** Whether another, older signer declares the same address. */
  readonly duplicateOf: (signer: StakingSigner) => string | undefined
  /** Throws unless this process may act now: it leads, and the installed CRDs are what it was built for. Asked before every signature and broadcast. */
  readonly assertMayAct: () => void
}

/** What of that says whether a signer may be used for something. Nothing is signed with it. */
export interface SignerAdmissionDeps extends Pick<EthereumDeps, 'networks' | 'namespace' | 'refreshNamespace' | 'duplicateOf'> {
  readonly signers: Pick<SignerStore, 'get' | 'read'>
  readonly keys: Pick<EthereumKeys, 'address'>
}

export type EthereumSigners = ReturnType<typeof createEthereumSigners>

/** Networks and signers as they stand now, or why they can't be used. */
export function createEthereumSigners(deps: SignerAdmissionDeps) {
  function networkOf(name: string): EthereumNetwork {
    const network = deps.networks.ethereum(name)
    if (network === undefined) {
      const known = deps.networks.names('Ethereum')
      throw stall(
        'UnknownNetwork',
        `The operator has no Ethereum network "${name}"${known.length === 0 ? '' : `; it has ${known.join(', ')}`}. Add it to the operator's networks file, or create this resource with another network.`,
      )
    }
    return network
  }

  /** The network of a record's chain, under whatever name it is configured now. */
  function networkOfRecord({ spec }: Pick<RecordObject, 'spec'>): EthereumNetwork {
    const name = deps.networks.names('Ethereum').find((one) => deps.networks.ethereum(one)?.config.chainId === spec.chainId)
    return networkOf(name ?? spec.network)
  }

  /**
   * The signer of a resource, admitted by its policy as both stand now, and its key belongs to its address. `fresh`: signer and namespace are read past the
   * cache. `isSigned`: what is to be sent was signed already, and the key is asked for nothing, since its remote signer may be away; a new signature is refused
   * with any other key.
   */
  async function admitted(
    { name, namespace }: { readonly name: string; readonly namespace: string },
    refusalOf: (signer: StakingSigner, namespace: NamespaceFacts) => Refusal | undefined,
    signal: AbortSignal,
    { fresh = false, isSigned = false }: { readonly fresh?: boolean; readonly isSigned?: boolean } = {},
  ): Promise<StakingSigner> {
    const signer = fresh ? await deps.signers.read(name, signal) : deps.signers.get(name)
    if (signer === undefined)
      throw stall('SignerNotFound', `There is no StakingSigner ${name}. Create it, or create this resource with another signer.`)
    if (fresh && goesByLabels(signer, namespace)) await deps.refreshNamespace(namespace, signal)
    const refusal = refusalOf(signer, deps.namespace(namespace))
    if (refusal !== undefined) throw haltBy(refusal)
    const twin = deps.duplicateOf(signer)
    if (twin !== undefined)
      throw stall(
        'DuplicateSigner',
        `StakingSigner ${twin} declares the same address as ${name} and is older. One address has one sequence of nonces, and so one signer: delete one of them.`,
      )
    if (isSigned) return signer
    const address = await deps.keys.address(signer.spec.keyName, signal)
    if (!sameHex(address, signer.spec.address)) {
      throw stall(
        'KeyAddressMismatch',
        `The key mounted as ${signer.spec.keyName} belongs to ${address}, but StakingSigner ${name} declares ${signer.spec.address}. Nothing was signed. Mount the right key.`,
      )
    }
    return signer
  }

  /** The highest fee per gas, in wei. */
  const capOf = (signer: StakingSigner, ownCapGwei: string | undefined): Wei =>
    readCap('maxFeePerGasGwei', () => feeCap(signer, ownCapGwei))

  return { networkOf, networkOfRecord, admitted, capOf }
}

/** A cap that a person wrote down. */
export function readCap(field: string, read: () => Wei): Wei {
  try {
    return read()
  } catch (error) {
    if (error instanceof AmountError) throw stall('InvalidSpec', `${field}: ${error.message}.`, false)
    throw error
  }
}

import { createEthereumChain } from '../../chains/ethereum/rpc-chain.ts'
import { createSolanaChain } from '../../chains/solana/rpc-chain.ts'
import type { Address, SolanaAddress } from '../../lib/chain-types.ts'
import type { Clock } from '../../lib/clock.ts'
import { createLogger } from '../../lib/log.ts'
import { duplicateOf } from '../../operator/kinds/staking-signer/duplicate.ts'
import type { NetworksFile } from '../../operator/networks/networks-file.ts'
import type { EthereumNetwork, Networks, SolanaNetwork } from '../../operator/ports.ts'
import type { SignerAdmissionDeps } from '../../operator/transactions/ethereum-signer.ts'
import type { NamespaceFacts } from '../../operator/transactions/policy.ts'
import type { RecordObject } from '../../operator/transactions/store.ts'
import type { EthereumStake } from '../../resources/ethereum-stake.ts'
import type { SignerNonce } from '../../resources/signer-nonce.ts'
import type { SolanaStake } from '../../resources/solana-stake.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'

/** Resources of a namespace, as they will be; `all`: whether one that is not among them is nowhere. */
export interface Known<T> {
  readonly known: readonly T[]
  readonly all: boolean
}

/** What a plan knows: the manifests over the cluster, where one is asked. What is undefined is not known. */
export interface World {
  readonly clock: Clock
  /** As they will be once the manifests are applied. */
  readonly signers: ReadonlyMap<string, StakingSigner>
  /** Whether a signer that is not among them is nowhere. */
  readonly knowsAllSigners: boolean
  /** Labels that a namespace will have; undefined where they are not known. */
  readonly labels: (namespace: string) => Readonly<Record<string, string>> | undefined
  /** Undefined where no networks file was given. */
  readonly networks: Networks | undefined
  /** The log. */
  readonly records: readonly RecordObject[] | undefined
  readonly places: readonly SignerNonce[] | undefined
  readonly stakes: (namespace: string) => Known<EthereumStake>
  readonly solanaStakes: (namespace: string) => Known<SolanaStake>
}

/** A plan asks the staking API nothing: what only that knows stays unknown. */
export class NotAskedError extends Error {
  override readonly name = 'NotAskedError'
}

const notAsked = (): never => {
  throw new NotAskedError('a plan asks the staking API nothing')
}
/** Every call of it is one that a plan does not make. */
const silent = <T extends object>(): T => new Proxy({} as T, { get: () => notAsked })

/** The networks of the operator's file with their nodes, to be read from; the staking API is left alone. */
export function readableNetworks(file: NetworksFile, clock: Clock): Networks {
  const log = createLogger({ program: 'operator', level: 'silent' })
  const nodes = { clock, log, onCall: () => {}, onNodes: () => {} }
  const ethereum = new Map<string, EthereumNetwork>(
    file.ethereum.map(({ config, bumpAfterMs }) => [
      config.name,
      { config, bumpAfterMs, chain: createEthereumChain({ config, ...nodes }), api: silent(), requests: silent() },
    ]),
  )
  const solana = new Map<string, SolanaNetwork>(
    file.solana.map(({ config, challengeDomain }) => [
      config.name,
      { config, challengeDomain, chain: createSolanaChain({ config, ...nodes }), api: silent() },
    ]),
  )
  return {
    ethereum: (name) => ethereum.get(name),
    solana: (name) => solana.get(name),
    names: (chain) => [...(chain === 'Ethereum' ? ethereum : solana).keys()],
  }
}

const noNetworks: Networks = { ethereum: () => undefined, solana: () => undefined, names: () => [] }

/** What the product's own admission asks for, over what a plan knows. `assumed`: a namespace that is taken to be admitted, for what else is to be said. */
export function admissionOver(world: World, assumed?: string) {
  // No key is looked at: each signer is taken to have the key of its address. Two signers may name one folder.
  const names = [...world.signers.keys()]
  const folder = (name: string): string => `key-${names.indexOf(name)}`
  const signerAt = (keyName: string): StakingSigner | undefined => world.signers.get(names[Number(keyName.slice('key-'.length))] ?? '')
  const get = (name: string): StakingSigner | undefined => {
    const signer = world.signers.get(name)
    return signer && withNamespace({ ...signer, spec: { ...signer.spec, keyName: folder(name) } }, assumed)
  }
  const addressIn = (keyName: string): string => signerAt(keyName)?.spec.address ?? ''
  const namespace = (name: string): NamespaceFacts => ({ name, labels: world.labels(name) })
  return {
    networks: world.networks ?? noNetworks,
    signers: { get, read: async (name: string) => get(name) },
    ethereumKeys: { address: async (keyName: string) => addressIn(keyName) as Address },
    solanaKeys: { address: async (keyName: string) => addressIn(keyName) as SolanaAddress },
    namespace,
    refreshNamespace: async () => {},
    duplicateOf: (signer: StakingSigner) => duplicateOf(signer, world.signers.values()),
    clock: world.clock,
    log: {
      ofOwner: ({ kind, namespace: at, name }: { readonly kind: string; readonly namespace: string; readonly name: string }) =>
        (world.records ?? []).filter(({ spec: { owner } }) => owner.kind === kind && owner.namespace === at && owner.name === name),
      ofSubject: (subject: string) => (world.records ?? []).filter(({ spec }) => spec.subject.toLowerCase() === subject.toLowerCase()),
    },
    exists: () => false,
  }
}
export type AdmissionOver = ReturnType<typeof admissionOver>

/** For kinds of Ethereum. */
export const ethereumAdmission = ({ ethereumKeys, ...rest }: AdmissionOver): SignerAdmissionDeps => ({ ...rest, keys: ethereumKeys })

function withNamespace(signer: StakingSigner, namespace: string | undefined): StakingSigner {
  if (namespace === undefined) return signer
  const { allowedNamespaces } = signer.spec.policy ?? {}
  if (allowedNamespaces === undefined) return signer
  return {
    ...signer,
    spec: {
      ...signer.spec,
      policy: {
        ...signer.spec.policy,
        allowedNamespaces: { ...allowedNamespaces, names: [...(allowedNamespaces.names ?? []), namespace] },
      },
    },
  }
}

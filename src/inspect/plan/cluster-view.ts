import type { KubeCaller } from '../../operator/kube/caller.ts'
import { KubeError } from '../../operator/kube/errors.ts'
import { type Lease, leases } from '../../operator/kube/lease.ts'
import type { KubeObject } from '../../operator/kube/objects.ts'
import type { ResourceDefinition } from '../../operator/kube/resource-client.ts'
import { definitionOf } from '../../operator/saga-collection.ts'
import { requesterPolicy } from '../../resources/admission-policies.ts'
import { type EthereumStake, ethereumStake } from '../../resources/ethereum-stake.ts'
import { API_VERSION, GROUP, type KindDefinition, VERSION } from '../../resources/meta.ts'
import { type SignerNonce, signerNonce } from '../../resources/signer-nonce.ts'
import { type SolanaStake, solanaStake } from '../../resources/solana-stake.ts'
import { type StakingSigner, stakingSigner } from '../../resources/staking-signer.ts'
import { type StakingTransaction, stakingTransaction } from '../../resources/staking-transaction.ts'
import type { Cluster } from '../cluster.ts'
import { InspectError } from '../error.ts'
import type { ManifestObject } from './manifests.ts'
import { readOnly } from './read-only.ts'

type Forbidden = 'forbidden'
/** An object as it is there. */
export type LiveObject = KubeObject & { readonly spec?: unknown; readonly status?: unknown }
/** Undefined: the namespace does not exist. */
export type Labels = Readonly<Record<string, string>> | undefined | Forbidden

/** What the API server says to an object that is applied. */
export type Tried =
  | { readonly is: 'accepted'; readonly object: LiveObject }
  | { readonly is: 'refused'; readonly message: string }
  /** It says that somebody else asks for it than whoever plans: nothing else of it is known. */
  | { readonly is: 'of-another'; readonly message: string }
  /** The namespace is not there yet: nothing of the object was tried. */
  | { readonly is: 'no-namespace' }
  /** Whoever plans may not apply it: nothing of it was tried. */
  | { readonly is: 'forbidden'; readonly message: string }

/** A cluster as a plan reads it. Nothing is written. */
export interface ClusterView {
  readonly name: string
  readonly namespace: string
  /** As whom objects are applied. */
  readonly fieldManager: string
  labels(namespace: string): Promise<Labels>
  live(definition: KindDefinition, ref: { readonly name: string; readonly namespace?: string }): Promise<LiveObject | 'absent' | Forbidden>
  tryApply(definition: KindDefinition, ref: { readonly name: string; readonly namespace?: string }, object: ManifestObject): Promise<Tried>
  readonly signers: readonly StakingSigner[] | Forbidden
  readonly records: readonly (StakingTransaction & KubeObject)[] | Forbidden
  readonly places: readonly SignerNonce[] | Forbidden
  /** The EthereumStakes of a namespace: what exits and withdrawals are for. */
  stakesIn(namespace: string): Promise<readonly EthereumStake[] | Forbidden>
  /** The SolanaStakes of a namespace: whose authorities are handed over. */
  solanaStakesIn(namespace: string): Promise<readonly SolanaStake[] | Forbidden>
  /** Of the operator's Lease; undefined where there is none. */
  readonly leaseAnnotations: Readonly<Record<string, string>> | undefined | Forbidden
}

const namespaces: ResourceDefinition = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false }

/** @throws InspectError where the cluster can't be reached, or has no such kinds */
export async function viewCluster(
  cluster: Cluster,
  {
    fieldManager,
    lease,
    namespace = cluster.namespace,
  }: {
    readonly fieldManager: string
    readonly lease: { readonly namespace: string; readonly name: string }
    readonly namespace?: string | undefined
  },
  signal: AbortSignal,
): Promise<ClusterView> {
  const caller = readOnly(cluster.api)
  const all = <T extends KubeObject>(definition: KindDefinition, only?: string): Promise<readonly T[] | Forbidden> =>
    cluster.list<T>(definitionOf(definition), only === undefined ? {} : { namespace: only }, signal)
  const signers = await all<StakingSigner & KubeObject>(stakingSigner)
  const records = await all<StakingTransaction & KubeObject>(stakingTransaction)
  const places = await all<SignerNonce & KubeObject>(signerNonce)
  const found = await cluster.get<Lease>(leases, lease, signal)
  const known = new Map<string, Promise<Labels>>()
  const stakes = new Map<string, Promise<readonly EthereumStake[] | Forbidden>>()
  const readLabels = async (name: string): Promise<Labels> => {
    const one = await cluster.get<KubeObject>(namespaces, { name }, signal)
    return one === 'forbidden' ? 'forbidden' : one === 'absent' ? undefined : (one.metadata.labels ?? {})
  }
  return {
    name: cluster.server,
    namespace,
    fieldManager,
    signers,
    records,
    places,
    stakesIn(name) {
      const answer = stakes.get(name) ?? all<EthereumStake & KubeObject>(ethereumStake, name)
      stakes.set(name, answer)
      return answer
    },
    solanaStakesIn: (name) => all<SolanaStake & KubeObject>(solanaStake, name),
    leaseAnnotations: found === 'forbidden' ? 'forbidden' : found === 'absent' ? undefined : (found.metadata.annotations ?? {}),
    labels(name) {
      const answer = known.get(name) ?? readLabels(name)
      known.set(name, answer)
      return answer
    },
    live: (definition, ref) => cluster.get<LiveObject>(definitionOf(definition), ref, signal),
    tryApply: (definition, ref, object) => tryApply(caller, { definition, ref, object, fieldManager, server: cluster.server }, signal),
  }
}

/** Server-side apply that the API server only tries: with its defaults, CEL rules, admission policies and webhooks. */
async function tryApply(
  caller: Pick<KubeCaller, 'call'>,
  {
    definition,
    ref,
    object,
    fieldManager,
    server,
  }: {
    readonly definition: KindDefinition
    readonly ref: { readonly name: string; readonly namespace?: string }
    readonly object: ManifestObject
    readonly fieldManager: string
    readonly server: string
  },
  signal: AbortSignal,
): Promise<Tried> {
  const { plural } = definition
  const inNamespace = ref.namespace === undefined ? '' : `/namespaces/${encodeURIComponent(ref.namespace)}`
  const asked = new URLSearchParams({ dryRun: 'All', force: 'true', fieldManager, fieldValidation: 'Strict' })
  try {
    const answer = await caller.call<LiveObject>(
      {
        verb: 'patch',
        resource: plural,
        method: 'PATCH',
        path: `/apis/${GROUP}/${VERSION}${inNamespace}/${plural}/${encodeURIComponent(ref.name)}?${asked}`,
        body: JSON.stringify(toApply(object, ref)),
        contentType: 'application/apply-patch+yaml',
      },
      signal,
    )
    return { is: 'accepted', object: answer }
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof KubeError))
      throw new InspectError(`the API server ${server}: ${error instanceof Error ? error.message : String(error)}`)
    const message = error.message.replace(`patch ${plural}: `, '')
    if (error.status === 404 && /namespaces? .*not found/.test(message)) return { is: 'no-namespace' }
    // A value of the wrong type: server-side apply answers 500 to it.
    if (/failed to create typed patch object/.test(message)) return { is: 'refused', message }
    if (error.status === 403 && isByRights(message)) return { is: 'forbidden', message }
    if (error.status === 403 && isOfAnother(message)) return { is: 'of-another', message }
    if (error.status >= 400 && error.status < 500 && error.status !== 401 && error.status !== 404 && error.status !== 429)
      return { is: 'refused', message }
    throw new InspectError(`the API server ${server}: ${error.message}`)
  }
}

/** RBAC's own words; a webhook or a policy that refuses answers 403 too, with its own. */
const isByRights = (message: string): boolean => /is forbidden: User ".*" cannot [a-z]+ resource /s.test(message)

/**
 * The annotation of who asks does not name whoever plans. It is another matter where it must be left out, whoever applies it: since it was when this was created.
 */
const isOfAnother = (message: string): boolean =>
  message.includes(`ValidatingAdmissionPolicy '${requesterPolicy.name}'`) && message.includes('It must be exactly: ')

/** What the API server writes by itself is not applied, and status is not whoever applies's. */
function toApply(object: ManifestObject, ref: { readonly namespace?: string }): object {
  const { status: _status, metadata, ...rest } = object
  const {
    managedFields: _managed,
    creationTimestamp: _at,
    generation: _generation,
    ...kept
  } = (metadata ?? {}) as Readonly<Record<string, unknown>>
  return {
    ...rest,
    apiVersion: rest.apiVersion || API_VERSION,
    metadata: { ...kept, ...(ref.namespace === undefined ? {} : { namespace: ref.namespace }) },
  }
}

import type { Clock } from '../../lib/clock.ts'
import { readOrigin } from '../../operator/engine/origin.ts'
import type { ValidatorRequestSpec } from '../../operator/kinds/validator-request/steps.ts'
import { readNetworksFile } from '../../operator/networks/networks-file.ts'
import { isSuspended } from '../../operator/suspension.ts'
import { requestersOf } from '../../operator/transactions/approval-rules.ts'
import type { RecordObject } from '../../operator/transactions/store.ts'
import { type EthereumStake, type EthereumStakeSpec, ethereumStake } from '../../resources/ethereum-stake.ts'
import { GROUP, type KindDefinition, type ObjectMeta, REQUESTED_BY_ANNOTATION, SUSPEND_ANNOTATION } from '../../resources/meta.ts'
import { type SolanaStake, type SolanaStakeSpec, solanaStake } from '../../resources/solana-stake.ts'
import { type SolanaStakeAuthorizationSpec, solanaStakeAuthorization } from '../../resources/solana-stake-authorization.ts'
import { type StakingSigner, stakingSigner } from '../../resources/staking-signer.ts'
import type { Cluster } from '../cluster.ts'
import { readStdin } from '../stdin.ts'
import { changesOf } from './changes.ts'
import { type ClusterView, type Labels, type LiveObject, viewCluster } from './cluster-view.ts'
import { type Draft, emptyDraft, refuse } from './draft.ts'
import { definitionFor, isOfGroup, plannable, refuseNothing, skippedFor } from './known-kinds.ts'
import { type Manifest, type ManifestObject, readAllManifests } from './manifests.ts'
import { planEthereumStake } from './plan-ethereum-stake.ts'
import { planSigner } from './plan-signer.ts'
import { planSolanaAuthorization } from './plan-solana-authorization.ts'
import { planSolanaStake } from './plan-solana-stake.ts'
import { planValidatorRequest } from './plan-validator-request.ts'
import type { Plan, PlannedResource } from './planned.ts'
import { mayBeOfAnother } from './requesters.ts'
import { createRooms } from './rooms.ts'
import { judge, placeProblems } from './rules.ts'
import type { PlanContext } from './subject.ts'
import { summaryOf } from './summary.ts'
import { type Known, readableNetworks, type World } from './world.ts'

export interface PlanOptions {
  readonly paths: readonly string[]
  readonly recursive: boolean
  /** Of manifests that name none; undefined: the context's, or `default`. */
  readonly namespace: string | undefined
  readonly networksFile: string | undefined
  /** Undefined: nobody is asked, and the manifests are judged by themselves. */
  readonly server:
    | { readonly cluster: Cluster; readonly fieldManager: string; readonly lease: { readonly namespace: string; readonly name: string } }
    | undefined
  readonly clock: Clock
  readonly stdin?: () => Buffer | Promise<Buffer>
}

/** What applying manifests would do. Nothing is written, signed or sent anywhere. @throws InspectError, NetworksFileError */
export async function makePlan(options: PlanOptions, signal: AbortSignal): Promise<Plan> {
  const { paths, recursive, server, clock } = options
  const manifests = await readAllManifests(paths, { recursive, stdin: options.stdin ?? (() => readStdin(signal)) })
  refuseNothing(manifests, paths)
  const file = options.networksFile === undefined ? undefined : await readNetworksFile(options.networksFile)
  const view = server && (await viewCluster(server.cluster, { ...server, namespace: options.namespace }, signal))
  const namespace = options.namespace ?? view?.namespace ?? 'default'
  const entries = await entriesOf(manifests, namespace, view)
  const world = await worldOf(entries, view, { clock, networks: file && readableNetworks(file, clock) })
  const context: PlanContext = { world, rooms: createRooms(world), exits: new Map(), signal }
  const lease = view?.leaseAnnotations
  const operatorSuspended = lease === undefined || lease === 'forbidden' ? null : isSuspended(lease)
  const resources: PlannedResource[] = []
  // One after another: what comes first has its room first.
  for (const entry of entries) resources.push(await planned(entry, view, context, operatorSuspended === true))
  return { server: view?.name ?? null, operatorSuspended, resources, summary: summaryOf(resources) }
}

/** An object of the manifests, as the API server or its rules have taken it. */
interface Entry {
  readonly manifest: Manifest
  readonly definition: KindDefinition | undefined
  readonly namespace: string | undefined
  readonly name: string
  readonly draft: Draft
  /** With its defaults; undefined where it was refused. */
  readonly object: ManifestObject | undefined
  readonly live: LiveObject | undefined
  /** Whether it is known that it is there, or is not. */
  readonly isLiveKnown: boolean
  /** As the API server would have it, with what its admission policies write. */
  readonly isTried?: boolean
}

const metadataOf = ({ metadata }: ManifestObject): Readonly<Record<string, unknown>> =>
  typeof metadata === 'object' && metadata !== null ? (metadata as Readonly<Record<string, unknown>>) : {}
const textIn = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

async function entriesOf(manifests: readonly Manifest[], namespace: string, view: ClusterView | undefined): Promise<readonly Entry[]> {
  const seen = new Map<string, string>()
  const inManifests = labelsIn(manifests)
  const entries: Entry[] = []
  for (const manifest of manifests) {
    const { object, source } = manifest
    const metadata = metadataOf(object)
    const definition = definitionFor(object)
    const at =
      definition?.scope === 'Cluster' ? undefined : (textIn(metadata.namespace) ?? (definition === undefined ? undefined : namespace))
    const name = textIn(metadata.name) ?? (textIn(metadata.generateName) === undefined ? '' : `${String(metadata.generateName)}…`)
    const draft = emptyDraft()
    const entry = { manifest, definition, namespace: at, name, draft }
    if (definition === undefined) {
      if (skippedFor(object) === undefined)
        refuse(draft, {
          by: 'schema',
          message: `there is no kind ${object.kind} in ${GROUP}: its kinds are ${plannable.map(({ kind }) => kind).join(', ')}`,
        })
      entries.push({ ...entry, object, live: undefined, isLiveKnown: false })
      continue
    }
    const place = `${object.kind}/${at ?? ''}/${name}`
    const before = seen.get(place)
    if (before !== undefined && name !== '')
      refuse(draft, {
        by: 'schema',
        message: `it is in these manifests twice, here and in ${before}: which of them holds is left to chance`,
      })
    seen.set(place, source)
    entries.push({ ...entry, ...(await taken({ definition, object, at, name, draft, inManifests }, view)) })
  }
  return entries
}

/** What the API server makes of it, or where that can't be asked, its rules. */
async function taken(
  given: {
    readonly definition: KindDefinition
    readonly object: ManifestObject
    readonly at: string | undefined
    readonly name: string
    readonly draft: Draft
    readonly inManifests: ReadonlyMap<string, unknown>
  },
  view: ClusterView | undefined,
): Promise<Pick<Entry, 'object' | 'live' | 'isLiveKnown' | 'isTried'>> {
  const { definition, object, at, name, draft, inManifests } = given
  const byRules = (): ManifestObject | undefined => {
    const judged = judge(definition, object)
    for (const { field, message } of judged.problems) refuse(draft, { by: 'schema', message: `${field}: ${message}` })
    for (const rule of judged.untried) draft.unknown.push(`a rule that only the API server tries: ${rule}`)
    return judged.problems.length === 0 ? judged.object : undefined
  }
  // What has no name that a path can hold is not asked for.
  const place = placeProblems(definition, object)
  if (view === undefined || place.length > 0 || !isOfGroup(object)) {
    if (view === undefined)
      draft.unknown.push('whether it is in the cluster already, and what its admission policies say: no cluster was asked (--server)')
    return { object: byRules(), live: undefined, isLiveKnown: false }
  }
  const ref = { name, ...(at === undefined ? {} : { namespace: at }) }
  const found = await view.live(definition, ref)
  const live = found === 'absent' || found === 'forbidden' ? undefined : found
  if (found === 'forbidden') draft.unknown.push('whether it is in the cluster already: you may not read it')
  const tried = await view.tryApply(definition, ref, object)
  const known = { live, isLiveKnown: found !== 'forbidden' }
  switch (tried.is) {
    case 'accepted':
      return { object: tried.object as unknown as ManifestObject, ...known, isTried: true }
    case 'refused':
      refuse(draft, { by: 'API server', message: tried.message })
      return { object: undefined, ...known }
    case 'of-another': {
      const judged = byRules()
      if (judged !== undefined && !mayBeOfAnother({ object: judged, ...known }, view.fieldManager)) {
        refuse(draft, { by: 'API server', message: tried.message })
        return { object: undefined, ...known }
      }
      draft.unknown.push(
        `what the API server says to it: it was tried as you, and annotation ${REQUESTED_BY_ANNOTATION} has to name whoever applies it (${tried.message})`,
      )
      return { object: judged, ...known }
    }
    case 'no-namespace':
      if (at !== undefined && !inManifests.has(at)) break
      draft.unknown.push(`what the API server's admission policies say: namespace ${at} does not exist yet`)
      return { object: byRules(), ...known }
    case 'forbidden':
      if (at !== undefined && !inManifests.has(at) && (await view.labels(at)) === undefined) break
      draft.unknown.push(`what the API server says to it: you may not apply it (${tried.message})`)
      return { object: byRules(), ...known }
  }
  refuse(draft, { by: 'API server', message: `namespaces "${at}" not found: create it, or add it to these manifests` })
  return { object: undefined, ...known }
}

/** The namespaces of the manifests, with their labels. */
const labelsIn = (manifests: readonly Manifest[]): ReadonlyMap<string, Readonly<Record<string, string>>> =>
  new Map(
    manifests.flatMap(({ object }) =>
      object.apiVersion === 'v1' && object.kind === 'Namespace'
        ? [[textIn(metadataOf(object).name) ?? '', (metadataOf(object).labels ?? {}) as Readonly<Record<string, string>>]]
        : [],
    ),
  )

async function worldOf(entries: readonly Entry[], view: ClusterView | undefined, given: Pick<World, 'clock' | 'networks'>): Promise<World> {
  const signers = new Map<string, StakingSigner>()
  if (view !== undefined && view.signers !== 'forbidden') for (const signer of view.signers) signers.set(signer.metadata.name, signer)
  for (const { definition, object, name } of entries) {
    if (definition !== stakingSigner || object === undefined) continue
    // One that is new is the youngest: an older one of the same address stands.
    const metadata = {
      uid: `manifest/${name}`,
      creationTimestamp: '9999-12-31T23:59:59Z',
      resourceVersion: '',
      ...metadataOf(object),
      name,
    }
    signers.set(name, { ...object, metadata } as unknown as StakingSigner)
  }
  const inManifests = labelsIn(entries.map(({ manifest }) => manifest))
  const namespaces = [...new Set(entries.flatMap(({ definition, namespace }) => (definition === undefined ? [] : (namespace ?? []))))]
  const labels = new Map<string, Labels>()
  const stakes = new Map<string, readonly EthereumStake[] | 'forbidden'>()
  const solanaStakes = new Map<string, readonly SolanaStake[] | 'forbidden'>()
  for (const namespace of namespaces) {
    if (view === undefined) continue
    labels.set(namespace, await view.labels(namespace))
    stakes.set(namespace, await view.stakesIn(namespace))
    if (entries.some((one) => one.definition === solanaStakeAuthorization && one.namespace === namespace))
      solanaStakes.set(namespace, await view.solanaStakesIn(namespace))
  }
  return {
    ...given,
    signers,
    knowsAllSigners: view !== undefined && view.signers !== 'forbidden',
    labels: (namespace) => {
      const live = labels.get(namespace)
      const own = inManifests.get(namespace)
      const known = live === 'forbidden' ? undefined : live
      if (own === undefined) return known
      // Those of a namespace that is there stay, unless a manifest changes them. The API server adds its name.
      return { ...known, ...own, 'kubernetes.io/metadata.name': namespace }
    },
    records: view === undefined || view.records === 'forbidden' ? undefined : (view.records as readonly RecordObject[]),
    places: view === undefined || view.places === 'forbidden' ? undefined : view.places,
    stakes: (namespace) => knownOf(entries, ethereumStake, namespace, stakes.get(namespace)),
    solanaStakes: (namespace) => knownOf(entries, solanaStake, namespace, solanaStakes.get(namespace)),
  }
}

/** Those of the manifests over those of the cluster. */
function knownOf<T extends { readonly metadata: { readonly name: string } }>(
  entries: readonly Entry[],
  of: KindDefinition,
  namespace: string,
  live: readonly T[] | 'forbidden' | undefined,
): Known<T> {
  const found = live === undefined || live === 'forbidden' ? [] : live
  const own = entries.flatMap(({ definition, object, namespace: at, live: before }) =>
    definition === of && at === namespace && object !== undefined ? [{ status: before?.status, ...object } as unknown as T] : [],
  )
  const names = new Set(own.map(({ metadata }) => metadata.name))
  return { known: [...own, ...found.filter(({ metadata }) => !names.has(metadata.name))], all: live !== undefined && live !== 'forbidden' }
}

async function planned(entry: Entry, view: ClusterView | undefined, context: PlanContext, isStopped: boolean): Promise<PlannedResource> {
  const { manifest, definition, namespace, name, draft, object, live, isLiveKnown } = entry
  const { kind } = manifest.object
  const place = { source: manifest.source, kind, ...(namespace === undefined ? {} : { namespace }), name }
  if (definition === undefined) {
    if (draft.refusals.length > 0) return { ...place, action: 'refused', changes: [], ...draft }
    draft.does.push(skippedFor(manifest.object) ?? '')
    return { ...place, action: 'skipped', changes: [], ...draft }
  }
  const changes = live === undefined || object === undefined ? [] : changesOf(live, object)
  if (object !== undefined && draft.refusals.length === 0) await fill(entry, object, context)
  if (isStopped && draft.moves !== undefined && draft.refusals.length === 0)
    draft.waits.push({
      by: 'operator',
      reason: 'OperatorSuspended',
      message: `The operator is suspended: its Lease has the annotation ${SUSPEND_ANNOTATION}. Nothing is signed or sent until that is removed.`,
    })
  // Applying what was neither read nor tried: whether it is new stays open.
  const unseen = view !== undefined && !isLiveKnown
  const action =
    draft.refusals.length > 0 ? 'refused' : unseen ? 'unknown' : live === undefined ? 'create' : changes.length > 0 ? 'change' : 'unchanged'
  return { ...place, action, changes, ...draft }
}

/** What comes of it, by its kind. */
async function fill(
  { definition, namespace = '', name, draft, live, isTried = false }: Entry,
  object: ManifestObject,
  context: PlanContext,
): Promise<void> {
  const kind = object.kind
  if (definition === stakingSigner) {
    const signer = context.world.signers.get(name)
    if (signer !== undefined) planSigner(draft, signer, context)
    return
  }
  const metadata: ObjectMeta = { uid: '', resourceVersion: '', ...metadataOf(object), name, namespace }
  const origin = readOrigin(kind, metadata)
  if (origin.is === 'foreign') {
    refuse(draft, {
      by: 'operator',
      reason: 'CopiedResource',
      message: `${origin.says} To start afresh, leave it out.`,
    })
    return
  }
  if (origin.is === 'own' && live === undefined)
    draft.does.push(
      `resumes what the resource of UID ${origin.origin.uid} has made (annotation staking.dev/origin): what that has paid is not paid again`,
    )
  const ofName = (context.world.records ?? []).filter(
    ({ spec: { owner } }) => owner.kind === kind && owner.namespace === namespace && owner.name === name,
  )
  const there = live === undefined ? undefined : readOrigin(kind, live.metadata)
  const originUid = [origin, there].find((one) => one?.is === 'own')?.origin.uid ?? live?.metadata.uid
  const own = ofName.filter(({ spec }) => spec.owner.originUid === originUid)
  const former = ofName.filter((record) => !own.includes(record))
  if (live?.metadata.deletionTimestamp !== undefined)
    draft.waits.push({
      by: 'operator',
      reason: 'Deleting',
      message: 'It is being deleted: what is applied to it goes with it, and nothing is signed for it.',
    })
  if (context.world.records === undefined && live !== undefined && showsTransaction(live)) {
    draft.does.push('its status shows a transaction that was made for it: nothing is paid again')
    draft.unknown.push('whether that is so: you may not read the log (StakingTransactions)')
    return
  }
  const isUnrecorded = isTried && requestersOf(metadata) === undefined
  const subject = { kind, namespace, name, live, own, former, isUnrecorded }
  const spec = object.spec
  if (definition === ethereumStake) await planEthereumStake(draft, { ...subject, spec: spec as EthereumStakeSpec }, context)
  else if (definition === solanaStake) await planSolanaStake(draft, { ...subject, spec: spec as SolanaStakeSpec }, context)
  else if (definition === solanaStakeAuthorization)
    planSolanaAuthorization(draft, { ...subject, spec: spec as SolanaStakeAuthorizationSpec }, context)
  else if (kind === 'ValidatorExit' || kind === 'ValidatorWithdrawal')
    await planValidatorRequest(draft, { ...subject, kind, spec: spec as ValidatorRequestSpec }, context)
}

const showsTransaction = ({ status }: LiveObject): boolean => {
  const { transaction, transactions } = (status ?? {}) as {
    readonly transaction?: unknown
    readonly transactions?: { readonly stake?: unknown }
  }
  return transaction !== undefined || transactions?.stake !== undefined
}

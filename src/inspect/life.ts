import { events, type KubeEvent } from '../operator/kube/events.ts'
import type { KubeObject } from '../operator/kube/objects.ts'
import { definitionOf } from '../operator/saga-collection.ts'
import { tellsGeneration } from '../resources/crd.ts'
import { kinds } from '../resources/kinds.ts'
import { GROUP, type KindDefinition, VERSION } from '../resources/meta.ts'
import { type StakingTransaction, stakingTransaction } from '../resources/staking-transaction.ts'
import type { Cluster } from './cluster.ts'
import { InspectError } from './error.ts'
import { type Lived, type Moment, timeline } from './timeline.ts'

/** What a stake's life is made of. */
export interface Life {
  readonly resource: Lived & KubeObject
  readonly moments: readonly Moment[]
  /** Parts that whoever looks may not read. */
  readonly hidden: readonly string[]
}

/** Kinds that are told of: those in namespaces that say how they go. */
const tellable: readonly KindDefinition[] = kinds.filter((kind) => kind.scope === 'Namespaced' && tellsGeneration(kind))

/** `NAME`, or `KIND/NAME` with any name of the kind that kubectl takes. @throws InspectError */
export function parseTarget(text: string): { readonly kinds: readonly KindDefinition[]; readonly name: string } {
  const [first = '', second, ...more] = text.split('/')
  if (more.length > 0 || first === '' || second === '') throw new InspectError(`"${text}" is not NAME or KIND/NAME`)
  if (second === undefined) return { kinds: tellable, name: first }
  // As `kubectl get -o name` prints it, and as kubectl takes it with its version: ethereumstake.staking.dev, ethereumstakes.v1alpha1.staking.dev.
  const [wanted = '', ...group] = first.toLowerCase().split('.')
  const isOurs = group.length === 0 || [GROUP, `${VERSION}.${GROUP}`].includes(group.join('.'))
  const kind = !isOurs
    ? undefined
    : tellable.find(({ kind: one, plural, singular, shortNames }) => [one.toLowerCase(), plural, singular, ...shortNames].includes(wanted))
  if (kind === undefined)
    throw new InspectError(`"${first}" is no kind of this: write one of ${tellable.map(({ singular }) => singular).join(', ')}`)
  return { kinds: [kind], name: second }
}

/** @throws InspectError when there is none, or several of the name */
export async function readLife(cluster: Cluster, target: string, namespace: string, signal: AbortSignal): Promise<Life> {
  return lifeOf(cluster, await findResource<Lived>(cluster, target, namespace, signal), namespace, signal)
}

/** The resource of a target. @throws InspectError when there is none, or several of the name */
export async function findResource<T extends { readonly kind: string }>(
  cluster: Cluster,
  target: string,
  namespace: string,
  signal: AbortSignal,
): Promise<T & KubeObject> {
  const { kinds: wanted, name } = parseTarget(target)
  const found: (T & KubeObject)[] = []
  for (const kind of wanted) {
    const one = await cluster.get<T & KubeObject>(definitionOf(kind), { namespace, name }, signal)
    if (one === 'forbidden') {
      if (wanted.length === 1) throw new InspectError(`you may not read ${kind.plural} in namespace ${namespace}: ask for the role view`)
    } else if (one !== 'absent') found.push(one)
  }
  const [resource, other] = found
  if (resource === undefined)
    throw new InspectError(
      `there is no ${wanted.map(({ singular }) => singular).join(', ')} ${name} in namespace ${namespace} that you may read: name another namespace with -n`,
    )
  if (other !== undefined)
    throw new InspectError(
      `${name} is ${found.map(({ kind }) => kind.toLowerCase()).join(' and ')}: write ${found.map(({ kind }) => `${kind.toLowerCase()}/${name}`).join(' or ')}`,
    )
  return resource
}

async function lifeOf(cluster: Cluster, resource: Lived & KubeObject, namespace: string, signal: AbortSignal): Promise<Life> {
  const { kind, metadata } = resource
  const records = await cluster.list<StakingTransaction>(
    definitionOf(stakingTransaction),
    { fieldSelector: `spec.owner.namespace=${namespace},spec.owner.name=${metadata.name}` },
    signal,
  )
  const told = await cluster.list<KubeEvent>(
    events,
    { namespace, fieldSelector: `regarding.name=${metadata.name},regarding.kind=${kind}` },
    signal,
  )
  const own = records === 'forbidden' ? [] : records.filter(({ spec }) => spec.owner.kind === kind)
  const heard = told === 'forbidden' ? [] : told.filter(({ regarding }) => regarding?.uid === undefined || regarding.uid === metadata.uid)
  return {
    resource,
    moments: timeline(resource, own, heard),
    hidden: [...(records === 'forbidden' ? ['transactions (StakingTransactions)'] : []), ...(told === 'forbidden' ? ['events'] : [])],
  }
}

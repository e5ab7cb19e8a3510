import { type Condition, findCondition } from '../resources/conditions.ts'
import { GROUP, type KindDefinition, VERSION } from '../resources/meta.ts'
import { KEPT } from './engine/kept.ts'
import type { CacheOptions, Collection } from './kube/collections.ts'
import type { KubeObject } from './kube/objects.ts'
import type { ResourceDefinition } from './kube/resource-client.ts'

export const definitionOf = ({ plural, kind, scope }: KindDefinition): ResourceDefinition => ({
  group: GROUP,
  version: VERSION,
  plural,
  kind,
  namespaced: scope === 'Namespaced',
})

/** Makes the client and the cache of a kind of the group. */
export type Collections = <R extends KubeObject>(definition: KindDefinition, options?: CacheOptions<R>) => Collection<R>

/** A resource that a saga reconciles, as far as its cache and queue look into it. */
export type SagaResource = KubeObject & {
  readonly status?: { readonly phase?: string | undefined; readonly conditions?: readonly Condition[] | undefined }
}

export interface SagaOptions<R extends SagaResource> extends Pick<CacheOptions<R>, 'indexers'> {
  readonly definition: KindDefinition
  /** Names of the signers that it is signed with. */
  readonly signersOf: (resource: R) => readonly string[]
  /** Nothing of it is to be signed any more: looked at after all others, and not woken by what concerns signatures. */
  readonly isSettled: (resource: R) => boolean
  /** Network that it is for; '' while that is not known. */
  readonly networkOf: (resource: R) => string
  /** What it is about, in gwei or lamports; 0 for a kind without an amount. */
  readonly amountOf: (resource: R) => number
  readonly isSlashed?: (resource: R) => boolean
  /** Addresses whose keys alone can get at what it has staked, by what they are; undefined where nothing is staked, or no more. */
  readonly controlledBy?: Readonly<Record<string, (resource: R) => string | undefined>>
}

/** What unsettled resources are found by. */
export type SagaIndex = 'signer' | 'namespace'

/** All resources of a kind that a saga reconciles. */
export interface SagaCollection<R extends SagaResource> extends Collection<R> {
  readonly kind: string
  readonly isSettled: (resource: R) => boolean
  /** Those that may have to sign yet. */
  unsettled(by: SagaIndex, value: string): readonly R[]
  /** Whether one that names this signer may have to sign yet. */
  hasUnsettled(signer: string): boolean
  /** Phases, and reasons where stalled ('' where not), with how many resources have them. */
  states(): Iterable<{ readonly phase: string; readonly stalled: string; readonly count: number }>
  /** What resources of a network and a phase are about together, in gwei or lamports. */
  amounts(): Iterable<{ readonly network: string; readonly phase: string; readonly amount: number }>
  /** By network: validators that were slashed. */
  slashed(): Iterable<{ readonly network: string; readonly count: number }>
  /** By network: resources whose stake only the key of an address can get at. */
  controlledBy(address: string): ReadonlyMap<string, number>
}

export function createSagaCollection<R extends SagaResource>(collection: Collections, options: SagaOptions<R>): SagaCollection<R> {
  const { definition, isSettled, signersOf, networkOf, amountOf, isSlashed, controlledBy = {} } = options
  const controls = Object.entries(controlledBy).map(
    ([name, addressOf]) =>
      [
        `controlled:${name}`,
        (one: R): string => {
          const address = addressOf(one)
          return address === undefined ? NOBODY : `${addressKey(address)} ${networkOf(one)}`
        },
      ] as const,
  )
  const { kind } = definition
  const { client, cache, onChange } = collection<R>(definition, {
    kept: KEPT,
    ...(options.indexers === undefined ? {} : { indexers: options.indexers }),
    tallies: {
      state: stateOf,
      amount: (one) => `${networkOf(one)}/${one.status?.phase ?? 'Pending'}`,
      ...(isSlashed === undefined ? {} : { slashed: (one) => (isSlashed(one) ? networkOf(one) : NOT_SLASHED) }),
      ...Object.fromEntries(controls),
    },
    weights: { amount: (one) => wholeOrNothing(amountOf(one)) },
    isSettled,
  })
  return {
    kind,
    client,
    cache,
    onChange,
    isSettled,
    unsettled(by, value) {
      const isMeant = (one: R): boolean => (by === 'namespace' ? one.metadata.namespace === value : signersOf(one).includes(value))
      return [...cache.unsettled()].filter(isMeant)
    },
    hasUnsettled(signer) {
      for (const one of cache.unsettled()) if (signersOf(one).includes(signer)) return true
      return false
    },
    *states() {
      for (const [state, count] of cache.tally('state')) {
        const [phase = '', stalled = ''] = state.split('/')
        yield { phase, stalled, count }
      }
    },
    *amounts() {
      for (const [key, amount] of cache.tally('amount')) {
        const [network = '', phase = ''] = key.split('/')
        if (network !== '') yield { network, phase, amount }
      }
    },
    *slashed() {
      if (isSlashed === undefined) return
      for (const [network, count] of cache.tally('slashed')) if (network !== NOT_SLASHED) yield { network, count }
    },
    controlledBy(address) {
      const prefix = `${addressKey(address)} `
      const found = new Map<string, number>()
      for (const [name] of controls)
        for (const [key, count] of cache.tally(name)) {
          // One that is controlled in two ways is one.
          const network = key.startsWith(prefix) ? key.slice(prefix.length) : undefined
          if (network !== undefined) found.set(network, Math.max(found.get(network) ?? 0, count))
        }
      return found
    },
  }
}

/** No network has this name. */
const NOT_SLASHED = '/'
/** No address is this. */
const NOBODY = '/'
/** Hex has two cases, base58 has one spelling. */
const addressKey = (address: string): string => (address.startsWith('0x') ? address.toLowerCase() : address)
/** An amount that can't be read must not spoil the sum of the others. */
const wholeOrNothing = (amount: number): number => (Number.isSafeInteger(amount) && amount > 0 ? amount : 0)

/** Neither a phase nor a reason has a slash. */
function stateOf({ status }: SagaResource): string {
  const stalled = findCondition(status?.conditions, 'Stalled')
  return `${status?.phase ?? 'Pending'}/${stalled?.status === 'True' ? stalled.reason : ''}`
}

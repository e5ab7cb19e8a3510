import { customResourceDefinition, type JsonObject } from '../resources/crd.ts'
import { GROUP, type KindDefinition, VERSION } from '../resources/meta.ts'
import { signerNonce } from '../resources/signer-nonce.ts'
import { stakingApproval } from '../resources/staking-approval.ts'
import { stakingTransaction } from '../resources/staking-transaction.ts'
import { type Differences, differences } from './crd-differences.ts'
import { stall } from './engine/verdict.ts'
import type { KubeCollections } from './kube/collections.ts'
import { keptMetadata } from './kube/kept-metadata.ts'
import type { KubeLog } from './kube/log.ts'
import type { KubeObject } from './kube/objects.ts'
import type { ResourceDefinition } from './kube/resource-client.ts'

export const customResourceDefinitions: ResourceDefinition = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  namespaced: false,
}

export interface CustomResourceDefinition extends KubeObject {
  readonly spec: {
    readonly group: string
    readonly names: { readonly plural: string }
    readonly versions: readonly {
      readonly name: string
      readonly served: boolean
      readonly schema?: { readonly openAPIV3Schema?: JsonObject }
    }[]
  }
}

/** What only the operator writes, and what an approval counts by: their rules are the last that stands before a mistake. */
const ours: ReadonlySet<string> = new Set([stakingTransaction, signerNonce, stakingApproval].map(({ kind }) => kind))
const NOT_SEEN: Differences = { lacking: ['.'], lax: [] }

export interface CrdGuard {
  /** Takes note of an installed definition; undefined when it is gone. */
  seen(name: string, definition: CustomResourceDefinition | undefined): void
  /** @throws Halt (stall, OutdatedCRD) unless every kind is installed, and keeps and takes all that the operator writes and reads. */
  assertCurrent(): void
  /** Why `assertCurrent` throws, in one line; undefined where it doesn't. */
  outdated(): string | undefined
  /** What the definitions let through that those of this version refuse, in one line. It stops nothing. */
  lax(): string | undefined
}

/** No policy fails open: where the cluster’s CRDs do not fit the operator, it signs nothing. A definition that was never seen counts as outdated. */
export function createCrdGuard(kinds: readonly KindDefinition[]): CrdGuard {
  const built = new Map(
    kinds.map((kind) => [
      `${kind.plural}.${GROUP}`,
      {
        schema: schemaOf(customResourceDefinition(kind) as unknown as CustomResourceDefinition) ?? {},
        written: ours.has(kind.kind) ? ('by the operator' as const) : ('by others' as const),
      },
    ]),
  )
  const found = new Map<string, Differences>([...built.keys()].map((name) => [name, NOT_SEEN]))
  const listed = (which: keyof Differences): string | undefined => {
    const lines = [...found].filter(([, each]) => each[which].length > 0).map(([name, each]) => `${name} (${inShort(each[which])})`)
    return lines.length === 0 ? undefined : lines.join('; ')
  }
  const outdated = () => {
    const which = listed('lacking')
    return which === undefined
      ? undefined
      : `The installed CustomResourceDefinitions are not those of this operator: ${which}. Nothing is signed. Apply the CRDs of its version (kubectl apply -f crds/).`
  }
  return {
    seen(name, definition) {
      const expected = built.get(name)
      if (expected === undefined) return
      const schema = definition && schemaOf(definition)
      found.set(name, schema === undefined ? NOT_SEEN : differences(expected.schema, schema, expected.written))
    },
    assertCurrent() {
      const message = outdated()
      if (message !== undefined) throw stall('OutdatedCRD', message)
    },
    outdated,
    lax() {
      const which = listed('lax')
      return which === undefined
        ? undefined
        : `The installed CustomResourceDefinitions are not those of this operator: ${which}. What they let through, the operator looks at itself. Apply the CRDs of its version (kubectl apply -f crds/).`
    },
  }
}

const SHOWN = 3
const inShort = (lacking: readonly string[]): string =>
  lacking[0] === '.'
    ? 'not seen'
    : `differs in ${lacking.slice(0, SHOWN).join(', ')}${lacking.length > SHOWN ? ` and ${lacking.length - SHOWN} more` : ''}`

/** Says once how the definitions fall short of this operator's, and once that they do no more: what nobody asks a signature for would be told by nobody. */
export function tellOfDefinitions(guard: Pick<CrdGuard, 'outdated' | 'lax'>, log: Pick<KubeLog, 'info' | 'warn'>): () => void {
  let told: string | undefined
  return () => {
    const message = guard.outdated() ?? guard.lax()
    if (message === told) return
    told = message
    if (message === undefined) log.info({}, 'the installed definitions are those of this operator')
    else log.warn({}, message)
  }
}

/**
 * Follows the cluster's definitions for the guard. `onChange` is told when one of the group has changed.
 * @returns what tells how they fall short: of each change once all are known, and whenever it is called.
 */
export function followDefinitions(
  { follow, unsynced }: Pick<KubeCollections, 'follow' | 'unsynced'>,
  guard: CrdGuard,
  { log, onChange }: { readonly log: KubeLog; readonly onChange: () => void },
): () => void {
  const tell = tellOfDefinitions(guard, log)
  const definitions = follow<CustomResourceDefinition>(customResourceDefinitions, {
    // Others' definitions can be large and are of no use here.
    transform: ({ apiVersion, kind, metadata, spec: { group, names, versions } }) => ({
      apiVersion,
      kind,
      metadata: keptMetadata(metadata, {}),
      spec: { group, names: { plural: names.plural }, versions: group === GROUP ? versions : [] },
    }),
  })
  definitions.onChange((name, change) => {
    guard.seen(name, change.type === 'deleted' ? undefined : change.new)
    if ((change.type === 'deleted' ? change.old : change.new).spec.group !== GROUP) return
    if (unsynced().length === 0) tell()
    onChange()
  })
  return tell
}

const schemaOf = (definition: CustomResourceDefinition): JsonObject | undefined =>
  definition.spec.versions.find((version) => version.name === VERSION && version.served)?.schema?.openAPIV3Schema

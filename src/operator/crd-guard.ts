import { customResourceDefinition, type JsonObject } from '../resources/crd.ts'
import { GROUP, type KindDefinition, VERSION } from '../resources/meta.ts'
import { stall } from './engine/verdict.ts'
import type { Follow } from './kube/collections.ts'
import { keptMetadata } from './kube/kept-metadata.ts'
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

/**
 * The fields that the operator was built for and that an installed definition lacks: an older CRD prunes them in silence, a policy field or a
 * written-ahead nonce among them. @returns paths such as `.spec.policy.sharedKey`.
 */
export function missingFields(expected: JsonObject, installed: JsonObject | undefined, path = ''): string[] {
  if (installed === undefined) return [path || '.']
  if (installed['x-kubernetes-preserve-unknown-fields'] === true) return []
  const children = (schema: JsonObject) => (schema.properties ?? {}) as { [name: string]: JsonObject }
  const missing = Object.entries(children(expected)).flatMap(([name, child]) =>
    missingFields(child, children(installed)[name], `${path}.${name}`),
  )
  const items = expected.items as JsonObject | undefined
  return items === undefined ? missing : [...missing, ...missingFields(items, installed.items as JsonObject | undefined, `${path}[]`)]
}

export interface CrdGuard {
  /** Takes note of an installed definition; undefined when it is gone. */
  seen(name: string, definition: CustomResourceDefinition | undefined): void
  /** @throws Halt (stall, OutdatedCRD) unless every kind is installed with all the fields that the operator relies on. */
  assertCurrent(): void
}

/** No policy fails open: where the cluster's CRDs are older than the operator, it signs nothing. A definition that was never seen counts as outdated. */
export function createCrdGuard(kinds: readonly KindDefinition[]): CrdGuard {
  const names = new Map(
    kinds.map((kind) => [`${kind.plural}.${GROUP}`, schemaOf(customResourceDefinition(kind) as unknown as CustomResourceDefinition) ?? {}]),
  )
  const outdated = new Map<string, string[]>([...names.keys()].map((name) => [name, ['.']]))
  return {
    seen(name, definition) {
      const expected = names.get(name)
      if (expected === undefined) return
      outdated.set(name, missingFields(expected, definition && schemaOf(definition)))
    },
    assertCurrent() {
      const wrong = [...outdated].filter(([, missing]) => missing.length > 0)
      if (wrong.length === 0) return
      const which = wrong
        .map(
          ([name, missing]) =>
            `${name} (${missing[0] === '.' ? 'not seen' : `lacks ${missing.slice(0, 3).join(', ')}${missing.length > 3 ? ` and ${missing.length - 3} more` : ''}`})`,
        )
        .join('; ')
      throw stall(
        'OutdatedCRD',
        `The installed CustomResourceDefinitions are older than this operator: ${which}. Nothing is signed. Apply the CRDs of this version (kubectl apply -f crds/).`,
      )
    },
  }
}

/** Follows the cluster's definitions for the guard. `onChange` is told when one of the group has changed. */
export function followDefinitions(follow: Follow, guard: CrdGuard, onChange: () => void): void {
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
    if ((change.type === 'deleted' ? change.old : change.new).spec.group === GROUP) onChange()
  })
}

const schemaOf = (definition: CustomResourceDefinition): JsonObject | undefined =>
  definition.spec.versions.find((version) => version.name === VERSION && version.served)?.schema?.openAPIV3Schema

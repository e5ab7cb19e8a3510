import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { customResourceDefinition, type JsonObject } from '../../src/resources/crd.ts'
import { kinds } from '../../src/resources/kinds.ts'
import { infoLabels, kubeStateMetricsConfig, kubeStateMetricsRole, stateMetrics } from './files.ts'

interface Config {
  readonly kind: string
  readonly spec: {
    readonly resources: readonly {
      readonly groupVersionKind: { readonly group: string; readonly version: string; readonly kind: string }
      readonly resourcePlural: string
      readonly metrics: readonly { readonly name: string; readonly each: { readonly type: string } }[]
    }[]
  }
}
const config = parse(kubeStateMetricsConfig()) as Config

/** Types of the fields that a path leads to in a kind's definition; a step into a list goes on in its entries. */
function typeAt(kindName: string, path: readonly string[]): string | undefined {
  const definition = kinds.find(({ kind }) => kind === kindName)
  if (definition === undefined) return undefined
  if (path[0] === 'metadata')
    return ['name', 'namespace', 'creationTimestamp', 'deletionTimestamp', 'generation'].includes(path[1] ?? '') ? 'metadata' : undefined
  const { spec } = customResourceDefinition(definition) as unknown as { spec: { versions: { schema: { openAPIV3Schema: JsonObject } }[] } }
  let node = spec.versions[0]?.schema.openAPIV3Schema
  for (const step of path) {
    const into = (node?.items ?? node) as JsonObject | undefined
    node = (into?.properties as { [name: string]: JsonObject } | undefined)?.[step]
  }
  return node?.type as string | undefined
}

describe.each(stateMetrics.flatMap((metric) => metric.kinds.map((kind) => [`staking_resource_${metric.name}`, kind, metric] as const)))(
  '%s of %s',
  (name, kind, { path, value, labels }) => {
    test('has a name by the conventions', () => expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/))

    test('is read from fields that the definition has', () => {
      expect(typeAt(kind, path), path.join('.')).toBeDefined()
      for (const one of [...(value === undefined ? [] : [value]), ...Object.values(labels ?? {})]) {
        expect(typeAt(kind, path), `${path.join('.')} is a list`).toBe('array')
        expect(typeAt(kind, [...path, ...one]), [...path, ...one].join('.')).toBeDefined()
      }
    })
  },
)

test.each(Object.entries(infoLabels))('the labels of a %s are fields of its definition', (kind, labels) => {
  for (const path of Object.values(labels)) expect(typeAt(kind, path), path.join('.')).toBe('string')
})

test('every kind that people apply has its info, its conditions and its age, and no metric twice', () => {
  expect(config.kind).toBe('CustomResourceStateMetrics')
  // What has no conditions: the log, and approvals.
  const log = ['StakingTransaction', 'SignerNonce', 'StakingApproval']
  expect(config.spec.resources.map(({ groupVersionKind }) => groupVersionKind.kind)).toEqual(
    kinds.map(({ kind }) => kind).filter((kind) => !log.includes(kind)),
  )
  for (const { metrics, groupVersionKind } of config.spec.resources) {
    const names = metrics.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['info', 'condition', 'condition_last_transition_time', 'created']))
    expect(new Set(names).size, groupVersionKind.kind).toBe(names.length)
  }
})

test('kube-state-metrics may read what it is told to, and nothing else', () => {
  const { rules } = parse(kubeStateMetricsRole()) as { rules: { resources: string[]; verbs: string[] }[] }
  expect(rules.flatMap(({ verbs }) => verbs)).toEqual(['list', 'watch', 'list', 'watch'])
  expect(rules[1]?.resources.toSorted()).toEqual(config.spec.resources.map(({ resourcePlural }) => resourcePlural).toSorted())
})

import { Environment } from '@marcbachmann/cel-js'
import { customResourceDefinition, type JsonObject } from '../../resources/crd.ts'
import { API_VERSION, type KindDefinition } from '../../resources/meta.ts'
import type { ManifestObject } from './manifests.ts'

/** What is wrong with a field, as the API server would say it. */
export interface Problem {
  /** Such as `spec.limits[0].window`. */
  readonly field: string
  readonly message: string
}

/** An object as the rules of its definition find it. */
export interface Judged {
  /** With the defaults filled in. */
  readonly object: ManifestObject
  readonly problems: readonly Problem[]
  /** Rules that only the API server can try. */
  readonly untried: readonly string[]
}

interface Validation {
  readonly rule: string
  readonly message: string
  readonly fieldPath?: string
}

type Fields = Readonly<Record<string, unknown>>

/**
 * Judges an object that is made anew as the API server would: by the structural schema of this version's CustomResourceDefinition, its defaults and its CEL
 * rules. What compares with an earlier object is not tried, nor are admission policies: the cluster has those.
 */
export function judge(definition: KindDefinition, object: ManifestObject): Judged {
  const schema = schemaOf(definition)
  const problems: Problem[] = [...metadataProblems(definition, object)]
  if (object.apiVersion !== API_VERSION)
    problems.push({ field: 'apiVersion', message: `is ${object.apiVersion}: this version has ${definition.kind} in ${API_VERSION}` })
  const { status: _status, ...given } = object
  const value = check({ schema, value: given, path: '', problems }) as ManifestObject
  const untried: string[] = []
  // As the API server does: rules are tried on what has the right form.
  if (problems.length === 0) applyRules({ schema, value, path: '', problems, untried })
  return { object: value, problems, untried }
}

const schemas = new Map<string, JsonObject>()
function schemaOf(definition: KindDefinition): JsonObject {
  const known = schemas.get(definition.kind)
  if (known !== undefined) return known
  const { spec } = customResourceDefinition(definition) as unknown as {
    readonly spec: { readonly versions: readonly [{ readonly schema: { readonly openAPIV3Schema: JsonObject } }] }
  }
  const whole = spec.versions[0].schema.openAPIV3Schema
  // What the API server keeps of metadata is checked by itself; status is not written by who applies.
  const { status: _status, metadata: _metadata, ...properties } = whole.properties as JsonObject
  const schema: JsonObject = {
    ...whole,
    properties: { ...properties, metadata: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
  }
  schemas.set(definition.kind, schema)
  return schema
}

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const LABEL_VALUE = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/

/** What is wrong with where an object is to be: its name and its namespace. */
export const placeProblems = (definition: KindDefinition, object: ManifestObject): readonly Problem[] =>
  metadataProblems(definition, object).filter(({ field }) => field === 'metadata.name' || field === 'metadata.namespace')

function metadataProblems({ scope }: KindDefinition, { metadata }: ManifestObject): readonly Problem[] {
  const { name, namespace, labels, annotations } = (typeof metadata === 'object' && metadata !== null ? metadata : {}) as Fields
  const wrong = (holds: boolean, field: string, message: string): readonly Problem[] =>
    holds ? [] : [{ field: `metadata.${field}`, message }]
  return [
    ...(name === undefined || name === ''
      ? wrong(false, 'name', 'is required: what is applied has a name')
      : wrong(typeof name === 'string' && name.length <= 253 && SUBDOMAIN.test(name), 'name', 'must be a lowercase RFC 1123 subdomain')),
    ...wrong(
      scope === 'Cluster' || namespace === undefined || (typeof namespace === 'string' && namespace.length <= 63 && LABEL.test(namespace)),
      'namespace',
      'must be a lowercase RFC 1123 label',
    ),
    ...wrong(
      labels === undefined || (isText(labels) && Object.values(labels).every((text) => text.length <= 63 && LABEL_VALUE.test(text))),
      'labels',
      'must be texts of at most 63 letters, digits, "-", "_" and "."',
    ),
    ...wrong(annotations === undefined || isText(annotations), 'annotations', 'must be texts'),
  ]
}
const isText = (value: unknown): value is Readonly<Record<string, string>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every((one) => typeof one === 'string')

interface Node {
  readonly schema: JsonObject
  readonly value: unknown
  readonly path: string
  readonly problems: Problem[]
}

const typeOf = (value: unknown): string =>
  Array.isArray(value) ? 'array' : value === null ? 'null' : Number.isInteger(value) ? 'integer' : typeof value

/** Checks a value against its schema. @returns it with defaults filled in */
function check({ schema, value, path, problems }: Node): unknown {
  const wrong = (message: string): void => void problems.push({ field: path, message })
  const type = schema.type as string
  const is = typeOf(value)
  if (is !== type && !(type === 'number' && is === 'integer')) {
    const hint = type === 'string' && (is === 'integer' || is === 'number' || is === 'boolean') ? `: write "${String(value)}"` : ''
    wrong(`must be of type ${type}, and is ${is === 'array' ? 'a list' : is}${hint}`)
    return value
  }
  if (Array.isArray(schema.enum) && !schema.enum.includes(value as string))
    wrong(`${JSON.stringify(value)} is not supported: supported values are ${schema.enum.map((one) => JSON.stringify(one)).join(', ')}`)
  if (typeof value === 'string') checkText(schema, value, wrong)
  if (typeof value === 'number') {
    if (typeof schema.minimum === 'number' && value < schema.minimum) wrong(`must be at least ${schema.minimum}`)
    if (typeof schema.maximum === 'number' && value > schema.maximum) wrong(`must be at most ${schema.maximum}`)
  }
  if (Array.isArray(value)) return checkList({ schema, value, path, problems })
  if (is === 'object') return checkObject({ schema, value: value as Fields, path, problems })
  return value
}

function checkText(schema: JsonObject, value: string, wrong: (message: string) => void): void {
  const length = [...value].length
  if (typeof schema.maxLength === 'number' && length > schema.maxLength)
    wrong(`must have at most ${schema.maxLength} characters, and has ${length}`)
  if (typeof schema.minLength === 'number' && length < schema.minLength) wrong(`must have at least ${schema.minLength} characters`)
  if (typeof schema.pattern === 'string' && !new RegExp(schema.pattern, 'u').test(value))
    wrong(`${JSON.stringify(value)} must match ${schema.pattern}`)
}

function checkList({ schema, value, path, problems }: Node & { readonly value: readonly unknown[] }): readonly unknown[] {
  const wrong = (message: string): void => void problems.push({ field: path, message })
  if (typeof schema.maxItems === 'number' && value.length > schema.maxItems)
    wrong(`must have at most ${schema.maxItems} items, and has ${value.length}`)
  if (typeof schema.minItems === 'number' && value.length < schema.minItems) wrong(`must have at least ${schema.minItems} items`)
  const items = value.map((item, index) => check({ schema: schema.items as JsonObject, value: item, path: `${path}[${index}]`, problems }))
  const keys = schema['x-kubernetes-list-map-keys'] as readonly string[] | undefined
  const list = schema['x-kubernetes-list-type']
  if (list !== 'set' && list !== 'map') return items
  const seen = new Set<string>()
  for (const [index, item] of items.entries()) {
    const key = JSON.stringify(list === 'map' ? (keys ?? []).map((one) => (item as Fields | null)?.[one]) : item)
    if (seen.has(key)) problems.push({ field: `${path}[${index}]`, message: `is there twice: ${key}` })
    seen.add(key)
  }
  return items
}

function checkObject({ schema, value, path, problems }: Node & { readonly value: Fields }): Fields {
  if (schema['x-kubernetes-preserve-unknown-fields'] === true) return value
  const properties = (schema.properties ?? {}) as { readonly [name: string]: JsonObject }
  const others = typeof schema.additionalProperties === 'object' ? (schema.additionalProperties as JsonObject) : undefined
  const inside = (name: string): string => (path === '' ? name : `${path}.${name}`)
  const out: Record<string, unknown> = {}
  // What is null and has a default gets that; any other null is a value of the wrong type.
  const hasDefault = (name: string): boolean => Object.hasOwn(properties, name) && properties[name]?.default !== undefined
  const given = Object.entries(value).filter(([name, one]) => one !== undefined && !(one === null && hasDefault(name)))
  for (const [name, one] of given) {
    const known = Object.hasOwn(properties, name) ? properties[name] : others
    if (known === undefined) problems.push({ field: inside(name), message: 'is an unknown field' })
    else out[name] = check({ schema: known, value: one, path: inside(name), problems })
  }
  for (const [name, child] of Object.entries(properties))
    if (!Object.hasOwn(out, name) && child.default !== undefined) out[name] = structuredClone(child.default)
  for (const name of (schema.required ?? []) as readonly string[])
    if (!Object.hasOwn(out, name)) problems.push({ field: inside(name), message: 'is required' })
  if (typeof schema.maxProperties === 'number' && given.length > schema.maxProperties)
    problems.push({ field: path, message: `must have at most ${schema.maxProperties} entries` })
  return out
}

/** The API server matches by RE2, which knows classes such as \p{Cc}; a regular expression of JavaScript does with the flag u. */
const environment = new Environment({ unlistedVariablesAreDyn: true, enableOptionalTypes: true }).registerFunction(
  'string.matchesUnicode(string): bool',
  (text: string, pattern: string) => new RegExp(pattern, 'u').test(text),
)
const rules = new Map<string, ReturnType<typeof environment.parse>>()

/** Tries the CEL rules of a value and of all that is in it. */
function applyRules({ schema, value, path, problems, untried }: Node & { readonly untried: string[] }): void {
  for (const { rule, message, fieldPath } of (schema['x-kubernetes-validations'] ?? []) as unknown as readonly Validation[]) {
    const field = `${path}${fieldPath ?? ''}`.replace(/^\./, '')
    // Of one that is made anew nothing has changed.
    if (/\boldSelf\b/.test(rule)) continue
    const held = holds(rule, schema, value)
    if (held === undefined) untried.push(`${field}: ${message}`)
    else if (!held) problems.push({ field, message })
  }
  if (Array.isArray(value))
    for (const [index, item] of value.entries())
      applyRules({ schema: schema.items as JsonObject, value: item, path: `${path}[${index}]`, problems, untried })
  else if (typeof value === 'object' && value !== null) {
    const properties = (schema.properties ?? {}) as { readonly [name: string]: JsonObject }
    for (const [name, one] of Object.entries(value)) {
      const child = Object.hasOwn(properties, name) ? properties[name] : (schema.additionalProperties as JsonObject | undefined)
      if (child !== undefined && typeof child === 'object')
        applyRules({ schema: child, value: one, path: path === '' ? name : `${path}.${name}`, problems, untried })
    }
  }
}

/** Undefined where it can't be told here. */
function holds(rule: string, schema: JsonObject, value: unknown): boolean | undefined {
  try {
    const evaluate = rules.get(rule) ?? environment.parse(rule.replaceAll('.matches(', '.matchesUnicode('))
    rules.set(rule, evaluate)
    const answer: unknown = evaluate({ self: celOf(schema, value) })
    return typeof answer === 'boolean' ? answer : undefined
  } catch {
    return undefined
  }
}

/** A value as CEL has it: whole numbers are integers. */
function celOf(schema: JsonObject, value: unknown): unknown {
  if (typeof value === 'number') return schema.type === 'integer' ? BigInt(value) : value
  if (Array.isArray(value)) return value.map((item) => celOf(schema.items as JsonObject, item))
  if (typeof value !== 'object' || value === null) return value
  const properties = (schema.properties ?? {}) as { readonly [name: string]: JsonObject }
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => {
      const child = Object.hasOwn(properties, name) ? properties[name] : (schema.additionalProperties as JsonObject | undefined)
      return [name, child === undefined || typeof child !== 'object' ? one : celOf(child, one)]
    }),
  )
}

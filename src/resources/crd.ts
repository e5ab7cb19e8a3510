import { z } from 'zod'
import { GROUP, type KindDefinition, type RootRule, VERSION } from './meta.ts'
import { UNSEEN_GENERATION } from './schema.ts'

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

/** Keywords of OpenAPI v3 that a structural schema knows, besides x-kubernetes-*. Anything else would be dropped in silence by the API server. */
const known = new Set([
  'type',
  'format',
  'description',
  'properties',
  'required',
  'items',
  'additionalProperties',
  'enum',
  'default',
  'nullable',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'pattern',
])

/** A zod schema as a structural OpenAPI v3 schema. @throws where the schema has what a CRD cannot express. */
export function structuralSchema(schema: z.ZodType): JsonObject {
  const raw = z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input' }) as JsonObject
  return clean(raw, '')
}

/** Longer than what anybody writes by mistake for a short text. */
const SPOKEN_LENGTH = 128

function clean(node: JsonObject, path: string): JsonObject {
  const out: JsonObject = {}
  for (const [key, value] of Object.entries(node)) {
    if (key === '$schema' || key === 'propertyNames' || key === 'patternMessage' || key === 'immutable') continue
    if (!known.has(key) && !key.startsWith('x-kubernetes-'))
      throw new Error(`${path || 'schema'}: "${key}" cannot stand in a structural schema`)
    if (key === 'properties') {
      out[key] = Object.fromEntries(
        Object.entries(value as JsonObject).map(([name, child]) => [name, clean(child as JsonObject, `${path}.${name}`)]),
      )
    } else if (key === 'items' || (key === 'additionalProperties' && typeof value === 'object')) {
      out[key] = clean(value as JsonObject, `${path}[]`)
    } else if (key === 'additionalProperties') {
      // A structural schema prunes unknown fields by itself.
    } else {
      out[key] = value
    }
  }
  if (typeof node.patternMessage === 'string' && typeof out.pattern === 'string') {
    const matches = `self.matches(r'${out.pattern}')`
    // Where the schema's own bound is widened below, the rule has it, unless its pattern does.
    const isBounded = typeof out.maxLength !== 'number' || out.maxLength >= SPOKEN_LENGTH || !/[*+]|,\}/.test(out.pattern)
    const rule = { rule: isBounded ? matches : `size(self) <= ${out.maxLength} && ${matches}`, message: node.patternMessage }
    delete out.pattern
    // The rule says what is wanted. A bound of its own would say "Too long: may not be more than 14 bytes" to who wrote an amount in wei.
    delete out.minLength
    if (typeof out.maxLength === 'number') out.maxLength = Math.max(out.maxLength, SPOKEN_LENGTH)
    out['x-kubernetes-validations'] = [rule, ...((out['x-kubernetes-validations'] ?? []) as Json[])]
  }
  if (out.type === 'string' && out.maxLength === undefined && out.enum === undefined)
    throw new Error(`${path}: a string needs maxLength, or the cost of CEL rules is refused`)
  if (out.type === 'array' && out.maxItems === undefined) throw new Error(`${path}: a list needs maxItems`)
  if (out.type === 'integer' && out.format === undefined) out.format = 'int64'
  return out
}

/** Fields that can't change, as rules at the root: only there can the message go by status. */
function immutableFields({ spec, instead }: KindDefinition): RootRule[] {
  const rules: RootRule[] = []
  const walk = (node: JsonObject, path: string, mayLack: boolean): void => {
    const required = new Set((node.required ?? []) as string[])
    for (const [name, child] of Object.entries((node.properties ?? {}) as { [name: string]: JsonObject })) {
      const here = { path: `${path}.${name}`, mayLack: mayLack || !required.has(name) }
      if (typeof child.immutable === 'string') {
        // CEL's optional values have no bound that the API server would reckon with.
        if (mayLack) throw new Error(`${here.path}: what may lack the field can't be fixed by a rule of the field`)
        rules.push(
          unchanged(child.immutable, here.path, { isRequired: required.has(name), hasDefault: child.default !== undefined }, instead),
        )
      }
      walk(child, here.path, here.mayLack)
    }
  }
  walk(z.toJSONSchema(spec, { target: 'openapi-3.0', io: 'input' }) as JsonObject, '.spec', false)
  return rules
}

function unchanged(
  name: string,
  path: string,
  { isRequired, hasDefault }: { readonly isRequired: boolean; readonly hasDefault: boolean },
  instead: KindDefinition['instead'] = { states: [], otherwise: 'delete this resource and create another' },
): RootRule {
  const said = `${name} cannot be changed${isRequired || hasDefault ? '' : ', added or removed'}: `
  const advice = instead.states.reduceRight(
    (otherwise, state) => `${state.when} ? ${JSON.stringify(state.advice)} : ${otherwise}`,
    JSON.stringify(instead.otherwise),
  )
  return {
    rule: isRequired
      ? `self${path} == oldSelf${path}`
      : `has(self${path}) == has(oldSelf${path}) && (!has(self${path}) || self${path} == oldSelf${path})`,
    message: `${said}${instead.otherwise}`,
    messageExpression: `${JSON.stringify(said)} + (${advice})`,
    fieldPath: path,
  }
}

/** Whether its status says how it goes, and of which generation it speaks: tools wait for such a kind. What only the operator writes is none. */
export const tellsGeneration = ({ status }: Pick<KindDefinition, 'status'>): boolean =>
  status instanceof z.ZodObject && 'observedGeneration' in status.shape && 'conditions' in status.shape

/** The CustomResourceDefinition of a kind. */
export function customResourceDefinition(definition: KindDefinition): JsonObject {
  const columns = definition.printerColumns.map(({ name, type, jsonPath, description, priority }) => ({
    name,
    type,
    jsonPath,
    description,
    ...(priority === undefined ? {} : { priority }),
  }))
  const rules = [...(definition.rules ?? []), ...immutableFields(definition)]
  const initial = definition.initialStatus ?? (tellsGeneration(definition) ? { observedGeneration: UNSEEN_GENERATION } : undefined)
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${definition.plural}.${GROUP}` },
    spec: {
      group: GROUP,
      names: {
        kind: definition.kind,
        listKind: `${definition.kind}List`,
        plural: definition.plural,
        singular: definition.singular,
        shortNames: [...definition.shortNames],
        categories: ['staking'],
      },
      scope: definition.scope,
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: columns,
          selectableFields: definition.selectableFields.map((jsonPath) => ({ jsonPath })),
          schema: {
            openAPIV3Schema: {
              type: 'object',
              description: definition.description,
              required: ['spec'],
              ...(rules.length === 0 ? {} : { 'x-kubernetes-validations': rules.map((rule) => ({ ...rule })) }),
              properties: {
                apiVersion: { type: 'string', description: 'Version of the schema of this object.' },
                kind: { type: 'string', description: 'Kind of this object.' },
                metadata: { type: 'object' },
                spec: {
                  ...structuralSchema(definition.spec),
                  description: 'What is wanted. What can be changed later says so in its own description.',
                },
                status: {
                  ...structuralSchema(definition.status),
                  ...(initial === undefined ? {} : { default: initial }),
                  description: 'What the operator has seen and done.',
                },
              },
            },
          },
        },
      ],
    },
  }
}

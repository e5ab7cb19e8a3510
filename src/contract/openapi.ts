import { z } from 'zod'
import { type ProblemCode, problem, problemMediaType, problems, problemType } from './problems.ts'
import { problemsOf, type Route, routes } from './routes.ts'

export type JsonSchema = { readonly [key: string]: unknown }

export interface OpenApiDocument {
  readonly openapi: '3.1.0'
  readonly info: {
    readonly title: string
    readonly version: string
    readonly description: string
    readonly license: { readonly name: string; readonly identifier: string }
  }
  readonly servers: readonly { readonly url: string }[]
  readonly security: readonly object[]
  readonly paths: { readonly [path: string]: { readonly [method: string]: JsonSchema } }
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>
    readonly headers: JsonSchema
    readonly securitySchemes: JsonSchema
  }
}

/**
 * The OpenAPI 3.1 document of the service, made from the route table.
 * @param given.version the program's version; `given.serverUrl` the base URL, default `/`: the address that the document was read from.
 */
export function openApiDocument(given: { readonly version: string; readonly serverUrl?: string }): OpenApiDocument {
  const schemas = new Map<string, JsonSchema>()
  const paths: Record<string, Record<string, JsonSchema>> = {}
  for (const [operationId, route] of Object.entries<Route>(routes)) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(operationId, route, schemas) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Staking service',
      version: given.version,
      description:
        'Creates staking resources for Ethereum and Solana. The client signs and broadcasts the transactions and reports their hashes or signatures.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: given.serverUrl ?? '/' }],
    security: [{ apiKey: [] }],
    paths,
    components: {
      schemas: Object.fromEntries([...schemas].sort(([a], [b]) => (a < b ? -1 : 1))),
      headers,
      securitySchemes: { apiKey: { type: 'http', scheme: 'bearer' } },
    },
  }
}

const headers = {
  'X-Request-Id': { description: 'Names this request in the logs of the service.', schema: { type: 'string' } },
  'Retry-After': { description: 'Wait so long before the next call: seconds, or an HTTP date.', schema: { type: 'string' } },
  ETag: { description: 'Of the content: send it as If-None-Match, and an answer that has not changed is 304.', schema: { type: 'string' } },
  'Preference-Applied': {
    description: '`wait=30` when the answer waited for a change, for up to so many seconds; the header is left out when it did not.',
    schema: { type: 'string' },
  },
  Location: { description: 'Where what was created can be read.', schema: { type: 'string' } },
  'Idempotency-Replayed': {
    description: '`true` when this is the stored answer to an earlier request with this Idempotency-Key.',
    schema: { type: 'string', enum: ['true'] },
  },
}

/** What is created at a path below which it can be read. */
const isReadable = ({ path, method }: Route, status: string): boolean =>
  method === 'POST' &&
  status === '201' &&
  Object.values<Route>(routes).some(
    (one) => one.method === 'GET' && one.path.startsWith(`${path}/`) && !one.path.slice(path.length + 1).includes('/'),
  )

const headerRef = (name: keyof typeof headers) => ({ [name]: { $ref: `#/components/headers/${name}` } })

function operation(operationId: string, route: Route, schemas: Map<string, JsonSchema>): JsonSchema {
  const parameters = [
    ...parametersIn('path', route.params, schemas),
    ...parametersIn('query', route.query, schemas),
    ...idempotencyKey(route),
  ]
  return {
    operationId,
    summary: route.summary,
    ...(route.addition === true ? { description: 'An addition to the staking service interface.', 'x-addition': true } : {}),
    tags: [route.path.split('/')[2] ?? 'service'],
    ...(route.scope === 'none' ? { security: [] } : { 'x-scope': route.scope }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: !route.body.safeParse(undefined).success,
            content: { 'application/json': { schema: schemaOf(route.body, schemas) } },
          },
        }),
    responses: { ...successes(route, schemas), ...notModified(route), ...failures(route, schemas) },
  }
}

const successes = (route: Route, schemas: Map<string, JsonSchema>) =>
  Object.fromEntries(
    Object.entries(route.responses).map(([status, schema]) => [
      status,
      {
        description: route.retryAfterOn?.includes(Number(status)) ? 'Accepted: wait as Retry-After says' : 'Success',
        headers: {
          ...headerRef('X-Request-Id'),
          ...(route.idempotencyKey === 'none' ? {} : headerRef('Idempotency-Replayed')),
          ...(route.retryAfterOn?.includes(Number(status)) ? headerRef('Retry-After') : {}),
          ...(route.method === 'GET' ? headerRef('ETag') : {}),
          ...(route.waits === true ? headerRef('Preference-Applied') : {}),
          ...(isReadable(route, status) ? headerRef('Location') : {}),
        },
        content: { 'application/json': { schema: schemaOf(schema, schemas) } },
      },
    ]),
  )

/** Beyond the interface: whoever sends If-None-Match with an ETag is told that nothing has changed. */
const notModified = (route: Route) =>
  route.method === 'GET'
    ? {
        304: {
          description: 'Not modified',
          headers: { ...headerRef('X-Request-Id'), ...headerRef('ETag'), ...(route.waits === true ? headerRef('Preference-Applied') : {}) },
        },
      }
    : {}

function failures(route: Route, schemas: Map<string, JsonSchema>) {
  const byStatus = Map.groupBy(problemsOf(route), (code) => problems[code].status)
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      String(status),
      {
        description: codes.map((code) => `[\`${code}\`](${problemType(code)}): ${problems[code].title}`).join('; '),
        headers: { ...headerRef('X-Request-Id'), ...(codes.some(waits) ? headerRef('Retry-After') : {}) },
        content: { [problemMediaType]: { schema: schemaOf(problem, schemas) } },
      },
    ]),
  )
}

const waits = (code: ProblemCode): boolean => 'retryAfter' in problems[code]

function parametersIn(place: 'path' | 'query', schema: z.ZodType | undefined, schemas: Map<string, JsonSchema>): object[] {
  if (schema === undefined) return []
  const { properties = {}, required = [] } = schemaOf(schema, schemas) as { properties?: Record<string, JsonSchema>; required?: string[] }
  return Object.entries(properties).map(([name, property]) => ({ name, in: place, required: required.includes(name), schema: property }))
}

const idempotencyKey = ({ idempotencyKey: rule }: Route): object[] =>
  rule === 'none'
    ? []
    : [
        {
          name: 'Idempotency-Key',
          in: 'header',
          required: rule === 'required',
          description: 'Unique per logical operation; the same key with the same request retries it.',
          // Printable ASCII without surrounding space, as `idempotencyKeyPattern` has it.
          schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]([ -~]*[!-~])?$' },
        },
      ]

/** A schema as it looks on the wire; named schemas go to `schemas` and are referred to. */
function schemaOf(schema: z.ZodType, schemas: Map<string, JsonSchema>): JsonSchema {
  const { $schema: _, $defs = {}, ...own } = z.toJSONSchema(schema, { target: 'draft-2020-12', io: 'input', unrepresentable: 'any' })
  for (const [name, definition] of Object.entries($defs)) {
    const next = relocate(definition) as JsonSchema
    const known = schemas.get(name)
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(next)) throw new Error(`two different schemas are named ${name}`)
    schemas.set(name, next)
  }
  return relocate(own) as JsonSchema
}

/** Refers to the document's components instead of the schema's own `$defs`. */
function relocate(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(relocate)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === '$ref' && typeof inner === 'string' ? inner.replace('#/$defs/', '#/components/schemas/') : relocate(inner),
    ]),
  )
}

import { readFileSync } from 'node:fs'
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, test } from 'vitest'
import { openApiDocument } from './openapi.ts'
import { problems } from './problems.ts'
import { fastifyUrl, problemsOf, type Route, routes } from './routes.ts'

const document = openApiDocument({ version: '1.2.3' })
const text = JSON.stringify(document)

describe('the OpenAPI document', () => {
  test('is valid OpenAPI 3.1', async () => {
    const validator = new Validator()
    const result = await validator.validate(JSON.parse(text))
    expect(result.errors ?? []).toEqual([])
    expect(validator.version).toBe('3.1')
  })

  test('is the same each time', () => {
    expect(JSON.stringify(openApiDocument({ version: '1.2.3' }))).toBe(text)
  })

  test('has no reference that leads nowhere', () => {
    const references = [...text.matchAll(/"\$ref":"#\/components\/(\w+)\/([^"]+)"/g)]
    expect(references.length).toBeGreaterThan(50)
    for (const [, kind, name] of references) {
      const components: Record<string, Record<string, unknown>> = document.components as never
      expect(components[kind ?? '']?.[name ?? ''], `${kind}/${name}`).toBeDefined()
    }
    expect(text).not.toContain('$defs')
  })

  test('writes amounts as the interface does: amountEth a number, all else text', () => {
    const schema = document.components.schemas.CreateEthereumStake as {
      properties: Record<string, { type: string }>
      required: string[]
    }
    expect(schema.properties.amountEth?.type).toBe('number')
    expect(schema.required).toEqual(['network', 'amountEth', 'withdrawalAddress'])
    expect(document.components.schemas.CreateSolanaStake).toMatchObject({
      additionalProperties: false,
      properties: { amountLamports: { type: 'string' } },
    })
  })
})

/** The endpoint tables of the staking service interface: method, path, and whether it creates (and so requires the header). */
const endpoints: [string, string, boolean][] = [
  ['POST', '/v1/ethereum/stakes', true],
  ['PUT', '/v1/ethereum/stakes/{stakeId}/submission', false],
  ['GET', '/v1/ethereum/stakes/{stakeId}', false],
  ['POST', '/v1/ethereum/validators/{pubkey}/exit-requests', true],
  ['PUT', '/v1/ethereum/validators/{pubkey}/exit-requests/{requestId}/submission', false],
  ['GET', '/v1/ethereum/validators/{pubkey}/exit-requests/{requestId}', false],
  ['DELETE', '/v1/ethereum/validators/{pubkey}/exit-requests/{requestId}', false],
  ['POST', '/v1/ethereum/validators/{pubkey}/withdrawal-requests', true],
  ['PUT', '/v1/ethereum/validators/{pubkey}/withdrawal-requests/{requestId}/submission', false],
  ['GET', '/v1/ethereum/validators/{pubkey}/withdrawal-requests/{requestId}', false],
  ['GET', '/v1/ethereum/validators/{pubkey}/withdrawal-capacity', false],
  ['POST', '/v1/solana/stakes', true],
  ['PUT', '/v1/solana/stakes/{stakeId}/stake-transaction-challenge', false],
  ['POST', '/v1/solana/stakes/{stakeId}/stake-transactions', true],
  ['POST', '/v1/solana/stakes/{stakeId}/deactivation-transactions', true],
  ['POST', '/v1/solana/stakes/{stakeId}/withdrawal-transactions', true],
  ['POST', '/v1/solana/stakes/{stakeId}/transactions/{txId}/refresh', false],
  ['PUT', '/v1/solana/stakes/{stakeId}/transactions/{txId}/submission', false],
  ['GET', '/v1/solana/stakes/{stakeId}', false],
]

describe('the route table', () => {
  test.each(endpoints)('has %s %s', (method, path, creates) => {
    const found = Object.values<Route>(routes).filter((route) => route.method === method && route.path === path)
    expect(found).toHaveLength(1)
    expect(found[0]?.idempotencyKey === 'required').toBe(creates)
    expect(found[0]?.scope).toBe(method === 'GET' ? 'read' : 'write')
  })

  test.each(Object.entries<Route>(routes))('%s: parameters are those of its path, one response body for all statuses', (_, route) => {
    const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    const keys = route.params === undefined ? [] : Object.keys((route.params as unknown as { shape: object }).shape)
    expect(keys).toEqual(inPath)
    expect(new Set(Object.values(route.responses)).size).toBe(1)
    expect(fastifyUrl(route.path)).not.toMatch(/[{}]/)
    expect(problemsOf(route).every((code) => code in problems)).toBe(true)
  })

  test('every creation takes an external reference or belongs to a resource that does', () => {
    for (const operation of ['createEthereumStake', 'createExitRequest', 'createWithdrawalRequest', 'createSolanaStake'] as const) {
      expect(problemsOf(routes[operation])).toContain('reference-exists')
    }
  })
})

test('the contract imports nothing that does something: only zod, lossless-json, undici and src/lib', () => {
  for (const file of ['openapi.ts', 'routes.ts', 'problems.ts']) {
    const imports = [...readFileSync(new URL(file, import.meta.url), 'utf8').matchAll(/from '([^']+)'/g)].map(([, name]) => name)
    expect(imports.filter((name) => !name?.startsWith('./') && name !== 'zod')).toEqual([])
  }
})

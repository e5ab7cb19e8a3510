import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { customResourceDefinition, type JsonObject, structuralSchema } from './crd.ts'
import { ethereumStake, ethereumStakeSpec } from './ethereum-stake.ts'
import { kinds } from './kinds.ts'
import { cel, hexBytes, integerText, listMap, writtenOnce } from './schema.ts'
import { stakingSignerSpec } from './staking-signer.ts'

describe('a schema', () => {
  test('keeps what a CRD knows, and CEL rules', () => {
    const schema = structuralSchema(
      z.object({
        a: cel(z.string().max(5), { rule: 'self != ""', message: 'm' }),
        b: z
          .array(z.object({ k: z.string().max(2) }))
          .max(3)
          .meta(listMap('k')),
        c: z.int().optional(),
      }),
    )
    expect(schema).toMatchObject({
      type: 'object',
      required: ['a', 'b'],
      properties: {
        a: { type: 'string', maxLength: 5, 'x-kubernetes-validations': [{ rule: 'self != ""', message: 'm' }] },
        b: { type: 'array', maxItems: 3, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k'] },
        c: { type: 'integer', format: 'int64' },
      },
    })
  })
  test.each([
    ['a string without a bound', z.object({ a: z.string() })],
    ['a list without a bound', z.object({ a: z.array(z.string().max(1)) })],
    ['a union, which a structural schema cannot have', z.object({ a: z.union([z.string().max(1), z.number()]) })],
  ])('with %s is refused when the CRD is made', (_what, schema) => {
    expect(() => structuralSchema(schema)).toThrow()
  })
  test('rules add up', () => {
    const schema = structuralSchema(z.object({ a: cel(writtenOnce(z.string().max(1), 'a'), { rule: 'true', message: 'm' }) }))
    expect((schema as { properties: { a: JsonObject } }).properties.a['x-kubernetes-validations']).toHaveLength(2)
  })
})

describe.each(kinds)('the CRD of $kind', (kind) => {
  const crd = customResourceDefinition(kind) as never as {
    metadata: { name: string }
    spec: { names: { categories: string[] }; versions: { subresources: object; schema: { openAPIV3Schema: JsonObject } }[] }
  }
  const root = crd.spec.versions[0]?.schema.openAPIV3Schema as JsonObject
  const nodes: { path: string; node: JsonObject }[] = []
  const walk = (node: JsonObject, path: string): void => {
    nodes.push({ path, node })
    for (const [name, child] of Object.entries((node.properties ?? {}) as Record<string, JsonObject>)) walk(child, `${path}.${name}`)
    if (node.items) walk(node.items as JsonObject, `${path}[]`)
  }
  walk(root, '')

  test('has status as a subresource, the category staking, and is named after its plural', () => {
    expect(crd.metadata.name).toBe(`${kind.plural}.staking.dev`)
    expect(crd.spec.names.categories).toEqual(['staking'])
    expect(crd.spec.versions[0]?.subresources).toEqual({ status: {} })
  })
  test('has no floats, and bounds on every string and list', () => {
    for (const { path, node } of nodes.filter((found) => /^\.(spec|status)/.test(found.path))) {
      expect(node.type, path).not.toBe('number')
      if (node.type === 'string') expect(node.maxLength !== undefined || node.enum !== undefined, path).toBe(true)
      if (node.type === 'array') expect(node.maxItems, path).toBeDefined()
    }
  })
  test('describes every field, for kubectl explain', () => {
    for (const { path, node } of nodes)
      if (path !== '.metadata' && !path.endsWith('[]')) expect(node.description, path).toEqual(expect.any(String))
  })
  test('says −1 of what nobody has seen, so that no tool takes it for ready', () => {
    const hasConditions = nodes.some(({ path }) => path === '.status.conditions')
    const status = nodes.find(({ path }) => path === '.status')?.node
    const unseen = hasConditions ? { observedGeneration: -1 } : undefined
    expect(status?.default).toEqual('initialStatus' in kind ? kind.initialStatus : unseen)
    if (hasConditions) expect(nodes.find(({ path }) => path === '.status.observedGeneration')?.node).toMatchObject({ minimum: -1 })
  })
  test('has lists of conditions as maps by type, where it has conditions', () => {
    // What only the operator writes, or says all of itself, is no kind that a tool waits for.
    const conditions = nodes.find(({ path }) => path === '.status.conditions')?.node
    expect(conditions === undefined).toBe(['StakingTransaction', 'SignerNonce', 'StakingApproval'].includes(kind.kind))
    if (conditions === undefined) return
    expect(conditions).toMatchObject({
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
    })
  })
})

test('of an EthereumStake only suspend, mode, the fee cap and adopt can be changed', () => {
  const properties = (structuralSchema(ethereumStake.spec) as { properties: Record<string, JsonObject> }).properties
  const rules = JSON.stringify(customResourceDefinition(ethereumStake))
  const isFixed = (name: string) => new RegExp(`self\\.spec\\.${name} == oldSelf\\.spec\\.${name}\\b`).test(rules)
  expect(
    Object.keys(properties)
      .filter((name) => !isFixed(name))
      .toSorted(),
  ).toEqual(['adopt', 'maxFeePerGasGwei', 'mode', 'suspend'])
})

describe('a spec as the operator reads it', () => {
  const stake = { network: 'hoodi', amountEth: '32', withdrawalAddress: '0x52908400098527886E0F7030069857D2E4169EE7', signer: 'main' }
  const signer = {
    chain: 'Ethereum',
    keyName: 'k',
    address: '0x52908400098527886E0F7030069857D2E4169EE7',
    policy: { allowedNamespaces: {}, maxPerTransaction: '32' },
  }
  test('has defaults: compounding credentials, and a fee cap', () => {
    expect(ethereumStakeSpec.parse(stake).credentialsType).toBe('Compounding')
    expect(stakingSignerSpec.parse(signer).policy.maxFeePerGasGwei).toBe('100')
  })
  test.each(['', '032', '32.', '1e3', '-32', '32.0000000001', '20480', ' 32'])('refuses the amount %j', (amountEth) => {
    expect(ethereumStakeSpec.safeParse({ ...stake, amountEth }).success).toBe(false)
  })
  test.each(['0x12', `${stake.withdrawalAddress}00`, 'vitalik.eth', stake.withdrawalAddress.slice(2)])(
    'refuses the address %j',
    (withdrawalAddress) => {
      expect(ethereumStakeSpec.safeParse({ ...stake, withdrawalAddress }).success).toBe(false)
    },
  )
  test.each(['..', 'a/b', 'A', '-a', 'a'.repeat(64), ''])('refuses the key folder %j', (keyName) => {
    expect(stakingSignerSpec.safeParse({ ...signer, keyName }).success).toBe(false)
  })
})

test.each([
  [hexBytes(2), '0xabCD', true],
  [hexBytes(2), '0xabc', false],
  [hexBytes(2), 'abcd', false],
  [integerText(), '0', true],
  [integerText(), (2n ** 256n - 1n).toString(), true],
  [integerText(), '01', false],
  [integerText(3), '1000', false],
])('%# hex and integers are strict', (schema, text, right) => {
  expect(schema.safeParse(text).success).toBe(right)
})

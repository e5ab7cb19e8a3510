import { describe, expect, test } from 'vitest'
import { customResourceDefinition, type JsonObject } from '../resources/crd.ts'
import { ethereumStake } from '../resources/ethereum-stake.ts'
import { kinds } from '../resources/kinds.ts'
import { stakingSigner } from '../resources/staking-signer.ts'
import { type CustomResourceDefinition, createCrdGuard, missingFields } from './crd-guard.ts'

const installed = (kind: (typeof kinds)[number]) => structuredClone(customResourceDefinition(kind)) as unknown as CustomResourceDefinition
type Loose = { spec: { versions: { name: string; served: boolean; schema?: { openAPIV3Schema: JsonObject } }[] } }
const names = { stake: `${ethereumStake.plural}.staking.dev`, signer: `${stakingSigner.plural}.staking.dev` }

function guardWith(change: (signer: Loose) => void = () => {}) {
  const guard = createCrdGuard(kinds)
  for (const kind of kinds) guard.seen(`${kind.plural}.staking.dev`, installed(kind))
  const signer = installed(stakingSigner)
  change(signer as unknown as Loose)
  guard.seen(names.signer, signer)
  return guard
}
/** Takes a field out of a definition, as an older version of it lacks it. */
const without = (path: string) => (crd: Loose) => {
  const parts = path.split('.')
  let node = crd.spec.versions[0]?.schema?.openAPIV3Schema as JsonObject
  for (const part of parts.slice(0, -1)) node = (part === '[]' ? node.items : (node.properties as JsonObject)[part]) as JsonObject
  delete (node.properties as JsonObject)[parts.at(-1) as string]
}

test('with the definitions that it was built for, it lets signing go on', () => {
  expect(() => guardWith().assertCurrent()).not.toThrow()
})

describe('nothing is signed', () => {
  test.each([
    'spec.policy.sharedKey',
    'spec.policy.allowedWithdrawalAddresses',
    'spec.policy.allowedNamespaces.selector',
    'spec.acknowledgedNonce',
    'status.ledgers',
    'status.ledgers.[].inFlight',
    'status.ledgers.[].inFlight.[].displacedPubkeys',
    'status.ledgers.[].displacedRequests',
    'status.ledgers.[].inFlight.[].earlierHashes',
  ])('with a definition that lacks %s', (path) => {
    expect(() => guardWith(without(path)).assertCurrent()).toThrow(`lacks .${path.replaceAll('.[]', '[]')}`)
  })
  test('before a definition was seen', () => {
    const guard = createCrdGuard(kinds)
    expect(() => guard.assertCurrent()).toThrow('not seen')
    guard.seen(names.stake, installed(ethereumStake))
    expect(() => guard.assertCurrent()).toThrow(names.signer)
  })
  test('after a definition was deleted, until it is there again', () => {
    const guard = guardWith()
    guard.seen(names.signer, undefined)
    expect(() => guard.assertCurrent()).toThrow('OutdatedCRD')
    guard.seen(names.signer, installed(stakingSigner))
    expect(() => guard.assertCurrent()).not.toThrow()
  })
  test('with a version that is not served, or has no schema', () => {
    const notServed = (crd: Loose) => Object.assign(crd.spec.versions[0] as object, { served: false })
    const noSchema = (crd: Loose) => Object.assign(crd.spec.versions[0] as object, { schema: undefined })
    for (const change of [notServed, noSchema]) expect(() => guardWith(change).assertCurrent()).toThrow('OutdatedCRD')
  })
})

test('more fields than were expected, and definitions of others, do not matter', () => {
  const guard = guardWith((crd) => {
    const [version] = crd.spec.versions as unknown as {
      schema: { openAPIV3Schema: { properties: { spec: { properties: JsonObject } } } }
    }[]
    const properties = version?.schema.openAPIV3Schema.properties
    if (properties) properties.spec.properties.newer = { type: 'string' }
  })
  guard.seen('others.example.org', undefined)
  expect(() => guard.assertCurrent()).not.toThrow()
})

test('a place that keeps unknown fields lacks none', () => {
  expect(missingFields({ properties: { a: { type: 'string' } } }, { 'x-kubernetes-preserve-unknown-fields': true })).toEqual([])
  expect(missingFields({ properties: { a: { type: 'string' } } }, {})).toEqual(['.a'])
})

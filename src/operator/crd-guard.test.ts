import { describe, expect, test } from 'vitest'
import { customResourceDefinition, type JsonObject } from '../resources/crd.ts'
import { ethereumStake } from '../resources/ethereum-stake.ts'
import { kinds } from '../resources/kinds.ts'
import { signerNonce } from '../resources/signer-nonce.ts'
import { stakingApproval } from '../resources/staking-approval.ts'
import { stakingSigner } from '../resources/staking-signer.ts'
import { stakingTransaction } from '../resources/staking-transaction.ts'
import { differences } from './crd-differences.ts'
import { type CustomResourceDefinition, createCrdGuard, tellOfDefinitions } from './crd-guard.ts'

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
    expect(() => guardWith(without(path)).assertCurrent()).toThrow(`differs in .${path.replaceAll('.[]', '[]')}`)
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
  const [expected, whole] = [{ properties: { a: { type: 'string' } } }, { 'x-kubernetes-preserve-unknown-fields': true }]
  expect(differences(expected, whole, 'by the operator').lacking).toEqual([])
  expect(differences(expected, {}, 'by the operator').lacking).toEqual(['.a'])
})

type Schema = { properties: Record<string, Schema>; items: Schema; [keyword: string]: unknown }
/** A guard that has seen a kind's definition with one place of its schema changed. */
function guardWithPlace(kind: (typeof kinds)[number], path: string, change: (place: Schema) => void) {
  const guard = guardWith()
  const definition = installed(kind)
  let place = (definition as unknown as Loose).spec.versions[0]?.schema?.openAPIV3Schema as unknown as Schema
  for (const part of path.split('.').filter(Boolean)) place = (part === '[]' ? place.items : place.properties[part]) as Schema
  change(place)
  guard.seen(`${kind.plural}.staking.dev`, definition)
  return guard
}

describe('what the operator writes would be refused for ever: nothing is signed, and it says why', () => {
  const rule = (rule: string, message: string) => ({ rule, message })
  test.each<[string, (typeof kinds)[number], string, (place: Schema) => void, string]>([
    [
      'a state',
      stakingTransaction,
      'status.state',
      (at) => Object.assign(at, { enum: (at.enum as string[]).filter((one) => one !== 'Unclaimed') }),
      '.status.state (Unclaimed)',
    ],
    [
      'states of a purpose',
      stakingTransaction,
      'spec.purpose',
      (at) => Object.assign(at, { enum: ['Deposit', 'Exit'] }),
      '.spec.purpose (Withdrawal)',
    ],
    [
      'values where any text goes now',
      ethereumStake,
      'status.phase',
      (at) => Object.assign(at, { enum: ['Ready'] }),
      '.status.phase (any text)',
    ],
    [
      'a shorter text',
      ethereumStake,
      'status.conditions.[].message',
      (at) => Object.assign(at, { maxLength: 10 }),
      '.status.conditions[].message (maxLength 32768)',
    ],
    [
      'a text that is not bounded now',
      stakingSigner,
      'status.address',
      (at) => Object.assign(at, { pattern: '^0x' }),
      '.status.address (its pattern)',
    ],
    ['fewer entries', stakingSigner, 'status.lanes', (at) => Object.assign(at, { maxItems: 1 }), '.status.lanes (maxItems 32)'],
    [
      'another type',
      stakingTransaction,
      'spec.generation',
      (at) => Object.assign(at, { type: 'string' }),
      '.spec.generation (type integer)',
    ],
    [
      'what need not be there now',
      stakingSigner,
      'status',
      (at) => Object.assign(at, { required: ['balance'] }),
      '.status (may be without balance)',
    ],
    [
      'keys of a list',
      stakingSigner,
      'status.lanes',
      (at) => Object.assign(at, { 'x-kubernetes-list-type': 'set' }),
      '.status.lanes (x-kubernetes-list-type map)',
    ],
    [
      'a rule of status that is none now',
      ethereumStake,
      'status.stakeId',
      (at) => Object.assign(at, { 'x-kubernetes-validations': [rule('self == oldSelf', 'it stays')] }),
      '.status.stakeId (a rule that the operator does not have: "it stays")',
    ],
    [
      'a rule of the log that is none now',
      stakingTransaction,
      '',
      (at) => Object.assign(at, { 'x-kubernetes-validations': [rule('false', 'no')] }),
      '. (a rule that the operator does not have: "no")',
    ],
    [
      'no rule of the log',
      stakingTransaction,
      'status',
      (at) => void delete at['x-kubernetes-validations'],
      '.status (the rule "no attempt is ever forgotten',
    ],
    [
      'no rule of a place in a lane',
      signerNonce,
      'spec',
      (at) => void delete at['x-kubernetes-validations'],
      '.spec (the rule "a place in a lane never changes")',
    ],
    [
      'no rule of an approval',
      stakingApproval,
      'spec',
      (at) => void delete at['x-kubernetes-validations'],
      '.spec (the rule "an approval never changes',
    ],
    [
      'no labels to select by',
      stakingSigner,
      'spec.policy.allowedNamespaces.selector.matchLabels',
      (at) => void delete at.additionalProperties,
      '.spec.policy.allowedNamespaces.selector.matchLabels[]',
    ],
  ])('%s', (_what, kind, path, change, says) => {
    const guard = guardWithPlace(kind, path, change)
    expect(() => guard.assertCurrent()).toThrow(
      `OutdatedCRD: The installed CustomResourceDefinitions are not those of this operator: ${kind.plural}.staking.dev (differs in ${says}`,
    )
    expect(guard.outdated()).toContain('Apply the CRDs of its version')
    guard.seen(`${kind.plural}.staking.dev`, installed(kind))
    expect([guard.outdated(), guard.lax()]).toEqual([undefined, undefined])
  })

  test.each<[string, (typeof kinds)[number], string, (place: Schema) => void]>([
    ['a state more', stakingTransaction, 'status.state', (at) => Object.assign(at, { enum: [...(at.enum as string[]), 'Newer'] })],
    ['a longer text', stakingTransaction, 'spec.subject', (at) => Object.assign(at, { maxLength: 4096, minLength: 0 })],
    [
      'other words of a rule',
      signerNonce,
      'spec',
      (at) =>
        Object.assign(at, {
          'x-kubernetes-validations': (at['x-kubernetes-validations'] as object[]).map((one) => ({ ...one, message: 'never' })),
        }),
    ],
    [
      'a rule more about what others write',
      ethereumStake,
      'spec.suspend',
      (at) => Object.assign(at, { 'x-kubernetes-validations': [rule('true', 'newer')] }),
    ],
  ])('%s is what a newer version may have: it goes on', (_what, kind, path, change) => {
    const guard = guardWithPlace(kind, path, change)
    expect([guard.outdated(), guard.lax()]).toEqual([undefined, undefined])
  })
})

test('what is let through of what others write stops nothing, since the operator looks at it itself; it is told', () => {
  const guard = guardWithPlace(stakingSigner, 'spec.policy.maxRequestFeeGwei', (at) => {
    delete at['x-kubernetes-validations']
    delete at.default
  })
  expect(() => guard.assertCurrent()).not.toThrow()
  expect(guard.lax()).toMatch(
    /stakingsigners\.staking\.dev \(differs in .*maxRequestFeeGwei \(the rule ".*maxRequestFeeGwei \(its default\).*Apply the CRDs of its version/,
  )
})

test('how the definitions fall short is told once, and that they do no more', () => {
  const lines: string[] = []
  const guard = createCrdGuard(kinds)
  const tell = tellOfDefinitions(guard, {
    info: (_fields, message) => void lines.push(`info ${message}`),
    warn: (_fields, message) => void lines.push(`warn ${message.slice(0, 70)}`),
  })
  for (const kind of kinds) guard.seen(`${kind.plural}.staking.dev`, installed(kind))
  tell()
  guard.seen(names.signer, undefined)
  tell()
  tell()
  guard.seen(names.signer, installed(stakingSigner))
  tell()
  expect(lines).toEqual([
    'warn The installed CustomResourceDefinitions are not those of this operator',
    'info the installed definitions are those of this operator',
  ])
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { KubeObject } from './objects.ts'
import { createPacking } from './packed.ts'

interface Thing extends KubeObject {
  readonly status: unknown
}
const thing = (name: string, status: unknown): Thing => ({
  apiVersion: 'example.dev/v1',
  kind: 'Thing',
  metadata: { name, namespace: 'team', uid: `uid of ${name}`, resourceVersion: '1' },
  status,
})
const hash = (digit: string): string => `0x${digit.repeat(64)}`
/** Packs all, then unpacks each. */
function through(objects: readonly Thing[]): readonly Thing[] {
  const { pack, unpack } = createPacking<Thing>()
  const packed = objects.map((object, at) => [`team/${at}`, pack(`team/${at}`, object)] as const)
  return packed.map(([key, one]) => unpack(key, one))
}

describe('whatever stands in an object comes back', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('', '\0', 'a\0b and more than twenty-four letters', 'x'.repeat(2000), 'can’t', '0x', 'team', 'true', '-0', '1e21'),
    fc.uuid(),
    fc.date({ noInvalidDate: true }).map((date) => date.toISOString().replace(/\.\d+Z/, 'Z')),
    fc.constantFrom('2026-02-30T00:00:00Z', '0000-01-01T00:00:00Z', '2026-01-01T24:00:00Z', '1969-12-31T23:59:59Z', '2026-12-31T23:59:60Z'),
    fc.uuid().map((id) => id.toUpperCase()),
    fc.stringMatching(/^(0x)?[0-9a-fA-F]{14,40}$/),
    fc.tuple(fc.nat(), fc.uuid()).map(([nonce, id]) => `Stake ${id} with nonce ${nonce} exists in the staking API.`),
  )
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      text,
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('json'), { maxLength: 4 }),
      fc.dictionary(fc.oneof(text, fc.constantFrom('type', 'reason', '__proto__', '7', 'constructor')), tie('json'), { maxKeys: 6 }),
    ),
  }))

  test('of any number of objects, with what they have in common', () => {
    fc.assert(
      fc.property(fc.array(json, { minLength: 1, maxLength: 4 }), (statuses) => {
        // Each twice: what has been seen before is written another way.
        const things = [...statuses, ...statuses].map((status, at) => thing(`thing-${at}`, status))
        expect(through(things)).toEqual(things)
      }),
    )
  })

  test('beyond what one dictionary holds, in texts and in shapes', () => {
    const things = Array.from({ length: 1_500 }, (_, at) =>
      thing(`thing-${at}`, {
        words: [0, 1, 2, 3].map((word) => `shared by two: ${Math.floor(at / 2) * 4 + word}`),
        ...(at % 2 === 0 ? { [`field ${at}`]: at } : {}),
      }),
    )
    expect(through(things)).toEqual(things)
  })

  test('a field that is undefined is absent', () => {
    const [back] = through([thing('one', { phase: undefined, reason: 'Why' })])
    expect(back?.status).toStrictEqual({ reason: 'Why' })
  })
})

test('what only differs in ids and numbers takes no more than those', () => {
  const { pack } = createPacking<Thing>()
  const stake = (at: number) =>
    thing(`validator-${at}`, {
      hash: hash(String(at)),
      at: '2026-01-01T00:00:00Z',
      conditions: [
        { type: 'Ready', status: 'True', message: `32 ETH are deposited for validator 0x${String(at).repeat(96)}.` },
        { type: 'Broadcast', status: 'True', message: `Transaction ${hash(String(at))} with nonce ${at} was sent.` },
      ],
    })
  const lengths = [1, 2, 3, 4].map((at) => pack(`team/validator-${at}`, stake(at)).text.length)
  // 48 bytes of key, 32 of hash, the uid, and a character or two for each of the rest.
  expect(lengths[3]).toBeLessThan(150)
})

test('what one object alone has is not learnt, however often it is written', () => {
  const { pack } = createPacking<Thing>()
  const { shaped } = pack('team/one', thing('one', { id: hash('a') }))
  for (let time = 0; time < 10; time++) pack('team/one', thing('one', { id: hash('a') }))
  expect(shaped.words.list).not.toContain(hash('a'))
  pack('team/two', thing('two', { id: hash('a') }))
  expect(shaped.words.list).toContain(hash('a'))
})

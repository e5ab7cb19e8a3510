import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createPacking } from './packed.ts'

const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('', '\0', 'x'.repeat(9000), 'can’t', '\ud800'))
const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    text,
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('json'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(text, fc.constantFrom('type', 'reason', '7', 'constructor')), tie('json'), { maxKeys: 6 }),
  ),
}))

test('whatever stands in objects comes back, whichever was the first', () => {
  fc.assert(
    fc.property(fc.array(json, { minLength: 1, maxLength: 5 }), (values) => {
      const { pack, unpack } = createPacking<{ readonly value: unknown }>()
      const objects = values.map((value) => ({ value }))
      const packed = objects.map(pack)
      expect(packed.map(unpack)).toEqual(objects)
      expect(packed.join('')).toMatch(/^[\0-\xff]*$/)
    }),
  )
})

test('what is given out is a copy: who changes it changes nothing that is held', () => {
  const { pack, unpack } = createPacking<{ list: number[] }>()
  const packed = pack({ list: [1] })
  unpack(packed).list.push(2)
  expect(unpack(packed)).toEqual({ list: [1] })
})

test('a field that is undefined is absent', () => {
  const { pack, unpack } = createPacking<object>()
  expect(unpack(pack({ phase: undefined, reason: 'Why' }))).toStrictEqual({ reason: 'Why' })
})

test('bytes that are not those that were packed give no object, whichever of them changed', () => {
  const { pack, unpack } = createPacking<object>()
  const hash = (digit: string): string => `0x${digit.repeat(64)}`
  pack({ hash: hash('a'), stakeId: 'e3b0c442' })
  const packed = pack({ hash: hash('b'), stakeId: '98fc1c14' })
  for (let at = 0; at < packed.length; at++) {
    const other = String.fromCharCode(packed.charCodeAt(at) ^ 0x11)
    expect(() => unpack(packed.slice(0, at) + other + packed.slice(at + 1))).toThrow()
  }
})

test('what only differs in hashes and names takes little more than those', () => {
  const { pack } = createPacking<object>()
  const stake = (at: number) => ({
    metadata: { name: `validator-${at}`, namespace: 'team' },
    conditions: [
      { type: 'Ready', status: 'True', message: '32 ETH are deposited for the validator.' },
      { type: 'Broadcast', status: 'True', message: `The transaction with nonce ${at} was sent.` },
    ],
  })
  pack(stake(1))
  expect(pack(stake(2)).length).toBeLessThan(60)
})

import { expect, test } from 'vitest'
import { maySupersede } from './supersede.ts'

const alice = { sender: '0xAA', nonce: 7 }
const told = { seen: 'unseen', closed: false, sentBy: alice } as const
const unknown = { seen: 'unseen', closed: false, sentBy: undefined } as const
const pooled = { seen: 'pooled', closed: false, sentBy: alice } as const
const mined = { seen: 'mined', closed: false, sentBy: alice } as const
const closed = { seen: 'mined', closed: true, sentBy: alice } as const
const displaced = { seen: 'unseen', closed: true, sentBy: alice } as const

const nobody = { sentBy: undefined, paid: false }
const sent = (sender: string, nonce: number, paid = false) => ({ sentBy: { sender, nonce }, paid })

test.each([
  {
    earlier: [told],
    next: sent('0xaa', 7),
    expected: 'accept',
    why: 'both were named with one sender and nonce: only one of them can land',
  },
  { earlier: [pooled], next: sent('0xaa', 7), expected: 'accept', why: 'the fee was raised: only one of them can land' },
  { earlier: [mined], next: sent('0xaa', 7), expected: 'accept', why: 'a node still shows both' },
  { earlier: [told], next: sent('0xaa', 8), expected: 'refuse', why: 'another nonce: both could land, though no node shows the first' },
  { earlier: [told], next: sent('0xbb', 7), expected: 'refuse', why: 'another sender: both could land' },
  { earlier: [pooled], next: sent('0xaa', 8), expected: 'refuse', why: 'another nonce: both could land' },
  { earlier: [told, pooled], next: sent('0xaa', 8), expected: 'refuse', why: 'any of the earlier ones could land' },
  {
    earlier: [unknown],
    next: sent('0xaa', 7),
    expected: 'refuse',
    why: 'nobody knows what the first one is: that it is unseen proves nothing',
  },
  { earlier: [unknown], next: nobody, expected: 'refuse', why: 'nobody knows what either of them is' },
  { earlier: [told], next: nobody, expected: 'refuse', why: 'nobody has said what the new one is' },
  { earlier: [pooled], next: nobody, expected: 'wait', why: 'the new one may be the replacement, not visible yet' },
  { earlier: [mined], next: nobody, expected: 'refuse', why: 'the old one is mined: nothing replaces it' },
  { earlier: [pooled, mined], next: nobody, expected: 'refuse', why: 'one of the old ones is mined' },
  { earlier: [closed, displaced], next: sent('0xaa', 8), expected: 'accept', why: 'the nonce is final with something else' },
  { earlier: [closed, told], next: sent('0xbb', 8), expected: 'refuse', why: 'one of the earlier ones is not closed' },
  { earlier: [closed], next: nobody, expected: 'refuse', why: 'the next one must be known, so that the one after it can be judged' },
  {
    earlier: [unknown],
    next: sent('0xaa', 7, true),
    expected: 'accept',
    why: 'the payment has been made, and the first hash was never seen',
  },
  { earlier: [pooled], next: sent('0xaa', 8, true), expected: 'refuse', why: 'a second payment beside one that waits' },
] as const)('$expected when $why', ({ earlier, next, expected }) => {
  expect(maySupersede(earlier, next)).toBe(expected)
})

import { expect, test } from 'vitest'
import { maySupersede } from './supersede.ts'

const alice = { sender: '0xAA', nonce: 7 }
const pooled = { visible: true, mined: false, sentBy: alice }
const mined = { visible: true, mined: true, sentBy: alice }
const gone = { visible: false, mined: false, sentBy: alice }
const never = { visible: false, mined: false, sentBy: undefined }

test.each([
  { earlier: [never], next: undefined, expected: 'accept', why: 'the chain knows none of them' },
  { earlier: [gone], next: { sender: '0xbb', nonce: 1 }, expected: 'accept', why: 'the old one was dropped' },
  { earlier: [pooled], next: { sender: '0xaa', nonce: 7 }, expected: 'accept', why: 'the fee was raised: only one of them can land' },
  { earlier: [mined], next: { sender: '0xaa', nonce: 7 }, expected: 'accept', why: 'a node still shows both' },
  { earlier: [pooled], next: { sender: '0xaa', nonce: 8 }, expected: 'refuse', why: 'another nonce: both could land' },
  { earlier: [pooled], next: { sender: '0xbb', nonce: 7 }, expected: 'refuse', why: 'another sender: both could land' },
  { earlier: [never, pooled], next: { sender: '0xaa', nonce: 8 }, expected: 'refuse', why: 'one of the old ones could land too' },
  { earlier: [pooled], next: undefined, expected: 'wait', why: 'it may be the replacement, not visible yet' },
  { earlier: [mined], next: undefined, expected: 'refuse', why: 'the old one is mined: nothing replaces it' },
] as const)('$expected when $why', ({ earlier, next, expected }) => {
  expect(maySupersede(earlier, next)).toBe(expected)
})

import { expect, test } from 'vitest'
import { wrongShape } from './secret-shape.ts'

/** What people put into a Secret instead of a key, each seen in the wild: the message says which it is. */
const secret = '5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a'
test.each([
  ['a byte order mark', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(secret)]), /byte order mark/],
  ['UTF-16', Buffer.from(`\ufeff${secret}`, 'utf16le'), /UTF-16/],
  ['raw bytes', Buffer.from(`00${secret}`, 'hex'), /binary/],
  ['double quotes', Buffer.from(`"${secret}"\n`), /in quotes/],
  ['single quotes', Buffer.from(`'${secret}'`), /in quotes/],
  ['two lines', Buffer.from(`${secret}\r\n${secret}\r\n`), /2 lines/],
  ['what solana-keygen writes', Buffer.from(`[${[...Buffer.from(secret, 'hex')].join(',')}]`), /solana-keygen/],
  ['0X', Buffer.from(`0X${secret}`), /0X/],
  ['a header', Buffer.from(`Bearer ${secret}`), /word Bearer/],
  ['a line of a .env', Buffer.from(`privateKey=${secret}`), /name stands before/],
  ['a mnemonic', Buffer.from('test test test test test test test test test test test junk'), /blanks/],
  ['a key of Ethereum', Buffer.from(`${secret}\n`), /64 hex digits, as a key of Ethereum/],
  ['a digit too few', Buffer.from(secret.slice(1)), /63 hex digits/],
  ['what has no such shape', Buffer.from('nonsense'), /^$/],
])('%s is told for what it is, and none of it is quoted', (_what, content, says) => {
  const told = wrongShape(content)
  expect(told).toMatch(says)
  for (let at = 0; at + 6 <= secret.length; at++) expect(told).not.toContain(secret.slice(at, at + 6))
})

import { createHash } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { secretOf, secretText, signedHeaders } from './sign.ts'

const keys = { mac: (text: string) => createHash('sha256').update(`seed ${text}`).digest() }
const body = JSON.stringify({ type: 'ethereum-stake.transaction', data: { id: 'é' } })
const seconds = () => Math.floor(Date.now() / 1000)

test('each secret that is valid signs, and the library of Standard Webhooks verifies any of them', () => {
  const secrets = ['a', 'b'].map((salt) => secretOf(keys, 'endpoint', salt))
  const headers = signedHeaders({ id: 'msg', body, seconds: seconds() }, secrets)
  for (const secret of secrets) expect(new Webhook(secretText(secret)).verify(body, headers)).toEqual(JSON.parse(body))
})

test.each([
  { what: 'of another salt', secret: secretOf(keys, 'endpoint', 'c') },
  { what: 'of another endpoint', secret: secretOf(keys, 'other', 'a') },
])('a secret $what does not verify', ({ secret }) => {
  const headers = signedHeaders({ id: 'msg', body, seconds: seconds() }, [secretOf(keys, 'endpoint', 'a')])
  expect(() => new Webhook(secretText(secret)).verify(body, headers)).toThrow('No matching signature')
})

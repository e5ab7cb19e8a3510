import { expect, test } from 'vitest'
import { jsonOf } from './well-formed.ts'

const body = Buffer.from('{"a":1}')

test.each([
  'application/json',
  'application/json;charset=utf-8',
  'application/json; charset="UTF8"',
  'application/json; charset=utf-8; charset=UTF-8',
  'application/json; profile="x"',
])('%s is read', (type) => {
  expect(jsonOf({ 'content-type': type }, body)).toEqual({ a: 1 })
})

test.each([
  { 'content-type': 'application/json; charset=utf-16' },
  { 'content-type': 'application/json; charset=' },
  { 'content-type': 'application/json; charset=utf-8; charset=utf-16' },
  { 'content-type': "application/json; charset*=utf-16''x" },
  { 'content-type': 'application/json', 'content-encoding': 'gzip' },
])('%j is not', (headers) => {
  expect(() => jsonOf(headers, body)).toThrow(/send the body/)
})

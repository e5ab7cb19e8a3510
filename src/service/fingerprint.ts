import { createHash } from 'node:crypto'
import { isExactNumber, plainDigits } from '../contract/json.ts'

/**
 * What makes two requests the same: method, path and the body's meaning, whatever the order of its fields, its white space or the zeros at
 * the end of its decimals. It is taken of the body as it was sent, before defaults: a later version with other defaults must still know it.
 */
export const fingerprint = (method: string, path: string, body: unknown): string =>
  createHash('sha256')
    .update(`${method} ${path}\n${canonicalJson(body)}`)
    .digest('hex')

/** JSON with sorted fields and without white space. No body, `null` and `{}` are the same: where no field is given, no body is needed. */
export function canonicalJson(value: unknown): string {
  if (value === undefined || value === null) return '{}'
  return write(value)
}

function write(value: unknown): string {
  if (isExactNumber(value)) return shortNumber(value.rawJSON)
  if (Array.isArray(value)) return `[${value.map(write).join(',')}]`
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${write(field)}`).join(',')}}`
  }
  return JSON.stringify(value)
}

/** `32.0`, `3.2e1` and `32.50` are `32`, `32` and `32.5`. */
const shortNumber = (number: string): string => {
  const digits = plainDigits(number)
  return /^-?[0-9]+\.[0-9]+$/.test(digits) ? digits.replace(/\.?0+$/, '') : digits
}

import { parse } from 'lossless-json'

/**
 * A JSON number whose digits are kept as text: what `JSON.rawJSON` makes, so that `JSON.stringify` writes exactly these digits again.
 * A double would lose digits (9007199254.740993 ETH is not a double), and money must not be rounded.
 */
export interface ExactNumber {
  readonly rawJSON: string
}

// TypeScript's libraries do not declare these two yet; they are in V8 since 11.4 (TC39 "JSON.parse source text access").
const rawJson = JSON as unknown as { rawJSON(text: string): ExactNumber; isRawJSON(value: unknown): value is ExactNumber }

/** @throws SyntaxError unless `text` is a JSON number. */
export const exactNumber = (text: string): ExactNumber => rawJson.rawJSON(text)

export const isExactNumber = (value: unknown): value is ExactNumber => rawJson.isRawJSON(value) && /^-?[0-9]/.test(value.rawJSON)

/** Text that is not JSON. The message says nothing of the text: it may hold what must not be shown. */
export class JsonError extends Error {
  override readonly name = 'JsonError'
  constructor() {
    super('the text is not valid JSON')
  }
}

const plainInteger = /^(0|-?[1-9][0-9]{0,15})$/

/**
 * Parses JSON without loss: integers that a double holds become numbers, all other numbers an {@link ExactNumber}.
 * A key given twice with different values is refused, since two readers could see two different amounts.
 * @throws JsonError
 */
export function parseJson(text: string): unknown {
  let value: unknown
  try {
    value = parse(text, undefined, {
      parseNumber: (digits) => {
        const number = plainInteger.test(digits) ? Number(digits) : Number.NaN
        return Number.isSafeInteger(number) ? number : exactNumber(digits)
      },
    })
  } catch {
    // A SyntaxError quotes the text; deep nesting ends in a RangeError.
    throw new JsonError()
  }
  if (value === undefined) throw new JsonError()
  return value
}

const scientific = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?[eE]([+-]?[0-9]{1,4})$/
/** More digits than any amount has. */
const maxDigits = 400

/** A JSON number without an exponent, exactly: `3.2e1` is `32`. One that would have hundreds of digits stays as it is. */
export function plainDigits(number: string): string {
  const [, sign = '', whole = '', fraction = '', exponentText] = scientific.exec(number) ?? []
  if (exponentText === undefined) return number
  const exponent = Number(exponentText)
  if (Math.abs(exponent) > maxDigits || whole.length + fraction.length > maxDigits) return number
  const digits = `${whole}${fraction}`
  const point = whole.length + exponent
  const padded = point <= 0 ? `${'0'.repeat(1 - point)}${digits}` : digits.padEnd(point, '0')
  const at = Math.max(point, 1)
  const integer = padded.slice(0, at).replace(/^0+(?=[0-9])/, '')
  const rest = padded.slice(at).replace(/0+$/, '')
  return `${sign}${integer}${rest === '' ? '' : `.${rest}`}`
}

/**
 * What a JSON answer looks like, without its values: fields, kinds of text (decimal, hex of so many bytes), the first element of each list. Two servers
 * of one API give the same shape for the same kind of answer.
 */
export type Shape = string | readonly Shape[] | { readonly [field: string]: Shape }

export function shapeOf(value: unknown): Shape {
  if (Array.isArray(value)) return value.length === 0 ? [] : [shapeOf(value[0])]
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(
      Object.entries(value)
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([field, inner]) => [field, shapeOf(inner)]),
    )
  }
  if (typeof value !== 'string') return value === null ? 'null' : typeof value
  if (/^(0|[1-9]\d*)$/.test(value)) return 'decimal'
  if (/^0x([0-9a-f]{2})*$/.test(value)) return `hex of ${(value.length - 2) / 2} bytes`
  return /^0x/i.test(value) ? 'hex in another form' : 'text'
}

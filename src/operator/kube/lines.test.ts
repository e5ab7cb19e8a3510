import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createLineSplitter } from './lines.ts'

const linesOf = (chunks: readonly Buffer[]): string[] => {
  const lines: string[] = []
  const split = createLineSplitter((line) => lines.push(line))
  for (const chunk of chunks) split(chunk)
  return lines
}

test('however the bytes are cut, in the middle of a character too, the lines are the same', () => {
  const line = fc.string({ unit: 'binary', minLength: 1 }).map((text) => `${text.replaceAll('\n', ' ')}é✓`)
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), fc.array(fc.nat(40)), (lines, cuts) => {
      let rest = Buffer.from(lines.map((text) => `${text}\n`).join(''))
      const chunks: Buffer[] = []
      for (const cut of cuts) {
        chunks.push(rest.subarray(0, cut))
        rest = rest.subarray(cut)
      }
      expect(linesOf([...chunks, rest])).toEqual(
        Buffer.from(lines.join('\n'))
          .toString('utf8')
          .split('\n')
          .filter((text) => text !== ''),
      )
    }),
  )
})

test('a line without its end is not given out: the connection broke in it', () => {
  expect(linesOf([Buffer.from('{"a":1}\n{"b":')])).toEqual(['{"a":1}'])
})

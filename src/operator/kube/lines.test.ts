import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isAnswerTooLarge } from './errors.ts'
import { createLineSplitter } from './lines.ts'

const linesOf = (chunks: readonly Buffer[]): string[] => {
  const lines: string[] = []
  const split = createLineSplitter((line) => lines.push(line), 1_000_000)
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

test('a line beyond the bound is refused before its end has come, however small its pieces; lines within it pass', () => {
  const lines: string[] = []
  const split = createLineSplitter((line) => lines.push(line), 10)
  for (let time = 0; time < 5; time++) split(Buffer.from('0123456789\n'))
  expect(lines).toHaveLength(5)
  split(Buffer.from('01234'))
  split(Buffer.from('56789'))
  let refused: unknown
  try {
    split(Buffer.from('!'))
  } catch (error) {
    refused = error
  }
  expect(isAnswerTooLarge(refused)).toBe(true)
  expect(() => createLineSplitter(() => {}, 10)(Buffer.from('01234567890\n'))).toThrow('longer than the 10 bytes')
})

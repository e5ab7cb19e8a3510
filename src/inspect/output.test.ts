import { describe, expect, test } from 'vitest'
import { type Column, csv, painter, table } from './output.ts'

interface Row {
  readonly name: string
  readonly note?: string
}
const columns: readonly Column<Row>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  { title: 'NOTE', cell: ({ note }) => note, wide: true },
]

describe('a table', () => {
  test('has columns as wide as they need, and - for nothing', () => {
    expect(table(columns, [{ name: 'a' }, { name: 'longer', note: 'x' }], { wide: true })).toBe('NAME    NOTE\na       -\nlonger  x\n')
  })
  test('leaves wide columns out', () => {
    expect(table(columns, [{ name: 'a', note: 'x' }])).toBe('NAME\na\n')
  })
  test('lets no text of others steer the terminal, or begin a line', () => {
    expect(table(columns, [{ name: 'a\u001b[31mred\nfake row\u009b' }])).toBe('NAME\na [31mred fake row \n'.replace(' \n', '\n'))
  })
})

describe('CSV', () => {
  test.each([
    ['a comma', 'a,b', '"a,b"'],
    ['a quote', 'say "x"', '"say ""x"""'],
    ['a formula', '=1+1', "'=1+1"],
    ['another', '@SUM(A1)', "'@SUM(A1)"],
  ])('%s', (_what, note, cell) => {
    expect(csv(columns, [{ name: 'n', note }])).toBe(`NAME,NOTE\r\nn,${cell}\r\n`)
  })
})

describe('colours', () => {
  test.each([
    ['on a terminal', { isTTY: true }, {}, true],
    ['not in a pipe', {}, {}, false],
    ['not where NO_COLOR is set', { isTTY: true }, { NO_COLOR: '1' }, false],
    ['not on a dumb terminal', { isTTY: true }, { TERM: 'dumb' }, false],
  ])('%s', (_what, stream, env, isColored) => {
    expect(painter(stream, env)('red', 'x') !== 'x').toBe(isColored)
  })
})

import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type AuditEntry, auditColumns } from './audit-trail.ts'
import { type Column, csv, json, leftOut, painter, table, yaml } from './output.ts'
import { type Moment, timelineColumns } from './timeline.ts'

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
  test.each([
    ['Chinese, two columns a character', '验证者'],
    ['full-width letters', 'ＡＢＣ'],
    ['Korean in parts', '\u1112\u1161\u11ab가나'],
    ['emoji of one, several and no characters', '👍🏽👩‍👩‍👧🇩🇪'],
    ['accents of their own', 'e\u0301a\u0308o\u0302bcd'],
    ['what takes no room', 'ab\u200bcd\u2060ef'],
  ])('aligns %s', (_what, name) => {
    const [title, row, other] = table(
      columns,
      [
        { name, note: '|' },
        { name: '123456', note: '|' },
      ],
      { wide: true },
    ).split('\n')
    // Six columns each, as a terminal shows them.
    expect([title, row, other]).toEqual(['NAME    NOTE', `${name}  |`, '123456  |'])
  })
  test('leaves wide columns out', () => {
    expect(table(columns, [{ name: 'a', note: 'x' }])).toBe('NAME\na\n')
  })
  test('lets no text of others steer the terminal, or begin a line', () => {
    expect(table(columns, [{ name: 'a\u001b[31mred\nfake row\u009b' }])).toBe('NAME\na [31mred fake row \n'.replace(' \n', '\n'))
  })
  test('lets none be read in another order than it has', () => {
    expect(table(columns, [{ name: 'alice\u202eevil\u202c bob' }])).toBe('NAME\nalice evil  bob\n')
  })
})

describe('JSON and YAML', () => {
  const given = {
    at: 'x\u001b[31m',
    c1: '\u009b31mred',
    turned: 'a\u202eb',
    plain: 'é, 32 ETH',
    list: [{ deep: 'line\nnext\u0085\u2066' }],
  }
  test.each([
    ['JSON', json, (text: string): unknown => JSON.parse(text)],
    ['YAML', yaml, (text: string): unknown => parse(text)],
  ] as const)('as %s, no text of others steers the terminal, and each is there as it is', (_what, print, read) => {
    const text = print(given)
    expect(text).not.toMatch(/[^\P{Cc}\n]|[\u202a-\u202e\u2066-\u2069]/u)
    expect(read(text)).toEqual(given)
    expect(text).toContain('é, 32 ETH')
  })
  test('what steers nothing is written as before', () => {
    expect(yaml({ a: 'b', c: '0x12' })).toBe('a: b\nc: "0x12"\n')
  })
})

describe('on a terminal of 80 columns', () => {
  const hash = `0x${'4f'.repeat(32)}`
  const entry = {
    at: '2030-01-01T00:00:00Z',
    network: 'hoodi',
    signer: 'solana-withdrawer',
    purpose: 'SolanaDeactivation',
    namespace: 'team-a',
    resource: 'validator-1',
    amount: 'whole balance',
    nonce: 12,
    action: 'Call',
    hash,
    result: 'Landed',
    block: 259_348,
  } as AuditEntry
  const widest = (text: string) => Math.max(...text.split('\n').map(({ length }) => length))

  test('the audit trail leaves out what it can do without, and says which', () => {
    const text = table(auditColumns, [entry], { width: 80 })
    expect(widest(text)).toBeLessThanOrEqual(80)
    for (const part of ['2030-01-01', 'SolanaDeactivation', 'validator-1', 'whole balance', 'Landed']) expect(text).toContain(part)
    expect(leftOut(auditColumns, [entry], { width: 80 })).toEqual(['NETWORK', 'SIGNER', 'NONCE', 'NAMESPACE', 'BLOCK', 'HASH'])
    expect(leftOut(auditColumns, [entry], { width: 250 })).toEqual([])
  })
  test.each([
    ['into a pipe', {}],
    ['with -o wide', { wide: true, width: 80 }],
  ])('nothing is left out %s', (_what, look) => {
    expect(table(auditColumns, [entry], look)).toContain(hash)
    expect(leftOut(auditColumns, [entry], look)).toEqual([])
  })

  const moment = (text: string): Moment => ({ at: '2030-01-01T00:00:00Z', what: 'Confirmed=True', text, isWarning: false })
  test('a timeline is wrapped between words', () => {
    const words =
      'Succeeded: The stake has ended: validator 0 has left, and its balance was withdrawn to the withdrawal address of its owner.'
    const text = table(timelineColumns, [moment(words)], { width: 80 })
    expect(widest(text)).toBeLessThanOrEqual(80)
    expect(text.split('\n').slice(1).join(' ').replaceAll(/\s+/g, ' ')).toContain(words)
    expect(text.split('\n')[2]).toMatch(/^ {38}\S/)
  })
  test('a hash stays whole, to be copied, and so does what is longer than the terminal', () => {
    const text = table(timelineColumns, [moment(`Succeeded: Transaction ${hash} was sent.`), moment(`key 0x${'ab'.repeat(48)}`)], {
      width: 80,
    })
    expect(text.split('\n')).toContain(`${' '.repeat(14)}${hash}`)
    expect(text.split('\n')).toContain(`    0x${'ab'.repeat(48)}`)
  })
  test('one of wide characters is wrapped by their columns', () => {
    const text = table(timelineColumns, [moment(Array.from({ length: 12 }, () => '验证者').join(' '))], { width: 80 })
    // 38 columns before it, six words of six columns with their blanks behind.
    expect(
      text
        .split('\n')
        .slice(1, 3)
        .map((line) => line.match(/验证者/g)?.length),
    ).toEqual([6, 6])
  })
  test('one that is too narrow for any wrapping gets lines as they are', () => {
    expect(table(timelineColumns, [moment('a b c')], { width: 40 })).toContain('a b c')
  })
})

describe('CSV', () => {
  test.each([
    ['a comma', 'a,b', '"a,b"'],
    ['a quote', 'say "x"', '"say ""x"""'],
    ['a formula', '=1+1', "'=1+1"],
    ['another', '@SUM(A1)', "'@SUM(A1)"],
    ['one behind white space', '\t=1+1', "' =1+1"],
    ['one in full width', '＝1+1', "'＝1+1"],
    ['a semicolon, which parts cells elsewhere', 'a;=1+1', '"a;=1+1"'],
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

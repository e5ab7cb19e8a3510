import { styleText } from 'node:util'
import stringWidth from 'string-width'
import { stringify } from 'yaml'

export const outputFormats = ['table', 'wide', 'json', 'yaml', 'csv'] as const
export type OutputFormat = (typeof outputFormats)[number]

/** A column of a table. `wide`: only with `-o wide`, and in CSV. */
export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row) => string | number | undefined
  readonly wide?: boolean
  /** Where a terminal is too narrow for all columns, those that yield are left out, the lowest number first. One without stays. */
  readonly yields?: number
}

interface Look {
  readonly wide?: boolean
  /** Columns of the terminal. Left out, lines are as long as they are, as for a pipe. */
  readonly width?: number | undefined
}

const GAP = '  '
/** The last column is wrapped, where there is room for this much of it. */
const LEAST_WRAPPED = 24
/** How far what is too long for its column may move to the left. */
const LEAST_INDENT = 4

/** Lines of a table, two spaces between columns and `-` for nothing, as kubectl prints them. */
export const table = <Row>(columns: readonly Column<Row>[], rows: readonly Row[], look: Look = {}): string =>
  tableRows(columns, rows, look)
    .map((row) => `${row}\n`)
    .join('')

/** The same, row by row, the titles first. A row has several lines where the terminal is narrow. */
export function tableRows<Row>(columns: readonly Column<Row>[], rows: readonly Row[], look: Look = {}): readonly string[] {
  const shown = shownOf(columns, rows, look)
  const last = shown.at(-1)
  const indent = totalOf(shown) - (last?.width ?? 0)
  const width = look.wide === true ? undefined : look.width
  return [undefined, ...rows].map((_, row) => {
    const before = shown.slice(0, -1).map((column) => `${padded(column.cells[row] ?? '', column.width)}${GAP}`)
    const text = last?.cells[row] ?? ''
    const lines = width === undefined || width - indent < LEAST_WRAPPED ? [text] : wrapped(text, indent, width)
    return `${before.join('')}${lines.join('\n')}`.trimEnd()
  })
}

/** Titles of the columns that a terminal is too narrow for. */
export function leftOut<Row>(columns: readonly Column<Row>[], rows: readonly Row[], look: Look): readonly string[] {
  const shown = new Set(shownOf(columns, rows, look).map(({ title }) => title))
  return columns.filter(({ title, wide }) => wide !== true && !shown.has(title)).map(({ title }) => title)
}

interface Shown {
  readonly title: string
  readonly cells: readonly string[]
  readonly yields: number
  readonly width: number
}

const totalOf = (shown: readonly Shown[]): number => shown.reduce((sum, { width }) => sum + width, GAP.length * (shown.length - 1))

function shownOf<Row>(columns: readonly Column<Row>[], rows: readonly Row[], { wide = false, width }: Look): readonly Shown[] {
  let shown = columns
    .filter((column) => wide || column.wide !== true)
    .map(({ title, cell, yields = Number.POSITIVE_INFINITY }): Shown => {
      const cells = [title, ...rows.map((row) => plain(cell(row)) || '-')]
      return { title, cells, yields, width: widest(cells) }
    })
  while (!wide && width !== undefined && totalOf(shown) > width) {
    const next = Math.min(...shown.map(({ yields }) => yields))
    if (next === Number.POSITIVE_INFINITY) break
    shown = shown.filter(({ yields }) => yields !== next)
  }
  return shown
}

/** Columns of a terminal, of which a character of Chinese or an emoji takes two, and an accent of its own none. */
const padded = (text: string, width: number): string => `${text}${' '.repeat(Math.max(0, width - stringWidth(text)))}`
const widest = (cells: readonly string[]): number => cells.reduce((most, cell) => Math.max(most, stringWidth(cell)), 0)

/**
 * Breaks a text at blanks, each further line below the first. What is longer than a line stays whole, so that a hash can be copied: it begins further to the
 * left where it fits so, and otherwise goes over the edge.
 */
function wrapped(text: string, indent: number, width: number): readonly string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const room = width - indent
    const next = line === '' ? word : `${line} ${word}`
    if (stringWidth(next) <= room || (lines.length === 0 && line === '')) line = next
    else {
      lines.push(line)
      line = word
    }
  }
  lines.push(line)
  return lines.map((one, index) =>
    index === 0 ? one : `${' '.repeat(Math.min(indent, Math.max(LEAST_INDENT, width - stringWidth(one))))}${one}`,
  )
}

/** RFC 4180. A cell that a spreadsheet would take for a formula gets an apostrophe (OWASP, CSV injection). */
export function csv<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const lines = [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ cell }) => plain(cell(row))))]
  return lines.map((line) => `${line.map(quoted).join(',')}\r\n`).join('')
}

export const json = (value: unknown): string => `${escaped(JSON.stringify(value, undefined, 2))}\n`
export const yaml = (value: unknown): string =>
  // A text in double quotes has the escapes of JSON; whatever steers is in one, or nowhere.
  escaped(
    stringify(value, (_key, one: unknown) => one, steers.test(JSON.stringify(value) ?? '') ? { defaultStringType: 'QUOTE_DOUBLE' } : {}),
  )

/** What steers a terminal: control characters, and those that turn the order of what follows (a name in them reads as another), or end its line. */
const STEERING = '\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069'
/** Those of ASCII are JSON's own layout, or escaped by it. */
const steers = new RegExp(`[${STEERING}]`)
const escaped = (text: string): string =>
  text.replaceAll(new RegExp(steers, 'g'), (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)

const steersOrBreaks = new RegExp(`[\\p{Cc}${STEERING}]+`, 'gu')
/** Others write what is shown: nothing of it may steer the terminal, turn the order of its characters, or end a line. */
const plain = (cell: string | number | undefined): string => String(cell ?? '').replaceAll(steersOrBreaks, ' ')

const quoted = (cell: string): string => {
  // Full-width signs too: a spreadsheet of a Japanese system reads them as the others.
  const safe = /^\s*[=+\-@＝＋－＠]/.test(cell) ? `'${cell}` : cell
  // A semicolon parts cells where the comma parts decimals: what stands behind it would begin one.
  return /[",;\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

export type Paint = (color: 'green' | 'yellow' | 'red' | 'dim', text: string) => string

/** Colours on a terminal only, and not where NO_COLOR is set (no-color.org). */
export const painter = (stream: { readonly isTTY?: boolean }, env: Readonly<Record<string, string | undefined>>): Paint =>
  stream.isTTY === true && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
    ? (color, text) => styleText(color, text, { validateStream: false })
    : (_color, text) => text

export { plain as oneLine }

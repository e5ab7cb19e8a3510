import { styleText } from 'node:util'
import { stringify } from 'yaml'

export const outputFormats = ['table', 'wide', 'json', 'yaml', 'csv'] as const
export type OutputFormat = (typeof outputFormats)[number]

/** A column of a table. `wide`: only with `-o wide`, and in CSV. */
export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row) => string | number | undefined
  readonly wide?: boolean
}

/** Lines of a table, two spaces between columns and `-` for nothing, as kubectl prints them. */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[], { wide = false } = {}): string {
  const shown = columns.filter((column) => wide || column.wide !== true)
  const lines = [shown.map(({ title }) => title), ...rows.map((row) => shown.map(({ cell }) => plain(cell(row)) || '-'))]
  const widths = shown.map((_, index) => Math.max(...lines.map((line) => line[index]?.length ?? 0)))
  return lines
    .map(
      (line) =>
        `${line
          .map((cell, index) => cell.padEnd(widths[index] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
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

/**
 * What steers a terminal: control characters, and those that turn the order of what follows (a name in them reads as another). Those of JSON's own layout are not
 * meant here.
 */
const steers = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/
const escaped = (text: string): string =>
  text.replaceAll(new RegExp(steers, 'g'), (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Others write what is shown: nothing of it may steer the terminal, turn the order of its characters, or end a line. */
const plain = (cell: string | number | undefined): string =>
  String(cell ?? '').replaceAll(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+/gu, ' ')

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

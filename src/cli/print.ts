import { Option } from 'commander'
import { type Column, csv, json, leftOut, type OutputFormat, painter, table, yaml } from '../inspect/output.ts'

export const outputOption = (...formats: readonly OutputFormat[]) =>
  new Option('-o, --output <format>', 'how to print it').choices([...formats]).default('table')

export const write = (text: string) => process.stdout.write(text)
export const paint = painter(process.stdout, process.env)
/** Undefined where it is no terminal: a pipe gets whole lines. */
export const terminalWidth = (): number | undefined => (process.stdout.isTTY ? process.stdout.columns : undefined)

/** For people: `wide` leaves nothing out. */
export const isTable = (format: OutputFormat): boolean => format === 'table' || format === 'wide'

/** What a look has found, as data. In YAML each further look of a watch is a document of its own. */
export function document(format: OutputFormat, whole: unknown, isFirst = true): string {
  if (format !== 'yaml') return json(whole)
  return isFirst ? yaml(whole) : `---\n${yaml(whole)}`
}

/** @param isFirst of a watch: later looks have no titles */
export function show<Row>(
  format: OutputFormat,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  whole: unknown,
  isFirst = true,
): string {
  if (format === 'json' || format === 'yaml') return document(format, whole, isFirst)
  if (format === 'csv') return untitled(csv(columns, rows), isFirst)
  const look = { wide: format === 'wide', width: terminalWidth() }
  const left = leftOut(columns, rows, look)
  if (left.length > 0) process.stderr.write(`The terminal is too narrow for ${left.join(', ')}: -o wide shows all.\n`)
  return untitled(table(columns, rows, look), isFirst)
}

const untitled = (text: string, isFirst: boolean): string => (isFirst ? text : text.slice(text.indexOf('\n') + 1))

import { Option } from 'commander'
import { type Column, csv, json, leftOut, type OutputFormat, painter, table, yaml } from '../inspect/output.ts'

export const outputOption = (...formats: readonly OutputFormat[]) =>
  new Option('-o, --output <format>', 'how to print it').choices([...formats]).default('table')

export const write = (text: string) => process.stdout.write(text)
export const paint = painter(process.stdout, process.env)
/** Undefined where it is no terminal: a pipe gets whole lines. */
export const terminalWidth = (): number | undefined => (process.stdout.isTTY ? process.stdout.columns : undefined)

export function show<Row>(format: OutputFormat, columns: readonly Column<Row>[], rows: readonly Row[], whole: unknown): string {
  if (format === 'json') return json(whole)
  if (format === 'yaml') return yaml(whole)
  if (format === 'csv') return csv(columns, rows)
  const look = { wide: format === 'wide', width: terminalWidth() }
  const left = leftOut(columns, rows, look)
  if (left.length > 0) process.stderr.write(`The terminal is too narrow for ${left.join(', ')}: -o wide shows all.\n`)
  return table(columns, rows, look)
}

import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { oneLine as plain } from '../inspect/output.ts'

/** Errors whose message is all that a person needs: what was wrong, where, what to do. */
const told = new Set([
  'ChainError',
  'ConfigError',
  'InspectError',
  'NetworksFileError',
  'RemoteSignersFileError',
  'SeedError',
  'KeystoreError',
  'KeymanagerError',
  'KeyError',
  'KubeTransportError',
  'DatabaseInUseError',
  'DatabaseUnavailableError',
  'StakingApiError',
])

/** What is written of an error that ends the program: one line, or the stack where the fault is the program's own. */
export function lastWords(error: unknown, program: URL): string {
  if (!(error instanceof Error)) return `error: ${String(error)}`
  const part = absentPart(error, program)
  if (part !== undefined)
    return `error: this image holds no ${part}: run the image that is built with --target ${part} (docs/how-to/build-the-image.md)`
  // Such as "EACCES: permission denied, mkdir '/out'".
  const isOfAFile = 'syscall' in error && 'path' in error
  return told.has(error.name) || isOfAFile ? `error: ${oneLine(error.message)}` : (error.stack ?? error.message)
}

/** The two programs are built into an image each: `operator` and `service` beside main.js. */
export const holds = (part: 'operator' | 'service', program: URL): boolean => existsSync(new URL(part, program))

function absentPart(error: Error, program: URL): 'operator' | 'service' | undefined {
  if (!('code' in error) || error.code !== 'ERR_MODULE_NOT_FOUND') return undefined
  return (['operator', 'service'] as const).find((part) => !holds(part, program))
}

/** What commander writes of a wrong flag, a suggestion included, is one line too. */
export function tellInOneLine(command: Command): Command {
  command.configureOutput({ outputError: (text, write) => write(`${oneLine(text)}\n`) })
  for (const one of command.commands) tellInOneLine(one)
  return command
}

/** A server may be quoted in it: nothing of that steers the terminal. */
const oneLine = (text: string): string => plain(text.trim().replace(/\s*\n\s*/g, ' '))

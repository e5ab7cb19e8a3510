import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { setNetworkDefaults } from '../lib/network-defaults.ts'
import { endWith, Interrupted } from './end.ts'
import { lastWords, tellInOneLine } from './tell.ts'
import { asCommanderTakes } from './words.ts'

export const version = (JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }).version

/** Runs what the command line asks for. A mistake of a person is one line on standard error, and the exit code 1. @param here the program's own URL */
export async function runProgram(program: Command, here: URL): Promise<void> {
  setNetworkDefaults()
  // Whoever reads no more, as `| head` does, ends it quietly; what was decided before the first write stays the exit code.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? (process.exitCode ?? 0) : 1))
  // Nobody is left to be told.
  process.stderr.on('error', () => {})
  try {
    await tellInOneLine(program).parseAsync(asCommanderTakes(program, process.argv.slice(2)), { from: 'user' })
  } catch (error) {
    if (error instanceof Interrupted) return endWith(error.exitCode)
    process.stderr.write(`${lastWords(error, here)}\n`)
    await endWith(1)
  }
}

import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { setNetworkDefaults } from '../lib/network-defaults.ts'
import { lastWords, tellInOneLine } from './tell.ts'

export const version = (JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }).version

/** Runs what the command line asks for. A mistake of a person is one line on standard error, and the exit code 1. @param here the program's own URL */
export async function runProgram(program: Command, here: URL): Promise<void> {
  setNetworkDefaults()
  // Whoever reads no more, as `| head` does, ends it quietly.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  try {
    await tellInOneLine(program).parseAsync()
  } catch (error) {
    process.stderr.write(`${lastWords(error, here)}\n`)
    process.exit(1)
  }
}

import { basename, join } from 'node:path'

const repository = join(import.meta.dirname, '../..')

/** Where in the folder of `STAKING_TEST_PROGRAMS` the programs are. */
export const PROGRAMS_AT = 'src/all'

/** The file that runs for one of `bundle.ts`'s entries, such as `src/main.ts`: what was made of it for this run of the tests, the source itself where nothing was. */
export function programFile(entry: string): string {
  const programs = process.env.STAKING_TEST_PROGRAMS
  return programs ? join(programs, PROGRAMS_AT, `${basename(entry, '.ts')}.js`) : join(repository, entry)
}

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { filesBelow } from './files.ts'

/** Packages that no import names: pino finds its formatter by this name. */
const byName = ['pino-pretty']

/** The packages that compiled modules import, in any of the ways that this project does. Types are gone from them. */
export function packagesOf(text: string): string[] {
  const found = [
    // Names and braces alone stand between the two words: SQL has a `from` too.
    ...text.matchAll(/^\s*(?:import|export)\s[\w$\s,{}*]*?\bfrom\s+['"]([^'"]+)['"]/gm),
    ...text.matchAll(/^\s*import\s+['"]([^'"]+)['"]/gm),
    ...text.matchAll(/\bimport\(\s*['"]([^'"]+)['"]/g),
    ...text.matchAll(/\bimport\.meta\.resolve\(\s*['"`]([^'"`$]+)/g),
  ].flatMap(([, name]) => (name === undefined || /^(\.|node:|\/)/.test(name) ? [] : [packageOf(name)]))
  return [...new Set(found)].toSorted()
}

const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

/** All that the modules of a folder need. */
export const packagesBelow = (dir: string): string[] =>
  [
    ...new Set([
      ...byName,
      ...filesBelow(dir)
        .filter((file) => file.endsWith('.js'))
        .flatMap((file) => packagesOf(readFileSync(join(dir, file), 'utf8'))),
    ]),
  ].toSorted()

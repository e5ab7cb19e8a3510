import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
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

/** The modules of this project that a module needs to be loaded: what it imports when it is called (`import()`) and types are none. As it writes them. */
export const modulesOf = (text: string): string[] =>
  [
    ...text.matchAll(/^\s*(?:import|export)\s(?!type\s)[\w$\s,{}*]*?\bfrom\s+['"](\.[^'"]+)['"]/gm),
    ...text.matchAll(/^\s*import\s+['"](\.[^'"]+)['"]/gm),
  ].map(([, name]) => name ?? '')

/**
 * All modules of a folder without which these can't be loaded, and what imports each: a program whose `main.js` needs one that its image leaves out does not start.
 * @returns by path below the folder; what isn't there is named and not followed
 */
export function needed(dir: string, roots: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map(roots.map((root) => [root, root]))
  const follow = (module: string): void => {
    const path = join(dir, module)
    if (!existsSync(path)) return
    for (const name of modulesOf(readFileSync(path, 'utf8'))) {
      const next = normalize(join(dirname(module), name))
      if (found.has(next)) continue
      found.set(next, module)
      follow(next)
    }
  }
  for (const root of roots) follow(root)
  return found
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

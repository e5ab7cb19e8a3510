import { lstatSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Files and links below a folder, in the order of their names, as paths relative to it. */
export function filesBelow(dir: string, prefix = ''): string[] {
  return readdirSync(join(dir, prefix))
    .toSorted()
    .flatMap((name) => {
      const path = prefix === '' ? name : `${prefix}/${name}`
      return lstatSync(join(dir, path)).isDirectory() ? filesBelow(dir, path) : [path]
    })
}

/** Sources, types, maps: what no running program reads. */
const notRun = /\.(?:ts|mts|cts|tsx|map|flow|tsbuildinfo)$|(?:^|\/)node_modules\/(?:\.bin|\.package-lock\.json)(?:\/|$)/

/**
 * What packages ship for other places than Node on Linux: CommonJS twins that nothing requires, bundles for browsers, libraries of other systems. Folders and files as the packages
 * have them; one that is gone in a later version is no error.
 */
const twins = [
  /(?:^|\/)node_modules\/(?:viem|ox)\/_cjs\//,
  /(?:^|\/)node_modules\/abitype\/dist\/cjs\//,
  /(?:^|\/)node_modules\/@solana\/web3\.js\/lib\/index\.(?:browser|iife|native)\./,
  /(?:^|\/)node_modules\/zod\/.*\.cjs$/,
  /\/prebuilds\/(?:android|darwin|ios|win32)-/,
  /(?:^|\/)node_modules\/swagger-ui-dist\/swagger-ui(?:-es-bundle(?:-core)?)?\.js$/,
]

export const isNotRun = (path: string): boolean => notRun.test(path) || twins.some((twin) => twin.test(path))

/** Takes away what is not run, and folders that are empty then. @returns how many files */
export function prune(dir: string): number {
  const gone = filesBelow(dir).filter(isNotRun)
  for (const file of gone) rmSync(join(dir, file))
  removeEmpty(dir)
  return gone.length
}

function removeEmpty(dir: string): void {
  for (const entry of readdirSync(dir, { withFileTypes: true })) if (entry.isDirectory()) removeEmpty(join(dir, entry.name))
  if (readdirSync(dir).length === 0) rmdirSync(dir)
}

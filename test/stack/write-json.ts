import { renameSync, writeFileSync } from 'node:fs'

/** JSON is YAML. Written beside and renamed, as a reader may look at any time. */
export function writeJson(path: string, value: unknown): void {
  writeFileSync(`${path}.new`, `${JSON.stringify(value, null, 2)}\n`)
  renameSync(`${path}.new`, path)
}

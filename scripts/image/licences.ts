import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

export interface Licence {
  readonly name: string
  readonly version: string
  /** SPDX expression. */
  readonly licence: string
  /** Its texts and notices, as the package has them. */
  readonly texts: readonly string[]
}

/** Packages whose package.json lacks the field; their own files say this. Checked with each new version, which the key names. */
const known: Readonly<Record<string, string>> = { 'text-encoding-utf-8@1.0.2': 'Unlicense' }

/** @throws Error where neither the package nor we know its licence */
export function licenceOf(dir: string): Licence {
  const manifest = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')) as {
    readonly name: string
    readonly version: string
    readonly license?: string | { readonly type: string }
    readonly licenses?: readonly (string | { readonly type: string })[]
  }
  const { name, version, license, licenses = [] } = manifest
  const field =
    typeof license === 'object' ? license.type : (license ?? licenses.map((one) => (typeof one === 'string' ? one : one.type)).join(' OR '))
  const licence = field === '' ? known[`${name}@${version}`] : field
  if (licence === undefined) throw new Error(`${name}@${version} names no licence: read it, and add it to scripts/image/licences.ts`)
  const texts = readdirSync(dir)
    .filter((file) => /^(?:licen[cs]e|copying|notice)(?:[.-].*)?$/i.test(file) && statSync(join(dir, file)).isFile())
    .toSorted()
    .map((file) => readFileSync(join(dir, file), 'utf8').trim())
  return { name, version, licence, texts }
}

/** Every package below `node_modules`, wherever npm put it. */
export function packageFolders(modules: string): string[] {
  if (!existsSync(modules)) return []
  const folders = readdirSync(modules)
    .filter((name) => !name.startsWith('.'))
    .flatMap((name) => (name.startsWith('@') ? readdirSync(join(modules, name)).map((inner) => `${name}/${inner}`) : [name]))
    .map((name) => join(modules, name))
  return folders.flatMap((folder) => [folder, ...packageFolders(join(folder, 'node_modules'))])
}

/** The file of all licences, by name and version. */
export function licencesFile(own: { readonly name: string; readonly version: string }, licences: readonly Licence[]): string {
  const unique = new Map(licences.map((one) => [`${one.name}@${one.version}`, one]))
  const parts = [...unique]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([id, { licence, texts }]) => [`${id}: ${licence}`, ...texts].join('\n\n'))
  const line = '-'.repeat(80)
  return `${own.name} ${own.version} is under the licence in LICENSE. It contains the ${parts.length} packages below, each under its own.\nNode.js is under the licence at https://github.com/nodejs/node/blob/main/LICENSE.\n\n${parts.map((part) => `${line}\n${part}\n`).join('\n')}`
}

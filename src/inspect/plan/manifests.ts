import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isScalar, parseAllDocuments, visit } from 'yaml'
import { InspectError } from '../error.ts'

/** An object of a manifest, as it was written. */
export interface Manifest {
  /** Where it stands, such as `fleet.yaml, document 2`. */
  readonly source: string
  readonly object: ManifestObject
}
export interface ManifestObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata?: unknown
  readonly spec?: unknown
  readonly [field: string]: unknown
}

/** What kubectl takes for a manifest in a folder. */
const EXTENSIONS = /\.(json|ya?ml)$/
/** Larger files are no manifests, and no list holds itself for ever. */
const MOST_BYTES = 64 * 1024 * 1024
const MOST_NESTED = 8

/**
 * All objects of the files, in the order in which kubectl applies them: as they are named, those of a folder by name. `-` is standard input.
 * @throws InspectError for what can't be read, or has nothing to read
 */
export async function readAllManifests(
  paths: readonly string[],
  { recursive, stdin }: { readonly recursive: boolean; readonly stdin: () => Buffer | Promise<Buffer> },
): Promise<readonly Manifest[]> {
  const isOverStdin = paths.filter((path) => path === '-').length > 1
  if (isOverStdin) throw new InspectError('standard input can be read once: write -f - once')
  const files = paths.flatMap((path) => (path === '-' ? ['-'] : filesOf(path, recursive)))
  const found: Manifest[] = []
  for (const file of new Set(files)) {
    const source = file === '-' ? 'standard input' : file
    const bytes = file === '-' ? await stdin() : readBytes(file)
    for (const manifest of parseManifests(textOf(bytes, source), source)) found.push(manifest)
  }
  // Whoever renders what is read may have failed: that nothing would be refused is not known of nothing.
  if (found.length === 0)
    throw new InspectError(`there is no object to plan in ${paths.map((path) => (path === '-' ? 'standard input' : path)).join(', ')}`)
  return found
}

function filesOf(path: string, recursive: boolean): readonly string[] {
  if (/^https?:\/\//.test(path)) throw new InspectError(`${path} is a URL: fetch it first, and pass it with -f -`)
  if (!existsSync(path)) throw new InspectError(`${path} is not there: name a file of manifests, a folder, or - for standard input with -f`)
  if (!statSync(path).isDirectory()) return [path]
  const found = filesIn(path, recursive)
  if (found.length === 0)
    throw new InspectError(
      `${path} has no manifests: no file in it ends in .json, .yaml or .yml${recursive ? '' : ' (folders in it are read with -R)'}`,
    )
  return found
}

/** By code point, so that it is the same on every machine. */
const byName = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

function filesIn(folder: string, recursive: boolean): readonly string[] {
  return readdirSync(folder, { withFileTypes: true })
    .toSorted((a, b) => byName(a.name, b.name))
    .flatMap((entry): readonly string[] => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return recursive ? filesIn(path, true) : []
      // A link may lead to a file, as those of a mounted ConfigMap do; one to a folder is not followed, so that none leads round in a circle.
      const isFile = entry.isFile() || (entry.isSymbolicLink() && existsSync(path) && statSync(path).isFile())
      return isFile && EXTENSIONS.test(entry.name) ? [path] : []
    })
}

function readBytes(file: string): Buffer {
  try {
    if (statSync(file).size > MOST_BYTES) throw new InspectError(`${file} has more than ${MOST_BYTES} bytes: it is no manifest`)
    return readFileSync(file)
  } catch (error) {
    if (error instanceof InspectError) throw error
    throw new InspectError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'error'})`)
  }
}

function textOf(bytes: Buffer, source: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new InspectError(`${source} is not text in UTF-8`)
  }
}

/** @throws InspectError that names the document, and the line where it is not YAML */
export function parseManifests(text: string, source: string): readonly Manifest[] {
  const values = jsonIn(text) ?? yamlIn(text, source)
  return values.flatMap((value, index) => {
    // A document without anything in it, as after the last line of dashes.
    if (value === null || value === undefined) return []
    return objectsIn(value, values.length === 1 ? source : `${source}, document ${index + 1}`, MOST_NESTED)
  })
}

function jsonIn(text: string): readonly unknown[] | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined
  for (const read of [(): readonly string[] => [text], () => objectsApart(text)])
    try {
      return read().map((one) => JSON.parse(one) as unknown)
    } catch {
      // It may be several, or YAML that begins so.
    }
  return undefined
}

/** Texts of JSON that stand one after the other, as `jq -c '.items[]'` writes them and kubectl reads them: cut after each brace that closes the outermost. */
function objectsApart(text: string): readonly string[] {
  const apart: string[] = []
  let depth = 0
  let from = 0
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]]/gs)) {
    if (token === '{' || token === '[') depth++
    if (token !== '}' && token !== ']') continue
    depth--
    if (depth > 0) continue
    apart.push(text.slice(from, index + 1))
    from = index + 1
  }
  const rest = text.slice(from)
  return rest.trim() === '' ? apart : [...apart, rest]
}

/** Of YAML 1.1 that kubectl knows nothing of. */
const unknownToKubectl = new Set([
  'tag:yaml.org,2002:timestamp',
  'tag:yaml.org,2002:binary',
  'tag:yaml.org,2002:omap',
  'tag:yaml.org,2002:pairs',
  'tag:yaml.org,2002:set',
])

/** As kubectl reads it: YAML 1.1, in which `yes` is true, and a number of more than 64 bits, such as an address without quotes, is text. */
function yamlIn(text: string, source: string): readonly unknown[] {
  const documents = parseAllDocuments(text, {
    version: '1.1',
    intAsBigInt: true,
    prettyErrors: true,
    customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || (!unknownToKubectl.has(tag.tag) && tag.format !== 'TIME')),
  })
  if (!Array.isArray(documents)) return []
  return documents.map((document, index) => {
    const [error] = document.errors
    const where = `${source}${documents.length === 1 ? '' : `, document ${index + 1}`}`
    if (error !== undefined)
      throw new InspectError(`${where} is neither YAML nor JSON${error.linePos === undefined ? '' : ` (line ${error.linePos[0].line})`}`)
    visit(document, {
      Scalar(_key, node) {
        if (isScalar(node) && typeof node.value === 'bigint') node.value = numberOf(node.value, node.source)
      },
    })
    try {
      return document.toJS({ maxAliasCount: 1_000 }) as unknown
    } catch {
      throw new InspectError(`${where} has aliases that cannot be followed`)
    }
  })
}

function numberOf(value: bigint, source: string | undefined): number | string {
  const fits = value >= -(1n << 63n) && value < 1n << 64n
  return fits || source === undefined || !/^[-+]?0[xob]/i.test(source) ? Number(value) : source
}

function objectsIn(value: unknown, source: string, nested: number): readonly Manifest[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new InspectError(`${source} is no object of Kubernetes: it has no fields`)
  const object = value as Readonly<Record<string, unknown>>
  for (const field of ['apiVersion', 'kind'] as const)
    if (typeof object[field] !== 'string' || object[field] === '')
      throw new InspectError(`${source} is no object of Kubernetes: ${field} is not set`)
  const whole = object as ManifestObject
  if (!whole.kind.endsWith('List') || !Array.isArray(whole.items)) return [{ source, object: whole }]
  if (nested === 0) throw new InspectError(`${source} has lists in lists in lists`)
  const typed = whole.kind === 'List' ? undefined : { apiVersion: whole.apiVersion, kind: whole.kind.slice(0, -'List'.length) }
  return (whole.items as readonly unknown[]).flatMap((item, index) =>
    // Items of a list of one kind need not say their kind.
    objectsIn(typed === undefined || typeof item !== 'object' ? item : { ...typed, ...item }, `${source}, item ${index + 1}`, nested - 1),
  )
}

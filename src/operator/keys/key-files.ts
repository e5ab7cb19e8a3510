import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { KeyError } from '../ports.ts'

/** The names and the most bytes of the files that a key may have. */
export type FileLimits = Readonly<Record<string, number>>

/** The files of one key, as they were at one moment. */
export interface KeyFiles {
  /** Where the key is, for messages. */
  readonly place: string
  /** The path of a file, for messages. */
  readonly pathOf: (file: string) => string
  /** The content of a file; absent when there is none. */
  readonly files: ReadonlyMap<string, Buffer>
  /** Changes when, and only when, a name or a content does. */
  readonly digest: string
}

/** Where the files of a key may be. */
interface Layout {
  readonly place: string
  /** What a swap replaces: Kubernetes puts a new version of a volume in place by one symbolic link, `..data`, at the volume's top. */
  readonly root: string
  /** A file's path below `root`, and below the link's target. */
  readonly nameOf: (file: string) => string
}

const dnsLabel = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

/**
 * Reads the files of a key that `limits` names. A key has a folder of its own, `<dir>/<keyName>/<file>`, or stands beside others as `<dir>/<keyName>.<file>`, as
 * the keys of a whole Secret do: a Secret's keys can't name folders. Kubernetes swaps a mounted volume as a whole, by one symbolic link (`..data`): all files are read
 * through where it points now, so that a keystore is never read with another version's password.
 * @throws KeyError `missing` where there is none; `malformed` for a name that is none, a key in both places, or a file that is too large or no file.
 */
export async function readKeyFiles(dir: string, keyName: string, limits: FileLimits): Promise<KeyFiles> {
  if (!dnsLabel.test(keyName))
    throw new KeyError('malformed', 'the name of a key must be lower-case letters, digits and hyphens, at most 63 characters')
  const folder = join(dir, keyName)
  const beside: Layout = { place: `${folder}.*`, root: dir, nameOf: (file) => `${keyName}.${file}` }
  const inFolder: Layout = { place: folder, root: folder, nameOf: (file) => file }
  const flat = await readLayout(beside, limits)
  if (!(await isFolder(folder))) {
    if (flat.files.size > 0) return flat
    throw new KeyError(
      'missing',
      `there is no key ${keyName} in ${dir} that can be read: mount its Secret as the folder ${folder}, or add the file as ${keyName}.${Object.keys(limits)[0]} to a Secret that is mounted at ${dir}`,
    )
  }
  if (flat.files.size > 0)
    throw new KeyError(
      'malformed',
      `the key ${keyName} is there twice, as ${folder}/ and as ${beside.place}: choose one and remove the other`,
    )
  return readLayout(inFolder, limits)
}

async function readLayout(layout: Layout, limits: FileLimits): Promise<KeyFiles> {
  const { place, root, nameOf } = layout
  const pathOf = (file: string) => join(root, nameOf(file))
  for (let attempt = 1; ; attempt++) {
    const snapshot = await currentData(root)
    const files = new Map<string, Buffer>()
    for (const [file, limit] of Object.entries(limits)) {
      const content = await readSmallFile(join(snapshot, nameOf(file)), pathOf(file), limit)
      if (content !== undefined) files.set(file, content)
    }
    // What was read may have been swapped away meanwhile: then look again, once.
    if (attempt < 2 && (await currentData(root)) !== snapshot) continue
    return { place, pathOf, files, digest: digestOf(files) }
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    if ((await stat(path)).isDirectory()) return true
  } catch {
    return false
  }
  throw new KeyError('missing', `${path} is not a folder: mount the key's Secret there`)
}

/** Where a folder's files are now: what its own link names, or, in the folder of a volume of many keys, where the volume's link leads to. */
async function currentData(root: string): Promise<string> {
  return (await realpath(join(root, '..data')).catch(() => undefined)) ?? (await realpath(root).catch(() => undefined)) ?? root
}

/** @param shown the path for messages. */
async function readSmallFile(path: string, shown: string, limit: number): Promise<Buffer | undefined> {
  let file: FileHandle
  try {
    // Not blocking: a named pipe would hold us for good.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new KeyError('missing', `${shown} cannot be read (${code ?? 'unknown error'}): check its mode and owner`)
  }
  try {
    if (!(await file.stat()).isFile()) throw new KeyError('malformed', `${shown} is not a file`)
    const buffer = Buffer.alloc(limit + 1)
    let size = 0
    while (size < buffer.length) {
      const { bytesRead } = await file.read(buffer, size, buffer.length - size)
      if (bytesRead === 0) break
      size += bytesRead
    }
    if (size > limit) throw new KeyError('malformed', `${shown} is larger than ${limit} bytes: is it the right file?`)
    return buffer.subarray(0, size)
  } finally {
    await file.close()
  }
}

function digestOf(files: ReadonlyMap<string, Buffer>): string {
  const hash = createHash('sha256')
  for (const [name, content] of files) hash.update(`${name}\0${content.length}\0`).update(content)
  return hash.digest('hex')
}

import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { KeyError } from '../ports.ts'

/** The names and the most bytes of the files that a key folder may hold. */
export type FileLimits = Readonly<Record<string, number>>

/** The files of one key folder, as they were at one moment. */
export interface KeyFiles {
  /** For messages. */
  readonly folder: string
  /** The content of a file; absent when there is none. */
  readonly files: ReadonlyMap<string, Buffer>
  /** Changes when, and only when, a name or a content does. */
  readonly digest: string
}

const dnsLabel = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

/**
 * Reads the files of `<dir>/<keyName>/` that `limits` names. Kubernetes swaps a mounted Secret as a whole, by one symbolic link (`..data`):
 * all files are read through where it points now, so that a keystore is never read with another version's password.
 * @throws KeyError `missing` without the folder; `malformed` for a name that is none, or a file that is too large or no file.
 */
export async function readKeyFiles(dir: string, keyName: string, limits: FileLimits): Promise<KeyFiles> {
  if (!dnsLabel.test(keyName))
    throw new KeyError('malformed', 'the name of a key must be lower-case letters, digits and hyphens, at most 63 characters')
  const folder = join(dir, keyName)
  for (let attempt = 1; ; attempt++) {
    const snapshot = await currentData(folder)
    const files = new Map<string, Buffer>()
    for (const [name, limit] of Object.entries(limits)) {
      const content = await readSmallFile(join(snapshot, name), join(folder, name), limit)
      if (content !== undefined) files.set(name, content)
    }
    // The folder that was read may have been swapped away meanwhile: then look again, once.
    if (attempt < 2 && (await currentData(folder)) !== snapshot) continue
    return { folder, files, digest: digestOf(files) }
  }
}

async function currentData(folder: string): Promise<string> {
  try {
    if (!(await stat(folder)).isDirectory()) throw new KeyError('missing', `${folder} is not a folder: mount the key's Secret there`)
  } catch (error) {
    if (error instanceof KeyError) throw error
    throw new KeyError('missing', `there is no key folder ${folder} that can be read: mount the key's Secret there`)
  }
  try {
    return await realpath(join(folder, '..data'))
  } catch {
    return folder
  }
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

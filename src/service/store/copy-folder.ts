import { copyFile, type FileHandle, mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/**
 * Copies a folder, whole or not at all, and on the disk when it returns: under another name first. Only files and folders are copied, which is all that a database has.
 * @param to Must not be there; the folder above it is made.
 */
export async function copyFolder(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  const partial = join(dirname(to), `${basename(to)}.partial`)
  await rm(partial, { recursive: true, force: true })
  try {
    await copyEntries(from, partial)
    await rename(partial, to)
  } catch (error) {
    await rm(partial, { recursive: true, force: true })
    throw error
  }
  await synced(dirname(to))
}

async function copyEntries(from: string, to: string): Promise<void> {
  await mkdir(to, { mode: 0o700 })
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) await copyEntries(source, target)
    else if (entry.isFile()) {
      await copyFile(source, target)
      await synced(target)
    }
  }
  await synced(to)
}

async function synced(path: string): Promise<void> {
  const handle: FileHandle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

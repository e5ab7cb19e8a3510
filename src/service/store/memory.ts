import { readFileSync } from 'node:fs'

const mib = 1024 * 1024
/** Measured: 830 MiB at peak at the first start, the thread that makes deposits included, while V8's optimising compiler works through PGlite; 250 to 400 MiB once it is through. The files are made in a process of their own, with 570 MiB. */
export const embeddedMinimumBytes = 896 * mib

/** Version 2, then version 1. */
const limitFiles = ['/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes']

/** What this process's container may take, in bytes; undefined without a limit. */
export function memoryLimit(read: (path: string) => string = (path) => readFileSync(path, 'utf8')): number | undefined {
  for (const path of limitFiles) {
    try {
      const text = read(path).trim()
      const bytes = Number(text)
      // "max", and version 1's word for it: a number larger than any memory.
      return /^[0-9]+$/.test(text) && bytes < 2 ** 53 ? bytes : undefined
    } catch {
      // Not this version.
    }
  }
  return undefined
}

/** Why the embedded database can't run within a limit; undefined when it can. */
export const tooLittleMemory = (limitBytes: number | undefined): string | undefined =>
  limitBytes === undefined || limitBytes >= embeddedMinimumBytes
    ? undefined
    : `the embedded database needs ${embeddedMinimumBytes / mib} MiB of memory, and this container's limit is ${Math.floor(limitBytes / mib)} MiB: raise the limit (1 GiB is comfortable), or use PostgreSQL (database.urlFile)`

/** Whether a container has room for the embedded database and little else. */
export const isSmall = (limitBytes: number | undefined): boolean => limitBytes !== undefined && limitBytes < 1536 * mib

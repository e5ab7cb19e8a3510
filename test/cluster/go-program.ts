import { createHash } from 'node:crypto'
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { withLock } from './assets-lock.ts'
import { cacheDir } from './cache-dir.ts'
import { findOnPath } from './process.ts'
import { runToEnd } from './run.ts'

export interface GoProgramOptions {
  /** Folder below this one that holds go.mod, go.sum and the source, if it is ours. */
  readonly module: string
  /** Where the programs are kept, below the user's cache. Default: a name made of what they are built from. */
  readonly cache?: string
  /** Package of each program, by its name. */
  readonly programs: Readonly<Record<string, string>>
  /** Every module is taken as go.mod and go.sum have it. Else what is missing there is found. */
  readonly isComplete: boolean
  readonly log?: (line: string) => void
  readonly signal: AbortSignal
}

const goEnv = (isComplete: boolean) => ({
  CGO_ENABLED: '0',
  GOFLAGS: `-mod=${isComplete ? 'readonly' : 'mod'}`,
  GO111MODULE: 'on',
  GOWORK: 'off',
})

/** Path of Go. @throws with what to install */
export function findGo(what: string): string {
  const go = findOnPath('go', process.env.PATH ?? '')
  if (go === undefined) throw new Error(`${what} has to be built once: install Go 1.26 or newer (https://go.dev/dl)`)
  return go
}

/**
 * Programs that are built with Go into the user's cache once, each whole or not at all; a lock keeps two processes from building them twice.
 * @returns the folder that holds them @throws with what to install, or the compiler's last lines
 */
export async function ensureGoPrograms(options: GoProgramOptions): Promise<string> {
  const { module, signal, log = () => {} } = options
  const source = sourceOf(options)
  const folder = folderOf(options)
  const missing = () => missingFrom(folder, options)
  if (missing().length === 0) return folder
  mkdirSync(folder, { recursive: true })
  await withLock(
    { file: `${folder}.lock`, signal, onWait: (pid) => log(`${module}: waiting for process ${pid}, which builds it too`) },
    async () => {
      for (const name of missing()) {
        log(`${module}: building ${name} with Go`)
        await build(source, { ...options, name, into: folder })
      }
    },
  )
  return folder
}

type Wanted = Pick<GoProgramOptions, 'module' | 'cache' | 'programs'>
const sourceOf = ({ module }: Wanted): string => join(import.meta.dirname, module)
const folderOf = (wanted: Wanted): string => join(cacheDir(process.env), wanted.cache ?? `${wanted.module}-${digestOf(sourceOf(wanted))}`)
const missingFrom = (folder: string, { programs }: Wanted): readonly string[] =>
  Object.keys(programs).filter((name) => !existsSync(join(folder, name)))

/** The folder of programs that were built before; undefined where one is missing, and nothing is built. */
export function builtGoPrograms(wanted: Wanted): string | undefined {
  const folder = folderOf(wanted)
  return missingFrom(folder, wanted).length === 0 ? folder : undefined
}

function digestOf(source: string): string {
  const hash = createHash('sha256')
  for (const name of readdirSync(source).toSorted()) hash.update(name).update(readFileSync(join(source, name)))
  return hash.digest('hex').slice(0, 12)
}

async function build(
  source: string,
  { module, name, programs, into, isComplete, signal }: GoProgramOptions & { readonly name: string; readonly into: string },
): Promise<void> {
  const work = mkdtempSync(join(into, '.build-'))
  try {
    // Go may write into go.mod: into a copy.
    for (const file of readdirSync(source)) copyFileSync(join(source, file), join(work, file))
    const { code, stderr } = await runToEnd({
      command: findGo(module),
      args: ['build', '-trimpath', '-buildvcs=false', '-ldflags', '-s -w', '-o', join(work, 'built', name), programs[name] ?? '.'],
      cwd: work,
      env: goEnv(isComplete),
      signal,
    })
    if (code !== 0) throw new Error(`Go could not build ${name}:\n${stderr.trimEnd().split('\n').slice(-15).join('\n')}`)
    chmodSync(join(work, 'built', name), 0o755)
    renameSync(join(work, 'built', name), join(into, name))
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Where Go keeps the source of a module that is in `module`'s go.sum; downloaded where it isn't there. */
export async function goModuleSource(module: string, path: string, signal: AbortSignal): Promise<string> {
  const { code, stdout, stderr } = await runToEnd({
    command: findGo(module),
    args: ['mod', 'download', '-json', path],
    cwd: join(import.meta.dirname, module),
    env: goEnv(true),
    signal,
  })
  if (code !== 0) throw new Error(`Go could not download ${path}: ${stderr}${stdout}`)
  return (JSON.parse(stdout) as { Dir: string }).Dir
}

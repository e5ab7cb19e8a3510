import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { findOnPath } from '../cluster/process.ts'

/**
 * Stand-ins for the public bases of the Dockerfile, which need a registry: Node of this project's own dependency, npm, a shell and the libraries that they are
 * linked with, as this machine has them. Kept in the user's cache, by the version of Node.
 */
export interface BaseFolders {
  /** For BASE_IMAGE: the C and C++ libraries and nothing that could be run. */
  readonly runtime: string
  /** For NODE_IMAGE: with Node, npm and a shell. */
  readonly build: string
}

export function baseFolders(cache: string): BaseFolders {
  const dir = join(cache, `image-bases-${process.version}-3`)
  if (!existsSync(dir)) {
    mkdirSync(cache, { recursive: true })
    // Under another name first: one that is half made is never used.
    const making = mkdtempSync(`${dir}.`)
    make(making)
    try {
      renameSync(making, dir)
    } catch (error) {
      if (!existsSync(dir)) throw error
    }
  }
  return { runtime: join(dir, 'runtime'), build: join(dir, 'build') }
}

function make(dir: string): void {
  const node = realpathSync(process.execPath)
  const runtime = join(dir, 'runtime')
  const build = join(dir, 'build')
  for (const root of [runtime, build]) {
    const libraries = librariesOf(node)
    for (const library of libraries) copy(library, root)
    // Of the C library too, for native modules.
    const librt = libraries.map((path) => join(dirname(path), 'librt.so.1')).find((path) => existsSync(path))
    if (librt !== undefined) copy(librt, root)
    for (const folder of ['tmp', 'proc', 'sys', 'dev', 'root', 'home/nonroot']) mkdirSync(join(root, folder), { recursive: true })
    chmodSync(join(root, 'tmp'), 0o1777)
    write(root, 'etc/passwd', 'root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n')
    write(root, 'etc/group', 'root:x:0:\nnonroot:x:65532:\n')
    const authorities = '/etc/ssl/certs/ca-certificates.crt'
    if (existsSync(authorities)) copy(authorities, root)
  }
  copy(node, build, 'usr/local/bin/node')
  for (const program of ['/bin/sh', '/usr/bin/env']) {
    copy(program, build)
    for (const library of librariesOf(program)) copy(library, build)
  }
  const npm = findOnPath('npm', process.env.PATH ?? '')
  if (npm === undefined) throw new Error('npm is not on the PATH')
  cpSync(dirname(dirname(realpathSync(npm))), join(build, 'usr/local/lib/node_modules/npm'), { recursive: true, dereference: true })
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(build, 'usr/local/bin/npm'))
}

/** Paths of the libraries that a program is linked with, its loader among them. */
function librariesOf(program: string): string[] {
  const { stdout } = spawnSync('ldd', [program], { encoding: 'utf8' })
  return [...stdout.matchAll(/(?:=>\s+|^\s+)(\/\S+)/gm)].flatMap(([, path]) => (path === undefined ? [] : [path]))
}

/** To the same place below the root, as a file of its own. */
function copy(path: string, root: string, to = path): void {
  const target = join(root, to)
  mkdirSync(dirname(target), { recursive: true })
  cpSync(realpathSync(path), target)
}

function write(root: string, path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}

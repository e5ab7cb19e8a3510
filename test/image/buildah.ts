import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runToEnd } from '../cluster/run.ts'

const repository = join(import.meta.dirname, '../..')
/** Of one step: a build on a busy machine installs three sets of packages. */
const stepMs = 400_000

/** An image's configuration, as OCI has it. */
export interface ImageConfig {
  readonly User?: string
  readonly Entrypoint?: readonly string[]
  readonly Cmd?: readonly string[]
  readonly Env?: readonly string[]
  readonly ExposedPorts?: Readonly<Record<string, object>>
}

/** Debian's buildah, as root, with a store of its own and no registry. What two targets have in common is built once for both. */
export function createBuildah({ dir, signal }: { readonly dir: string; readonly signal: AbortSignal }) {
  mkdirSync(dir, { recursive: true })
  const own = ['--root', join(dir, 'store'), '--runroot', join(dir, 'run'), '--storage-driver', 'vfs']
  async function buildah(...args: readonly string[]): Promise<string> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(stepMs)])
    const { code, stdout, stderr } = await runToEnd({ command: 'buildah', args: [...own, ...args], signal: limit })
    if (code !== 0) throw new Error(`buildah ${args[0]} ended with ${code}:\n${`${stdout}\n${stderr}`.slice(-4_000)}`)
    return stdout.trim()
  }
  const bud = ['bud', '--isolation', 'chroot', '--pull-never', '--quiet', '--timestamp', '0', '--layers']
  return {
    /** An image whose files are those of a folder. */
    async fromFolder(tag: string, folder: string, lines: readonly string[] = []): Promise<void> {
      const file = join(dir, `${tag.replaceAll(/\W/g, '-')}.containerfile`)
      writeFileSync(file, ['FROM scratch', 'COPY . /', ...lines, ''].join('\n'))
      await buildah(...bud, '-f', file, '-t', tag, folder)
    },
    /** A target of this repository's Dockerfile. Folders are `outside:inside`. @returns the image's digest */
    async build(target: string, tag: string, args: Readonly<Record<string, string>>, folders: readonly string[]): Promise<string> {
      const given = Object.entries(args).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`])
      const mounted = folders.flatMap((folder) => ['--volume', folder])
      const idFile = join(dir, `${target}.id`)
      await buildah(...bud, '--target', target, ...given, ...mounted, '--iidfile', idFile, '-t', tag, repository)
      const digest = await buildah('inspect', '--type', 'image', '--format', '{{.FromImageDigest}}', readFileSync(idFile, 'utf8').trim())
      return digest
    },
    async config(tag: string): Promise<ImageConfig> {
      const { OCIv1 } = JSON.parse(await buildah('inspect', '--type', 'image', tag)) as { OCIv1: { config: ImageConfig } }
      return OCIv1.config
    },
    /** Where a container's files are, until the store is removed. */
    async mount(tag: string): Promise<{ readonly container: string; readonly root: string }> {
      const container = await buildah('from', '--pull-never', tag)
      return { container, root: await buildah('mount', container) }
    },
    /** Runs in the container as the image's user, to the end. */
    run: (container: string, ...command: readonly string[]) => buildah('run', '--isolation', 'chroot', container, '--', ...command),
    end: () => buildah('rm', '--all'),
  }
}

export type Buildah = ReturnType<typeof createBuildah>

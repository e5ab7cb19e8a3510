import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { findOnPath } from '../cluster/process.ts'
import { runToEnd } from '../cluster/run.ts'
import { type DevnetClient, GO_VERSION, programsOf } from './clients.ts'

export interface BuildClientOptions {
  readonly client: DevnetClient
  /** An empty folder; the programs come out in `bin` within it. */
  readonly into: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly step: (what: string) => void
  readonly signal: AbortSignal
}

/**
 * Builds one client with Go, at the version of its go.mod and checked against its go.sum. Answers the folder of the programs.
 * @throws with what to install when there is no Go, no C compiler or too old a Go, and with the compiler's last lines when it fails.
 */
export async function buildClient({ client, into, env, step, signal }: BuildClientOptions): Promise<string> {
  const go = findOnPath('go', env.PATH ?? '')
  if (go === undefined) throw new Error(install(client, 'there is no Go here'))
  if ((env.CC ?? '') === '' && ['gcc', 'clang', 'cc'].every((compiler) => findOnPath(compiler, env.PATH ?? '') === undefined)) {
    throw new Error(install(client, 'there is no C compiler here (its BLS library is in C)'))
  }
  const { stdout } = await runToEnd({ command: go, args: ['env', 'GOVERSION'], env: { ...env, GOTOOLCHAIN: 'local' }, signal })
  const minor = Number(/^go1\.(\d+)/.exec(stdout.trim())?.[1])
  if (!(minor >= 21)) throw new Error(install(client, `Go here is ${stdout.trim() || 'of an unknown version'}`))
  // From 1.21 on, an older Go fetches the toolchain that go.mod asks for, unless told not to.
  const toolchain = minor >= Number(GO_VERSION.split('.')[1]) ? {} : { GOTOOLCHAIN: 'auto' }

  // `-mod=mod` writes the modules it found into go.mod: into a copy, never into the checkout. go.sum still decides what is taken.
  const work = join(into, 'module')
  mkdirSync(work)
  for (const file of ['go.mod', 'go.sum']) copyFileSync(join(import.meta.dirname, client.module, file), join(work, file))
  const bin = join(into, 'bin')
  step(`${client.name}: downloading modules`)
  let compiled = 0
  const onStderr = (text: string): void => {
    for (const line of text.split('\n')) {
      if (line.startsWith('go: downloading ')) step(`${client.name}: downloading ${line.slice('go: downloading '.length)}`)
      // `-v` prints each package as it is compiled.
      if (!/^[\w.-]+(\/[\w.~-]+)*$/.test(line)) continue
      compiled += 1
      step(`${client.name}: ${compiled} packages compiled`)
    }
  }
  const packages = programsOf(client).flatMap((program) => client.packages[program] ?? [])
  const result = await runToEnd({
    command: go,
    args: ['build', '-v', '-trimpath', '-buildvcs=false', '-ldflags', '-s -w', '-o', `${bin}/`, ...packages],
    cwd: work,
    env: { ...env, ...toolchain, CGO_ENABLED: '1', GOFLAGS: '-mod=mod', GO111MODULE: 'on', GOWORK: 'off' },
    onStderr,
    signal,
  })
  if (result.code !== 0) {
    throw new Error(`Go could not build ${client.name} ${client.version}:\n${result.stderr.trimEnd().split('\n').slice(-15).join('\n')}`)
  }
  return bin
}

const install = (client: DevnetClient, why: string): string =>
  `${client.name} ${client.version} has to be built from source once, and ${why}: install Go ${GO_VERSION} or newer (https://go.dev/dl) and a C compiler (gcc or clang).`

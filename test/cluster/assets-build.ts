import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { findOnPath } from './process.ts'
import { runToEnd } from './run.ts'
import { GO_VERSION, KUBERNETES_VERSION } from './versions.ts'

export const PROGRAMS = ['kube-apiserver', 'etcd', 'kube-controller-manager', 'kubectl'] as const
export type Program = (typeof PROGRAMS)[number]

const PACKAGES: Readonly<Record<Program, string>> = {
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  etcd: 'go.etcd.io/etcd/server/v3',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
  kubectl: 'k8s.io/kubernetes/cmd/kubectl',
}

export interface BuildOptions {
  readonly programs: readonly Program[]
  /** An empty folder; the programs come out in it. */
  readonly into: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly step: (what: string) => void
  readonly signal: AbortSignal
}

/**
 * Builds the programs with Go, at the versions of controlplane/go.mod and checked against its go.sum.
 * @throws with what to install when there is no Go or it is too old, and with the compiler's last lines when it fails.
 */
export async function buildWithGo({ programs, into, env, step, signal }: BuildOptions): Promise<void> {
  const { go, toolchain } = await findGo(env, signal)
  step('downloading modules')
  let compiled = 0
  const onStderr = (text: string): void => {
    for (const line of text.split('\n')) {
      if (line.startsWith('go: downloading ')) step(`downloading ${line.slice('go: downloading '.length)}`)
      // `-v` prints each package as it is compiled.
      if (!/^[\w.-]+(\/[\w.~-]+)*$/.test(line)) continue
      compiled += 1
      step(`compiling with Go: ${compiled} packages so far`)
    }
  }
  const [major, minor] = KUBERNETES_VERSION.split('.')
  const version = 'k8s.io/component-base/version'
  const ldflags = `-s -w -X ${version}.gitVersion=v${KUBERNETES_VERSION} -X ${version}.gitMajor=${major} -X ${version}.gitMinor=${minor}`
  const result = await runToEnd({
    command: go,
    args: [
      'build',
      '-v',
      '-trimpath',
      '-buildvcs=false',
      '-ldflags',
      ldflags,
      '-o',
      `${into}/`,
      ...programs.map((program) => PACKAGES[program]),
    ],
    // `-mod=readonly` below: Go writes nothing into the checkout, and takes nothing that go.sum doesn't name.
    cwd: join(import.meta.dirname, 'controlplane'),
    env: { ...env, ...toolchain, CGO_ENABLED: '0', GOFLAGS: '-mod=readonly', GO111MODULE: 'on', GOWORK: 'off' },
    onStderr,
    signal,
  })
  if (result.code !== 0) {
    const lines = result.stderr.trimEnd().split('\n').slice(-15).join('\n')
    throw new Error(
      `Go could not build the control plane (${programs.join(', ')}):\n${lines}\n${installGo('If it is Go itself that is too old:')}`,
    )
  }
  // etcd's package is named `server`, and so is what comes out.
  if (programs.includes('etcd')) renameSync(join(into, 'server'), join(into, 'etcd'))
}

const installGo = (why: string): string =>
  `${why} install Go ${GO_VERSION} or newer (https://go.dev/dl), or set KUBEBUILDER_ASSETS to a folder with kube-apiserver, etcd and kubectl ` +
  `(setup-envtest use ${KUBERNETES_VERSION.split('.').slice(0, 2).join('.')} -p path).`

/** Go, and what it needs to be told. From 1.21 on, an older Go fetches the toolchain that go.mod asks for, unless told not to. */
async function findGo(
  env: BuildOptions['env'],
  signal: AbortSignal,
): Promise<{ readonly go: string; readonly toolchain: { GOTOOLCHAIN?: string } }> {
  const go = findOnPath('go', env.PATH ?? '')
  if (go === undefined) throw new Error(installGo('The control plane has to be built from source once, and there is no Go here:'))
  const { stdout } = await runToEnd({ command: go, args: ['env', 'GOVERSION'], env: { ...env, GOTOOLCHAIN: 'local' }, signal })
  const [, minor] = /^go1\.(\d+)/.exec(stdout.trim()) ?? []
  if (minor === undefined || Number(minor) < 21) {
    throw new Error(
      installGo(`The control plane has to be built from source once, and Go here is ${stdout.trim() || 'of an unknown version'}, too old:`),
    )
  }
  return { go, toolchain: Number(minor) >= Number(GO_VERSION.split('.')[1]) ? {} : { GOTOOLCHAIN: 'auto' } }
}

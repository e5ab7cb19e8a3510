import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { type AssetsOptions, assetsCache, findAssets } from '../../cluster/assets.ts'
import { ChecksumError } from '../../cluster/assets-archive.ts'
import { ETCD_VERSION, GO_VERSION, KUBERNETES_VERSION } from '../../cluster/versions.ts'

const PROGRAMS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl']
const platform = `${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`
const archiveName = (version: string): string => `envtest-v${version}-${platform}.tar.gz`

let dir: string
let server: Server | undefined
let requests: string[]

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'staking-assets-test-'))
  requests = []
})
afterEach(async () => {
  server?.closeAllConnections()
  await new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())))
  server = undefined
  rmSync(dir, { recursive: true, force: true })
})

const executable = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  chmodSync(path, 0o755)
}

/** A `go` that writes what it was asked to build, each file holding the word "built", and how it was called. */
const fakeGo = (version = 'go1.26.1', build = ''): string => {
  executable(
    join(dir, 'go-bin', 'go'),
    `#!/bin/sh
if [ "$1" = env ]; then echo ${version}; exit 0; fi
echo "GOTOOLCHAIN=$GOTOOLCHAIN CGO_ENABLED=$CGO_ENABLED $*" >> ${dir}/go-calls
${build}
while [ "$1" != -o ]; do shift; done
into=$2; shift 2
for package in "$@"; do
  case $package in go.etcd.io/*) name=server ;; *) name=\${package##*/} ;; esac
  echo "built" > "$into$name"
done
`,
  )
  return join(dir, 'go-bin')
}
const goCalls = (): string[] => (existsSync(join(dir, 'go-calls')) ? readFileSync(join(dir, 'go-calls'), 'utf8').trim().split('\n') : [])

/** Serves an index and an archive whose three programs hold the word "archived". */
const serveArchive = async ({ version = KUBERNETES_VERSION, tamper = false } = {}): Promise<string> => {
  const content = join(dir, 'content')
  for (const name of ['etcd', 'kube-apiserver', 'kubectl']) executable(join(content, 'controller-tools', 'envtest', name), 'archived\n')
  execFileSync('tar', ['-czf', join(dir, 'archive.tar.gz'), '-C', content, 'controller-tools'])
  const archive = readFileSync(join(dir, 'archive.tar.gz'))
  const hash = createHash('sha512').update(archive).digest('hex')
  if (tamper) archive.writeUInt8(archive.readUInt8(archive.length - 1) ^ 1, archive.length - 1)
  return serve((path, origin) =>
    path === '/index.yaml'
      ? stringify({ releases: { [`v${version}`]: { [archiveName(version)]: { hash, selfLink: `${origin}/${archiveName(version)}` } } } })
      : archive,
  )
}

const serve = async (answer: (path: string, origin: string) => string | Buffer | undefined): Promise<string> => {
  const started = createServer((request, response) => {
    const path = request.url ?? ''
    requests.push(path)
    const body = answer(path, `http://127.0.0.1:${(started.address() as AddressInfo).port}`)
    if (body !== undefined) response.end(body)
  })
  server = started
  await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(started.address() as AddressInfo).port}/index.yaml`
}

const find = async (
  env: Record<string, string>,
  options: Partial<AssetsOptions> = {},
): Promise<{ readonly content: Record<string, string>; readonly log: string }> => {
  const lines: string[] = []
  const found = await findAssets({
    env: { XDG_CACHE_HOME: join(dir, 'cache'), STAKING_ENVTEST_URL: 'none', PATH: join(dir, 'nothing'), ...env },
    log: (line) => lines.push(line),
    signal: AbortSignal.timeout(30_000),
    ...options,
  })
  const content = Object.fromEntries(Object.entries(found).map(([name, path]) => [name, readFileSync(path, 'utf8').trim()]))
  return { content, log: lines.join('\n') }
}
const cache = (): string => assetsCache({ XDG_CACHE_HOME: join(dir, 'cache') })
const cached = (): string[] => (existsSync(cache()) ? readdirSync(cache()).toSorted() : [])
const leftovers = (): string[] => readdirSync(dirname(cache())).filter((name) => join(dirname(cache()), name) !== cache())

const built = { kubeApiserver: 'built', etcd: 'built', kubeControllerManager: 'built', kubectl: 'built' }
const archivedButManager = { kubeApiserver: 'archived', etcd: 'archived', kubeControllerManager: 'built', kubectl: 'archived' }

test('the versions are those that go.mod builds', () => {
  const module = readFileSync(join(import.meta.dirname, '../../cluster/controlplane/go.mod'), 'utf8')
  expect(module).toContain(`k8s.io/kubernetes v${KUBERNETES_VERSION}`)
  expect(module).toContain(`go.etcd.io/etcd/server/v3 v${ETCD_VERSION}`)
  expect(module).toContain(`go ${GO_VERSION}.`)
})

describe('the published archive', () => {
  test('is used where it can be had; Go then builds only the controller-manager, and the next start uses the cache', async () => {
    const env = { STAKING_ENVTEST_URL: await serveArchive(), PATH: fakeGo() }
    const { content, log } = await find(env)
    expect(content).toEqual(archivedButManager)
    expect(log).toContain('from the published envtest archive')
    expect(goCalls()).toHaveLength(1)
    expect(goCalls()[0]).toMatch(/k8s\.io\/kubernetes\/cmd\/kube-controller-manager$/)
    expect(goCalls()[0]).not.toContain('kube-apiserver')
    expect(leftovers()).toEqual([])

    const before = requests.length
    expect((await find(env)).content).toEqual(archivedButManager)
    expect(requests).toHaveLength(before)
    expect(goCalls()).toHaveLength(1)
  })

  test('of another patch of the same minor version does', async () => {
    const sibling = `${KUBERNETES_VERSION.split('.').slice(0, 2).join('.')}.0`
    expect((await find({ STAKING_ENVTEST_URL: await serveArchive({ version: sibling }), PATH: fakeGo() })).content).toEqual(
      archivedButManager,
    )
  })

  test('is refused when its checksum is not the published one, and nothing of it is kept', async () => {
    const env = { STAKING_ENVTEST_URL: await serveArchive({ tamper: true }), PATH: fakeGo() }
    await expect(find(env)).rejects.toThrow(ChecksumError)
    await expect(find(env)).rejects.toThrow(/is not the published one.*STAKING_ENVTEST_URL=none/)
    expect(cached()).toEqual([])
    expect(leftovers()).toEqual([])
    expect(goCalls()).toEqual([])
  })

  test.each([
    { given: 'nobody listens', url: async () => 'http://127.0.0.1:9/index.yaml', why: "the network doesn't allow it" },
    { given: 'the server is silent', url: () => serve(() => undefined), why: 'nothing arrived for 5 s' },
    { given: 'the index is a web page', url: () => serve(() => '<html>hello</html>'), why: 'is published' },
    { given: 'only another minor version is published', url: () => serveArchive({ version: '1.2.3' }), why: 'is published' },
  ])('is done without when $given: Go builds everything', async ({ url, why }) => {
    const { content, log } = await find({ STAKING_ENVTEST_URL: await url(), PATH: fakeGo() })
    expect(log).toContain('no envtest archive')
    expect(log).toContain(why)
    expect(content).toEqual(built)
    expect(cached()).toEqual(PROGRAMS)
  })
})

describe('the build with Go', () => {
  test('stamps the version and needs no C compiler', async () => {
    await find({ PATH: fakeGo() })
    expect(goCalls()[0]).toContain('CGO_ENABLED=0')
    expect(goCalls()[0]).toContain(`gitVersion=v${KUBERNETES_VERSION}`)
  })

  test.each([
    { given: 'there is no Go', go: () => join(dir, 'nothing'), message: /there is no Go here: install Go 1\.26 or newer/ },
    {
      given: 'Go is too old to fetch a newer one',
      go: () => fakeGo('go1.20.14'),
      message: /go1\.20\.14, too old: install Go 1\.26 or newer/,
    },
    { given: 'the build fails', go: () => fakeGo('go1.26.1', 'echo "no space left" >&2; exit 1'), message: /no space left/ },
  ])('says what to do when $given, and leaves nothing half', async ({ go, message }) => {
    await expect(find({ PATH: go() })).rejects.toThrow(message)
    expect(cached()).toEqual([])
    expect(leftovers()).toEqual([])
  })

  test('lets an older Go fetch the newer one', async () => {
    await find({ PATH: fakeGo('go1.23.4') })
    expect(goCalls()[0]).toContain('GOTOOLCHAIN=auto')
  })

  test('leaves nothing half when it is interrupted', async () => {
    const controller = new AbortController()
    const PATH = fakeGo('go1.26.1', `echo half > ${dir}/started; exec sleep 20`)
    const finding = find({ PATH: `${PATH}:/usr/bin:/bin` }, { signal: controller.signal })
    finding.catch(() => {})
    await expect.poll(() => existsSync(join(dir, 'started')), { timeout: 30_000 }).toBe(true)
    controller.abort(new Error('interrupted'))
    await expect(finding).rejects.toThrow('interrupted')
    expect(cached()).toEqual([])
    expect(leftovers()).toEqual([])
  })

  test('says now and then how far it is', async () => {
    const { log } = await find({ PATH: `${fakeGo('go1.26.1', 'echo k8s.io/api/core/v1 >&2; sleep 1')}:/usr/bin:/bin` }, { progressMs: 100 })
    expect(log).toMatch(/compiling with Go: 1 packages so far \(0 min \d s\)/)
  })

  test('happens once when two ask at the same time', async () => {
    const PATH = `${fakeGo('go1.26.1', 'sleep 0.5')}:/usr/bin:/bin`
    const both = await Promise.all([find({ PATH }), find({ PATH })])
    expect(both.map(({ content }) => content)).toEqual([built, built])
    expect(goCalls()).toHaveLength(1)
  })

  test('takes over the lock of a process that died', async () => {
    mkdirSync(dirname(cache()), { recursive: true })
    writeFileSync(`${cache()}.lock`, JSON.stringify({ pid: process.pid, birth: 'another life of this pid' }))
    expect((await find({ PATH: fakeGo() })).content).toEqual(built)
    expect(leftovers()).toEqual([])
  })
})

describe('KUBEBUILDER_ASSETS', () => {
  test('comes first', async () => {
    for (const program of PROGRAMS) executable(join(dir, 'own', program), 'own\n')
    const { content } = await find({ KUBEBUILDER_ASSETS: join(dir, 'own') })
    expect(content).toEqual({ kubeApiserver: 'own', etcd: 'own', kubeControllerManager: 'own', kubectl: 'own' })
  })

  test('may lack the controller-manager, as envtest folders do: that is built', async () => {
    for (const program of ['etcd', 'kube-apiserver', 'kubectl']) executable(join(dir, 'own', program), 'own\n')
    const { content } = await find({ KUBEBUILDER_ASSETS: join(dir, 'own'), PATH: fakeGo() })
    expect(content).toEqual({ kubeApiserver: 'own', etcd: 'own', kubeControllerManager: 'built', kubectl: 'own' })
  })

  test('is refused with what it lacks', async () => {
    executable(join(dir, 'own', 'kube-apiserver'), 'own\n')
    await expect(find({ KUBEBUILDER_ASSETS: join(dir, 'own') })).rejects.toThrow(/lacks etcd, kubectl/)
  })
})

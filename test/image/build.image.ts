import { existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { filesBelow } from '../../scripts/image/files.ts'
import { licenceOf, packageFolders } from '../../scripts/image/licences.ts'
import type { Lock } from '../../scripts/image/lock.ts'
import { cacheDir } from '../cluster/cache-dir.ts'
import { freePort } from '../cluster/ports.ts'
import { type RunningProcess, startProcess } from '../cluster/process.ts'
import { applyAll, signer, stake, untilReady } from '../stack/resources.ts'
import { type Stack, startStack, TEST_SEED } from '../stack/stack.ts'
import { baseFolders } from './bases.ts'
import { type Buildah, createBuildah } from './buildah.ts'

/**
 * Both images by the repository's Dockerfile, from stand-ins for the public bases: what is in them, and that they work with that alone. What they weigh beside
 * the bases is the same as with the public ones.
 */
const TIMEOUT_MS = 600_000
const repository = join(import.meta.dirname, '../..')
/** What the public base takes (libssl and the time zones beside the libraries), generously. */
const PUBLIC_BASE_BYTES = 27_000_000
const LIMIT_BYTES = 200_000_000
const targets = ['operator', 'service'] as const
type Target = (typeof targets)[number]

const manifest = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as {
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}
const { packages: locked } = JSON.parse(readFileSync(join(repository, 'package-lock.json'), 'utf8')) as Lock
/** Packages of the developers alone: types of Node, say, are a dependency of a dependency too. */
const developers = Object.keys(manifest.devDependencies).filter((name) => locked[`node_modules/${name}`]?.dev === true)

describe('the images', { timeout: TIMEOUT_MS }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'staking-image-'))
  const stopping = new AbortController()
  const buildah = createBuildah({ dir: join(dir, 'first'), signal: stopping.signal })
  let digests: Readonly<Partial<Record<Target, string>>> = {}
  const mounted: Partial<Record<Target, { readonly container: string; readonly root: string }>> = {}
  const rootOf = (target: Target): string => mounted[target]?.root ?? ''
  const appOf = (target: Target): string => join(rootOf(target), 'app')
  const started: RunningProcess[] = []
  let stack: Stack | undefined

  /** The packages come from npm's cache, which the tests' own installation has filled. */
  const cache = join(homedir(), '.npm')
  async function buildBoth({ fromFolder, build }: Buildah): Promise<Readonly<Record<Target, string>>> {
    const bases = baseFolders(cacheDir(process.env))
    await fromFolder('localhost/runtime-base', bases.runtime)
    await fromFolder('localhost/build-base', bases.build, [
      'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt npm_config_prefer_offline=true npm_config_update_notifier=false',
    ])
    const args = { NODE_IMAGE: 'localhost/build-base', BASE_IMAGE: 'localhost/runtime-base' }
    const one = (target: Target): Promise<string> => build(target, `localhost/${target}`, args, [`${cache}:/root/.npm`])
    return { operator: await one('operator'), service: await one('service') }
  }

  beforeAll(async () => {
    mkdirSync(cache, { recursive: true })
    digests = await buildBoth(buildah)
    for (const target of targets) mounted[target] = await buildah.mount(`localhost/${target}`)
  }, TIMEOUT_MS)
  afterAll(async () => {
    await stack?.stop()
    for (const one of started) await one.stop()
    stopping.abort()
    await rm(dir, { recursive: true, force: true })
  }, TIMEOUT_MS)

  test('the operator takes less than 200 MB, all told', () => {
    const bytes = (root: string) => filesBelow(root).reduce((sum, file) => sum + lstatSync(join(root, file)).size, 0)
    const own = bytes(appOf('operator')) + bytes(join(rootOf('operator'), 'usr/local/bin'))
    console.log(
      `operator ${Math.round(own / 1e6)} MB beside its base, service ${Math.round((own - bytes(appOf('operator')) + bytes(appOf('service'))) / 1e6)} MB`,
    )
    expect(own + PUBLIC_BASE_BYTES).toBeLessThan(LIMIT_BYTES)
  })

  test.each(targets)('the %s runs as nobody in particular, with nothing of a build about it', async (target) => {
    expect(await buildah.config(`localhost/${target}`)).toMatchObject({
      User: '65532:65532',
      Entrypoint: ['/usr/local/bin/node', '/app/dist/main.js'],
      Cmd: ['--help'],
    })
    const files = filesBelow(rootOf(target))
    expect(files.filter((file) => /\.(ts|mts|cts|tsx|map)$/.test(file))).toEqual([])
    expect(files.filter((file) => /(^|\/)(npm|npx|corepack|sh|bash)$/.test(file))).toEqual([])
    for (const name of developers) expect(existsSync(join(appOf(target), 'node_modules', name)), name).toBe(false)
    // Nothing that a process of this user could write to.
    const own = files.filter((file) => file.startsWith('app/') && lstatSync(join(rootOf(target), file)).uid !== 0)
    expect(own).toEqual([])
  })

  test("the operator has no database, no server of the staking API and none of the service's code", () => {
    const app = appOf('operator')
    for (const name of ['@electric-sql/pglite', 'pg', 'kysely', 'fastify', 'swagger-ui-dist'])
      expect(existsSync(join(app, 'node_modules', name)), name).toBe(false)
    expect(existsSync(join(app, 'dist/service'))).toBe(false)
    expect(existsSync(join(appOf('service'), 'dist/operator'))).toBe(false)
    expect(existsSync(join(appOf('service'), 'node_modules/@electric-sql/pglite'))).toBe(true)
  })

  test.each(targets)('the bill of materials of the %s has each of its packages and no other', (target) => {
    const bom = JSON.parse(readFileSync(join(appOf(target), 'sbom.cdx.json'), 'utf8')) as {
      readonly bomFormat: string
      readonly specVersion: string
      readonly metadata: { readonly component: { readonly name: string; readonly version: string } }
      readonly components: readonly Component[]
    }
    expect(bom).toMatchObject({ bomFormat: 'CycloneDX', specVersion: '1.6' })
    expect(bom.metadata.component).toMatchObject({ name: 'staking-operator', version: manifest.version })
    // A package within a package is a component within a component.
    const named = ({ group, name, version, components = [] }: Component): string[] => [
      `${group === undefined ? '' : `${group}/`}${name}@${version}`,
      ...components.flatMap(named),
    ]
    const there = packageFolders(join(appOf(target), 'node_modules')).map(licenceOf)
    expect(there.length).toBeGreaterThan(50)
    expect(new Set(bom.components.flatMap(named))).toEqual(new Set(there.map(({ name, version }) => `${name}@${version}`)))
    const own = developers.map((name) => `${name}@${locked[`node_modules/${name}`]?.version}`)
    expect(bom.components.flatMap(named).filter((one) => own.includes(one))).toEqual([])
    const licences = readFileSync(join(appOf(target), 'THIRD-PARTY-LICENSES.txt'), 'utf8')
    for (const { name, version, licence } of there) expect(licences).toContain(`\n${name}@${version}: ${licence}\n`)
    expect(readFileSync(join(appOf(target), 'LICENSE'), 'utf8')).toContain('Apache License')
  })
  interface Component {
    readonly group?: string
    readonly name: string
    readonly version: string
    readonly components?: readonly Component[]
  }

  test.each(targets)('the %s says its version and what it can do, and sends you to the other image for the rest', async (target) => {
    const { container = '' } = mounted[target] ?? {}
    const program = ['/usr/local/bin/node', '/app/dist/main.js'] as const
    expect(await buildah.run(container, ...program, '--version')).toBe(manifest.version)
    const help = await buildah.run(container, ...program, '--help')
    expect(help).toMatch(target === 'operator' ? /^ {2}operator /m : /^ {2}service /m)
    const other = target === 'operator' ? 'service' : 'operator'
    expect(help).not.toMatch(new RegExp(`^ {2}${other} `, 'm'))
    const config = target === 'operator' ? ['--config', '/none'] : []
    await expect(buildah.run(container, ...program, other, ...config)).rejects.toThrow(
      `error: this image holds no ${other}: run the image that is built with --target ${other}`,
    )
    expect(await buildah.run(container, '/usr/local/bin/node', '-p', 'process.getuid()')).toBe('65532')
  })

  /** As a kubelet would: in the image's files and nothing else, as its user. The process is replaced on the way and so keeps its id. */
  async function serve(target: Target, args: readonly string[], port: number): Promise<string> {
    const root = rootOf(target)
    const script =
      'mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot --userspec=65532:65532 "$0" /usr/local/bin/node /app/dist/main.js "$@"'
    const running = await startProcess({
      name: target,
      command: 'unshare',
      args: ['--mount', 'sh', '-c', script, root, ...args],
      env: { NODE_OPTIONS: undefined, NODE_EXTRA_CA_CERTS: undefined, KUBECONFIG: undefined },
      readyTimeoutMs: 120_000,
      readyWhen: async ({ signal }) => (await fetch(`http://127.0.0.1:${port}/healthz`, { signal })).ok,
    })
    started.push(running)
    return running.output()
  }
  const give = (target: Target, file: string, content: unknown): string => {
    mkdirSync(join(rootOf(target), 'given'), { recursive: true })
    writeFileSync(join(rootOf(target), 'given', file), typeof content === 'string' ? content : JSON.stringify(content), { mode: 0o644 })
    return `/given/${file}`
  }
  const network = { name: 'hoodi', chain: 'Ethereum', rpcUrls: ['http://127.0.0.1:9'] }

  test('the operator serves its health from within its image', async () => {
    const port = await freePort()
    const kubeconfig = give('operator', 'kubeconfig', {
      clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:9' } }],
      users: [{ name: 'u', user: { token: 'none' } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    })
    const networks = give('operator', 'networks.yaml', {
      stakingApi: { url: 'http://127.0.0.1:9', apiKeyFile: '/given/key' },
      networks: [network],
    })
    await serve('operator', ['operator', '--kubeconfig', kubeconfig, '--networks', networks, '--listen', `127.0.0.1:${port}`], port)
    expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(503)
    expect(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()).toContain('staking_operator_build_info')
  })

  test('the service serves its health from within its image, on its embedded database', async () => {
    const port = await freePort()
    const seedFile = give('service', 'seed', TEST_SEED)
    const config = give('service', 'service.yaml', { listen: { host: '127.0.0.1', port }, seedFile, networks: [network] })
    await serve('service', ['service', '--config', config], port)
    expect((await fetch(`http://127.0.0.1:${port}/docs`)).status).toBe(200)
    expect(existsSync(join(rootOf('service'), 'var/lib/staking-service/pgdata/PG_VERSION'))).toBe(true)
  })

  test('what is in the two images serves the staking API, and stakes with it', async () => {
    stack = await startStack({
      anvil: { mining: 1 },
      startOperator: false,
      entry: join(appOf('service'), 'dist/main.js'),
      operatorEntry: join(appOf('operator'), 'dist/main.js'),
    })
    await stack.operator.start()
    await applyAll(stack.cluster, [signer(), stake('built')])
    await untilReady(stack.cluster, 'built', 120_000)
    expect(await stack.anvil.depositCount()).toBe(1)
  })

  test('built once more, from nothing, each has the same digest', async () => {
    const again = createBuildah({ dir: join(dir, 'again'), signal: stopping.signal })
    for (const digest of Object.values(digests)) expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(await buildBoth(again)).toEqual(digests)
  })
})

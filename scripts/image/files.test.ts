import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { filesBelow, isNotRun, prune } from './files.ts'
import { modulesOf, needed, packagesOf } from './imports.ts'
import { licenceOf, licencesFile, packageFolders } from './licences.ts'

const dir = mkdtempSync(join(tmpdir(), 'image-files-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))
function write(path: string, text = ''): void {
  mkdirSync(dirname(join(dir, path)), { recursive: true })
  writeFileSync(join(dir, path), text)
}

test.each([
  { path: 'node_modules/a/index.d.ts', gone: true },
  { path: 'node_modules/a/index.d.mts', gone: true },
  { path: 'node_modules/a/index.js.map', gone: true },
  { path: 'dist/main.js.map', gone: true },
  { path: 'node_modules/.bin/a', gone: true },
  { path: 'node_modules/a/node_modules/.package-lock.json', gone: true },
  { path: 'node_modules/viem/_cjs/index.js', gone: true },
  { path: 'node_modules/@opentelemetry/core/dist/index.cjs', gone: false },
  { path: 'node_modules/@opentelemetry/core/dist/index.mjs', gone: false },
  { path: 'node_modules/viem/_esm/index.js', gone: false },
  { path: 'node_modules/swagger-ui-dist/swagger-ui-bundle.js', gone: false },
  { path: 'node_modules/a/charts.js', gone: false },
  { path: 'node_modules/a/LICENSE', gone: false },
])('$path is taken away: $gone', ({ path, gone }) => {
  expect(isNotRun(path)).toBe(gone)
})

test('what is not run is taken away with the folders that are empty then', () => {
  write('app/node_modules/a/types/index.d.ts')
  write('app/node_modules/a/index.js')
  expect(prune(join(dir, 'app'))).toBe(1)
  expect(filesBelow(join(dir, 'app'))).toEqual(['node_modules/a/index.js'])
  expect(existsSync(join(dir, 'app/node_modules/a/types'))).toBe(false)
})

test('the packages of a module are those that it imports, in every way', () => {
  const text = [
    "import { a } from 'zod'",
    "import b, {\n  c,\n} from '@chainsafe/blst'",
    "export * from 'viem/accounts'",
    "import 'pg'",
    "const d = await import('fastify')",
    'import.meta.resolve(`swagger-ui-dist/$' + '{name}`)',
    "import { e } from './own.js'",
    "import { f } from 'node:fs'",
    'export async function up(db) {',
    "  await sql`update a set id = substring(body from 'word')`.execute(db)",
    '}',
  ].join('\n')
  expect(packagesOf(text)).toEqual(['@chainsafe/blst', 'fastify', 'pg', 'swagger-ui-dist', 'viem', 'zod'])
})

test('a module needs what it imports at once, and neither types nor what it imports when it is called', () => {
  const text = [
    "import { a } from './a.ts'",
    "import b, {\n  type c,\n  d,\n} from '../b.ts'",
    "import type { e } from './types.ts'",
    "import type {\n  f,\n} from './types.ts'",
    "export * from './c.ts'",
    "export type { g } from './types.ts'",
    "import './d.ts'",
    "import 'pg'",
    "const later = await import('./later.ts')",
  ].join('\n')
  expect(modulesOf(text)).toEqual(['./a.ts', '../b.ts', './c.ts', './d.ts'])
})

describe('each image', () => {
  const src = join(import.meta.dirname, '../../src')
  const modules = filesBelow(src).filter((file) => file.endsWith('.ts') && !/\.test\.ts$|(?:^|\/)testing\//.test(file))
  test.each([
    { target: 'operator', other: 'service' },
    { target: 'service', other: 'operator' },
  ])('of the $target starts without anything of the $other, which it leaves out', ({ target, other }) => {
    const roots = modules.filter((file) => file === 'main.ts' || file === 'kubectl-staking.ts' || file.startsWith(`${target}/`))
    expect(roots.length).toBeGreaterThan(10)
    const all = [...needed(src, roots)]
    expect(all.length).toBeGreaterThan(roots.length)
    expect(all.filter(([module]) => module.startsWith(`${other}/`)).map(([module, by]) => `${by} imports ${module}`)).toEqual([])
  })

  test('of the operator holds all that its commands import when they are called', () => {
    const roots = modules.filter((file) => !file.startsWith('service/'))
    expect([...needed(src, roots)].filter(([module]) => module.startsWith('service/'))).toEqual([])
  })
})

describe('licences', () => {
  test('each package is there with its licence and its texts, nested ones too', () => {
    write('l/node_modules/a/package.json', '{"name":"a","version":"1.0.0","license":"MIT"}')
    write('l/node_modules/a/LICENSE', 'the text')
    write('l/node_modules/@s/b/package.json', '{"name":"@s/b","version":"2.0.0","licenses":[{"type":"ISC"}]}')
    write('l/node_modules/@s/b/node_modules/a/package.json', '{"name":"a","version":"0.9.0","license":"MIT"}')
    const licences = packageFolders(join(dir, 'l/node_modules')).map(licenceOf)
    const text = licencesFile({ name: 'app', version: '1' }, licences)
    expect(text).toMatch(/contains the 3 packages/)
    for (const part of ['a@1.0.0: MIT\n\nthe text', '@s/b@2.0.0: ISC', 'a@0.9.0: MIT']) expect(text).toContain(part)
  })

  test('a package without one stops the build', () => {
    write('none/package.json', '{"name":"a","version":"1.0.0"}')
    expect(() => licenceOf(join(dir, 'none'))).toThrow(/a@1\.0\.0 names no licence/)
  })
})

describe('the Dockerfile', () => {
  const repository = join(import.meta.dirname, '../..')
  const dockerfile = readFileSync(join(repository, 'Dockerfile'), 'utf8')
  const { devDependencies } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as {
    devDependencies: Record<string, string>
  }

  test('builds with the Node that everything is tested with', () => {
    expect(dockerfile).toContain(`ARG NODE_IMAGE=node:${devDependencies.node}-bookworm-slim@sha256:`)
  })

  test('has every base by digest, and no base but those', () => {
    const bases = [...dockerfile.matchAll(/^ARG \w+_IMAGE=(\S+)$/gm)].map(([, image]) => image)
    expect(bases).toHaveLength(2)
    for (const base of bases) expect(base).toMatch(/^[^@\s]+:[^@\s]+@sha256:[0-9a-f]{64}$/)
    for (const [, from] of dockerfile.matchAll(/^FROM (\S+)/gm)) expect(from).toMatch(/^(\$\{\w+_IMAGE\}|build)$/)
  })
})

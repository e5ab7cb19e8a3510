import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Lock, partOfLock } from './lock.ts'

const manifest = (...names: readonly string[]) => ({
  name: 'app',
  version: '1.0.0',
  dependencies: Object.fromEntries(names.map((name) => [name, '1.0.0'])),
})
const whole = (packages: Lock['packages']): Lock => ({ name: 'app', version: '1.0.0', lockfileVersion: 3, packages })

test('has what is needed, wherever npm put it, and nothing else', () => {
  const lock = whole({
    '': {},
    'node_modules/a': { version: '1.0.0', integrity: 'sha512-a', dependencies: { b: '2', c: '1' } },
    'node_modules/a/node_modules/b': { version: '2.0.0', dependencies: { d: '1' } },
    'node_modules/b': { version: '1.0.0' },
    'node_modules/c': { version: '1.0.0', dependencies: { a: '1' } },
    'node_modules/d': { version: '1.0.0' },
    'node_modules/other': { version: '1.0.0' },
  })
  const part = partOfLock(lock, manifest('a'))
  expect(Object.keys(part.packages)).toEqual(['', 'node_modules/a', 'node_modules/a/node_modules/b', 'node_modules/c', 'node_modules/d'])
  expect(part.packages['']).toEqual({ name: 'app', version: '1.0.0', dependencies: { a: '1.0.0' } })
  expect(part.packages['node_modules/a']).toMatchObject({ integrity: 'sha512-a' })
})

test.each([
  { what: 'a peer', fields: { peerDependencies: { b: '1' } }, taken: true },
  { what: 'an optional peer', fields: { peerDependencies: { b: '1' }, peerDependenciesMeta: { b: { optional: true } } }, taken: false },
  { what: 'an optional dependency', fields: { optionalDependencies: { b: '1' } }, taken: true },
])('$what: taken is $taken', ({ fields, taken }) => {
  const lock = whole({ 'node_modules/a': { version: '1.0.0', ...fields }, 'node_modules/b': { version: '1.0.0', dev: true } })
  const part = partOfLock(lock, manifest('a')).packages['node_modules/b']
  expect(part).toEqual(taken ? { version: '1.0.0' } : undefined)
})

test('a dependency that the lock lacks is an error that names it; an optional one of another platform is not', () => {
  const lock = whole({ 'node_modules/a': { version: '1.0.0', optionalDependencies: { gone: '1' }, dependencies: { gone: '1' } } })
  expect(Object.keys(partOfLock(lock, manifest('a')).packages)).toEqual(['', 'node_modules/a'])
  expect(() => partOfLock(lock, manifest('missing'))).toThrow(/package-lock\.json has no missing, which the image needs/)
})

test("the lock of this project has all that its own dependencies need, and none of the developers'", () => {
  const read = (file: string) => JSON.parse(readFileSync(join(import.meta.dirname, '../..', file), 'utf8'))
  const { dependencies, devDependencies } = read('package.json') as Record<string, Record<string, string>>
  const lock = read('package-lock.json') as Lock
  const part = partOfLock(lock, { name: 'app', version: '1.0.0', dependencies: dependencies ?? {} })
  expect(Object.keys(part.packages).length).toBeGreaterThan(100)
  // Types of Node are a dependency of a dependency, too.
  const developers = Object.keys(devDependencies ?? {}).filter((name) => lock.packages[`node_modules/${name}`]?.dev === true)
  expect(developers).toContain('vitest')
  for (const name of developers) expect(part.packages[`node_modules/${name}`], name).toBeUndefined()
})

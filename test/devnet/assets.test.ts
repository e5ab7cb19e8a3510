import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { clientCache, findDevnetAssets } from './assets.ts'
import { CLIENTS, programsOf } from './clients.ts'
import { interopSecretKey } from './interop.ts'

let cache: string
const lines: string[] = []
const find = (env: Record<string, string>) =>
  findDevnetAssets({ env: { XDG_CACHE_HOME: cache, ...env }, log: (line) => lines.push(line), signal: AbortSignal.timeout(20_000) })

beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), 'staking-devnet-cache-'))
  lines.length = 0
})
afterEach(() => rmSync(cache, { recursive: true, force: true }))

/** A program that answers as told. */
function program(folder: string, name: string, script = 'exit 0'): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(folder, name), 0o755)
}
const fillCacheOf = (name: string): void => {
  const client = CLIENTS.find((each) => each.name === name)
  if (client === undefined) throw new Error(`no client ${name}`)
  for (const each of programsOf(client)) program(clientCache(client, { XDG_CACHE_HOME: cache }), each)
}

describe('the programs of the devnet', () => {
  test.each(CLIENTS.map((client) => ({ client, name: client.name })))(
    '$name: its go.mod names the version that the cache does',
    ({ client }) => {
      const [path = ''] = Object.values(client.packages)
      const module = path.slice(0, path.indexOf('/cmd'))
      expect(readFileSync(join(import.meta.dirname, client.module, 'go.mod'), 'utf8')).toContain(`${module} v${client.version}`)
    },
  )

  test('are taken from the cache without Go', async () => {
    fillCacheOf('geth')
    fillCacheOf('prysm')
    const found = await find({ PATH: '/nonexistent' })
    expect(Object.keys(found)).toEqual(['geth', 'beacon-chain', 'validator', 'prysmctl'])
    expect(Object.values(found).every((path) => path.startsWith(cache))).toBe(true)
    expect(lines).toEqual([])
  })

  test.each([
    { name: 'Go', tools: [] as string[], says: /there is no Go here: install Go/ },
    { name: 'a C compiler', tools: ['go'], says: /there is no C compiler here.*install Go .* and a C compiler/ },
  ])('without $name say what to install', async ({ tools, says }) => {
    for (const tool of tools) program(join(cache, 'bin'), tool)
    await expect(find({ PATH: join(cache, 'bin') })).rejects.toThrow(says)
  })

  test('of a build that fails leave nothing, and the compiler’s last lines', async () => {
    program(join(cache, 'bin'), 'gcc')
    program(join(cache, 'bin'), 'go', 'if [ "$1" = env ]; then echo go1.99.0; else echo "it does not compile" >&2; exit 1; fi')
    await expect(find({ PATH: `${join(cache, 'bin')}:/bin:/usr/bin` })).rejects.toThrow(/could not build geth[\s\S]*it does not compile/)
    fillCacheOf('geth')
    await expect(find({ PATH: `${join(cache, 'bin')}:/bin:/usr/bin` })).rejects.toThrow(/could not build prysm/)
  })
})

test('the interop keys are the well-known ones', () => {
  expect(Buffer.from(interopSecretKey(0)).toString('hex')).toBe('25295f0d1d592a90b333e26e85149708208e9f8e8bc18f6c77bd62f8ad7a6866')
})

import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { findAssets } from '../cluster/assets.ts'
import { pageCommands } from '../cluster/page-commands.ts'
import { runToEnd } from '../cluster/run.ts'

/** What is shipped: plain JavaScript and the production dependencies, in a folder of its own. test/image stakes with it. */
const repository = new URL('../..', import.meta.url).pathname
const TIMEOUT_MS = 300_000

describe('the built program', { timeout: TIMEOUT_MS }, () => {
  let dir: string
  let main: string
  const run = (command: string, args: readonly string[], cwd: string) =>
    runToEnd({ command, args, cwd, env: { NODE_PATH: undefined, NODE_OPTIONS: undefined }, signal: AbortSignal.timeout(TIMEOUT_MS) })

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'staking-build-'))
    main = join(dir, 'dist/main.js')
    const build = await run('npm', ['run', 'build', '--', '--out', join(dir, 'dist')], repository)
    expect(build, build.stderr + build.stdout).toMatchObject({ code: 0 })
    for (const file of ['package.json', 'package-lock.json']) cpSync(join(repository, file), join(dir, file))
    const install = await run('npm', ['ci', '--omit=dev', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'], dir)
    expect(install, install.stderr).toMatchObject({ code: 0 })
    // npm keeps it, as an optional peer of viem that happens to be there. Nothing below may need it.
    for (const name of ['typescript', '@typescript']) rmSync(join(dir, 'node_modules', name), { recursive: true, force: true })
  }, TIMEOUT_MS)
  afterAll(() => {
    rmSync(dir, { recursive: true, force: true })
  })

  test('needs no development dependency', () => {
    for (const name of ['vitest', '@biomejs/biome', 'fast-check', 'node', '@foundry-rs/anvil'])
      expect(existsSync(join(dir, 'node_modules', name)), name).toBe(false)
  })

  test('says its version and prints its CRDs, as they stand in the repository', async () => {
    expect(await run(process.execPath, [main, '--version'], dir)).toMatchObject({ code: 0, stdout: '0.1.0\n' })
    const crds = await run(process.execPath, [main, 'crds'], dir)
    expect(crds).toMatchObject({ code: 0, stderr: '' })
    const names = parseAllDocuments(crds.stdout).map((document) => (document.toJS() as { metadata: { name: string } }).metadata.name)
    expect(names).toEqual(expect.arrayContaining(['ethereumstakes.staking.dev', 'stakingsigners.staking.dev']))
  })

  test('is a plugin of kubectl once it is linked, as the page has it', async () => {
    const signal = AbortSignal.timeout(120_000)
    const assets = await findAssets({ env: process.env, log: () => undefined, signal })
    const page = await pageCommands(
      { assets, adminKubeconfigPath: '/nowhere' },
      { page: 'docs/how-to/look-into-it.md', path: ['.local/bin'] },
      signal,
    )
    try {
      // What its first block builds.
      symlinkSync(join(dir, 'dist'), join(page.dir, 'dist'))
      expect(await page.run('Get them', 2)).toMatch(/^Usage: kubectl.staking/)
      for (const name of ['kubectl-staking', 'staking-operator']) expect(existsSync(join(page.dir, '.local/bin', name)), name).toBe(true)
    } finally {
      page.stop()
    }
  })

  test('ends with what was wrong, in one line, when its configuration is not there', async () => {
    const { code, stderr } = await run(process.execPath, [main, 'service', '--config', join(dir, 'none.yaml')], dir)
    expect(code).toBe(1)
    expect(stderr).toMatch(/^error: .*none\.yaml/)
    expect(stderr.trim().split('\n')).toHaveLength(1)
  })
})

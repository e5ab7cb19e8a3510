import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { rolldown } from 'rolldown'
import { cacheDir } from '../cluster/cache-dir.ts'
import { PROGRAMS_AT } from './programs.ts'

const repository = join(import.meta.dirname, '../..')

/** What tests start as processes, and what those start in turn from the file beside them. */
const ENTRIES = [
  'src/main.ts',
  'src/kubectl-staking.ts',
  'src/service/store/init-pglite.ts',
  'src/service/ethereum/deposit-worker.ts',
  'test/crash/operator-at-point.ts',
  'test/integration/service/child.ts',
]
/** Native code, WebAssembly and pages, which are found beside the package's own files; and what uses a part of Node that it warns of outside node_modules. */
const APART = [/^node:/, /^@electric-sql\/pglite/, /^@chainsafe\/blst/, /^swagger-ui-dist/, /^node-fetch/]

const KEPT_MS = 7 * 24 * 3600_000

/**
 * The programs under test in some files each, in place of a thousand: a test run starts them hundreds of times, and reading, stripping and linking all of their modules
 * takes twice the processor that the rest of a start takes. The same source, in the order in which its imports have it, nothing made smaller; the images' test and
 * `test/e2e/build.test.ts` run what is released. Kept for the next run of the same source.
 * @returns the folder, for `STAKING_TEST_PROGRAMS`
 */
export async function bundlePrograms(): Promise<string> {
  const all = join(cacheDir(process.env), 'programs')
  const folder = join(all, hashOfSource())
  mkdirSync(all, { recursive: true })
  removeOld(all)
  if (existsSync(folder)) {
    utimesSync(folder, new Date(), new Date())
    return folder
  }
  const bundle = await rolldown({
    cwd: repository,
    input: Object.fromEntries(ENTRIES.map((entry) => [basename(entry, '.ts'), entry])),
    platform: 'node',
    external: APART,
    logLevel: 'silent',
  })
  const making = mkdtempSync(join(all, 'making-'))
  const at = join(making, PROGRAMS_AT)
  await bundle.write({ dir: at, format: 'esm', keepNames: true, entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' })
  await bundle.close()
  // As beside src/main.ts: the two parts that an image may lack, the version, and the packages that stay apart.
  for (const part of ['operator', 'service']) mkdirSync(join(at, part))
  writeFileSync(join(making, 'package.json'), readFileSync(join(repository, 'package.json')))
  symlinkSync(join(repository, 'node_modules'), join(making, 'node_modules'))
  try {
    renameSync(making, folder)
  } catch (error) {
    rmSync(making, { recursive: true, force: true })
    if (!existsSync(folder)) throw error // else another run has made the same
  }
  return folder
}

/** Of all that the bundle is made of. */
function hashOfSource(): string {
  const source = readdirSync(join(repository, 'src'), { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile() && !one.name.endsWith('.test.ts'))
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort()
  const hash = createHash('sha256').update(repository)
  const others = [...ENTRIES, 'package.json', 'package-lock.json'].map((file) => join(repository, file))
  for (const file of [...source, ...others, import.meta.filename]) hash.update(`\0${file}\0`).update(readFileSync(file))
  return hash.digest('hex').slice(0, 20)
}

function removeOld(all: string): void {
  for (const name of readdirSync(all)) {
    const folder = join(all, name)
    // Another run may have given it its name meanwhile.
    const { mtimeMs } = statSync(folder, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() }
    if (Date.now() - mtimeMs > KEPT_MS) rmSync(folder, { recursive: true, force: true })
  }
}

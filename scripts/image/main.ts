import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { filesBelow, prune } from './files.ts'
import { needed, packagesBelow } from './imports.ts'
import { licenceOf, licencesFile, packageFolders } from './licences.ts'
import { type Lock, type Manifest, partOfLock } from './lock.ts'

/**
 * What the Dockerfile runs, with nothing but Node and npm: `tools` installs the compiler and the maker of the bill of materials, `compile` makes dist/,
 * `operator` and `service` put an image's files together, `clean` leaves those alone. Everything comes from package-lock.json, by its hashes.
 */
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { from: { type: 'string', default: '.' }, to: { type: 'string', default: '/image' } },
})
const { from, to } = values
const tools = join(to, 'tools')
const dist = join(to, 'dist')
const whole = JSON.parse(readFileSync(join(from, 'package-lock.json'), 'utf8')) as Lock
const project = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8')) as Manifest & {
  readonly devDependencies: Readonly<Record<string, string>>
}

function run(command: string, args: readonly string[], cwd: string): void {
  const { status, error } = spawnSync(command, args, { cwd, stdio: ['ignore', 'inherit', 'inherit'] })
  if (status !== 0) throw new Error(`${command} ${args[0]} failed (${error?.message ?? status})`)
}

/** Installs the packages into a folder of their own, as the lock has them. */
function install(dir: string, names: readonly string[], about: Partial<Manifest> = {}): void {
  const all = { ...project.dependencies, ...project.devDependencies }
  const dependencies = Object.fromEntries(
    names.map((name) => {
      const version = all[name]
      if (version === undefined) throw new Error(`${name} is imported, and package.json does not name it`)
      return [name, version]
    }),
  )
  const manifest = { name: project.name, version: project.version, type: 'module', ...about, dependencies }
  rmSync(dir, { recursive: true, force: true })
  mkdirSync(dir, { recursive: true })
  const write = (file: string, content: unknown) => writeFileSync(join(dir, file), `${JSON.stringify(content, null, 2)}\n`)
  write('package.json', manifest)
  write('package-lock.json', partOfLock(whole, manifest))
  run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], dir)
}

/** Types are checked by CI, with all that they need; what is written without is the same. */
function compile(): void {
  const tsc = join(tools, 'node_modules/typescript/bin/tsc')
  run(
    process.execPath,
    [tsc, '-p', join(from, 'tsconfig.build.json'), '--noCheck', '--sourceMap', 'false', '--types', '', '--outDir', dist],
    from,
  )
}

/** One of the two programs: what is compiled of it, its packages, their bill of materials and their licences. */
function assemble(target: 'operator' | 'service'): void {
  const dir = join(to, target)
  const compiled = join(to, `${target}-dist`)
  const other = target === 'operator' ? 'service' : 'operator'
  cpSync(dist, compiled, { recursive: true, filter: (path) => path !== join(dist, other) })
  const roots = ['main.js', ...filesBelow(compiled).filter((file) => file.startsWith(`${target}/`) && file.endsWith('.js'))]
  for (const [module, by] of needed(compiled, roots))
    if (!existsSync(join(compiled, module))) throw new Error(`${by} imports ${module}, which the image of the ${target} leaves out`)
  install(dir, packagesBelow(compiled), { license: project.license, description: project.description })
  const cyclonedx = join(tools, 'node_modules/@cyclonedx/cyclonedx-npm/bin/cyclonedx-npm-cli.js')
  // npm calls an optional peer of another version than a package would take (ws and utf-8-validate) an error.
  const sbom = [
    '--ignore-npm-errors',
    '--output-reproducible',
    '--output-format',
    'JSON',
    '--output-file',
    'sbom.cdx.json',
    '--mc-type',
    'application',
  ]
  run(process.execPath, [cyclonedx, ...sbom], dir)
  const licences = packageFolders(join(dir, 'node_modules')).map(licenceOf)
  writeFileSync(join(dir, 'THIRD-PARTY-LICENSES.txt'), licencesFile(project, licences))
  cpSync(join(from, 'LICENSE'), join(dir, 'LICENSE'))
  rmSync(join(dir, 'package-lock.json'))
  cpSync(compiled, join(dir, 'dist'), { recursive: true })
  prune(dir)
  // An empty folder of the service's own: without a shell, an image can't make one.
  mkdirSync(join(to, 'data'), { recursive: true })
}

/** What no image takes: the stage that builds is then as small as what it gives. */
function clean(): void {
  for (const name of ['tools', 'dist', 'operator-dist', 'service-dist']) rmSync(join(to, name), { recursive: true, force: true })
}

for (const step of positionals) {
  if (step === 'tools') install(tools, ['typescript', '@cyclonedx/cyclonedx-npm'])
  else if (step === 'compile') compile()
  else if (step === 'operator' || step === 'service') assemble(step)
  else if (step === 'clean') clean()
  else throw new Error(`${step} is no step: tools, compile, operator, service, clean`)
}

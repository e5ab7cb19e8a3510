import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { generatedFiles } from './generated.ts'

/**
 * Writes every generated file (CRDs, their copies in the chart, the references, the OpenAPI document) from its one source. With `--check` it
 * writes nothing and fails where a file is not what its source says.
 */
const check = process.argv.includes('--check')
let stale = 0
for (const [path, content] of await generatedFiles()) {
  const existing = await readFile(path, 'utf8').catch(() => undefined)
  if (existing === content) continue
  stale++
  if (check) {
    process.stderr.write(`${path} is not what its source says\n`)
    continue
  }
  await mkdir(dirname(path), { recursive: true })
  await rm(path, { force: true })
  await writeFile(path, content)
  process.stdout.write(`wrote ${path}\n`)
}
if (check && stale > 0) {
  process.stderr.write('run: npm run generate\n')
  process.exit(1)
}

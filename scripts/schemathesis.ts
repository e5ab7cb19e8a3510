import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startService } from '../test/integration/service/harness.ts'

/**
 * Runs schemathesis against the service, on a chain that answers at once: it makes requests from /openapi.json and compares the answers with it. It is a
 * Python program; a pinned version is installed into a virtual environment in the user's cache, once. Bounded by `--examples` for each operation.
 */
const version = '4.32.5'
const { examples, seed, python } = parseArgs({
  options: {
    examples: { type: 'string', default: '50' },
    seed: { type: 'string', default: '1' },
    python: { type: 'string', default: 'python3' },
  },
}).values

/** What schemathesis writes beside itself goes with it. */
const folder = mkdtempSync(join(tmpdir(), 'schemathesis-'))

async function run(command: string, args: readonly string[]): Promise<number> {
  const child = spawn(command, args, { stdio: 'inherit', cwd: folder })
  const [code] = (await once(child, 'close')) as [number | null]
  return code ?? 1
}

const venv = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'staking-operator', `schemathesis-${version}`)
const program = join(venv, 'bin', 'schemathesis')
if (!existsSync(program)) {
  const made =
    (await run(python, ['-m', 'venv', venv])) || (await run(join(venv, 'bin', 'pip'), ['install', '-q', `schemathesis==${version}`]))
  if (made !== 0) process.exit(made)
}

/** The chain of this run has no beacon node: 503 with Retry-After is what the document promises then. */
const config = join(folder, 'schemathesis.toml')
writeFileSync(config, '[checks]\nnot_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 503]\n')

const service = await startService({ kind: 'embedded', dataDir: 'memory://' })
try {
  const key = await service.key()
  process.exitCode = await run(program, [
    ...['--config-file', config],
    'run',
    `${service.url}/openapi.json`,
    ...['--header', `Authorization: Bearer ${key}`],
    ...['--max-examples', examples, '--seed', seed, '--workers', '1', '--request-timeout', '30'],
    // Valid by the document and refused all the same: a network that isn't configured, a public key that is on no curve.
    ...['--exclude-checks', 'positive_data_acceptance'],
    '--no-color',
  ])
} finally {
  await service.close()
  rmSync(folder, { recursive: true, force: true })
}

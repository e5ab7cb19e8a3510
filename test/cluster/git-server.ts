import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './ports.ts'
import { runToEnd } from './run.ts'

export interface GitServer {
  /** http://127.0.0.1:<port>/stakes.git, branch main */
  readonly url: string
  /** The work tree: what it holds when `commit` is called is what is served. */
  readonly tree: string
  /** Returns the commit. */
  commit(message: string): Promise<string>
  stop(): Promise<void>
}

/** A Git repository with a work tree, served over http by git's own `http-backend`. */
export async function startGitServer(signal: AbortSignal): Promise<GitServer> {
  const dir = mkdtempSync(join(tmpdir(), 'git-server-'))
  const tree = join(dir, 'tree')
  mkdirSync(tree)
  const git = async (...args: readonly string[]): Promise<string> => {
    const identity = ['-c', 'user.name=test', '-c', 'user.email=test@example.com', '-c', 'commit.gpgsign=false']
    const { code, stdout, stderr } = await runToEnd({ command: 'git', args: [...identity, ...args], cwd: tree, signal })
    if (code !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`)
    return stdout.trim()
  }
  await git('init', '--quiet', '--bare', '--initial-branch=main', join(dir, 'stakes.git'))
  await git('init', '--quiet', '--initial-branch=main')
  await git('remote', 'add', 'origin', join(dir, 'stakes.git'))
  const server = createServer((request, response) => serve(dir, request, response))
  const port = await freePort()
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${port}/stakes.git`,
    tree,
    async commit(message) {
      await git('add', '--all')
      await git('commit', '--quiet', '--message', message)
      await git('push', '--quiet', 'origin', 'main')
      return git('rev-parse', 'HEAD')
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** One request by CGI (RFC 3875), as a web server would. */
function serve(dir: string, request: IncomingMessage, response: ServerResponse): void {
  const { pathname, search } = new URL(request.url ?? '/', 'http://127.0.0.1')
  const backend = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env.PATH,
      GIT_PROJECT_ROOT: dir,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: pathname,
      QUERY_STRING: search.slice(1),
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      REMOTE_ADDR: '127.0.0.1',
    },
  })
  const chunks: Buffer[] = []
  backend.stdin.on('error', () => {}) // it ended without reading its input
  request.pipe(backend.stdin)
  backend.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  backend.once('error', () => response.writeHead(500).end())
  backend.once('close', () => {
    const whole = Buffer.concat(chunks)
    const end = whole.indexOf('\r\n\r\n')
    let status = end < 0 ? 500 : 200
    for (const line of whole.subarray(0, Math.max(end, 0)).toString().split('\r\n')) {
      const [name = '', value = ''] = line.split(/: (.*)/)
      if (name === 'Status') status = Number.parseInt(value, 10)
      else if (name !== '') response.setHeader(name, value)
    }
    response.writeHead(status).end(whole.subarray(end + 4))
  })
}

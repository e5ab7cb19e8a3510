import { join } from 'node:path'
import { ensureGoPrograms } from './go-program.ts'
import { freePort } from './ports.ts'
import { type RunningProcess, startProcess } from './process.ts'

const version = '2.5.0'
const program = 'github.com/Shopify/toxiproxy/v2/cmd/server'

/** What is done to the bytes of a connection, as toxiproxy names and describes it. */
export interface Toxic {
  readonly type: 'latency' | 'bandwidth' | 'slow_close' | 'timeout' | 'reset_peer' | 'slicer' | 'limit_data'
  readonly attributes: Readonly<Record<string, number>>
  /** Default: downstream, to the client. */
  readonly stream?: 'upstream' | 'downstream'
}

export interface FaultyLink {
  /** 127.0.0.1:port */
  readonly address: string
  add(toxic: Toxic): Promise<void>
  /** Nobody can connect, and those who are connected are cut. */
  setEnabled(enabled: boolean): Promise<void>
  /** Takes all faults away. */
  clear(): Promise<void>
}

export interface Toxiproxy {
  proxy(name: string, upstream: string): Promise<FaultyLink>
  stop(): Promise<void>
}

/** Starts the real toxiproxy, which is built with Go into the user's cache once. @throws with what to install. */
export async function startToxiproxy(signal: AbortSignal): Promise<Toxiproxy> {
  const command = await ensureProgram(signal)
  const port = await freePort()
  const base = `http://127.0.0.1:${port}`
  const server: RunningProcess = await startProcess({
    name: 'toxiproxy',
    command,
    args: ['-host', '127.0.0.1', '-port', String(port)],
    readyWhen: async () => (await fetch(`${base}/version`)).ok,
  })
  const call = async (method: string, path: string, body?: object) => {
    const answer = await fetch(base + path, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(10_000),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`toxiproxy: ${method} ${path}: ${answer.status} ${text}`)
    return text
  }
  return {
    async proxy(name, upstream) {
      const address = `127.0.0.1:${await freePort()}`
      await call('POST', '/proxies', { name, listen: address, upstream, enabled: true })
      let toxics = 0
      return {
        address,
        add: async ({ type, attributes, stream = 'downstream' }) => {
          await call('POST', `/proxies/${name}/toxics`, { name: `toxic${++toxics}`, type, stream, toxicity: 1, attributes })
        },
        setEnabled: async (enabled) => {
          await call('POST', `/proxies/${name}`, { enabled })
        },
        clear: async () => {
          await call('POST', `/proxies/${name}`, { enabled: true })
          const there = JSON.parse(await call('GET', `/proxies/${name}/toxics`)) as readonly { readonly name: string }[]
          for (const toxic of there) await call('DELETE', `/proxies/${name}/toxics/${toxic.name}`)
        },
      }
    },
    stop: async () => {
      await server.stop()
    },
  }
}

async function ensureProgram(signal: AbortSignal): Promise<string> {
  const name = `toxiproxy-${version}`
  return join(
    await ensureGoPrograms({ module: 'toxiproxy', cache: 'toxiproxy', programs: { [name]: program }, isComplete: false, signal }),
    name,
  )
}

import { execFile } from 'node:child_process'
import type { ExecPlugin } from './kubeconfig.ts'

/** What a plugin gives (client.authentication.k8s.io, ExecCredential). */
export interface PluginCredential {
  readonly token: string | undefined
  /** PEM. */
  readonly cert: string | undefined
  readonly key: string | undefined
  /** Milliseconds since 1970; undefined where it says none. */
  readonly expiresAt: number | undefined
}

const timeoutMs = 60_000

/**
 * Runs a plugin, which may ask nobody. @throws the system's error where it can't be started (it has a `syscall`), and PluginFailed, which quotes nothing, where
 * it fails: what it printed may hold a secret.
 */
export function runPlugin({ command, args = [], env = [], apiVersion }: ExecPlugin): Promise<PluginCredential> {
  const info = JSON.stringify({ kind: 'ExecCredential', apiVersion, spec: { interactive: false } })
  const given = { ...process.env, KUBERNETES_EXEC_INFO: info, ...Object.fromEntries(env.map(({ name, value }) => [name, value])) }
  return new Promise((resolve, reject) => {
    execFile(command, [...args], { env: given, timeout: timeoutMs, maxBuffer: 1024 * 1024 }, (error, stdout) => {
      if (error !== null) return reject('syscall' in error ? error : new PluginFailed())
      const credential = credentialOf(stdout)
      if (credential === undefined) return reject(new PluginFailed())
      resolve(credential)
    })
  })
}

export class PluginFailed extends Error {
  override readonly name = 'PluginFailed'
}

function credentialOf(text: string): PluginCredential | undefined {
  try {
    const { status } = JSON.parse(text) as { readonly status: Readonly<Record<string, unknown>> }
    const field = (name: string) => (typeof status[name] === 'string' && status[name] !== '' ? status[name] : undefined)
    const expires = Date.parse(field('expirationTimestamp') ?? '')
    return {
      token: field('token'),
      cert: field('clientCertificateData'),
      key: field('clientKeyData'),
      expiresAt: Number.isNaN(expires) ? undefined : expires,
    }
  } catch {
    return undefined
  }
}

import { createHash } from 'node:crypto'
import { copyFileSync, createWriteStream, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { parse } from 'yaml'
import { runToEnd } from './run.ts'

/** The index of the archives that controller-runtime's envtest uses (kubernetes-sigs/controller-tools, envtest-releases.yaml). */
const PUBLISHED_INDEX = 'https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml'

/** What the archive holds. It has no controller-manager. */
const ARCHIVED = ['kube-apiserver', 'etcd', 'kubectl'] as const

export interface ArchiveOptions {
  /** Of Kubernetes, without `v`. Another patch of the same minor version does when this one was not published. */
  readonly version: string
  /** As Go names them: linux, darwin; amd64, arm64. */
  readonly os: string
  readonly arch: string
  /** Where the three programs are put. */
  readonly into: string
  /** URL of the index; default the published one. `none` skips this source. */
  readonly indexUrl?: string | undefined
  readonly step: (what: string) => void
  readonly signal: AbortSignal
  /** How long a connection or a read may stand still, ms; default 5000. */
  readonly stallMs?: number
}

/** What was downloaded is not what was published: never used, never worked around. */
export class ChecksumError extends Error {
  override readonly name = 'ChecksumError'
}

/**
 * Fetches kube-apiserver, etcd and kubectl from the published envtest archive, checked by its SHA-512 from the index.
 * Answers why not when the network doesn't allow it or no such archive was published.
 * @throws ChecksumError when the archive is not the published one.
 */
export async function fetchArchive(
  options: ArchiveOptions,
): Promise<{ readonly done: true; readonly version: string } | { readonly done: false; readonly why: string }> {
  const { into, step, indexUrl = PUBLISHED_INDEX } = options
  if (indexUrl === 'none') return { done: false, why: 'switched off' }
  const scratch = mkdtempSync(`${into}.archive-`)
  try {
    step('looking for the published envtest archive')
    const index = await download(indexUrl, options)
    const entry = choose(parse(Buffer.concat(index).toString('utf8')), options)
    if (entry === undefined) return { done: false, why: `no archive of ${options.version} for ${options.os}-${options.arch} is published` }
    step(`downloading the envtest archive of ${entry.version}`)
    const archive = await download(entry.url, options)
    const hash = createHash('sha512')
    for (const chunk of archive) hash.update(chunk)
    const digest = hash.digest('hex')
    if (digest !== entry.sha512) {
      throw new ChecksumError(
        `the envtest archive of ${entry.version} is not the published one: its SHA-512 begins ${digest.slice(0, 16)}, the index says ${entry.sha512.slice(0, 16)}. ` +
          'Nothing of it was used. Set STAKING_ENVTEST_URL=none to build from source instead, or KUBEBUILDER_ASSETS to binaries of your own.',
      )
    }
    step('unpacking the envtest archive')
    const file = join(scratch, 'envtest.tar.gz')
    await pipeline(archive, createWriteStream(file))
    const unpacked = join(scratch, 'unpacked')
    mkdirSync(unpacked)
    const tar = await runToEnd({ command: 'tar', args: ['-xzf', file, '-C', unpacked, '--strip-components=2'], signal: options.signal })
    const missing = ARCHIVED.filter((name) => !existsSync(join(unpacked, name)))
    if (tar.code !== 0 || missing.length > 0)
      return { done: false, why: `the archive lacks ${missing.join(', ') || 'nothing, but tar failed'}` }
    for (const name of ARCHIVED) copyFileSync(join(unpacked, name), join(into, name))
    return { done: true, version: entry.version }
  } catch (error) {
    if (error instanceof ChecksumError || options.signal.aborted) throw error
    return { done: false, why: `the network doesn't allow it (${reason(error)})` }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

interface Entry {
  readonly version: string
  readonly url: string
  readonly sha512: string
}

/** `releases: {v1.36.0: {envtest-v1.36.0-linux-amd64.tar.gz: {hash, selfLink}}}` → this version, else the newest patch of the same minor. */
function choose(index: unknown, { version, os, arch }: ArchiveOptions): Entry | undefined {
  const releases = (index as { releases?: Record<string, Record<string, { hash?: unknown; selfLink?: unknown }>> } | null)?.releases ?? {}
  const minor = version.split('.').slice(0, 2).join('.')
  const entries = Object.entries(releases).flatMap(([tag, archives]) => {
    const found = archives[`envtest-${tag}-${os}-${arch}.tar.gz`]
    const patch = new RegExp(`^v${minor.replace('.', '\\.')}\\.(\\d+)$`).exec(tag)?.[1]
    if (patch === undefined || typeof found?.hash !== 'string' || typeof found.selfLink !== 'string') return []
    return [{ version: tag.slice(1), url: found.selfLink, sha512: found.hash.toLowerCase(), patch: Number(patch) }]
  })
  return entries.find((entry) => entry.version === version) ?? entries.toSorted((a, b) => b.patch - a.patch)[0]
}

/** The whole body, as chunks. Fails when nothing arrives for `stallMs`: a slow network may take its time, a blocked one may not. */
async function download(url: string, { signal, stallMs = 5_000 }: ArchiveOptions): Promise<readonly Uint8Array[]> {
  const stalled = new AbortController()
  const arm = () => setTimeout(() => stalled.abort(new Error(`nothing arrived for ${stallMs / 1000} s`)), stallMs)
  let timer = arm()
  try {
    const response = await fetch(url, { signal: AbortSignal.any([signal, stalled.signal]) })
    if (!response.ok || response.body === null) throw new Error(`HTTP ${response.status}`)
    const chunks: Uint8Array[] = []
    for await (const chunk of response.body) {
      clearTimeout(timer)
      timer = arm()
      chunks.push(chunk)
    }
    return chunks
  } finally {
    clearTimeout(timer)
  }
}

const reason = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? error.cause.message || error.message : error.message
}

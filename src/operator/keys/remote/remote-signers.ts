import type { Clock } from '../../../lib/clock.ts'
import type { Logger } from '../../../lib/log.ts'
import { createAwsCredentials } from './aws-credentials.ts'
import { createAwsKms } from './aws-kms.ts'
import { createGate, type RemoteOutcome } from './gate.ts'
import { createRemoteHttp, type RemoteHttp } from './remote-http.ts'
import { type RemoteKeys, remoteEthereumKey, remoteSolanaKey } from './remote-keys.ts'
import { type RemoteSignerEntry, RemoteSignersFileError, readRemoteSignersFile } from './signers-file.ts'
import { createTransit } from './transit.ts'
import { createWeb3Signer } from './web3signer.ts'

/** The remote signers of the operator's own file: nobody who writes resources can add one, or say where it is. */
export interface RemoteSigners {
  /** By what a StakingSigner's keyName says. */
  find(keyName: string): RemoteKeys | undefined
}

export interface LiveRemoteSigners extends RemoteSigners {
  names(): readonly string[]
  /** Looks at the file now and then; `onReload` is told when something has changed. */
  watch(onReload: () => void, signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

interface Wiring {
  readonly clock: Clock
  readonly log: Pick<Logger, 'info' | 'error'>
  readonly onCall?: (signer: string, operation: string, outcome: RemoteOutcome, ms: number) => void
  readonly onReload?: (what: 'remote-signers', isUsed: boolean) => void
  readonly env?: Readonly<Record<string, string | undefined>>
}

interface Live {
  readonly shown: string
  readonly keys: RemoteKeys
  readonly http: RemoteHttp
}

const LOOK_EVERY_MS = 2_000

export const noRemoteSigners: RemoteSigners = { find: () => undefined }

/** The remote signers of a file, reloaded when it changes. One that can't be used any more is told and the last good one stays. @throws RemoteSignersFileError */
export async function createRemoteSigners(file: string | undefined, wiring: Wiring): Promise<LiveRemoteSigners> {
  const { clock, log } = wiring
  let signers = new Map<string, Live>()

  /** @returns whether something has changed */
  async function load(): Promise<boolean> {
    if (file === undefined) return false
    const entries = await readRemoteSignersFile(file)
    const next = new Map<string, Live>()
    for (const entry of entries) {
      const before = signers.get(entry.name)
      // One that stays keeps what is known of it: its token, its credentials, that it does not answer.
      next.set(entry.name, before?.shown === JSON.stringify(entry) ? before : openSigner(entry, wiring))
    }
    const gone = [...signers].filter(([name, live]) => next.get(name) !== live)
    const isChanged = gone.length > 0 || next.size !== signers.size
    signers = next
    for (const [, { http }] of gone) http.close().catch(() => {})
    return isChanged
  }

  await load()
  return {
    find: (keyName) => signers.get(keyName)?.keys,
    names: () => [...signers.keys()],
    async watch(onReload, signal) {
      if (file === undefined) return
      let told = ''
      while (!signal.aborted) {
        await clock.sleep(LOOK_EVERY_MS, signal).catch(() => undefined)
        if (signal.aborted) return
        try {
          const isChanged = await load()
          if (isChanged || told !== '') wiring.onReload?.('remote-signers', true)
          if (isChanged) {
            log.info({ signers: [...signers.keys()] }, 'the remote signers file changed and is in use')
            onReload()
          }
          told = ''
        } catch (error) {
          const message = error instanceof RemoteSignersFileError ? error.message : 'the remote signers file cannot be used'
          if (message !== told) {
            log.error({ reason: message }, 'the remote signers file changed and cannot be used: the last good one stays in use')
            wiring.onReload?.('remote-signers', false)
          }
          told = message
        }
      }
    },
    async close() {
      await Promise.allSettled([...signers.values()].map(({ http }) => http.close()))
    },
  }
}

function openSigner(entry: RemoteSignerEntry, { clock, onCall, env = process.env }: Wiring): Live {
  const { name, timeoutMs, web3signer, awsKms, transit } = entry
  const http = createRemoteHttp({ name, mostMs: timeoutMs, tls: (web3signer ?? awsKms ?? transit)?.tls, env })
  const gate = createGate({ name, clock, timeoutMs, onCall: onCall && ((...call) => onCall(name, ...call)) })
  const wiring = { name, gate, clock }
  const live = (keys: RemoteKeys): Live => ({ shown: JSON.stringify(entry), keys, http })
  if (web3signer !== undefined) return live(remoteEthereumKey(createWeb3Signer({ name, http, ...web3signer }), wiring))
  if (transit !== undefined) return live(remoteSolanaKey(createTransit({ name, http, clock, ...transit }), wiring))
  if (awsKms === undefined) throw new Error(`the remote signer ${name} is of no kind`)
  const { keyId, endpoint } = awsKms
  const region = awsKms.region ?? regionOf(keyId) ?? (env.AWS_REGION || env.AWS_DEFAULT_REGION || 'us-east-1')
  const suffix = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com'
  return live(
    remoteEthereumKey(
      createAwsKms({
        name,
        url: endpoint ?? new URL(`https://kms.${region}.${suffix}/`),
        region,
        keyId,
        http,
        credentials: createAwsCredentials({ name, region, http, clock, env }),
        clock,
      }),
      wiring,
    ),
  )
}

/** arn:aws:kms:REGION:ACCOUNT:key/ID */
const regionOf = (keyId: string): string | undefined => /^arn:[a-z-]+:kms:([a-z0-9-]+):/.exec(keyId)?.[1]

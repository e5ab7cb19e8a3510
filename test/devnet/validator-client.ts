import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../cluster/ports.ts'
import { type RunningProcess, startProcess } from '../cluster/process.ts'
import { runToEnd } from '../cluster/run.ts'
import type { DevnetAssets } from './assets.ts'

export interface ValidatorClientOptions {
  readonly assets: DevnetAssets
  /** Of its own; holds its wallet, its slashing protection and its log. */
  readonly dir: string
  /** gRPC of the beacon node. */
  readonly beaconRpc: string
  readonly chainConfigFile: string
  readonly signal: AbortSignal
}

export interface ValidatorClient {
  readonly process: RunningProcess
  /** Its Keymanager API, and the file of the token. */
  readonly url: string
  readonly tokenFile: string
}

/** A wallet's flags; its password is made with its folder. */
function walletIn(dir: string): readonly string[] {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const password = join(dir, 'wallet-password')
  writeFileSync(password, 'Wallet-of-a-test-1!\n', { mode: 0o600 })
  return ['--accept-terms-of-use', '--wallet-dir', join(dir, 'wallet'), '--wallet-password-file', password]
}

async function run(assets: DevnetAssets, args: readonly string[], signal: AbortSignal): Promise<void> {
  const { code, stdout, stderr } = await runToEnd({ command: assets.validator, args, signal })
  if (code !== 0) throw new Error(`the validator client's ${args.slice(0, 2).join(' ')} failed:\n${stdout}${stderr}`)
}

/**
 * Imports keystores as an operator of validators would, by `accounts import`, into a wallet that never runs.
 * @throws with what Prysm says when it can't take them.
 */
export const importByHand = (
  { assets, dir, signal }: Pick<ValidatorClientOptions, 'assets' | 'dir' | 'signal'>,
  { keystoresDir, passwordFile }: { readonly keystoresDir: string; readonly passwordFile: string },
): Promise<void> =>
  run(assets, ['accounts', 'import', ...walletIn(dir), '--keys-dir', keystoresDir, '--account-password-file', passwordFile], signal)

/** Prysm's validator client with an empty wallet: it gets its keys by its Keymanager API. */
export async function startValidatorClient(options: ValidatorClientOptions): Promise<ValidatorClient> {
  const { assets, dir, beaconRpc, chainConfigFile, signal } = options
  const at = (name: string): string => join(dir, name)
  const wallet = walletIn(dir)
  await run(assets, ['wallet', 'create', '--keymanager-kind', 'imported', ...wallet], signal)
  const tokenFile = at('token')
  writeFileSync(tokenFile, `0x${randomBytes(32).toString('hex')}\n`, { mode: 0o600 })
  const [rpc, http, metrics] = [await freePort(), await freePort(), await freePort()]
  const process = await startProcess({
    name: 'validator',
    command: assets.validator,
    args: [
      ...wallet,
      ...['--datadir', at('data'), '--chain-config-file', chainConfigFile, '--beacon-rpc-provider', beaconRpc],
      ...['--suggested-fee-recipient', '0x00000000000000000000000000000000feefeefe', '--rpc-host', '127.0.0.1', '--rpc-port', String(rpc)],
      ...['--rpc', '--keymanager-token-file', tokenFile, '--http-host', '127.0.0.1', '--http-port', String(http)],
      ...['--monitoring-host', '127.0.0.1', '--monitoring-port', String(metrics)],
    ],
    logFile: at('validator.log'),
    readyTimeoutMs: 60_000,
    readyWhen: async ({ signal: probe }) => (await fetch(`http://127.0.0.1:${metrics}/metrics`, { signal: probe })).ok,
  })
  return { process, url: `http://127.0.0.1:${http}`, tokenFile }
}

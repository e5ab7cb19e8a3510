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
  /** EIP-2335 keystores, and a file with the password of all. */
  readonly keystoresDir: string
  readonly passwordFile: string
  readonly signal: AbortSignal
}

/**
 * Prysm's validator client with keystores that somebody exported: imported as an operator of validators would, by `accounts import`.
 * @throws with what Prysm says when it can't take them.
 */
export async function startValidatorClient(options: ValidatorClientOptions): Promise<RunningProcess> {
  const { assets, dir, beaconRpc, chainConfigFile, keystoresDir, passwordFile, signal } = options
  const at = (name: string): string => join(dir, name)
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  writeFileSync(at('wallet-password'), 'Wallet-of-a-test-1!\n', { mode: 0o600 })
  const wallet = ['--accept-terms-of-use', '--wallet-dir', at('wallet'), '--wallet-password-file', at('wallet-password')]
  const imported = await runToEnd({
    command: assets.validator,
    args: ['accounts', 'import', ...wallet, '--keys-dir', keystoresDir, '--account-password-file', passwordFile],
    signal,
  })
  if (imported.code !== 0) throw new Error(`the validator client does not take the keystores:\n${imported.stdout}${imported.stderr}`)
  const [rpc, http, metrics] = [await freePort(), await freePort(), await freePort()]
  return startProcess({
    name: 'validator',
    command: assets.validator,
    args: [
      ...wallet,
      ...['--datadir', at('data'), '--chain-config-file', chainConfigFile, '--beacon-rpc-provider', beaconRpc],
      ...['--suggested-fee-recipient', '0x00000000000000000000000000000000feefeefe', '--rpc-host', '127.0.0.1', '--rpc-port', String(rpc)],
      ...['--http-host', '127.0.0.1', '--http-port', String(http)],
      ...['--monitoring-host', '127.0.0.1', '--monitoring-port', String(metrics)],
    ],
    logFile: at('validator.log'),
    readyTimeoutMs: 60_000,
    readyWhen: async ({ signal: probe }) => (await fetch(`http://127.0.0.1:${metrics}/metrics`, { signal: probe })).ok,
  })
}

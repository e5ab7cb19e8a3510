import { Command, InvalidArgumentError, Option } from 'commander'
import type { LogFormat } from '../lib/log.ts'
import type { Secret } from '../lib/secret.ts'
import type { ApiKeyInfo } from '../service/api-keys.ts'
import { defaultLogFormat, duration, expiry, listenAddress, logFormat, moment, stopSignal } from './arguments.ts'
import { decide } from './end.ts'

interface CommonFlags {
  readonly config: string
  readonly databaseUrlFile: string | undefined
}

const configOption = () =>
  new Option('--config <file>', "the service's configuration").default('/etc/staking-service/service.yaml').env('STAKING_SERVICE_CONFIG')
const databaseOption = () =>
  new Option('--database-url-file <file>', 'file that holds the URL of a PostgreSQL database, instead of what the configuration says')
const depositStatuses = ['awaiting_submission', 'submitted', 'confirmed', 'failed'] as const
type DepositStatus = (typeof depositStatuses)[number]
const statusOption = () => new Option('--status <status>', 'only those whose deposit transaction is').choices(depositStatuses)
const flagsOf = ({ databaseUrlFile }: CommonFlags) => (databaseUrlFile === undefined ? {} : { flags: { databaseUrlFile } })
const write = (text: string) => process.stdout.write(`${text}\n`)

export function serviceCommand(version: string): Command {
  const command = new Command('service')
    .description('serve the staking API')
    .addOption(configOption())
    .addOption(databaseOption())
    .addOption(new Option('--listen <host:port>', 'where to listen, instead of what the configuration says').argParser(listenAddress))
    .addOption(logFormat())
    .configureHelp({ showGlobalOptions: true })
    .action(
      async (
        flags: CommonFlags & { readonly listen?: { readonly host: string; readonly port: number }; readonly logFormat?: LogFormat },
      ) => {
        const { runService } = await import('../service/run.ts')
        const { databaseUrlFile } = flags
        await runService(
          {
            config: flags.config,
            flags: { ...flags.listen, ...(databaseUrlFile === undefined ? {} : { databaseUrlFile }) },
            version,
            logFormat: flags.logFormat ?? defaultLogFormat(),
          },
          stopSignal(),
        )
        process.exit(0)
      },
    )
  command
    .command('backup')
    .description('copy the embedded database into a folder, beside a running service or without one; the seed is not in it')
    .requiredOption('--out <dir>', 'folder for this copy; it is made if it is not there')
    .action(async (_: unknown, subcommand: Command) => {
      const { out, ...flags } = subcommand.optsWithGlobals<CommonFlags & { readonly out: string }>()
      const { backUp } = await import('../service/backup.ts')
      await backUp({ config: flags.config, ...flagsOf(flags), out })
      write(`copied the database to ${out}`)
    })
  command
    .command('restore')
    .description('put a copy of the embedded database in its place, where none may be')
    .requiredOption('--from <dir>', 'folder that backup wrote')
    .action(async (_: unknown, subcommand: Command) => {
      const { from, ...flags } = subcommand.optsWithGlobals<CommonFlags & { readonly from: string }>()
      const { restore } = await import('../service/backup.ts')
      await restore({ config: flags.config, ...flagsOf(flags), from })
      write('restored the database; start the service, and see what it misses: service missing-stakes')
    })
  return command.addCommand(missingStakesCommand())
}

const missingStakesCommand = () =>
  new Command('missing-stakes')
    .description(
      'list stakes that the chain has and the database lacks, after a restore from an older copy; the exit code is 1 when there are any',
    )
    .option('--network <name>', 'only on this network')
    .option('--dismiss <pubkey...>', 'these validators are no stakes of this service: say no more of them')
    .action(async (_: unknown, command: Command) => {
      const flags = command.optsWithGlobals<CommonFlags & { readonly network?: string; readonly dismiss?: string[] }>()
      const { dismissMissingStakes, missingStakes } = await import('../service/backup.ts')
      const options = { config: flags.config, ...flagsOf(flags) }
      if (flags.dismiss !== undefined) {
        const dismissed = await dismissMissingStakes({ ...options, pubkeys: flags.dismiss })
        write(`dismissed ${dismissed.length}`)
        return
      }
      const missing = await missingStakes({ ...options, ...(flags.network === undefined ? {} : { network: flags.network }) })
      if (missing.length > 0) decide(1)
      const rows = missing.map((one) => [
        one.network,
        one.pubkey,
        one.withdrawalAddress,
        one.amountGwei,
        one.transactionHash,
        one.blockNumber,
      ])
      for (const row of [['NETWORK', 'PUBKEY', 'WITHDRAWAL ADDRESS', 'GWEI', 'TRANSACTION', 'BLOCK'], ...rows]) write(row.join('\t'))
    })

export function apiKeysCommand(): Command {
  const command = new Command('api-keys').description("the staking service's API keys")
  command
    .command('create')
    .description('make an API key; it is printed once and never again')
    .addOption(configOption())
    .addOption(databaseOption())
    .requiredOption('--account <name>', 'account that the key belongs to; an account sees only its own stakes')
    .option('--label <text>', 'what it is for')
    .addOption(new Option('--scope <scope...>', 'what it may do').choices(['read', 'write']).default(['read', 'write']))
    .option('--network <name...>', 'only for these networks')
    .option('--operation <id...>', "only for these operations, by the operationId of the API's document")
    .option('--address <address...>', 'only from these IP addresses, or blocks of them such as 10.0.0.0/8')
    .addOption(new Option('--expires <when>', 'a date such as 2030-01-31, or a number of days such as 90d').argParser(expiry))
    .action(
      async (
        flags: CommonFlags & {
          readonly account: string
          readonly label?: string
          readonly scope: ('read' | 'write')[]
          readonly network?: string[]
          readonly operation?: string[]
          readonly address?: string[]
          readonly expires?: Date
        },
      ) => {
        const { apiKeysCreate } = await import('../service/commands.ts')
        const { info, key } = await apiKeysCreate({
          config: flags.config,
          ...flagsOf(flags),
          account: flags.account,
          scopes: flags.scope,
          ...(flags.label === undefined ? {} : { label: flags.label }),
          ...(flags.network === undefined ? {} : { networks: flags.network }),
          ...(flags.operation === undefined ? {} : { operations: flags.operation }),
          ...(flags.address === undefined ? {} : { addressRanges: flags.address }),
          ...(flags.expires === undefined ? {} : { expiresAt: flags.expires }),
        })
        showKey(info, key)
      },
    )
  command
    .command('list')
    .description('list the API keys, never their text')
    .addOption(configOption())
    .addOption(databaseOption())
    .action(async (flags: CommonFlags) => {
      const { apiKeysList } = await import('../service/commands.ts')
      const time = (date: Date | undefined) => date?.toISOString().slice(0, 19) ?? '-'
      const rows = (await apiKeysList({ config: flags.config, ...flagsOf(flags) })).map((key) => [
        key.keyId,
        key.account,
        key.scopes.join(','),
        time(key.createdAt),
        time(key.expiresAt),
        time(key.revokedAt),
        time(key.lastUsedAt),
        [...(key.networks ?? []), ...(key.operations ?? []), ...(key.addressRanges ?? [])].join(',') || '-',
        key.label,
      ])
      const head = ['ID', 'ACCOUNT', 'SCOPES', 'CREATED', 'EXPIRES', 'REVOKED', 'LAST USED', 'ONLY', 'LABEL']
      for (const row of [head, ...rows]) write(row.join('\t'))
    })
  command
    .command('revoke')
    .description('revoke an API key, for good and at once')
    .addOption(configOption())
    .addOption(databaseOption())
    .argument('<id>', "the key's id, as list shows it")
    .action(async (keyId: string, flags: CommonFlags) => {
      const { apiKeysRevoke } = await import('../service/commands.ts')
      if (!(await apiKeysRevoke({ config: flags.config, ...flagsOf(flags), keyId }))) {
        process.stderr.write(`error: there is no API key ${keyId}\n`)
        process.exit(1)
      }
      write(`revoked ${keyId}`)
    })
  command
    .command('rename')
    .description('give an API key another label')
    .addOption(configOption())
    .addOption(databaseOption())
    .argument('<id>', "the key's id, as list shows it")
    .argument('<label>', 'what it is for')
    .action(async (keyId: string, label: string, flags: CommonFlags) => {
      const { apiKeysRename } = await import('../service/commands.ts')
      if (!(await apiKeysRename({ config: flags.config, ...flagsOf(flags), keyId, label }))) return fail(`there is no API key ${keyId}`)
      write(`renamed ${keyId}`)
    })
  command
    .command('rotate')
    .description('make an API key that may do the same, and let the old one end; the new one is printed once and never again')
    .addOption(configOption())
    .addOption(databaseOption())
    .argument('<id>', "the old key's id, as list shows it")
    .addOption(
      new Option('--overlap <time>', 'the old key is good for so long more, such as 90m or 24h')
        .argParser(duration)
        .default(86_400_000, '24h'),
    )
    .action(async (keyId: string, flags: CommonFlags & { readonly overlap: number }) => {
      const { apiKeysRotate } = await import('../service/commands.ts')
      const made = await apiKeysRotate({ config: flags.config, ...flagsOf(flags), keyId, overlapMs: flags.overlap })
      if (made === undefined) return fail(`there is no API key ${keyId} that is valid`)
      showKey(made.info, made.key)
    })
  return command
}

function fail(message: string): void {
  process.stderr.write(`error: ${message}\n`)
  process.exitCode = 1
}

function showKey({ keyId, account, scopes }: ApiKeyInfo, key: Secret): void {
  process.stderr.write(`API key ${keyId} of account ${account} (${scopes.join(', ')}). This is the only time it is shown:\n`)
  write(key.reveal())
}

export function auditLogCommand(): Command {
  const command = new Command('audit-log').description('who asked what of the staking service, and when')
  command
    .command('export')
    .description('write the entries as JSON, one a line, the oldest first')
    .addOption(configOption())
    .addOption(databaseOption())
    .option('--account <name>', 'only of this account')
    .addOption(new Option('--since <when>', 'from this time on, such as 2030-01-31').argParser(moment))
    .addOption(new Option('--until <when>', 'before this time').argParser(moment))
    .action(async (flags: CommonFlags & { readonly account?: string; readonly since?: Date; readonly until?: Date }) => {
      const { auditLogExport } = await import('../service/commands.ts')
      const { account, since, until } = flags
      await auditLogExport({
        config: flags.config,
        ...flagsOf(flags),
        ...(account === undefined ? {} : { account }),
        ...(since === undefined ? {} : { since }),
        ...(until === undefined ? {} : { until }),
        onEntry: (entry) => write(JSON.stringify(entry)),
      })
    })
  return command
}

export function keystoresCommand(): Command {
  const command = new Command('keystores').description("the validators' signing keys")
  command
    .command('export')
    .description('write EIP-2335 keystores for a validator client. Run a key in one place only: two validators with one key are slashed')
    .addOption(configOption())
    .addOption(databaseOption())
    .requiredOption('--out <dir>', 'folder to write to; it is made if it is not there')
    .requiredOption('--password-file <file>', 'file whose first line protects the keystores')
    .option('--network <name>', 'only those of this network')
    .addOption(statusOption())
    .option('--pubkey <pubkey...>', 'only these validators')
    .addOption(new Option('--kdf <kdf>', 'key derivation of the keystores').choices(['scrypt', 'pbkdf2']).default('scrypt'))
    .option(
      '--again',
      'also keys that were exported before: only when they run nowhere any more, for two validators with one key are slashed',
    )
    .action(
      async (
        flags: CommonFlags & {
          readonly out: string
          readonly passwordFile: string
          readonly network?: string
          readonly status?: DepositStatus
          readonly pubkey?: string[]
          readonly kdf: 'scrypt' | 'pbkdf2'
          readonly again?: boolean
        },
      ) => {
        const { exportKeystores } = await import('../service/keystores.ts')
        const exported = await exportKeystores({
          config: flags.config,
          ...flagsOf(flags),
          outDir: flags.out,
          passwordFile: flags.passwordFile,
          kdf: flags.kdf,
          ...(flags.again === true ? { again: true } : {}),
          ...(flags.network === undefined ? {} : { network: flags.network }),
          ...(flags.status === undefined ? {} : { status: flags.status }),
          ...(flags.pubkey === undefined ? {} : { pubkeys: flags.pubkey }),
        })
        write(`wrote ${exported.length} keystores to ${flags.out}`)
      },
    )
  command.addCommand(pushCommand())
  command.addCommand(recoverCommand())
  return command
}

interface PushFlags extends CommonFlags {
  readonly to: string
  readonly tokenFile: string
  readonly caFile?: string
  readonly allowHttp?: boolean
  readonly network: string
  readonly status?: DepositStatus
  readonly pubkey?: string[]
  readonly feeRecipient?: string
  readonly gasLimit?: bigint
  readonly slashingProtection?: string
  readonly again?: boolean
  readonly withoutHistory?: boolean
}

const pushCommand = (): Command =>
  new Command('push')
    .description(
      'give the keys to a running validator client by the standard Keymanager API. A key runs in one place only: what was exported or pushed elsewhere is refused',
    )
    .addOption(configOption())
    .addOption(databaseOption())
    .requiredOption('--to <url>', 'Keymanager API of the validator client: https, or http on this machine')
    .requiredOption('--token-file <file>', 'file that holds its token')
    .requiredOption('--network <name>', 'network of the stakes, which the client must validate')
    .option('--ca-file <file>', 'PEM of the authority that its certificate is from')
    .option('--allow-http', 'http to another machine: whoever listens on the way gets the keys')
    .addOption(statusOption())
    .option('--pubkey <pubkey...>', 'only these validators')
    .option('--fee-recipient <address>', 'who gets the fees of their blocks')
    .addOption(new Option('--gas-limit <gas>', 'gas limit of their blocks').argParser(gas))
    .option('--slashing-protection <file>', 'what the keys have signed elsewhere (EIP-3076), from the client that ran them')
    .option(
      '--again',
      'also keys that were exported or pushed elsewhere: only when they run nowhere any more, for two validators with one key are slashed',
    )
    .option(
      '--without-history',
      'with --again, without what the keys have signed elsewhere: only if they never ran, or their client has been off for three epochs for good',
    )
    .action(async (flags: PushFlags) => {
      const { pushKeystores } = await import('../service/keymanager/push.ts')
      const { to, tokenFile, network, status, pubkey, feeRecipient, gasLimit, caFile, slashingProtection } = flags
      const pushed = await pushKeystores({
        ...{ config: flags.config, ...flagsOf(flags), to, tokenFile, network },
        ...(caFile === undefined ? {} : { caFile }),
        ...(flags.allowHttp === true ? { allowHttp: true } : {}),
        ...(status === undefined ? {} : { status }),
        ...(pubkey === undefined ? {} : { pubkeys: pubkey }),
        ...(feeRecipient === undefined ? {} : { feeRecipient }),
        ...(gasLimit === undefined ? {} : { gasLimit }),
        ...(slashingProtection === undefined ? {} : { slashingProtectionFile: slashingProtection }),
        ...(flags.again === true ? { again: true } : {}),
        ...(flags.withoutHistory === true ? { withoutHistory: true } : {}),
      })
      for (const { outcome, pubkey: key, stakeId } of pushed) write(`${outcome} ${key} ${stakeId}`)
      write(`the validator client holds ${pushed.length} keys`)
    })

/** @throws InvalidArgumentError */
function gas(text: string): bigint {
  if (/^[1-9][0-9]{0,18}$/.test(text)) return BigInt(text)
  throw new InvalidArgumentError('must be a whole number in plain digits')
}

interface RecoverFlags extends CommonFlags {
  readonly out: string
  readonly passwordFile: string
  readonly pubkey: string
  readonly again?: boolean
  readonly withoutDatabase?: boolean
  readonly path?: string
  readonly account?: string
  readonly idempotencyKey?: string
  readonly network?: string
  readonly amountEth?: string
  readonly withdrawalAddress?: string
  readonly credentialsType: '0x01' | '0x02'
  readonly kdf: 'scrypt' | 'pbkdf2'
}

const recoverCommand = (): Command =>
  new Command('recover')
    .description(
      'write the keystore of a validator that the database does not know any more, after a restore: by the path in the log, or by the request that made it',
    )
    .addOption(configOption())
    .addOption(databaseOption())
    .requiredOption('--out <dir>', 'folder to write to; it is made if it is not there')
    .requiredOption('--password-file <file>', 'file whose first line protects the keystore')
    .requiredOption('--pubkey <pubkey>', 'the validator, as the chain shows it')
    .option('--path <path>', 'path of its key, as the log of its creation has it: m/12381/3600/N/0/0')
    .option('--account <name>', 'account of the API key that asked for the stake')
    .option('--idempotency-key <key>', 'Idempotency-Key of the request')
    .option('--network <name>', 'network of the request')
    .option('--amount-eth <amount>', 'amountEth of the request')
    .option('--withdrawal-address <address>', 'withdrawalAddress of the request')
    .addOption(new Option('--credentials-type <type>', 'credentialsType of the request').choices(['0x01', '0x02']).default('0x02'))
    .addOption(new Option('--kdf <kdf>', 'key derivation of the keystore').choices(['scrypt', 'pbkdf2']).default('scrypt'))
    .option('--again', 'although the key was exported, pushed or recovered before: only when it runs nowhere any more')
    .option('--without-database', 'although no database can say where the key was taken to before, or note it')
    .action(async (flags: RecoverFlags) => {
      const { recoverKeystore } = await import('../service/recover.ts')
      const { path, file } = await recoverKeystore({
        config: flags.config,
        ...flagsOf(flags),
        outDir: flags.out,
        passwordFile: flags.passwordFile,
        pubkey: flags.pubkey,
        kdf: flags.kdf,
        ...(flags.again === true ? { again: true } : {}),
        ...(flags.withoutDatabase === true ? { withoutDatabase: true } : {}),
        from: await keySource(flags),
      })
      write(`wrote ${file} (${path}) to ${flags.out}`)
    })

async function keySource(flags: RecoverFlags) {
  const { path, account, idempotencyKey, network, amountEth, withdrawalAddress, credentialsType } = flags
  if (path !== undefined) return { path }
  const missing = Object.entries({ account, idempotencyKey, network, amountEth, withdrawalAddress }).find(
    ([, value]) => value === undefined,
  )
  const { parseEth } = await import('../lib/amounts.ts')
  const { KeystoreError } = await import('../service/keystores.ts')
  if (
    account === undefined ||
    idempotencyKey === undefined ||
    network === undefined ||
    amountEth === undefined ||
    withdrawalAddress === undefined
  ) {
    const flag = missing?.[0].replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    throw new KeystoreError(`give --path, or what the request held: --${flag} is missing`)
  }
  if (!/^0x[0-9a-fA-F]{40}$/.test(withdrawalAddress)) throw new KeystoreError('--withdrawal-address must be 20 bytes in hex with 0x')
  const address = withdrawalAddress as `0x${string}`
  return { account, idempotencyKey, network, amountGwei: parseEth(amountEth), withdrawalAddress: address, credentialsType }
}

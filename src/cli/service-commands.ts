import { Command, Option } from 'commander'
import { expiry, listenAddress, stopSignal } from './arguments.ts'

interface CommonFlags {
  readonly config: string
  readonly databaseUrlFile: string | undefined
}

const configOption = () =>
  new Option('--config <file>', "the service's configuration").default('/etc/staking-service/service.yaml').env('STAKING_SERVICE_CONFIG')
const databaseOption = () =>
  new Option('--database-url-file <file>', 'file that holds the URL of a PostgreSQL database, instead of what the configuration says')
const flagsOf = ({ databaseUrlFile }: CommonFlags) => (databaseUrlFile === undefined ? {} : { flags: { databaseUrlFile } })
const write = (text: string) => process.stdout.write(`${text}\n`)

export const serviceCommand = (version: string): Command =>
  new Command('service')
    .description('serve the staking API')
    .addOption(configOption())
    .addOption(databaseOption())
    .addOption(new Option('--listen <host:port>', 'where to listen, instead of what the configuration says').argParser(listenAddress))
    .action(async (flags: CommonFlags & { readonly listen?: { readonly host: string; readonly port: number } }) => {
      const { runService } = await import('../service/run.ts')
      const { databaseUrlFile } = flags
      await runService(
        { config: flags.config, flags: { ...flags.listen, ...(databaseUrlFile === undefined ? {} : { databaseUrlFile }) }, version },
        stopSignal(),
      )
      process.exit(0)
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
    .addOption(new Option('--expires <when>', 'a date such as 2030-01-31, or a number of days such as 90d').argParser(expiry))
    .action(
      async (
        flags: CommonFlags & {
          readonly account: string
          readonly label?: string
          readonly scope: ('read' | 'write')[]
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
          ...(flags.expires === undefined ? {} : { expiresAt: flags.expires }),
        })
        process.stderr.write(
          `API key ${info.keyId} of account ${info.account} (${info.scopes.join(', ')}). This is the only time it is shown:\n`,
        )
        write(key.reveal())
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
        key.label,
      ])
      for (const row of [['ID', 'ACCOUNT', 'SCOPES', 'CREATED', 'EXPIRES', 'REVOKED', 'LABEL'], ...rows]) write(row.join('\t'))
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
    .addOption(
      new Option('--status <status>', 'only those whose deposit transaction is').choices([
        'awaiting_submission',
        'submitted',
        'confirmed',
        'failed',
      ]),
    )
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
          readonly status?: 'awaiting_submission' | 'submitted' | 'confirmed' | 'failed'
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
  command.addCommand(recoverCommand())
  return command
}

interface RecoverFlags extends CommonFlags {
  readonly out: string
  readonly passwordFile: string
  readonly pubkey: string
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
    .action(async (flags: RecoverFlags) => {
      const { recoverKeystore } = await import('../service/recover.ts')
      const { path, file } = await recoverKeystore({
        config: flags.config,
        outDir: flags.out,
        passwordFile: flags.passwordFile,
        pubkey: flags.pubkey,
        kdf: flags.kdf,
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

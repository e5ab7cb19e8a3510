import { z } from 'zod'
import type { Address, Hex, Pubkey } from '../chains/ethereum/chain.ts'
import { type Gwei, gwei, wei } from '../lib/amounts.ts'
import { InspectError } from './error.ts'

/** A deposit as a file claims it. Fields that the file has not are undefined. */
export interface DepositClaim {
  readonly pubkey: Pubkey
  readonly withdrawalCredentials: Hex
  readonly amountGwei: Gwei
  readonly signature: Hex
  readonly depositMessageRoot: Hex | undefined
  readonly depositDataRoot: Hex | undefined
  readonly forkVersion: Hex | undefined
  readonly depositContractAddress: Address | undefined
  readonly chainId: number | undefined
  /** What a stake of the staking API says beside its deposit data. */
  readonly stake?: ClaimedStake
}

/** A stake of the staking API, without its deposit data. */
export type ClaimedStake = z.output<typeof aroundDepositData>

/** Hex with or without 0x: deposit-cli writes it without. */
const bytes = <T extends Hex>(length: number): z.ZodType<T> =>
  z
    .string()
    .regex(new RegExp(`^(0x)?[0-9a-fA-F]{${length * 2}}$`), `must be ${length} bytes in hex`)
    .transform((text) => (text.startsWith('0x') ? text : `0x${text}`).toLowerCase()) as unknown as z.ZodType<T>
const amount = z
  .union(
    [z.int().nonnegative(), z.string().regex(/^(0|[1-9][0-9]{0,19})$/, 'must be a whole number of gwei')],
    'must be a whole number of gwei',
  )
  .transform((value) => gwei(BigInt(value)))
/** Of any length, with 0x: as `data` of a transaction is written. */
const calldata = z
  .string()
  .regex(/^0x([0-9a-fA-F]{2})*$/, 'must be bytes in hex, with 0x')
  .transform((text) => text.toLowerCase()) as unknown as z.ZodType<Hex>

/** `deposit_data-*.json` of the staking deposit CLI: a list of these (ethstaker-deposit-cli, "Deposit data file"). */
const ofDepositCli = z.object({
  pubkey: bytes<Pubkey>(48),
  withdrawal_credentials: bytes(32),
  amount,
  signature: bytes(96),
  deposit_message_root: bytes(32).optional(),
  deposit_data_root: bytes(32).optional(),
  fork_version: bytes(4).optional(),
})
/** The staking API's DepositData. */
const ofStakingApi = z.object({
  pubkey: bytes<Pubkey>(48),
  withdrawalCredentials: bytes(32),
  amountGwei: amount,
  signature: bytes(96),
  depositMessageRoot: bytes(32).optional(),
  depositDataRoot: bytes(32).optional(),
  forkVersion: bytes(4).optional(),
  depositContractAddress: bytes<Address>(20).optional(),
  chainId: z.int().positive().optional(),
})

/** The rest of the staking API's stake: its own words for the same deposit, and the transaction that it would have signed. */
const aroundDepositData = z.object({
  network: z.string().optional(),
  amountEth: z.string().optional(),
  withdrawalAddress: bytes<Address>(20).optional(),
  credentialsType: z.string().optional(),
  unsignedTransaction: z
    .object({
      chainId: z.int().positive(),
      to: bytes<Address>(20),
      data: calldata,
      valueWei: z
        .string()
        .regex(/^(0|[1-9][0-9]{0,77})$/, 'must be a whole number of wei')
        .transform((value) => wei(BigInt(value))),
    })
    .optional(),
})

/**
 * The deposits of a JSON file: a `deposit_data-*.json` of the deposit CLI, a stake of the staking API, or its deposit data.
 * @throws InspectError that names the place
 */
export function parseDepositFile(text: string, path: string): readonly DepositClaim[] {
  let value: unknown
  try {
    // Windows writes a mark before the text.
    value = JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch {
    throw new InspectError(`${path} is not JSON: give a deposit_data-*.json, a stake of the staking API, or the hash of a transaction`)
  }
  const list = Array.isArray(value) ? value : [value]
  if (list.length === 0) throw new InspectError(`${path} has no deposits`)
  return list.map((entry, index) => claimOf(entry, Array.isArray(value) ? `${path}[${index}]` : path))
}

function claimOf(entry: unknown, where: string): DepositClaim {
  const whole = z.object({ depositData: z.unknown() }).safeParse(entry)
  if (!whole.success || whole.data.depositData === undefined) return dataOf(entry, where)
  const data = dataOf(whole.data.depositData, where)
  return { ...data, stake: checked(aroundDepositData, entry, where) }
}

function dataOf(entry: unknown, where: string): DepositClaim {
  const isCli = typeof entry === 'object' && entry !== null && 'withdrawal_credentials' in entry
  if (isCli) {
    const { deposit_message_root, deposit_data_root, fork_version, withdrawal_credentials, amount, pubkey, signature } = checked(
      ofDepositCli,
      entry,
      where,
    )
    return {
      pubkey,
      withdrawalCredentials: withdrawal_credentials,
      amountGwei: amount,
      signature,
      depositMessageRoot: deposit_message_root,
      depositDataRoot: deposit_data_root,
      forkVersion: fork_version,
      depositContractAddress: undefined,
      chainId: undefined,
    }
  }
  const { depositMessageRoot, depositDataRoot, forkVersion, depositContractAddress, chainId, ...rest } = checked(ofStakingApi, entry, where)
  return { ...rest, depositMessageRoot, depositDataRoot, forkVersion, depositContractAddress, chainId }
}

function checked<T extends z.ZodType>(schema: T, value: unknown, where: string): z.output<T> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw new InspectError(
    `${where} is not a deposit: ${result.error.issues.map((issue) => `${issue.path.join('.') || 'it'}: ${issue.message}`).join('; ')}`,
  )
}

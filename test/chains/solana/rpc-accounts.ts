import { decodeBase58, encodeBase58 } from '../../../src/chains/solana/base58.ts'
import { noEpoch, stakeHistorySysvar, stakeProgram } from '../../../src/chains/solana/programs.ts'
import { decodeStakeAccount } from '../../../src/chains/solana/stake-account.ts'
import { invalidParams, optionsOf } from './rpc-json.ts'
import type { Account } from './svm.ts'

/** The StakeHistory account is as large as 512 epochs, whatever it holds. */
const stakeHistoryBytes = 16_392

/** An account as `getAccountInfo` gives it: `base64` (default here is base58's old form only on demand), `jsonParsed` for stake accounts. */
export function accountJson(address: string, account: Account | undefined, options: Readonly<Record<string, unknown>>): object | null {
  if (account === undefined) return null
  const data = address === stakeHistorySysvar ? padded(account.data, stakeHistoryBytes) : account.data
  return {
    lamports: account.lamports,
    owner: account.owner,
    executable: account.executable,
    rentEpoch: noEpoch,
    space: data.length,
    data: dataJson({ ...account, data }, options),
  }
}

function dataJson(account: Account, { encoding, dataSlice }: Readonly<Record<string, unknown>>): unknown {
  const { offset = 0, length = account.data.length } = optionsOf(dataSlice) as { offset?: number; length?: number }
  const data = account.data.subarray(offset, offset + length)
  if (encoding === 'jsonParsed') {
    const parsed = parseStake(account)
    return parsed ?? [Buffer.from(data).toString('base64'), 'base64']
  }
  if (encoding === 'base64') return [Buffer.from(data).toString('base64'), 'base64']
  if (data.length > 128) throw new Error('Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding.')
  return encoding === 'base58' ? [encodeBase58(data), 'base58'] : encodeBase58(data)
}

/** As account-decoder's parse_stake. */
function parseStake(account: Account): object | undefined {
  if (account.owner !== stakeProgram || account.data.length !== 200) return undefined
  const state = decodeStakeAccount(account)
  const program = { program: 'stake', space: account.data.length }
  if (state.kind === 'uninitialized') return { ...program, parsed: { type: 'uninitialized' } }
  if (state.kind === 'rewards-pool') return { ...program, parsed: { type: 'rewardsPool' } }
  const { rentExemptReserve, staker, withdrawer, lockup } = state.meta
  const meta = {
    rentExemptReserve: `${rentExemptReserve}`,
    authorized: { staker, withdrawer },
    lockup: { unixTimestamp: lockup.unixTimestamp, epoch: lockup.epoch, custodian: lockup.custodian },
  }
  if (state.kind === 'initialized') return { ...program, parsed: { type: 'initialized', info: { meta, stake: null } } }
  const { voter, stake, activationEpoch, deactivationEpoch } = state.delegation
  const view = Buffer.from(account.data)
  const delegation = {
    voter,
    stake: `${stake}`,
    activationEpoch: `${activationEpoch}`,
    deactivationEpoch: `${deactivationEpoch}`,
    warmupCooldownRate: view.readDoubleLE(180),
  }
  const creditsObserved = view.readBigUInt64LE(188)
  return { ...program, parsed: { type: 'delegated', info: { meta, stake: { delegation, creditsObserved } } } }
}

/** The filters of `getProgramAccounts`: all must hold. */
export function matchesFilters(account: Account, filters: unknown): boolean {
  if (filters === undefined || filters === null) return true
  if (!Array.isArray(filters)) throw invalidParams('Invalid params: filters must be an array')
  if (filters.length > 4) throw invalidParams('Too many filters provided; max 4')
  return (filters as readonly unknown[]).every((filter) => {
    const { dataSize, memcmp } = optionsOf(filter)
    if (typeof dataSize === 'number') return account.data.length === dataSize
    const { offset, bytes, encoding } = optionsOf(memcmp)
    if (typeof offset !== 'number' || typeof bytes !== 'string') throw invalidParams('Invalid params: invalid filter')
    const wanted = encoding === 'base64' ? Buffer.from(bytes, 'base64') : decodeBase58(bytes, 200)
    if (wanted === undefined) throw invalidParams('Invalid param: Invalid memcmp bytes')
    return Buffer.from(account.data.subarray(offset, offset + wanted.length)).equals(wanted)
  })
}

const padded = (data: Uint8Array, size: number): Uint8Array => {
  const whole = new Uint8Array(Math.max(size, data.length))
  whole.set(data)
  return whole
}

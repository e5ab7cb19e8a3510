import type { SolanaAddress } from './addresses.ts'
import { type SolanaChain, SolanaError, type StakeHistory, type StakeView } from './chain.ts'
import type { Commitment } from './expiry.ts'
import { features, isFeatureOn } from './features.ts'
import { clockSysvar, epochRewardsSysvar, stakeHistorySysvar } from './programs.ts'
import { LayoutError } from './reader.ts'
import { account, withContext } from './rpc-formats.ts'
import type { Ask } from './rpc-nodes.ts'
import { decodeClock, decodeEpochRewards, decodeStakeHistory } from './sysvars.ts'

interface KnownHistory {
  readonly epoch: bigint
  readonly history: StakeHistory
}

/** A stake account with the sysvars that say how far it is, all of one slot. */
export function createStakeViews(ask: Ask): SolanaChain['stakeView'] {
  const accounts = (addresses: readonly SolanaAddress[], commitment: Commitment, signal: AbortSignal) =>
    ask(
      'getMultipleAccounts',
      [addresses, { commitment, encoding: 'base64' }],
      withContext(account.array().length(addresses.length)),
      signal,
    )

  let finalHistory: KnownHistory | undefined
  /** At one slot; undefined where the history that is known is another epoch's. */
  async function viewOf(
    address: SolanaAddress,
    commitment: Commitment,
    known: KnownHistory | undefined,
    signal: AbortSignal,
  ): Promise<StakeView | undefined> {
    const always = [address, clockSysvar, epochRewardsSysvar, features.fixedPointStake]
    const { context, value } = await accounts(known === undefined ? [...always, stakeHistorySysvar] : always, commitment, signal)
    const [stake, clockAccount, rewardsAccount, feature, historyAccount] = value
    if (!clockAccount || (known === undefined && !historyAccount))
      throw new SolanaError('unavailable', 'the node does not hold the sysvars of stakes')
    const clock = sysvar(decodeClock, clockAccount.data)
    if (known !== undefined && known.epoch !== clock.epoch) return undefined
    return {
      slot: context.slot,
      account: stake ?? undefined,
      clock,
      history: historyAccount ? sysvar(decodeStakeHistory, historyAccount.data) : (known?.history ?? new Map()),
      rewardsActive: rewardsAccount ? sysvar(decodeEpochRewards, rewardsAccount.data).active : false,
      arithmetic: isFeatureOn(feature) ? 'fixed-point' : 'float',
    }
  }

  return async (address, commitment, signal) => {
    // 23 kB that change with the epoch: read once in each, by all stakes, of what is final.
    const known = commitment === 'finalized' ? finalHistory : undefined
    const view = await viewOf(address, commitment, known, signal)
    const read = view ?? (await viewOf(address, commitment, undefined, signal))
    if (read === undefined) throw new SolanaError('unavailable', 'the node does not hold the sysvars of stakes')
    if (commitment === 'finalized') finalHistory = { epoch: read.clock.epoch, history: read.history }
    return read
  }
}

function sysvar<T>(decode: (data: Uint8Array) => T, data: Uint8Array): T {
  try {
    return decode(data)
  } catch (error) {
    if (error instanceof LayoutError) throw new SolanaError('unavailable', error.message)
    throw error
  }
}

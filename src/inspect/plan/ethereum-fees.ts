import { ChainError, type EthereumChain } from '../../chains/ethereum/chain.ts'
import type { StorageGas } from '../../chains/ethereum/storage-gas.ts'
import { formatWeiAsEth, formatWeiAsGwei, type Wei, wei } from '../../lib/amounts.ts'
import type { Address, Hex } from '../../lib/chain-types.ts'
import { feesFor, standsARise } from '../../operator/transactions/price.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import { attempt, type Draft } from './draft.ts'
import type { Rooms } from './rooms.ts'

/** A call as it would be sent. */
export interface PlannedCall {
  readonly from: Address
  readonly to: Address
  readonly data: Hex
  readonly valueWei: Wei
}

/** What its gas is where it can't be estimated, since the address lacks the money: the operator's own guess. */
const GUESS = 100_000n
const eth = (amount: bigint): string => `${formatWeiAsEth(wei(amount))} ETH`

/** Looks at the nodes for what a call costs now, and at most, and whether the address can pay. Nothing is sent. */
export async function priceCall(
  draft: Draft,
  {
    chain,
    call,
    cap,
    gasLimit,
    most,
    signer,
    network,
    rooms,
    own,
  }: {
    readonly chain: Pick<EthereumChain, 'view' | 'priorityFee' | 'estimateGas' | 'storageGas' | 'balance'>
    readonly call: PlannedCall
    readonly cap: Wei
    readonly gasLimit: (estimate: bigint, storage: StorageGas) => bigint
    /** Wei that the call itself pays at most. */
    readonly most: Wei
    readonly signer: StakingSigner
    readonly network: string
    readonly rooms: Rooms
    readonly own: ReadonlySet<string>
  },
  signal: AbortSignal,
): Promise<void> {
  const capText = `${formatWeiAsGwei(cap)} gwei per gas`
  draft.fees = { cap: capText }
  await attempt(draft, async () => {
    const [{ baseFeePerGas }, priorityFeePerGas, storage, balance, estimate] = await Promise.all([
      chain.view(signal),
      chain.priorityFee(signal),
      chain.storageGas(signal),
      chain.balance(call.from, signal),
      chain.estimateGas(call, signal).catch((error: unknown) => {
        if (error instanceof ChainError && error.code === 'insufficient-funds') return GUESS
        throw error
      }),
    ])
    const gas = gasLimit(estimate, storage)
    const atMost = gas * cap
    draft.fees = { now: eth(estimate * (baseFeePerGas + priorityFeePerGas)), atMost: eth(atMost), cap: capText }
    const market = { baseFeePerGas, priorityFeePerGas }
    const fees = feesFor(market, cap, undefined)
    if (fees === undefined || !standsARise(fees, market))
      draft.waits.push({
        by: 'operator',
        reason: 'FeeTooHigh',
        message: `A gas unit costs more now than the cap of ${formatWeiAsGwei(cap)} gwei allows with room for a rise. It goes on when the price falls, or when maxFeePerGasGwei (of this resource or the signer's policy) is raised.`,
      })
    const needed = most + gas * (fees?.maxFeePerGas ?? cap)
    const bound = rooms.bound({ signer, network, own })
    if (balance < bound + needed)
      draft.waits.push({
        by: 'operator',
        reason: 'InsufficientFunds',
        message: `${signer.spec.address} holds ${eth(balance)} on ${network}, and this needs up to ${eth(needed)}${bound === 0n ? '' : `, after ${eth(bound)} of what comes before it`}. It goes on by itself when the address is funded.`,
      })
    rooms.spend({ signer, network }, needed)
  })
}

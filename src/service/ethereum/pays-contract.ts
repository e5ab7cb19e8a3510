import { type Address, ChainError, type EthereumChain, type Hex } from '../../chains/ethereum/chain.ts'
import { isContract } from '../../chains/ethereum/unspendable.ts'
import type { Clock } from '../../lib/clock.ts'
import { shareNextCallBy } from '../../lib/shared-call.ts'

/** Whether a withdrawal address is a contract. Nothing is refused for it, and it is said. Undefined where no node tells. */
export type PaysContract = (chain: Pick<EthereumChain, 'code'>, address: Address, signal: AbortSignal) => Promise<boolean | undefined>

/** How often an address is asked about at most. */
const everyMs = 25

/** Those who ask about one address at the same time share a question, which is asked after they came. */
export function createPaysContract(clock: Pick<Clock, 'monotonicMs' | 'sleep'>): PaysContract {
  const never = new AbortController().signal
  const asking = new WeakMap<object, (address: Address, signal: AbortSignal) => Promise<Hex>>()
  return async (chain, address, signal) => {
    const ask = asking.get(chain) ?? shareNextCallBy((one: Hex) => chain.code(one, never), { clock, everyMs })
    asking.set(chain, ask)
    try {
      return isContract(await ask(address, signal))
    } catch (error) {
      if (error instanceof ChainError) return undefined
      throw error
    }
  }
}

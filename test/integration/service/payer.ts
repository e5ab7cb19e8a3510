import { setTimeout as delay } from 'node:timers/promises'
import { parseGwei } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { Hex } from '../../../src/chains/ethereum/chain.ts'
import type { Anvil } from '../../chains/anvil.ts'

export interface Call {
  readonly to: Hex
  readonly data: Hex
  readonly valueWei: string | bigint
}

/** Signs and broadcasts as a client of the service does. */
export function createPayer(anvil: Anvil, account = 0) {
  const { privateKey, address } = anvil.accounts[account] ?? fail()
  const signer = privateKeyToAccount(privateKey)
  const sign = (call: Call, nonce: number, feeGwei = 20, gas = 200_000n): Promise<Hex> =>
    signer.signTransaction({
      chainId: anvil.chainId,
      type: 'eip1559',
      nonce,
      to: call.to,
      data: call.data,
      value: BigInt(call.valueWei),
      gas,
      maxFeePerGas: parseGwei(String(feeGwei)),
      maxPriorityFeePerGas: parseGwei(String(feeGwei / 2)),
    })
  const broadcast = (raw: Hex) => anvil.rpc<Hex>('eth_sendRawTransaction', [raw])
  /** A node that mines at once answers before it has: what is sent is in a block a moment later. */
  const untilMined = async (hash: Hex): Promise<Hex> => {
    if (!(await anvil.rpc<boolean>('anvil_getAutomine'))) return hash
    for (const deadline = Date.now() + 30_000; ; await delay(10)) {
      if ((await anvil.rpc<object | null>('eth_getTransactionReceipt', [hash])) !== null) return hash
      if (Date.now() > deadline) throw new Error(`${hash} was not mined`)
    }
  }
  return {
    address,
    sign,
    broadcast,
    nonce: () => anvil.transactionCount(address, 'pending'),
    /** Returns the hash: of what is in the chain, where the node mines what it is sent; of what the node has, where blocks come otherwise. */
    pay: async (call: Call, nonce?: number, feeGwei?: number, gas?: bigint): Promise<Hex> =>
      untilMined(await broadcast(await sign(call, nonce ?? (await anvil.transactionCount(address, 'pending')), feeGwei, gas))),
  }
}

const fail = (): never => {
  throw new Error('no such account')
}

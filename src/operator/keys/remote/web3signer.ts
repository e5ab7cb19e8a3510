import { z } from 'zod'
import type { Address, Hex, UnsignedTransaction } from '../../../chains/ethereum/chain.ts'
import { sameHex } from '../../../lib/hex.ts'
import { KeyError } from '../../ports.ts'
import { isPassing, jsonOf, type RemoteHttp } from './remote-http.ts'
import type { EthereumSigner } from './remote-keys.ts'

const answer = z.object({
  id: z.union([z.number(), z.string()]).nullish(),
  result: z.unknown().optional(),
  error: z.object({ code: z.number().catch(0) }).nullish(),
})
const hex = z.string().regex(/^0x([0-9a-fA-F]{2})+$/)
/** Web3Signer and anvil answer the bytes; geth answers them with the transaction in words. */
const signedBytes = z.union([hex, z.object({ raw: hex }).transform(({ raw }) => raw)])

/** JSON-RPC 2.0 and EIP-1474: what says that nothing is wrong with the question. */
const INTERNAL_ERRORS = new Set([-32603, -32005, -32002])
const quantity = (value: bigint | number): Hex => `0x${value.toString(16)}`

/** Ethereum by `eth_signTransaction`, as Web3Signer's eth1 mode serves it: one chain for each Web3Signer, by its own configuration. */
export function createWeb3Signer({
  name,
  url,
  address,
  http,
}: {
  readonly name: string
  readonly url: URL
  readonly address: Address
  readonly http: RemoteHttp
}): EthereumSigner {
  let id = 0

  async function call(method: string, params: readonly unknown[], signal: AbortSignal): Promise<unknown> {
    id += 1
    const asked = id
    const response = await http.send(
      {
        method: 'POST',
        url,
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: asked, method, params }),
      },
      signal,
    )
    const { status, retryAfterMs } = response
    const isRefusal = status >= 400 && !isPassing(status)
    if (isPassing(status))
      throw new KeyError('unavailable', `The remote signer ${name} answered ${status}. It is asked again.`, { retryAfterMs })
    const parsed = answer.safeParse(isRefusal ? tried(response.text) : jsonOf(name, response))
    if (parsed.success && parsed.data.error) throw refusal(parsed.data.error.code)
    if (isRefusal)
      throw new KeyError('refused', `The remote signer ${name} refused ${method} (${status}): look at who may use it, and at its log.`)
    if (!parsed.success || parsed.data.result === undefined || Number(parsed.data.id) !== asked)
      throw new KeyError(
        'unavailable',
        `The remote signer ${name} answered ${method} with something that is no answer to it. It is asked again.`,
      )
    return parsed.data.result
  }

  const refusal = (code: number): KeyError =>
    INTERNAL_ERRORS.has(code)
      ? new KeyError('unavailable', `The remote signer ${name} failed (error ${code}). It is asked again.`)
      : new KeyError(
          'refused',
          `The remote signer ${name} refused to sign for ${address} (error ${code}): it does not have that key, or does not take the transaction. Look at its log.`,
        )

  return {
    async address(signal) {
      const accounts = z.array(z.string()).safeParse(await call('eth_accounts', [], signal))
      if (!accounts.success || !accounts.data.some((one) => sameHex(one, address)))
        throw new KeyError(
          'refused',
          `The remote signer ${name} has no key of ${address} (eth_accounts does not name it): load the key there.`,
        )
      return address
    },

    async sign(transaction, from, signal) {
      const result = signedBytes.safeParse(await call('eth_signTransaction', [toParameters(transaction, from)], signal))
      if (!result.success)
        throw new KeyError('unavailable', `The remote signer ${name} answered eth_signTransaction with something that is no transaction.`)
      return result.data as Hex
    },
  }
}

function tried(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** With the chain id: who goes by its own passes it over, and signs for a chain that is looked at in what it answers. */
const toParameters = (
  { chainId, nonce, to, data, valueWei, gas, maxFeePerGas, maxPriorityFeePerGas }: UnsignedTransaction,
  from: Address,
) => ({
  from,
  to,
  data,
  value: quantity(valueWei),
  gas: quantity(gas),
  maxFeePerGas: quantity(maxFeePerGas),
  maxPriorityFeePerGas: quantity(maxPriorityFeePerGas),
  nonce: quantity(nonce),
  chainId: quantity(chainId),
})

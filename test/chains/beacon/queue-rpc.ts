import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toHex } from 'viem'
import { decodeRequestLog } from '../../../src/chains/ethereum/requests.ts'
import { createContractQueue } from '../../../src/chains/ethereum/testing.ts'
import type { Anvil } from '../anvil.ts'
import type { RpcLog } from '../deposit-contract.ts'
import { REQUEST_CONTRACT } from './execution.ts'

/**
 * A front of anvil's JSON-RPC that answers for the storage of the EIP-7002 contract's queue. anvil makes no system calls, so its contract never hands a
 * request on; here the queue moves by 16 a block, as the code of the contract says. All else is anvil's own.
 */
export async function startQueueRpc(anvil: Anvil): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const storage = async (slot: string, blockHash: string): Promise<string> => {
    const block = await anvil.rpc<{ number: string } | null>('eth_getBlockByHash', [blockHash, false])
    if (block === null) throw new Error('header not found')
    const filter = { address: REQUEST_CONTRACT, fromBlock: '0x0', toBlock: block.number }
    const queue = createContractQueue()
    const logs = await anvil.rpc<readonly RpcLog[]>('eth_getLogs', [filter])
    for (const number of new Set(logs.map(({ blockNumber }) => blockNumber))) {
      queue.block(
        BigInt(number),
        logs.filter(({ blockNumber }) => blockNumber === number).map(({ topics, data }) => decodeRequestLog({ topics, data })),
      )
    }
    return toHex(queue.storageAfter(BigInt(block.number), [BigInt(slot)])[0] ?? 0n, { size: 32 })
  }

  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    const { id, method, params } = JSON.parse(body) as {
      id: unknown
      method: string
      params: readonly [string, string, { blockHash?: string }]
    }
    const blockHash = method === 'eth_getStorageAt' ? params[2]?.blockHash : undefined
    response.setHeader('content-type', 'application/json')
    if (blockHash === undefined || params[0].toLowerCase() !== REQUEST_CONTRACT.toLowerCase()) {
      const answer = await fetch(anvil.url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
      response.end(await answer.text())
      return
    }
    const answer = await storage(params[1], blockHash).then(
      (result) => ({ result }),
      (error: unknown) => ({ error: { code: -32000, message: String(error) } }),
    )
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

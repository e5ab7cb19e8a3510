import { getAddress } from 'viem'
import { z } from 'zod'
import { gwei, type Wei, wei } from '../../lib/amounts.ts'
import { RpcFailure, type RpcResult } from '../../lib/json-rpc.ts'
import type { Address, ChainReceipt, ChainTransaction, Hex } from './chain.ts'

/** The answers of the execution API (ethereum/execution-apis), as far as they are used. */
export const quantity = z
  .string()
  .regex(/^0x[0-9a-fA-F]{1,64}$/)
  .transform((text) => BigInt(text))
const weiQuantity = quantity.transform((value): Wei => wei(value))
const smallQuantity = quantity.refine((value) => value <= BigInt(Number.MAX_SAFE_INTEGER)).transform(Number)
const hash = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/)
  .transform((text) => text.toLowerCase() as Hex)
const data = z
  .string()
  .regex(/^0x([0-9a-fA-F]{2})*$/)
  .transform((text) => text.toLowerCase() as Hex)
const address = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/)
  .transform((text): Address => getAddress(text))

export const blockRef = z.object({ number: quantity, hash })
export type BlockRef = z.output<typeof blockRef>
export const block = blockRef.extend({ baseFeePerGas: weiQuantity.default(wei(0n)), timestamp: smallQuantity.optional() })
/** Of a block with its transactions' hashes; absent where a node leaves them out. */
export const blockWithHashes = blockRef.extend({ transactions: z.array(hash).optional() })

export const transaction = z
  .object({
    hash,
    from: address,
    to: address.nullish(),
    nonce: smallQuantity,
    input: data,
    value: weiQuantity,
    blockNumber: quantity.nullish(),
    blockHash: hash.nullish(),
  })
  .transform(
    ({ to, input, value, blockNumber, blockHash, ...rest }): ChainTransaction => ({
      ...rest,
      to: to ?? undefined,
      data: input,
      valueWei: value,
      ...(blockNumber == null ? {} : { blockNumber }),
      ...(blockHash == null ? {} : { blockHash }),
    }),
  )
/** Of a block with its transactions, each as it came: of others than the one that is looked for, only sender and nonce are read. */
export const blockWithTransactions = blockRef.extend({
  transactions: z.array(z.looseObject({ from: z.string(), nonce: z.string().regex(/^0x[0-9a-fA-F]{1,16}$/) })),
})

export const rawLog = z.object({
  address,
  topics: z.array(hash),
  data,
  blockNumber: quantity,
  blockHash: hash.optional(),
  transactionHash: hash,
  removed: z.boolean().optional(),
})
export type RawLog = z.output<typeof rawLog>

export const receipt = z
  .object({
    transactionHash: hash,
    from: address,
    status: quantity,
    blockNumber: quantity,
    blockHash: hash,
    gasUsed: quantity,
    effectiveGasPrice: weiQuantity,
    logs: z.array(z.object({ address, topics: z.array(hash), data })),
  })
  .transform(({ transactionHash, status, ...rest }): ChainReceipt => ({ ...rest, hash: transactionHash, success: status === 1n }))

/** The value of one call of a batch. @throws RpcFailure */
export function resultOf(result: RpcResult | undefined): unknown {
  if (result === undefined) throw new RpcFailure('no-answer', 'the node left a call of a batch out')
  if ('failure' in result) throw result.failure
  return result.value
}

/** Reads an answer by its schema; another shape is no answer. */
export function read<T>(schema: z.ZodType<T>, answer: unknown, method: string): T {
  const result = schema.safeParse(answer)
  if (result.success) return result.data
  throw new RpcFailure('no-answer', `the node's answer to ${method} has another shape than the execution API's`)
}

/** A block as the queue of requests needs it. */
export const chainBlock = z.object({
  number: quantity,
  hash,
  parentHash: hash,
  timestamp: smallQuantity,
  withdrawals: z
    .array(
      z
        .object({ validatorIndex: smallQuantity, amount: quantity })
        .transform(({ validatorIndex, amount }) => ({ validatorIndex, amountGwei: gwei(amount) })),
    )
    .optional(),
})
export const blockTimestamp = z.object({ timestamp: smallQuantity })
export const callData = data

export const toHex = (value: bigint | number): Hex => `0x${value.toString(16)}`
export const smallNumber = smallQuantity

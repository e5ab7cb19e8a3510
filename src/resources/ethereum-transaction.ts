import { z } from 'zod'
import { address, blockHash, hexBytes, integerText, time, transactionHash, wholeNumber } from './schema.ts'

const attempt = z.object({
  hash: transactionHash().describe('Transaction hash.'),
  nonce: wholeNumber().describe('Nonce of the signer.'),
  gas: integerText(20).describe('Gas limit.'),
  maxFeePerGasWei: integerText().describe('Highest total fee per gas in wei.'),
  maxPriorityFeePerGasWei: integerText().describe('Highest tip per gas in wei.'),
  preparedAt: time().describe('When it was made.'),
})
export type TransactionAttempt = z.output<typeof attempt>

const transaction = (to: string) =>
  z.object({
    chainId: z.int().min(1).max(Number.MAX_SAFE_INTEGER).meta({ format: 'int64' }).describe('EIP-155 chain id.'),
    from: address().describe("The signer's address."),
    to: address().describe(to),
    valueWei: integerText().describe('Value in wei.'),
    dataHash: hexBytes(32).describe('Keccak-256 of the calldata.'),
    ...attempt.shape,
    replaced: z
      .array(attempt)
      .max(32)
      .optional()
      .describe('Earlier versions of this transaction, oldest first. At most one of all can ever land, as long as they share a nonce.'),
    broadcastHash: transactionHash().optional().describe('The version that a node has accepted last.'),
    reportedHash: transactionHash().optional().describe('The version that the staking API was told last.'),
    state: z
      .enum(['Prepared', 'Broadcast', 'Confirmed', 'Failed', 'FrontRun'])
      .describe(
        "Prepared (no node has it yet), Broadcast, Confirmed (final), Failed (reverted), or FrontRun (second to somebody else's deposit).",
      ),
    minedHash: transactionHash().optional().describe('The version that landed.'),
    blockNumber: wholeNumber().optional().describe('Block that it landed in.'),
    blockHash: blockHash().optional().describe('Hash of that block.'),
  })
/** A transaction of a resource, as its status mirrors it. */
export type EthereumTransaction = z.output<ReturnType<typeof transaction>>

/** The status fields of every kind that sends one Ethereum transaction. `what` names it, `to` the contract that it calls. */
export const transactionFields = (what: string, to: string) => ({
  transaction: transaction(to).optional().describe(`${what}, as its StakingTransaction has it. For people: nothing is decided by it.`),
})

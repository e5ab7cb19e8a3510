import type { NodeError } from '../../lib/json-rpc.ts'
import type { ChainErrorCode } from './chain.ts'

export type { NodeError } from '../../lib/json-rpc.ts'
export { quoted } from '../nodes/quoted.ts'

/**
 * What a node's own message means. The order matters: "already known" comes before everything about nonces, since a transaction that is in
 * the pool is a success whatever else the message says. Sources: the transaction pools of geth, reth, Nethermind, Erigon, Besu, and anvil.
 */
const meanings: readonly (readonly [RegExp, ChainErrorCode])[] = [
  [/already ?known|already imported|\bknown transaction|same hash/i, 'already-known'],
  // Nethermind says OwnNonceAlreadyUsed for a nonce that its pool holds, and OldNonce for one that is mined.
  [/replacement|replace existing|ownnoncealreadyused/i, 'replacement-underpriced'],
  [/nonce too low|old ?nonce|nonce has already been used|invalid nonce; got .* expected/i, 'nonce-too-low'],
  [
    /insufficient ?(funds|balance)|exceeds (transaction sender )?account balance|maxfeepergas for sender balance|doesn't have enough funds/i,
    'insufficient-funds',
  ],
  [/underpriced|fee ?too ?low|base ?fee|below configured minimum gas price|gas price (too low|below)|gasprice is less/i, 'underpriced'],
  [
    /execution reverted|\brevert(ed)?\b|vm execution error|always failing|gas required exceeds allowance|out of gas|invalid opcode/i,
    'reverted',
  ],
  [/chain ?id/i, 'wrong-chain'],
  // The node can't say now: other nodes, or the same later, can.
  [
    /rate.?limit|too many requests|limit exceeded|capacity|timed? ?out|timeout|header not found|missing trie node|state .*not available|unknown block|pool is full|syncing|internal error|nonce ?gap|nonce too (high|distant)|too far in future|too distant/i,
    'unavailable',
  ],
]

/** JSON-RPC and EIP-1474 codes that say more than their message. */
const codes: Readonly<Record<number, ChainErrorCode>> = {
  3: 'reverted',
  [-32005]: 'unavailable',
  [-32016]: 'unavailable',
  [-32603]: 'unavailable',
}

/** The message decides, then the code; what is unknown is `rejected`. */
export const classifyNodeError = ({ code, message }: NodeError): ChainErrorCode =>
  meanings.find(([pattern]) => pattern.test(message))?.[1] ?? codes[code] ?? 'rejected'

/** A plain message for each meaning: a node's own text may hold what must not be shown. */
export const plainMessages: Readonly<Record<ChainErrorCode, string>> = {
  'already-known': 'the node holds this transaction already',
  'nonce-too-low': 'the nonce is used by a mined transaction',
  'replacement-underpriced': 'another transaction of this nonce is in the pool, and this one does not pay enough more to replace it',
  underpriced: 'the transaction pays too little for the node to take it now',
  'insufficient-funds': 'the sender does not hold enough for value and gas',
  reverted: 'the call would be reverted by the contract',
  'wrong-chain': 'the node serves another chain',
  unavailable: 'the node cannot answer now',
  'history-syncing': 'the deposit history is still being read',
  'access-denied': 'the node does not let us in',
  rejected: 'the node refused for a reason that is not known here',
}

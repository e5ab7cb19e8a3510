import { describe, expect, test } from 'vitest'
import type { ChainErrorCode } from './chain.ts'
import { classifyNodeError, quoted } from './rpc-errors.ts'

type Row = { node: string; message: string; code?: number; expected: ChainErrorCode }

const rows: Row[] = [
  { node: 'geth', message: 'already known', expected: 'already-known' },
  { node: 'anvil', message: 'transaction already imported', expected: 'already-known' },
  { node: 'reth', message: 'already known', expected: 'already-known' },
  { node: 'Nethermind', message: 'AlreadyKnown', expected: 'already-known' },
  { node: 'Erigon', message: 'existing tx with same hash', expected: 'already-known' },
  { node: 'Besu', message: 'Known transaction', expected: 'already-known' },

  { node: 'geth', message: 'nonce too low: next nonce 5, tx nonce 4', expected: 'nonce-too-low' },
  { node: 'anvil', message: 'nonce too low', code: -32003, expected: 'nonce-too-low' },
  { node: 'reth', message: 'nonce too low: next nonce 1, tx nonce 0', expected: 'nonce-too-low' },
  { node: 'Nethermind', message: 'OldNonce, Current nonce: 1, nonce of rejected tx: 0', expected: 'nonce-too-low' },
  { node: 'Erigon', message: 'nonce too low', expected: 'nonce-too-low' },
  { node: 'Besu', message: 'Nonce too low', code: -32001, expected: 'nonce-too-low' },

  { node: 'geth', message: 'replacement transaction underpriced', expected: 'replacement-underpriced' },
  {
    node: 'geth, blobs',
    message: 'replacement transaction underpriced: new tx gas fee cap 1 < 2 queued',
    expected: 'replacement-underpriced',
  },
  { node: 'anvil', message: 'replacement transaction underpriced', code: -32003, expected: 'replacement-underpriced' },
  { node: 'Nethermind', message: 'ReplacementNotAllowed', expected: 'replacement-underpriced' },
  { node: 'Nethermind', message: 'OwnNonceAlreadyUsed', expected: 'replacement-underpriced' },
  { node: 'Erigon', message: 'could not replace existing tx', expected: 'replacement-underpriced' },
  { node: 'Besu', message: 'Replacement transaction underpriced', expected: 'replacement-underpriced' },

  { node: 'geth', message: 'transaction underpriced: gas tip cap 0, minimum needed 1', expected: 'underpriced' },
  { node: 'geth', message: 'max fee per gas less than block base fee: address 0x1, maxFeePerGas: 1, baseFee: 7', expected: 'underpriced' },
  { node: 'anvil', message: 'max fee per gas less than block base fee', expected: 'underpriced' },
  { node: 'reth', message: 'transaction underpriced', expected: 'underpriced' },
  { node: 'Nethermind', message: 'FeeTooLow, MaxFeePerGas too low. MaxFeePerGas: 1, BaseFee: 7', expected: 'underpriced' },
  { node: 'Nethermind', message: 'FeeTooLowToCompete', expected: 'underpriced' },
  { node: 'Erigon', message: 'fee too low', expected: 'underpriced' },
  { node: 'Besu', message: 'Gas price below configured minimum gas price', code: -32009, expected: 'underpriced' },
  { node: 'Besu', message: 'gasPrice is less than the current BaseFee', expected: 'underpriced' },

  {
    node: 'geth',
    message: 'insufficient funds for gas * price + value: balance 0, tx cost 32000, overshot 32000',
    expected: 'insufficient-funds',
  },
  { node: 'anvil', message: 'Insufficient funds for gas * price + value', code: -32003, expected: 'insufficient-funds' },
  { node: 'reth', message: 'insufficient funds for gas * price + value: have 0 want 1', expected: 'insufficient-funds' },
  { node: 'Nethermind', message: 'InsufficientFunds, Account balance: 0, cumulative cost: 1', expected: 'insufficient-funds' },
  { node: 'Nethermind', message: 'insufficient MaxFeePerGas for sender balance', expected: 'insufficient-funds' },
  { node: 'Erigon', message: 'insufficient funds for transfer', expected: 'insufficient-funds' },
  { node: 'Besu', message: 'Upfront cost exceeds account balance', code: -32004, expected: 'insufficient-funds' },

  { node: 'geth', message: 'execution reverted: DepositContract: deposit value too low', code: 3, expected: 'reverted' },
  { node: 'geth, no reason', message: 'execution reverted', code: -32000, expected: 'reverted' },
  { node: 'geth', message: 'gas required exceeds allowance (30000000)', code: -32000, expected: 'reverted' },
  { node: 'anvil', message: 'execution reverted: reverted', code: 3, expected: 'reverted' },
  { node: 'Nethermind', message: 'VM execution error.', code: -32015, expected: 'reverted' },
  { node: 'Besu', message: 'Execution reverted', code: -32000, expected: 'reverted' },
  { node: 'any, by code only', message: '', code: 3, expected: 'reverted' },

  { node: 'geth', message: 'invalid chain id for signer: have 1 want 5', expected: 'wrong-chain' },

  { node: 'a provider', message: 'daily request limit exceeded', code: -32005, expected: 'unavailable' },
  { node: 'a provider', message: 'Your app has exceeded its compute units per second capacity', code: 429, expected: 'unavailable' },
  { node: 'geth', message: 'header not found', expected: 'unavailable' },
  { node: 'geth, pruned', message: 'missing trie node 0123 (path )', expected: 'unavailable' },
  { node: 'geth', message: 'txpool is full', expected: 'unavailable' },
  { node: 'geth', message: 'request timed out', code: -32002, expected: 'unavailable' },
  { node: 'Besu', message: 'Internal error', code: -32603, expected: 'unavailable' },
  { node: 'Nethermind', message: 'NonceGap, Future nonce. Expected nonce: 1', expected: 'unavailable' },

  { node: 'geth', message: 'intrinsic gas too low: gas 1, minimum needed 21000', expected: 'rejected' },
  { node: 'geth', message: 'exceeds block gas limit', expected: 'rejected' },
  { node: 'geth', message: 'invalid sender', expected: 'rejected' },
  { node: 'any', message: 'the method eth_foo does not exist/is not available', code: -32601, expected: 'rejected' },
  { node: 'any', message: 'something never seen', expected: 'rejected' },
]

describe("a node's error means", () => {
  test.each(rows)('$node: "$message" → $expected', ({ message, code = -32000, expected }) => {
    expect(classifyNodeError({ code, message })).toBe(expected)
  })

  test('"unknown transaction" is not "known transaction"', () => {
    expect(classifyNodeError({ code: -32000, message: 'unknown transaction' })).toBe('rejected')
  })
})

describe('a refusal that nobody knows is shown in the node’s own words, bounded, and without what may be a secret', () => {
  test.each([
    { message: 'tx type 0x2 is not enabled', shown: 'code -32000: "tx type 0x2 is not enabled"' },
    { message: '', shown: 'code -32000' },
    { message: 'see https://rpc.example/v3/0123456789abcdef for more', shown: 'code -32000: "see … for more"' },
    { message: 'quota of mainnet.infura.io exceeded', shown: 'code -32000: "quota of … exceeded"' },
    { message: 'project id 9aa3d95b3bc440fa88ea12eaa4456161 is over its plan', shown: 'code -32000: "project id … is over its plan"' },
    { message: 'api key: abc123 is blocked', shown: 'code -32000: "api … is blocked"' },
    { message: `no such hash 0x${'ab'.repeat(32)}`, shown: `code -32000: "no such hash 0x${'ab'.repeat(32)}"` },
    { message: 'one\ntwo\u0000 "three" <b>', shown: "code -32000: \"one two 'three' 'b'\"" },
  ])('$message', ({ message, shown }) => {
    expect(quoted({ code: -32000, message })).toBe(shown)
  })
  test('and never long', () => {
    expect(quoted({ code: -32000, message: 'a word '.repeat(10_000) }).length).toBeLessThan(150)
  })
})

import { keccak256, parseTransaction, toHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { expect, test } from 'vitest'
import type { Hash } from '../../chains/ethereum/chain.ts'
import { chainOfBlocks, chainOverNodes, createTestNode, receiptAnswer, type TestNode, testHash } from '../../chains/ethereum/test-nodes.ts'
import { observe } from './observe.ts'
import { outcomeOf } from './outcome.ts'

const never = new AbortController().signal
const account = privateKeyToAccount(generatePrivateKey())
/** A signed one: a node alone that shows it proves it. */
const raw = await account.signTransaction({
  ...{ type: 'legacy', chainId: 5, nonce: 0, to: `0x${'aa'.repeat(20)}`, value: 1n, gas: 21_000n, gasPrice: 9n },
})
const { r, s, v = 0n } = parseTransaction(raw)
const signed = { type: '0x0', chainId: '0x5', gas: toHex(21_000), gasPrice: '0x9', r, s, v: toHex(v) }
const transaction = { hash: keccak256(raw) as Hash, from: account.address, nonce: 0, signed }
const row = { hash: transaction.hash, submitted_at: new Date(0), sender: null, nonce: null }
const blocks = chainOfBlocks(100, { 50: [transaction] })
const without = chainOfBlocks(100)
const forked = chainOfBlocks(100, { 50: [transaction] }, { from: 45, name: 'of another fork' })

test.each<{ name: string; nodes: TestNode[]; status: string; blockNumber?: bigint }>([
  { name: 'in a final block of all nodes is confirmed', nodes: [createTestNode({ blocks })], status: 'confirmed', blockNumber: 50n },
  {
    name: 'in a block that is not final is not',
    nodes: [createTestNode({ blocks, depth: 60 })],
    status: 'submitted',
    blockNumber: 50n,
  },
  {
    name: 'whose receipt is of a block that left the chain below final is not',
    nodes: [
      createTestNode({
        blocks: without,
        says: new Map([['eth_getTransactionReceipt', () => receiptAnswer(transaction, 50, testHash(0xdead))]]),
      }),
    ],
    status: 'submitted',
  },
  {
    name: 'that only a node on another fork shows is not',
    nodes: [createTestNode({ blocks: forked }), createTestNode({ blocks: without })],
    status: 'submitted',
  },
  {
    name: 'that two nodes have in different blocks is not',
    nodes: [createTestNode({ blocks: forked }), createTestNode({ blocks })],
    status: 'submitted',
  },
  {
    name: 'that one of two nodes shows while the other is silent is confirmed',
    nodes: [createTestNode({ down: true }), createTestNode({ blocks })],
    status: 'confirmed',
    blockNumber: 50n,
  },
])('a reported transaction $name', async ({ nodes, status, blockNumber }) => {
  const { chain } = chainOverNodes(nodes)
  const head = await chain.head(never)
  const [first, ...rest] = await observe({ chain, head }, [row], () => undefined, never)
  if (first === undefined) throw new Error('nothing was observed')
  const outcome = outcomeOf([first, ...rest], head)
  expect(outcome).toMatchObject({ status, hash: transaction.hash, ...(blockNumber === undefined ? {} : { blockNumber }) })
  if (blockNumber === undefined) expect(outcome.blockNumber).toBeUndefined()
})

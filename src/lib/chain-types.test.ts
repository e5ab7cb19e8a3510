import { describe, expect, test } from 'vitest'
import { type Gwei, gwei, type Lamports, lamports, type Wei, wei } from './amounts.ts'
import type { Address, BlockHash, Blockhash, Hash, Hex, Pubkey, Signature, SolanaAddress } from './chain-types.ts'
import { lowerCase } from './chain-types.ts'

/** What takes one kind of text each, and gives back what it got: that anything is refused here is refused by the compiler (`npm run types`). */
const take = {
  address: (text: Address): string => text,
  hash: (text: Hash): string => text,
  blockHash: (text: BlockHash): string => text,
  pubkey: (text: Pubkey): string => text,
  solanaAddress: (text: SolanaAddress): string => text,
  signature: (text: Signature): string => text,
  blockhash: (text: Blockhash): string => text,
  wei: (amount: Wei): bigint => amount,
  gwei: (amount: Gwei): bigint => amount,
  lamports: (amount: Lamports): bigint => amount,
}
const text: Hex = '0xab'
const made: {
  readonly address: Address
  readonly hash: Hash
  readonly blockHash: BlockHash
  readonly pubkey: Pubkey
  readonly solanaAddress: SolanaAddress
  readonly signature: Signature
  readonly blockhash: Blockhash
} = { address: text, hash: text, blockHash: text, pubkey: text, solanaAddress: 'Stake11', signature: '5Sig', blockhash: '4Block' }

describe('a text of a chain', () => {
  test('is what it is declared to be, and a literal or plain hex is any', () => {
    expect([take.address(made.address), take.hash(made.hash), take.blockHash(made.blockHash), take.pubkey(made.pubkey)]).toEqual(
      Array(4).fill(text),
    )
    expect([take.hash('0xab'), take.pubkey('0xab'), take.address(text)]).toEqual(Array(3).fill(text))
    expect([take.solanaAddress(made.solanaAddress), take.signature(made.signature)]).toEqual(['Stake11', '5Sig'])
  })

  test('of Ethereum does not stand for another', () => {
    const wrong = [
      // @ts-expect-error: a transaction is no validator.
      take.pubkey(made.hash),
      // @ts-expect-error: a validator is no transaction.
      take.hash(made.pubkey),
      // @ts-expect-error: a block is no transaction.
      take.hash(made.blockHash),
      // @ts-expect-error: a transaction is no block.
      take.blockHash(made.hash),
      // @ts-expect-error: a validator is no account.
      take.address(made.pubkey),
      // @ts-expect-error: an account is no transaction.
      take.hash(made.address),
    ]
    expect(wrong).toEqual(Array(6).fill(text))
  })

  test('of Solana does not stand for another', () => {
    const wrong = [
      // @ts-expect-error: a transaction is no account.
      take.solanaAddress(made.signature),
      // @ts-expect-error: an account is no transaction.
      take.signature(made.solanaAddress),
      // @ts-expect-error: a blockhash is no account.
      take.solanaAddress(made.blockhash),
    ]
    expect(wrong).toEqual(['5Sig', 'Stake11', '4Block'])
  })

  test('of one chain does not stand for one of the other', () => {
    const wrong = [
      // @ts-expect-error: a transaction of Solana is none of Ethereum.
      take.hash(made.signature),
      // @ts-expect-error: a transaction of Ethereum is none of Solana.
      take.signature(made.hash),
      // @ts-expect-error: an account of Ethereum is none of Solana.
      take.solanaAddress(made.address),
      // @ts-expect-error: Ethereum's block is not Solana's.
      take.blockhash(made.blockHash),
    ]
    expect(wrong).toEqual(['5Sig', text, text, text])
  })

  test('is not made of a text that nobody has looked at', () => {
    const given: string = text
    // @ts-expect-error: it may be anything.
    expect(take.hash(given)).toBe(text)
  })

  test('stays what it is in lower case', () => {
    const hash: Hash = '0xAB'
    expect(take.hash(lowerCase(hash))).toBe(text)
    // @ts-expect-error: still no validator.
    expect(take.pubkey(lowerCase(hash))).toBe(text)
  })
})

test('an amount does not stand for one of another unit, and a bare number for none', () => {
  const wrong = [
    // @ts-expect-error: a gwei is 10⁹ wei.
    take.wei(gwei(1n)),
    // @ts-expect-error: a wei is 10⁻⁹ gwei.
    take.gwei(wei(1n)),
    // @ts-expect-error: another chain's.
    take.lamports(gwei(1n)),
    // @ts-expect-error: of no unit.
    take.wei(1n),
  ]
  expect(wrong).toEqual([1n, 1n, 1n, 1n])
  expect(take.wei(wei(2n)) + take.gwei(gwei(2n)) + take.lamports(lamports(2n))).toBe(6n)
})

import { Keypair } from '@solana/web3.js'
import { lamports } from '../../lib/amounts.ts'
import type { TransactionFrame } from './stake.ts'

/** Keys of tests, always the same: nobody's. */
export const testKey = (number: number): Keypair => Keypair.fromSeed(new Uint8Array(32).fill(number))
export const testAddress = (number: number): string => testKey(number).publicKey.toBase58()

/** A stake that tests agree on. */
export const example = {
  seed: '0195c0de0195c0de0195c0de0195c0de',
  feePayer: testAddress(1),
  stakeAuthority: testAddress(1),
  withdrawAuthority: testAddress(2),
  voteAccount: testAddress(3),
  destination: testAddress(2),
  blockhash: testAddress(99),
  amount: lamports(5_002_282_880n),
}

export const frame: TransactionFrame = {
  feePayer: example.feePayer,
  recentBlockhash: example.blockhash,
  computeUnitLimit: 40_000,
  computeUnitPriceMicroLamports: 1000n,
}

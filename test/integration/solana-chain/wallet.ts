import { Keypair } from '@solana/web3.js'
import { joinTransaction } from '../../../src/chains/solana/message.ts'
import { sign } from './sign.ts'

/** A key of these tests. */
export interface Wallet {
  readonly address: string
  readonly keypair: Keypair
  sign(message: Uint8Array): Uint8Array
}

export function wallet(): Wallet {
  const keypair = Keypair.generate()
  return { address: keypair.publicKey.toBase58(), keypair, sign: (message) => sign(keypair.secretKey, message) }
}

/** A transaction, signed by all of these. */
export const signed = (message: Uint8Array, ...wallets: readonly Wallet[]): Uint8Array =>
  joinTransaction(message, new Map(wallets.map((each) => [each.address, each.sign(message)])))

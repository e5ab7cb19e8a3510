import { Keypair, type Transaction } from '@solana/web3.js'
import { publicKey } from '../../../src/chains/solana/addresses.ts'
import { joinTransaction } from '../../../src/chains/solana/message.ts'
import type { SolanaCluster } from '../../chains/solana/cluster.ts'
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

/** As somebody does who holds a key of the stake: the transaction, which the first of these pays for, is in the chain and final. */
export function land(
  { ledger, settle }: Pick<SolanaCluster, 'ledger' | 'settle'>,
  transaction: Transaction,
  ...by: readonly Wallet[]
): void {
  const [first] = by
  if (first === undefined) throw new Error('nobody signs')
  transaction.feePayer = publicKey(first.address)
  transaction.recentBlockhash = ledger.head().blockhash
  ledger.submit(signed(new Uint8Array(transaction.compileMessage().serialize()), ...by), { kind: 'land' })
  settle()
}

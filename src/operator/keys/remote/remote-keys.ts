import type { Address, Hex, UnsignedTransaction } from '../../../chains/ethereum/chain.ts'
import { SignatureError } from '../../../chains/ethereum/signature.ts'
import { checkSigned } from '../../../chains/ethereum/signed-transaction.ts'
import type { SolanaAddress } from '../../../chains/solana/addresses.ts'
import { encodeBase58 } from '../../../chains/solana/base58.ts'
import { encodeOffchainMessage, mayBeTransaction } from '../../../chains/solana/challenge.ts'
import { decodeMessage, verifySignature } from '../../../chains/solana/message.ts'
import type { Clock } from '../../../lib/clock.ts'
import { sameHex } from '../../../lib/hex.ts'
import { shareCall } from '../../../lib/shared-call.ts'
import { type EthereumKeys, KeyError, type SignedTransaction, type SolanaKeys } from '../../ports.ts'
import type { Gate } from './gate.ts'

/** Somebody who has a key of secp256k1. What it gives is believed nothing of: it is checked by `remoteEthereumKey`. Throws KeyError. */
export interface EthereumSigner {
  /** The address of its key, by what it says now; also proves that it can be asked. */
  address(signal: AbortSignal): Promise<Address>
  /** The bytes of the transaction, signed by the key of `from`. */
  sign(transaction: UnsignedTransaction, from: Address, signal: AbortSignal): Promise<Hex>
}

/** Somebody who has a key of ed25519. */
export interface SolanaSigner {
  readonly address: SolanaAddress
  /** 64 bytes. */
  sign(bytes: Uint8Array, signal: AbortSignal): Promise<Uint8Array>
}

/** A remote signer by its name, as far as it is one of this chain. */
export interface RemoteKeys {
  readonly chain: 'Ethereum' | 'Solana'
  readonly ethereum?: Required<Unnamed<EthereumKeys>>
  readonly solana?: Required<Unnamed<SolanaKeys>>
}
type Unnamed<Keys> = {
  [Method in keyof Keys]: NonNullable<Keys[Method]> extends (keyName: string, ...rest: infer Rest) => infer Result
    ? (...rest: Rest) => Result
    : never
}

/** An answer that is so old says nothing of now, in ms. */
const PROVEN_MS = 30_000
const never = new AbortController().signal

interface Wiring {
  readonly name: string
  readonly gate: Gate
  readonly clock: Clock
}

/** When something was last proven, and asking again only after a while, once for all who ask at the same time. */
function createProof({ gate, clock }: Wiring, ask: (signal: AbortSignal) => Promise<void>) {
  let provenAt = Number.NEGATIVE_INFINITY
  const proven = () => {
    provenAt = clock.monotonicMs()
  }
  // It is bound to nobody's signal, and ends by its time-out.
  const askOnce = shareCall(async () => {
    await gate.run('probe', ask, never)
    proven()
  })
  return {
    proven,
    askOnce,
    probe: async (signal: AbortSignal) => (clock.monotonicMs() - provenAt < PROVEN_MS ? undefined : askOnce(signal)),
  }
}

const mismatch = (name: string, found: string, expected: string): KeyError =>
  new KeyError(
    'address-mismatch',
    `the key of the remote signer "${name}" is that of ${found}, not of ${expected}: correct the operator's remote signers, or the signer's address`,
  )

const misbehaves = (name: string, what: string): KeyError =>
  new KeyError(
    'misbehaves',
    `What the remote signer ${name} has signed ${what}. It was thrown away: nothing of it was written down or sent. Look at that signer at once: its configuration, and who can change it.`,
  )

/** An Ethereum key that somebody else has. Whatever comes back is the transaction that was asked for, signed by the key of the address, or refused. */
export function remoteEthereumKey(signer: EthereumSigner, wiring: Wiring): RemoteKeys {
  const { name, gate } = wiring
  let known: Address | undefined
  const proof = createProof(wiring, async (signal) => {
    known = await signer.address(signal)
  })
  async function address(signal: AbortSignal): Promise<Address> {
    // Every signature is checked against the address: an old answer does no harm, and what was signed is sent while the signer is away.
    if (known === undefined) await proof.askOnce(signal)
    if (known === undefined) throw new KeyError('unavailable', `The remote signer ${name} has not told its address yet. It is asked again.`)
    return known
  }
  return {
    chain: 'Ethereum',
    ethereum: {
      address,
      probe: proof.probe,
      async signTransaction(expected, transaction, signal): Promise<SignedTransaction> {
        const own = await address(signal)
        if (!sameHex(own, expected)) throw mismatch(name, own, expected)
        const signed = await gate.run(
          'sign',
          async (bounded) => {
            try {
              return await checkSigned(await signer.sign(transaction, expected, bounded), transaction, expected)
            } catch (error) {
              if (error instanceof SignatureError) throw misbehaves(name, error.message)
              throw error
            }
          },
          signal,
        )
        proof.proven()
        return signed
      },
    },
  }
}

/** What a Solana signer is asked to sign to show that it can: an off-chain message, which no cluster takes for a transaction. */
const probeText = (name: string, address: SolanaAddress): string =>
  `staking-operator asks whether ${name} signs for ${address}. This moves nothing.`

/** The same of Solana. */
export function remoteSolanaKey(signer: SolanaSigner, wiring: Wiring): RemoteKeys {
  const { name, gate } = wiring
  const { address } = signer

  async function checked(bytes: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
    const signature = await signer.sign(bytes, signal)
    if (signature.length !== 64 || !verifySignature(address, bytes, signature))
      throw misbehaves(name, `is not signed by the key of ${address}, or is not what was asked for`)
    return signature
  }
  const proof = createProof(wiring, async (signal) => {
    await checked(offchain(probeText(name, address)), signal)
  })
  async function signed(expected: SolanaAddress, bytes: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
    if (address !== expected) throw mismatch(name, address, expected)
    const signature = await gate.run('sign', (bounded) => checked(bytes, bounded), signal)
    proof.proven()
    return signature
  }
  return {
    chain: 'Solana',
    solana: {
      address: async () => address,
      probe: proof.probe,
      async signMessage(expected, message, signal) {
        if (!decodeMessage(message).signers.includes(expected))
          throw new RangeError(`the transaction does not need a signature of ${expected}`)
        return signed(expected, message, signal)
      },
      signOffchainMessage: async (expected, text, signal) => encodeBase58(await signed(expected, offchain(text), signal)),
    },
  }
}

function offchain(text: string): Uint8Array {
  const bytes = encodeOffchainMessage(text)
  // As of mounted keys: a signature that moved money must not hang on one line elsewhere.
  if (mayBeTransaction(bytes)) throw new RangeError('the off-chain message can be read as a transaction')
  return bytes
}

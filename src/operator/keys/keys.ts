import { readdir } from 'node:fs/promises'
import { type EthereumKeys, KeyError, type SolanaKeys } from '../ports.ts'
import { createEthereumKeys } from './ethereum-keys.ts'
import type { RemoteKeys } from './remote/remote-keys.ts'
import { noRemoteSigners, type RemoteSigners } from './remote/remote-signers.ts'
import { createSolanaKeys } from './solana-keys.ts'

/** The keys of all signers: what the operator's file of remote signers names is asked for there, everything else is a mounted file. */
export function createKeys({ dir, remote = noRemoteSigners }: { readonly dir: string; readonly remote?: RemoteSigners }): {
  readonly ethereum: EthereumKeys
  readonly solana: SolanaKeys
} {
  const mounted = { ethereum: createEthereumKeys({ dir }), solana: createSolanaKeys({ dir }) }

  /** @throws KeyError where two have this name, or the signer is one of another chain */
  async function remoteOf<Chain extends 'ethereum' | 'solana'>(chain: Chain, keyName: string): Promise<RemoteKeys[Chain] | undefined> {
    const found = remote.find(keyName)
    if (found === undefined) return undefined
    if (await isMounted(dir, keyName))
      throw new KeyError(
        'malformed',
        `the key ${keyName} is there twice, as a mounted key and as a remote signer: choose one and remove the other`,
      )
    const keys = found[chain]
    if (keys === undefined)
      throw new KeyError('malformed', `the remote signer ${keyName} signs for ${found.chain}: name one of this signer's chain`)
    return keys
  }

  const { ethereum, solana } = mounted
  return {
    ethereum: {
      address: async (keyName, signal) => {
        const keys = await remoteOf('ethereum', keyName)
        return keys === undefined ? ethereum.address(keyName, signal) : keys.address(signal)
      },
      signTransaction: async (keyName, expected, transaction, signal) => {
        const keys = await remoteOf('ethereum', keyName)
        return keys === undefined
          ? ethereum.signTransaction(keyName, expected, transaction, signal)
          : keys.signTransaction(expected, transaction, signal)
      },
      probe: async (keyName, signal) => (await remoteOf('ethereum', keyName))?.probe(signal),
    },
    solana: {
      address: async (keyName, signal) => {
        const keys = await remoteOf('solana', keyName)
        return keys === undefined ? solana.address(keyName, signal) : keys.address(signal)
      },
      signMessage: async (keyName, expected, message, signal) => {
        const keys = await remoteOf('solana', keyName)
        return keys === undefined ? solana.signMessage(keyName, expected, message, signal) : keys.signMessage(expected, message, signal)
      },
      signOffchainMessage: async (keyName, expected, text, signal) => {
        const keys = await remoteOf('solana', keyName)
        return keys === undefined
          ? solana.signOffchainMessage(keyName, expected, text, signal)
          : keys.signOffchainMessage(expected, text, signal)
      },
      probe: async (keyName, signal) => (await remoteOf('solana', keyName))?.probe(signal),
    },
  }
}

/** Whether something of this name is mounted, as a folder or as files beside those of others. */
async function isMounted(dir: string, keyName: string): Promise<boolean> {
  const names = await readdir(dir).catch(() => [])
  return names.some((name) => name === keyName || name.startsWith(`${keyName}.`))
}

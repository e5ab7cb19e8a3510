import { bytesToHex, keccak256 } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import type { Hex } from '../../chains/ethereum/chain.ts'
import { toSerialize } from '../../chains/ethereum/signed-transaction.ts'
import { wrongShape } from '../../lib/secret-shape.ts'
import { shareNextCallBy } from '../../lib/shared-call.ts'
import { type EthereumKeys, KeyError } from '../ports.ts'
import { decryptKeystore } from './ethereum-keystore.ts'
import { type FileLimits, type KeyFiles, readKeyFiles } from './key-files.ts'

const limits: FileLimits = { privateKey: 1024, 'keystore.json': 65_536, password: 4096 }

/** More keys than this are not kept in memory; they are read and derived again. */
const maxKept = 256

/**
 * Ethereum keys in mounted Secrets: `<dir>/<keyName>/privateKey` (64 hex digits, with or without 0x), or `keystore.json` (Web3, version 3) with
 * `password`; or the same as `<dir>/<keyName>.privateKey` and so on. The files are read for each use, so that a rotated Secret counts at once. A keystore takes seconds to decrypt: the key is kept
 * in memory for as long as the files' contents stay the same, one per name.
 */
export function createEthereumKeys({
  dir,
  decrypt = decryptKeystore,
}: {
  readonly dir: string
  readonly decrypt?: typeof decryptKeystore
}): EthereumKeys {
  const kept = new Map<string, { readonly digest: string; readonly account: Promise<PrivateKeyAccount> }>()

  // What is asked for at the same time is read once, and never before it was asked for.
  const readFiles = shareNextCallBy((keyName: string) => readKeyFiles(dir, keyName, limits))

  const accountOf = async (keyName: string, signal: AbortSignal): Promise<PrivateKeyAccount> => {
    signal.throwIfAborted()
    let files: KeyFiles
    try {
      files = await readFiles(keyName, signal)
    } catch (error) {
      signal.throwIfAborted()
      kept.delete(keyName)
      throw error
    }
    signal.throwIfAborted()
    const known = kept.get(keyName)
    if (known?.digest === files.digest) return known.account
    // A failure is kept too: the same files fail the same way, and a wrong password costs as much as a right one.
    const account = readAccount(files, decrypt)
    account.catch(() => {})
    kept.delete(keyName)
    kept.set(keyName, { digest: files.digest, account })
    const [oldest] = kept.keys()
    if (kept.size > maxKept && oldest !== undefined) kept.delete(oldest)
    return account
  }

  return {
    address: async (keyName, signal) => (await accountOf(keyName, signal)).address,

    signTransaction: async (keyName, expected, transaction, signal) => {
      const account = await accountOf(keyName, signal)
      signal.throwIfAborted()
      if (account.address.toLowerCase() !== expected.toLowerCase()) {
        throw new KeyError(
          'address-mismatch',
          `the key "${keyName}" is that of ${account.address}, not of ${expected}: mount the right key or correct the signer's address`,
        )
      }
      const raw = await account.signTransaction(toSerialize(transaction))
      return { raw, hash: keccak256(raw) }
    },
  }
}

async function readAccount({ place, pathOf, files }: KeyFiles, decrypt: typeof decryptKeystore): Promise<PrivateKeyAccount> {
  const plain = files.get('privateKey')
  const keystore = files.get('keystore.json')
  if (plain !== undefined && keystore !== undefined) {
    throw new KeyError('malformed', `${place} holds both privateKey and keystore.json: choose one and remove the other`)
  }
  if (plain !== undefined) return toAccount(parsePrivateKey(plain, pathOf('privateKey')), pathOf('privateKey'))
  if (keystore === undefined) throw new KeyError('missing', `${place} holds no key: it needs privateKey, or keystore.json with password`)
  const password = files.get('password')
  if (password === undefined) throw new KeyError('missing', `${place} holds keystore.json without its password: add a file named password`)
  const shown = pathOf('keystore.json')
  return toAccount(bytesToHex(await decrypt(keystore.toString('utf8'), password.toString('utf8').replace(/\r?\n$/, ''), shown)), shown)
}

function parsePrivateKey(content: Buffer, shown: string): Hex {
  const text = content.toString('latin1').trim()
  if (text === '') throw new KeyError('malformed', `${shown} is empty: it must hold a private key of 64 hex digits`)
  const match = /^(?:0x)?([0-9a-fA-F]{64})$/.exec(text)
  if (match === null)
    throw new KeyError(
      'malformed',
      `${shown} must hold a private key of 64 hex digits, with or without 0x, and nothing else${wrongShape(content)}`,
    )
  return `0x${match[1]}`
}

function toAccount(key: Hex, shown: string): PrivateKeyAccount {
  try {
    return privateKeyToAccount(key)
  } catch {
    // 0, or not below the order of the curve. The library's message may quote it.
    throw new KeyError('malformed', `${shown} holds a number that is not a private key of secp256k1`)
  }
}

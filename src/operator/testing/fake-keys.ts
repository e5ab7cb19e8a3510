import { keccak256 } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import type { Address, Hash, Hex, UnsignedTransaction } from '../../chains/ethereum/chain.ts'
import { type EthereumKeys, KeyError, type KeyErrorCode } from '../ports.ts'

/** Hardhat's and anvil's well-known test accounts, in their order. Everybody knows these keys. */
export const testKeys: readonly Hex[] = [
  '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80',
  '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d',
  '0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a',
]
/** A key's point on the curve takes milliseconds, and every look asks for it. */
const accounts = new Map<Hex, PrivateKeyAccount>()
const accountFor = (key: Hex): PrivateKeyAccount => {
  const account = accounts.get(key) ?? privateKeyToAccount(key)
  accounts.set(key, account)
  return account
}
export const testAddress = (index: number): Address => accountFor(testKeys[index] as Hex).address

/** Mounted keys in memory: `key-0`, `key-1`, … It remembers all that was signed. */
export function createFakeKeys() {
  const mounted = new Map<string, Hex>(testKeys.map((key, index) => [`key-${index}`, key]))
  const broken = new Map<string, KeyErrorCode>()
  const signed: { readonly keyName: string; readonly transaction: UnsignedTransaction; readonly hash: Hash; readonly raw: Hex }[] = []
  const accountOf = (keyName: string) => {
    const code = broken.get(keyName) ?? (mounted.has(keyName) ? undefined : 'missing')
    if (code !== undefined) throw new KeyError(code, `keys/${keyName}/privateKey: ${code}`)
    return accountFor(mounted.get(keyName) as Hex)
  }
  const keys: EthereumKeys = {
    address: async (keyName) => accountOf(keyName).address,
    async signTransaction(keyName, expected, transaction) {
      const account = accountOf(keyName)
      if (account.address.toLowerCase() !== expected.toLowerCase())
        throw new KeyError('address-mismatch', `keys/${keyName}: another address`)
      const raw = await account.signTransaction({
        type: 'eip1559',
        chainId: transaction.chainId,
        nonce: transaction.nonce,
        to: transaction.to,
        data: transaction.data,
        value: transaction.valueWei,
        gas: transaction.gas,
        maxFeePerGas: transaction.maxFeePerGas,
        maxPriorityFeePerGas: transaction.maxPriorityFeePerGas,
      })
      const hash = keccak256(raw)
      signed.push({ keyName, transaction, hash, raw })
      return { raw, hash }
    },
  }
  return {
    keys,
    signed,
    mount: (keyName: string, key: Hex) => mounted.set(keyName, key),
    break: (keyName: string, code: KeyErrorCode) => broken.set(keyName, code),
    mend: (keyName: string) => broken.delete(keyName),
  }
}

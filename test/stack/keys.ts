import { createHash } from 'node:crypto'
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Keypair } from '@solana/web3.js'

/** Mounts a key as Kubernetes would: a folder with a file. */
export const writeKey = (keysDir: string, keyName: string, privateKey: string): void =>
  writeKeyFile(keysDir, keyName, 'privateKey', `${privateKey}\n`)

/** Mounts a Solana key: `keypair.json` as solana-keygen writes it, 64 numbers. */
export const writeSolanaKey = (keysDir: string, keyName: string, keypair: Keypair): void =>
  writeKeyFile(keysDir, keyName, 'keypair.json', JSON.stringify([...keypair.secretKey]))

/** A Solana key for tests, the same each time: made of its name, which is public, so worthless. Never fund it on a real cluster. */
export const testSolanaKey = (keyName: string): Keypair =>
  Keypair.fromSeed(createHash('sha256').update(`staking-operator test key, worthless: ${keyName}`).digest())

/** Written beside and renamed, as a reader may look at any time. */
function writeKeyFile(keysDir: string, keyName: string, name: string, content: string): void {
  mkdirSync(join(keysDir, keyName), { recursive: true })
  const file = join(keysDir, keyName, name)
  writeFileSync(`${file}.new`, content, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

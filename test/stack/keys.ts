import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
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

/**
 * Makes a folder what a kubelet makes of a volume with these files, by its order: a new version beside the old one, the link `..data` moved to it at once, links of
 * new files, links of files that went, and the old version away. What isn't of the volume stays.
 */
export function swapVolume(dir: string, files: Readonly<Record<string, string>>): void {
  const before = existsSync(join(dir, '..data')) ? readlinkSync(join(dir, '..data')) : undefined
  const version = mkdtempSync(join(dir, '..version-'))
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(dirname(join(version, file)), { recursive: true })
    writeFileSync(join(version, file), content, { mode: 0o600 })
  }
  symlinkSync(basename(version), join(dir, '..data_tmp'))
  renameSync(join(dir, '..data_tmp'), join(dir, '..data'))
  const shown = new Set(readdirSync(version))
  for (const name of shown) if (!readdirSync(dir).includes(name)) symlinkSync(join('..data', name), join(dir, name))
  for (const entry of readdirSync(dir, { withFileTypes: true }))
    if (entry.isSymbolicLink() && !entry.name.startsWith('..') && !shown.has(entry.name)) rmSync(join(dir, entry.name))
  if (before !== undefined) rmSync(join(dir, before), { recursive: true })
}

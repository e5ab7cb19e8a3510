import type { TestProject } from 'vitest/node'
import { type Devnet, startDevnet } from './devnet.ts'

/** What test files know of the one network that they share. */
export type SharedDevnet = Omit<Devnet, 'pids' | 'stop'>

declare module 'vitest' {
  interface ProvidedContext {
    devnet: SharedDevnet
  }
}

/**
 * Whose account is whose: two files that send from one account would take each other's nonces. `DEVNET_DIR` keeps the network's files and logs.
 */
export const ACCOUNTS = {
  /** 0 pays for the operator: a stack's first account. */
  operator: 0,
  /** flows.devnet.ts. 1 owns validators of genesis. */
  flows: [1, 2, 3, 4, 5],
  /** service.devnet.ts: an owner of validators, and a stranger. */
  serviceOwner: 6,
  serviceStranger: 7,
} as const

/** One network for all files of `npm run test:devnet`, which wait much more than they compute. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const devnet = await startDevnet({ accounts: 8, ...(process.env.DEVNET_DIR === undefined ? {} : { dir: process.env.DEVNET_DIR }) })
  const { pids: _pids, stop, ...shared } = devnet
  project.provide('devnet', shared)
  return stop
}

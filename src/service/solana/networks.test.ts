import { expect, test } from 'vitest'
import { type SolanaChain, SolanaError } from '../../chains/solana/chain.ts'
import { solanaNetworkConfig } from '../../chains/solana/networks.ts'
import { testAddress } from '../../chains/solana/testing.ts'
import { createMetrics } from '../metrics.ts'
import { asProblems } from './networks.ts'

const config = solanaNetworkConfig.parse({ name: 'devnet', chain: 'Solana', rpcUrls: ['https://n.test'] })

test.each([
  { what: 'keep no history', error: new SolanaError('no-history', 'x'), shows: 'nothing' },
  { what: 'do not serve that', error: new SolanaError('rejected', 'x', { isLasting: true }), shows: 'nothing' },
  { what: 'do not answer', error: new SolanaError('unavailable', 'x'), shows: 'chain-unavailable' },
  { what: 'refuse it now', error: new SolanaError('rejected', 'x'), shows: 'chain-unavailable' },
])("where the nodes $what, an account's past shows $shows", async ({ error, shows }) => {
  const chain: Pick<SolanaChain, 'network' | 'past'> = { network: 'devnet', past: () => Promise.reject(error) }
  const { past } = asProblems({ config, chain: chain as SolanaChain }, createMetrics()).chain
  const shown = await past(testAddress(1), 5n, new AbortController().signal).catch((problem: { code: string }) => problem.code)
  expect(shown).toEqual(shows === 'nothing' ? [] : shows)
})

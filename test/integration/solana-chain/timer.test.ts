import { setTimeout as delay } from 'node:timers/promises'
import { Connection } from '@solana/web3.js'
import { expect, test } from 'vitest'
import { startSolanaCluster } from '../../chains/solana/cluster.ts'

test('a cluster with a clock makes blocks by itself, crosses epochs, and stops when it is closed', async () => {
  const cluster = await startSolanaCluster({ slotMs: 10, slotsPerEpoch: 8 })
  try {
    const connection = new Connection(cluster.url, 'processed')
    const first = await connection.getEpochInfo()
    await expect.poll(() => cluster.ledger.head().epoch, { timeout: 60_000 }).toBeGreaterThanOrEqual(BigInt(first.epoch) + 2n)
    const later = await connection.getEpochInfo()
    expect(later.epoch).toBeGreaterThanOrEqual(first.epoch + 2)
    expect(later.blockHeight).toBeGreaterThan(first.blockHeight ?? 0)
  } finally {
    await cluster.close()
  }
  const { height } = cluster.ledger.head()
  await delay(50)
  expect(cluster.ledger.head().height).toBe(height)
  await expect(fetch(cluster.url)).rejects.toThrow()
})

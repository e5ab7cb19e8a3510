import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readCheckpointFile, writeCheckpointFile } from './checkpoint-file.ts'
import { type DepositCheckpoint, encodeCheckpoint } from './deposit-checkpoint.ts'
import { ethereumNetworkConfig } from './networks.ts'

const contract = `0x${'dc'.repeat(20)}` as const
const checkpoint: DepositCheckpoint = {
  chainId: 5,
  contract,
  block: 100n,
  blockHash: `0x${'11'.repeat(32)}` as const,
  lastDepositBlock: 99n,
  count: 2n,
  branch: Array.from({ length: 32 }, () => `0x${'00'.repeat(32)}` as const),
  entries: new Uint32Array([1, 2, 98, 3, 4, 99]),
}
let folder: string
let file: string
let sha256: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'deposit-history-'))
  file = join(folder, 'history')
  sha256 = writeCheckpointFile(file, checkpoint)
})
afterAll(() => rmSync(folder, { recursive: true }))

const entry = (more: object) => ({
  ...{ name: 'devnet', chain: 'Ethereum', chainId: 5, depositContractAddress: contract, genesisForkVersion: '0x00000000' },
  ...{ rpcUrls: ['http://n.test'], depositHistoryFile: file, ...more },
})
function read(more: object) {
  const said: string[] = []
  const note = (_fields: object, message: string) => said.push(message)
  return { checkpoint: readCheckpointFile(ethereumNetworkConfig.parse(entry(more)), { info: note, warn: note }), said: said.join() }
}

describe('a deposit history file', () => {
  test('is read as it was written, with its digest in the configuration or without', () => {
    expect(read({}).checkpoint).toEqual(checkpoint)
    expect(read({ depositHistorySha256: sha256 }).checkpoint).toEqual(checkpoint)
  })

  test('that a key was taken out of, with a digest of its own to match, is found out by the one in the configuration', () => {
    const changed = join(folder, 'changed')
    writeFileSync(changed, encodeCheckpoint({ ...checkpoint, entries: checkpoint.entries.slice(3) }))
    // By itself it is whole: what it is believed for is who can write it.
    expect(read({ depositHistoryFile: changed }).checkpoint?.entries).toHaveLength(3)
    const pinned = read({ depositHistoryFile: changed, depositHistorySha256: sha256 })
    expect(pinned.checkpoint).toBeUndefined()
    expect(pinned.said).toMatch(/not used.*depositHistorySha256/)
  })

  test.each([
    { what: 'cut', change: (bytes: Buffer) => bytes.subarray(0, -1) },
    { what: 'cut by a whole deposit', change: (bytes: Buffer) => bytes.subarray(0, -12) },
    {
      what: 'with another bit',
      change: (bytes: Buffer) =>
        Buffer.concat([bytes.subarray(0, -1), Buffer.from([bytes[bytes.length - 1] ?? 0]).map((byte) => byte ^ 1)]),
    },
    { what: 'empty', change: () => Buffer.alloc(0) },
  ])('that is $what is said, and not used', ({ change }) => {
    const damaged = join(folder, 'damaged')
    writeFileSync(damaged, change(readFileSync(file)))
    const { checkpoint: found, said } = read({ depositHistoryFile: damaged })
    expect(found).toBeUndefined()
    expect(said).toContain('all deposits are read from the chain')
  })

  test("'s digest is of no use without it", () => {
    expect(ethereumNetworkConfig.safeParse(entry({ depositHistoryFile: undefined, depositHistorySha256: sha256 })).success).toBe(false)
  })
})

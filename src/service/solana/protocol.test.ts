import { describe, expect, test } from 'vitest'
import { addressBytes } from '../../chains/solana/addresses.ts'
import type { StakeHistoryEntry } from '../../chains/solana/chain.ts'
import { noEpoch, stakeProgram, systemProgram } from '../../chains/solana/programs.ts'
import { testAddress } from '../../chains/solana/testing.ts'
import { lamports } from '../../lib/amounts.ts'
import { protocolOf } from './protocol.ts'

const rent = 2_282_880n
const stake = 1_000_000n
const epoch = 20n
const clock = { slot: 8640n, epochStartTimestamp: 0n, epoch, leaderScheduleEpoch: epoch + 1n, unixTimestamp: 0n }

function account(activationEpoch: bigint, deactivationEpoch: bigint = noEpoch) {
  const data = Buffer.alloc(200)
  data.writeUInt32LE(2, 0)
  data.writeBigUInt64LE(rent, 4)
  data.set(addressBytes(testAddress(1)), 12)
  data.set(addressBytes(testAddress(2)), 44)
  data.set(addressBytes(testAddress(3)), 124)
  data.writeBigUInt64LE(stake, 156)
  data.writeBigUInt64LE(activationEpoch, 164)
  data.writeBigUInt64LE(deactivationEpoch, 172)
  return { owner: stakeProgram, lamports: lamports(rent + stake), data: new Uint8Array(data), executable: false }
}
/** Every epoch moves so much of the cluster's stake: 9 % of `effective` is shared by `moving`. */
const history = (effective: bigint, moving: bigint): Map<bigint, StakeHistoryEntry> =>
  new Map(Array.from({ length: 15 }, (_, index) => [BigInt(index + 5), { effective, activating: moving, deactivating: moving }]))
const easy = history(1_000_000_000n, 1_000_000n)
/** A tenth of what waits may move. */
const slow = history(10_000_000n, 9_000_000n)

describe('where a stake is, by its account, the clock and the history', () => {
  test.each([
    { name: 'nothing there yet', account: undefined, wasThere: false, history: easy, becomes: { status: 'CREATED', activeLamports: 0n } },
    { name: 'gone', account: undefined, wasThere: true, history: easy, becomes: { status: 'WITHDRAWN', inactiveLamports: 0n } },
    {
      name: "a stranger's lamports",
      account: { ...account(5n), owner: systemProgram },
      wasThere: false,
      history: easy,
      becomes: { status: 'CREATED', inactiveLamports: 0n },
    },
    {
      name: 'lamports sent after the withdrawal',
      account: { ...account(5n), owner: systemProgram },
      wasThere: true,
      history: easy,
      becomes: { status: 'WITHDRAWN' },
    },
    {
      name: 'delegated in this epoch',
      account: account(20n),
      wasThere: true,
      history: easy,
      becomes: { status: 'ACTIVATING', activationEpoch: 20, activeLamports: 0n, inactiveLamports: rent + stake },
    },
    {
      name: 'partly warmed up',
      account: account(19n),
      wasThere: true,
      history: slow,
      becomes: { status: 'ACTIVATING', activeLamports: 100_000n, inactiveLamports: rent + 900_000n },
    },
    {
      name: 'warmed up',
      account: account(19n),
      wasThere: true,
      history: easy,
      becomes: { status: 'ACTIVE', activeLamports: stake, inactiveLamports: rent },
    },
    {
      name: 'deactivated in this epoch',
      account: account(10n, 20n),
      wasThere: true,
      history: easy,
      becomes: { status: 'DEACTIVATING', deactivationEpoch: 20, activeLamports: stake },
    },
    {
      name: 'partly cooled down',
      account: account(5n, 19n),
      wasThere: true,
      history: new Map([...history(1_000_000_000n, 1n), [19n, { effective: 10_000_000n, activating: 0n, deactivating: 9_000_000n }]]),
      becomes: { status: 'DEACTIVATING', activeLamports: 900_000n },
    },
    {
      name: 'cooled down',
      account: account(10n, 19n),
      wasThere: true,
      history: easy,
      becomes: { status: 'INACTIVE', activeLamports: 0n, inactiveLamports: rent + stake },
    },
  ])('$name: $becomes.status', ({ account, wasThere, history, becomes }) => {
    expect(protocolOf({ account, clock, history, arithmetic: 'float' }, wasThere)).toMatchObject({ epoch: 20, ...becomes })
  })
})

import { describe, expect, test } from 'vitest'
import { addressBytes } from './addresses.ts'
import { noEpoch, stakeProgram, systemProgram } from './programs.ts'
import { LayoutError } from './reader.ts'
import { decodeStakeAccount, lockupInForce } from './stake-account.ts'
import { decodeClock, decodeEpochRewards, decodeStakeHistory } from './sysvars.ts'
import { testAddress } from './testing.ts'

/** As the stake program left it: 5 SOL delegated in epoch 0. */
const delegated = Buffer.alloc(200)
delegated.writeUInt32LE(2, 0)
delegated.writeBigUInt64LE(2_282_880n, 4)
delegated.set(addressBytes(testAddress(1)), 12)
delegated.set(addressBytes(testAddress(2)), 44)
delegated.writeBigInt64LE(-1n, 76)
delegated.writeBigUInt64LE(7n, 84)
delegated.set(addressBytes(testAddress(4)), 92)
delegated.set(addressBytes(testAddress(3)), 124)
delegated.writeBigUInt64LE(5_000_000_000n, 156)
delegated.writeBigUInt64LE(600n, 164)
delegated.writeBigUInt64LE(noEpoch, 172)
const withTag = (tag: number, size = 200) => {
  const data = Buffer.alloc(size)
  delegated.copy(data)
  data.writeUInt32LE(tag, 0)
  return data
}
const decode = (data: Uint8Array, owner = stakeProgram) => decodeStakeAccount({ owner, data })

describe('a stake account', () => {
  test('that is delegated is read field by field', () => {
    expect(decode(delegated)).toEqual({
      kind: 'stake',
      meta: {
        rentExemptReserve: 2_282_880n,
        staker: testAddress(1),
        withdrawer: testAddress(2),
        lockup: { unixTimestamp: -1n, epoch: 7n, custodian: testAddress(4) },
      },
      delegation: { voter: testAddress(3), stake: 5_000_000_000n, activationEpoch: 600n, deactivationEpoch: noEpoch },
    })
  })

  test.each([
    { tag: 0, kind: 'uninitialized' },
    { tag: 1, kind: 'initialized' },
    { tag: 3, kind: 'rewards-pool' },
  ])('with tag $tag is $kind', ({ tag, kind }) => {
    expect(decode(withTag(tag))).toMatchObject({ kind })
  })

  test.each([
    { name: 'an unknown tag', data: withTag(4) },
    { name: '199 bytes', data: withTag(2, 200).subarray(0, 199) },
    { name: '201 bytes', data: withTag(2, 201) },
    { name: 'nothing', data: new Uint8Array() },
  ])('with $name is refused', ({ data }) => {
    expect(() => decode(data)).toThrow(LayoutError)
  })

  test('of another program is refused, whatever its bytes', () => {
    expect(() => decode(delegated, systemProgram)).toThrow(LayoutError)
  })

  test.each([
    { name: 'none', lockup: [0n, 0n], expected: false },
    { name: 'over', lockup: [99n, 9n], expected: false },
    { name: 'of this moment', lockup: [100n, 10n], expected: false },
    { name: 'by time', lockup: [101n, 0n], expected: true },
    { name: 'by epoch', lockup: [0n, 11n], expected: true },
  ])('with a lockup $name is locked: $expected', ({ lockup: [unixTimestamp = 0n, epoch = 0n], expected }) => {
    const state = decode(delegated)
    if (state.kind !== 'stake') throw new Error('not a stake')
    const meta = { ...state.meta, lockup: { unixTimestamp, epoch, custodian: testAddress(4) } }
    expect(lockupInForce(meta, { unixTimestamp: 100n, epoch: 10n })).toBe(expected)
  })
})

describe('a sysvar', () => {
  test('Clock gives slot, epoch and time', () => {
    const data = Buffer.alloc(40)
    data.writeBigUInt64LE(5n, 0)
    data.writeBigUInt64LE(600n, 16)
    data.writeBigInt64LE(1_700_000_000n, 32)
    expect(decodeClock(data)).toEqual({ slot: 5n, epoch: 600n, unixTimestamp: 1_700_000_000n })
    expect(() => decodeClock(data.subarray(1))).toThrow(LayoutError)
  })

  test('StakeHistory gives its epochs, and not what follows them', () => {
    const data = Buffer.alloc(16_392)
    data.writeBigUInt64LE(2n, 0)
    for (const [index, value] of [599n, 10n, 11n, 12n, 598n, 20n, 21n, 22n].entries()) data.writeBigUInt64LE(value, 8 + 8 * index)
    expect([...decodeStakeHistory(data)]).toEqual([
      [599n, { effective: 10n, activating: 11n, deactivating: 12n }],
      [598n, { effective: 20n, activating: 21n, deactivating: 22n }],
    ])
    data.writeBigUInt64LE(513n, 0)
    expect(() => decodeStakeHistory(data)).toThrow(LayoutError)
    expect(() => decodeStakeHistory(Buffer.from([3, 0, 0, 0, 0, 0, 0, 0, 1]))).toThrow(LayoutError)
  })

  test('EpochRewards says whether it is active', () => {
    const data = Buffer.alloc(81)
    expect(decodeEpochRewards(data)).toEqual({ active: false })
    data.writeUInt8(1, 80)
    expect(decodeEpochRewards(data)).toEqual({ active: true })
    data.writeUInt8(2, 80)
    expect(() => decodeEpochRewards(data)).toThrow(LayoutError)
  })
})

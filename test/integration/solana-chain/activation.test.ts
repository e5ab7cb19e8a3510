import { describe, expect, test } from 'vitest'
import { activationAt } from '../../../src/chains/solana/activation.ts'
import { addressBytes } from '../../../src/chains/solana/addresses.ts'
import { joinTransaction } from '../../../src/chains/solana/message.ts'
import { noEpoch, stakeProgram, systemProgram } from '../../../src/chains/solana/programs.ts'
import { buildWithdrawalMessage } from '../../../src/chains/solana/stake.ts'
import type { StakeHistoryEntry } from '../../../src/chains/solana/sysvars.ts'
import { lamports } from '../../../src/lib/amounts.ts'
import { createSvm } from '../../chains/solana/svm.ts'
import { wallet } from './wallet.ts'

const owner = wallet()
const rent = 2_282_880n

/** A delegated account's bytes. */
function stakeData(stake: bigint, activationEpoch: bigint, deactivationEpoch: bigint): Uint8Array {
  const data = Buffer.alloc(200)
  data.writeUInt32LE(2, 0)
  data.writeBigUInt64LE(rent, 4)
  data.set(addressBytes(owner.address), 12)
  data.set(addressBytes(owner.address), 44)
  data.set(addressBytes(wallet().address), 124)
  data.writeBigUInt64LE(stake, 156)
  data.writeBigUInt64LE(activationEpoch, 164)
  data.writeBigUInt64LE(deactivationEpoch, 172)
  data.writeDoubleLE(0.25, 180)
  return new Uint8Array(data)
}

/** What the stake program itself holds for effective: it lets exactly the rest be withdrawn. */
function programSays(given: {
  stake: bigint
  activation: bigint
  deactivation: bigint
  epoch: bigint
  history: Map<bigint, StakeHistoryEntry>
}) {
  const svm = createSvm()
  svm.setEpochSchedule(432n)
  svm.setStakeHistory(given.history)
  svm.setClock({ slot: given.epoch * 432n, epoch: given.epoch, epochStart: 0n, unixTimestamp: 0n })
  const account = wallet().address
  svm.setAccount(owner.address, { lamports: 1_000_000_000n, owner: systemProgram, data: new Uint8Array(), executable: false })
  svm.setAccount(account, {
    lamports: rent + given.stake,
    owner: stakeProgram,
    data: stakeData(given.stake, given.activation, given.deactivation),
    executable: false,
  })
  const allows = (amount: bigint): boolean => {
    const message = buildWithdrawalMessage({
      feePayer: owner.address,
      recentBlockhash: owner.address,
      computeUnitLimit: 25_000,
      computeUnitPriceMicroLamports: 0n,
      stakeAccount: account,
      withdrawAuthority: owner.address,
      destination: owner.address,
      amount: lamports(amount),
    })
    return svm.simulate(joinTransaction(message)).err === null
  }
  let low = 0n
  let high = given.stake
  while (low < high) {
    const middle = (low + high + 1n) / 2n
    if (allows(middle)) low = middle
    else high = middle - 1n
  }
  return given.stake - low
}

/** The same pseudo-random numbers at every run. */
function numbers(start: bigint) {
  let state = start
  return (below: bigint): bigint => {
    state = (state * 6_364_136_223_846_793_005n + 1_442_695_040_888_963_407n) % 2n ** 64n
    return (state >> 11n) % below
  }
}

describe('the effective stake that we compute is the one that the stake program reckons with', () => {
  test.each(Array.from({ length: 12 }, (_, index) => ({ number: index + 1 })))('in history $number', ({ number }) => {
    const next = numbers(BigInt(number) * 7919n)
    const epoch = 20n
    const activation = 8n + next(5n)
    const deactivation = activation + 1n + next(19n - activation)
    const stake = 1n + next(10n ** (1n + next(15n)))
    const history = new Map<bigint, StakeHistoryEntry>()
    for (let at = 8n; at < epoch; at++)
      history.set(at, {
        effective: 1n + next(10n ** 17n),
        activating: next(10n ** 16n),
        deactivating: next(10n ** 16n) + (next(5n) === 0n ? 0n : 1n),
      })
    const expected = programSays({ stake, activation, deactivation, epoch, history })
    const delegation = { voter: owner.address, stake, activationEpoch: activation, deactivationEpoch: deactivation }
    expect(activationAt(delegation, epoch, history, 'float').effective).toBe(expected)
  })

  test('while it is delegated, all of it is held', () => {
    const history = new Map([[19n, { effective: 1000n, activating: 0n, deactivating: 0n }]])
    expect(programSays({ stake: 1000n, activation: 3n, deactivation: noEpoch, epoch: 20n, history })).toBe(1000n)
  })
})

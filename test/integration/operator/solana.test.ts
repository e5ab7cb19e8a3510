import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { wallet } from '../solana-chain/wallet.ts'
import { AMOUNT, createSolanaWorld, FEE, KEY, type SolanaParts, startSolanaParts } from './solana-world.ts'

let store: Store
let parts: SolanaParts | undefined
beforeAll(async () => {
  store = await openStore(await memoryDatabase())
})
afterEach(async () => {
  await parts?.close()
  parts = undefined
})
afterAll(() => store?.close())

async function worldOf(signerPolicy = {}) {
  parts = await startSolanaParts(store)
  const world = createSolanaWorld(parts)
  world.addSigners(signerPolicy)
  return world
}

describe('a stake', () => {
  test('lives its whole life, to the lamport', async () => {
    const world = await worldOf()
    const {
      cluster,
      parts: { payer },
    } = world
    const before = cluster.balance(payer.address)
    const destination = wallet().address
    world.addStake({ destination })
    const operator = world.start()

    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status()).toMatchObject({ phase: 'Active', protocol: { status: 'Active', activeLamports: String(AMOUNT - 2_282_880n) } })
    expect(cluster.balance(world.status().stakeAccount ?? '')).toBe(AMOUNT)
    expect(cluster.balance(payer.address)).toBe(before - AMOUNT - FEE)

    world.editSpec({ desiredState: 'Inactive' })
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status()).toMatchObject({
      phase: 'Inactive',
      protocol: { status: 'Inactive', activeLamports: '0', inactiveLamports: String(AMOUNT) },
    })

    world.editSpec({ desiredState: 'Withdrawn' })
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status().phase).toBe('Withdrawn')
    expect(cluster.balance(destination)).toBe(AMOUNT)
    expect(cluster.balance(payer.address)).toBe(before - AMOUNT - 4n * FEE)

    world.stakes.remove(KEY)
    await world.visit(operator)
    expect(world.stakes.get(KEY)).toBeUndefined()
  })
})

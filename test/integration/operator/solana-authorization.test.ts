import { StakeProgram, type Transaction } from '@solana/web3.js'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { publicKey } from '../../../src/chains/solana/addresses.ts'
import { findCondition } from '../../../src/resources/conditions.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { land, signed, type Wallet, wallet } from '../solana-chain/wallet.ts'
import { AMOUNT, createSolanaWorld, FEE, KEY, type SolanaParts, startSolanaParts } from './solana-world.ts'

/** Authorities of a stake handed over to other keys, with the real stake program and the real staking service. */
let store: Store
let parts: SolanaParts | undefined
beforeAll(async () => {
  store = await openStore({ kind: 'embedded', dataDir: 'memory://' })
})
afterEach(async () => {
  await parts?.close()
  parts = undefined
})
afterAll(() => store?.close())

const HAND_OVER = 'team-a/hand-over'

/** A stake that is Ready, and signers with new keys. */
async function readyStake() {
  parts = await startSolanaParts(store)
  const world = createSolanaWorld(parts)
  const next = { staker: wallet(), withdrawer: wallet() }
  world.addSigners({ allowedSuccessors: [next.staker.address, next.withdrawer.address] })
  for (const [name, key] of [
    ['payer-2', next.staker],
    ['withdrawer-2', next.withdrawer],
  ] as const) {
    world.mounted.set(name, key)
    world.addSigner(name, key.address)
  }
  parts.cluster.fund(next.staker.address, 1_000_000_000n)
  world.addStake()
  const operator = world.start()
  await world.settle(operator)
  expect(world.ready(), world.explain()).toBe(true)
  const account = world.status().stakeAccount ?? ''
  return { world, operator, next, account, ...parts }
}
type Ready = Awaited<ReturnType<typeof readyStake>>

async function handOver({ world, operator, cluster }: Ready, spec: object): Promise<void> {
  world.authorizations.create({
    metadata: { namespace: 'team-a', name: 'hand-over' },
    spec: { stakeRef: { name: 'stake-1' }, maxPriorityFeeLamports: '10000', ...spec },
  })
  for (let round = 0; round < 8 && ready({ world }) !== 'True'; round++) {
    await operator.visitAuthorization(HAND_OVER)
    cluster.settle()
  }
}
const statusOf = ({ world }: Pick<Ready, 'world'>) => world.authorizations.get(HAND_OVER)?.status
const ready = (given: Pick<Ready, 'world'>) => findCondition(statusOf(given)?.conditions, 'Ready')?.status

/** Why the cluster would refuse a transaction that one signs; null where it wouldn’t. */
function refusal({ ledger }: Ready['cluster'], transaction: Transaction, by: Wallet): unknown {
  transaction.feePayer = publicKey(by.address)
  transaction.recentBlockhash = ledger.head().blockhash
  return ledger.simulate(signed(new Uint8Array(transaction.compileMessage().serialize()), by)).err
}

describe('a stake', () => {
  test('is handed over to new keys, which alone deactivate and withdraw it', async () => {
    const given = await readyStake()
    const { world, operator, next, account, cluster, payer, withdrawer } = given
    const before = cluster.balance(payer.address)
    await handOver(given, { stakeAuthority: { signer: 'payer-2' }, withdrawAuthority: { signer: 'withdrawer-2' } })
    expect(ready(given), JSON.stringify(statusOf(given))).toBe('True')
    // Payer, present withdraw authority, and both new ones sign; the payer pays for all four.
    expect(cluster.balance(payer.address)).toBe(before - 4n * FEE)

    // The cluster itself refuses the old keys.
    const [stakePubkey, to] = [publicKey(account), publicKey(withdrawer.address)]
    const old = StakeProgram.withdraw({ stakePubkey, authorizedPubkey: to, toPubkey: to, lamports: 1 })
    expect(refusal(cluster, old, withdrawer)).not.toBeNull()
    expect(refusal(cluster, StakeProgram.deactivate({ stakePubkey, authorizedPubkey: publicKey(payer.address) }), payer)).not.toBeNull()

    await world.visit(operator)
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status()).toMatchObject({ stakeAuthority: next.staker.address, withdrawAuthority: next.withdrawer.address })
    // The old ones are thrown away.
    world.mounted.delete('payer')
    world.mounted.delete('withdrawer')
    for (const desiredState of ['Inactive', 'Withdrawn'] as const) {
      world.editSpec({ desiredState })
      await world.settle(operator)
      expect(world.ready(), world.explain()).toBe(true)
    }
    expect(world.status().phase).toBe('Withdrawn')
    expect(cluster.balance(next.withdrawer.address)).toBe(AMOUNT)
    world.stakes.remove(KEY)
    await world.visit(operator)
    expect(world.stakes.get(KEY)).toBeUndefined()
  })

  test('whose authority was changed past the operator is told, and taken in by a resource that names the new key', async () => {
    const given = await readyStake()
    const { world, operator, next, account, cluster, withdrawer } = given
    land(
      cluster,
      StakeProgram.authorize({
        stakePubkey: publicKey(account),
        authorizedPubkey: publicKey(withdrawer.address),
        newAuthorizedPubkey: publicKey(next.withdrawer.address),
        stakeAuthorizationType: { index: 1 },
      }),
      withdrawer,
    )
    const before = world.signed.length
    world.editSpec({ desiredState: 'Inactive' })
    await world.settle(operator)
    expect(world.stalled(), world.explain()).toBe('AuthorityChanged')
    await handOver(given, { withdrawAuthority: { signer: 'withdrawer-2' } })
    expect(ready(given), JSON.stringify(statusOf(given))).toBe('True')
    expect(world.signed).toHaveLength(before)
    await world.settle(operator)
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
  })
})

import { describe, expect, test } from 'vitest'
import { findCondition } from '../../../resources/conditions.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { testAddress, testKeys } from '../../testing/fake-keys.ts'
import { createWorld, KEY, type World } from '../../testing/world.ts'
import { duplicateOf } from './duplicate.ts'
import { controlsMessage } from './need.ts'

const ready = (world: World, name = 'signer-1') => {
  const condition = findCondition(world.signers.get(name)?.status?.conditions, 'Ready')
  return condition && `${condition.status} ${condition.reason}`
}

describe('a signer', () => {
  test('is ready when its key is mounted and belongs to its address', async () => {
    const world = createWorld()
    world.addSigner()
    await world.start().visitSigner('signer-1')
    expect(ready(world)).toBe('True Succeeded')
    expect(world.signers.get('signer-1')?.status?.address).toBe(testAddress(0))
  })

  test.each<{ given: string; prepare: (world: World) => void; says: string }>([
    { given: 'no key', prepare: (world) => world.keys.break('key-0', 'missing'), says: 'False KeyMissing' },
    { given: 'a malformed key', prepare: (world) => world.keys.break('key-0', 'malformed'), says: 'False KeyMalformed' },
    {
      given: 'the key of another address',
      prepare: (world) => world.keys.mount('key-0', testKeys[1] as `0x${string}`),
      says: 'False KeyAddressMismatch',
    },
    { given: 'an unreadable policy', prepare: (world) => world.editPolicy({ maxPerTransaction: 32 }), says: 'False PolicyUnreadable' },
    {
      given: 'approvals of somebody under two spellings of one name',
      prepare: (world) => world.editPolicy({ approval: { by: [{ user: 'carol' }, { user: ' Carol' }] } }),
      says: 'False PolicyUnreadable',
    },
    { given: 'an older twin', prepare: (world) => world.addSigner('a-twin'), says: 'False DuplicateSigner' },
    {
      given: 'transactions of others',
      prepare: (world) => world.chain.mineForeign({ from: testAddress(0) }),
      says: 'False UnaccountedTransactions',
    },
  ])('with $given is not, and says so once; mended, it is ready again', async ({ prepare, says }) => {
    const world = createWorld()
    world.addSigner()
    const before = structuredClone(world.signers.get('signer-1')?.spec)
    prepare(world)
    const operator = world.start()
    for (let count = 0; count < 3; count++) await operator.visitSigner('signer-1')
    expect(ready(world)).toBe(says)
    expect(world.signers.statusWrites('signer-1')).toBe(1)
    expect(world.events.filter(({ text }) => text.type === 'Warning')).toHaveLength(1)
    world.keys.mend('key-0')
    world.keys.mount('key-0', testKeys[0] as `0x${string}`)
    if (world.signers.get('a-twin')) world.signers.vanish('a-twin')
    world.signers.edit('signer-1', (signer) => ({ ...signer, spec: { ...before, acknowledgedNonce: world.chain.nonce(testAddress(0)) } }))
    await operator.visitSigner('signer-1')
    expect(ready(world)).toBe('True Succeeded')
  })

  test('that pays stakes does not take their transactions for those of others, and shows its lane', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    const operator = world.start()
    await operator.visitSigner('signer-1')
    for (let count = 0; count < 6; count++) {
      await world.visit(operator, KEY)
      await operator.visitSigner('signer-1')
      expect(ready(world)).toBe('True Succeeded')
      world.chain.mine()
      world.clock.advance(12_000)
    }
    expect(world.signers.get('signer-1')?.status?.lanes).toMatchObject([{ network: 'hoodi', nextNonce: 1, open: 0, waiting: 0 }])
    world.assertMoney({ deposits: 1 })
  })

  test('is asked for no funds by a stake that was deleted before anything was signed', async () => {
    const world = createWorld()
    world.addSigner()
    world.editPolicy({ maxPerTransaction: '32', maxFeePerGasGwei: '0.000000001', allowedNamespaces: { names: ['team-a'] } })
    world.addStake()
    const operator = world.start()
    await world.visit(operator, KEY)
    await operator.visitSigner('signer-1')
    const lane = () => world.signers.get('signer-1')?.status?.lanes?.[0]
    expect(lane()).toMatchObject({ waiting: 1, neededWei: `${32n * 10n ** 18n}` })
    world.stakes.remove(KEY)
    await world.visit(operator, KEY)
    expect(world.stakes.get(KEY)).toBeUndefined()
    expect(world.records.list()).toHaveLength(1)
    await operator.visitSigner('signer-1')
    expect(lane()).toMatchObject({ open: 0, waiting: 0, neededWei: '0' })
    // A new one of the same name takes its place.
    world.addStake()
    await world.visit(operator, KEY)
    await operator.visitSigner('signer-1')
    expect(lane()).toMatchObject({ waiting: 1, neededWei: `${32n * 10n ** 18n}` })
  })

  test('that is written while it is looked at, is looked at again, and nothing of that is lost', async () => {
    const world = createWorld()
    world.addSigner()
    let once = true
    const operator = world.start((point) => {
      if (!point.startsWith('before signer write') || !once) return
      once = false
      world.signers.edit('signer-1', (signer) => ({ ...signer, status: { ledgers: [{ network: 'hoodi', nextNonce: 3 }] } }))
    })
    expect(await operator.visitSigner('signer-1')).toMatchObject({ kind: 'wait' })
    await operator.visitSigner('signer-1')
    // The ledger of an earlier version, which is taken over: where its numbers end is a place now.
    expect(world.places.list().map(({ spec }) => spec.nonce)).toEqual([2])
    expect(ready(world)).toBe('True Succeeded')
  })

  test('on a chain that does not answer keeps what it said', async () => {
    const world = createWorld()
    world.addSigner()
    const operator = world.start()
    await operator.visitSigner('signer-1')
    world.chain.state.wrongChain = true
    await operator.visitSigner('signer-1')
    expect(ready(world)).toBe('True Succeeded')
    expect(world.signers.statusWrites('signer-1')).toBe(1)
  })

  test('of Solana is looked after like any other, but for nonces: its key, its funds', async () => {
    const world = createWorld()
    const address = '4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi'
    world.addSigner('signer-1', { chain: 'Solana', address, keyName: 'sol' })
    const operator = world.start()
    await operator.visitSigner('signer-1')
    expect(ready(world)).toBe('False KeyMissing')
    // Base58 has no second spelling: another case is another address.
    world.solanaKeys.set('sol', address.toLowerCase())
    await operator.visitSigner('signer-1')
    expect(ready(world)).toBe('False KeyAddressMismatch')
    world.solanaKeys.set('sol', address)
    await operator.visitSigner('signer-1')
    expect(ready(world)).toBe('True Succeeded')
    const funded = () => findCondition(world.signers.get('signer-1')?.status?.conditions, 'Funded')?.status
    expect(funded()).toBe('False')
    world.solanaBalances.set(address, 1n)
    await operator.visitSigner('signer-1')
    expect(funded()).toBe('True')
    expect(world.signers.get('signer-1')?.status?.ledgers).toBeUndefined()
  })

  test('whose lane moves all the time shows that every five seconds, the first and the last of it, and other news at once', async () => {
    const world = createWorld()
    world.addSigner()
    const operator = world.start()
    const balance = () => world.signers.get('signer-1')?.status?.lanes?.[0]?.balanceWei
    const had = world.chain.chain.balance(testAddress(0), new AbortController().signal)
    const moved = async (afterMs: number) => {
      world.clock.advance(afterMs)
      world.chain.fund(testAddress(0), 1n)
      return operator.visitSigner('signer-1')
    }
    await operator.visitSigner('signer-1')
    const before = await had
    for (let second = 1; second <= 4; second++) expect(await moved(1_000)).toEqual({ kind: 'wait', afterMs: 5_000 - second * 1_000 })
    expect([world.signers.statusWrites('signer-1'), balance()]).toEqual([1, before.toString()])
    world.clock.advance(1_000)
    await operator.visitSigner('signer-1')
    expect([world.signers.statusWrites('signer-1'), balance()]).toEqual([2, (before + 4n).toString()])

    world.keys.break('key-0', 'missing')
    await moved(1)
    expect(ready(world)).toBe('False KeyMissing')
    expect([world.signers.statusWrites('signer-1'), balance()]).toEqual([3, (before + 5n).toString()])
    await moved(60_000)
    expect([world.signers.statusWrites('signer-1'), balance()]).toEqual([4, (before + 6n).toString()])
  })

  test('whose status is refused tells of its trouble all the same, once', async () => {
    const world = createWorld()
    world.addSigner()
    world.chain.mineForeign({ from: testAddress(0) })
    let isRefused = true
    const operator = world.start((point) => {
      if (point.startsWith('before signer write') && isRefused) throw new Error('the status is refused')
    })
    const told = () => [world.events.map(({ text }) => text.reason), world.alarms.map(({ reason }) => reason)]
    for (let look = 0; look < 2; look++) {
      await expect(operator.visitSigner('signer-1')).rejects.toThrow('the status is refused')
      expect(told()).toEqual([['UnaccountedTransactions'], ['UnaccountedTransactions']])
    }
    isRefused = false
    for (let look = 0; look < 2; look++) await operator.visitSigner('signer-1')
    expect(ready(world)).toBe('False UnaccountedTransactions')
    expect(told()).toEqual([['UnaccountedTransactions'], ['UnaccountedTransactions']])
    world.editSigner({ acknowledgedNonce: 1 })
    await operator.visitSigner('signer-1')
    expect(told()[0]).toEqual(['UnaccountedTransactions', 'Ready'])
  })

  test('that is gone is left alone', async () => {
    const world = createWorld()
    expect(await world.start().visitSigner('signer-1')).toEqual({ kind: 'done' })
  })
})

describe('whether its key is still needed', () => {
  const needed = (world: World) => {
    const found = findCondition(world.signers.get('signer-1')?.status?.conditions, 'KeyNeeded')
    return found && `${found.status} ${found.reason}`
  }
  const own = { withdrawalAddress: testAddress(0) }
  const annotate = (world: World, annotations: Record<string, string>) =>
    world.signers.edit('signer-1', (signer) => ({ ...signer, metadata: { ...signer.metadata, annotations } }))
  /** The operator, once the stake is paid. */
  async function paid(world: World) {
    world.addSigner()
    world.addStake(KEY, own)
    const operator = world.start()
    await world.settle(operator)
    expect(world.ready()).toBe(true)
    return operator
  }
  const leave = (world: World) =>
    world.editStatus((status) => ({
      ...status,
      validator: { ...status.validator, pubkey: status.depositData?.pubkey, status: 'withdrawal_done' },
    }))

  test('it says in use, then by whom its stakes are controlled, then that it may go', async () => {
    const world = createWorld()
    world.addSigner()
    const operator = world.start()
    await operator.visitSigner('signer-1')
    expect(needed(world)).toBe('False Settled')
    // From the moment that a resource names it, whether or not anything was signed.
    world.addStake(KEY, own)
    await operator.visitSigner('signer-1')
    expect(needed(world)).toBe('True KeyInUse')
    await world.visit(operator, KEY)
    await operator.visitSigner('signer-1')
    expect(needed(world)).toBe('True KeyInUse')
    await world.settle(operator)
    await operator.visitSigner('signer-1')
    expect(needed(world)).toBe('True ControlsStakes')
    expect(world.signers.get('signer-1')?.status?.lanes).toMatchObject([{ network: 'hoodi', open: 0, waiting: 0, validators: 1 }])
    leave(world)
    await operator.visitSigner('signer-1')
    expect(needed(world)).toBe('False Settled')
    expect(world.signers.get('signer-1')?.status?.lanes?.[0]?.validators).toBeUndefined()
  })

  test('that it may go says where its address holds money, or may', async () => {
    const world = createWorld()
    world.addSigner()
    const operator = world.start()
    const message = () => findCondition(world.signers.get('signer-1')?.status?.conditions, 'KeyNeeded')?.message
    world.chain.state.wrongChain = true
    await operator.visitSigner('signer-1')
    expect(needed(world)).toBe('False Settled')
    expect(message()).toMatch(/What its address holds on hoodi is not known: look there before the key is thrown away\.$/)
    world.chain.state.wrongChain = false
    await operator.visitSigner('signer-1')
    expect(message()).toMatch(/Its address holds money on hoodi \(status\.balance\): send that elsewhere while you have the key\.$/)
    // No figure of it is in it, so that it isn't written for each.
    expect(message()).not.toMatch(/[0-9]/)
    expect(world.signers.get('signer-1')?.status?.balance).toMatch(/ETH on hoodi/)
  })

  test('a stake whose withdrawal address is another’s leaves nothing behind', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake()
    const operator = world.start()
    await world.settle(operator)
    await operator.visitSigner('signer-1')
    expect(needed(world)).toBe('False Settled')
    world.signers.remove('signer-1')
    await operator.visitSigner('signer-1')
    expect(world.signers.get('signer-1')).toBeUndefined()
  })

  test('deleted, it stays for its validators and says why, until somebody confirms', async () => {
    const world = createWorld()
    const operator = await paid(world)
    await operator.visitSigner('signer-1')
    world.signers.remove('signer-1')
    await operator.visitSigner('signer-1')
    const said = findCondition(world.signers.get('signer-1')?.status?.conditions, 'Ready')
    expect(said?.message).toMatch(/withdrawal address of validators on hoodi.*can never be changed.*confirm-delete=signer-1/)
    annotate(world, { 'staking.dev/confirm-delete': 'another' })
    await operator.visitSigner('signer-1')
    expect(world.signers.get('signer-1')).toBeDefined()
    annotate(world, { 'staking.dev/confirm-delete': 'signer-1' })
    await operator.visitSigner('signer-1')
    expect(world.signers.get('signer-1')).toBeUndefined()
  })

  test('one of two with the same key goes at once, as its message advises; the last one stays', async () => {
    const world = createWorld()
    const operator = await paid(world)
    world.addSigner('twin')
    await operator.visitSigner('twin')
    expect(findCondition(world.signers.get('twin')?.status?.conditions, 'Stalled')?.reason).toBe('DuplicateSigner')
    for (const name of ['signer-1', 'twin']) await operator.visitSigner(name)
    world.signers.remove('twin')
    await operator.visitSigner('twin')
    expect(world.signers.get('twin')).toBeUndefined()
    world.signers.remove('signer-1')
    await operator.visitSigner('signer-1')
    expect(world.signers.get('signer-1')).toBeDefined()
  })

  test('deleted, it goes by itself once its validators have left', async () => {
    const world = createWorld()
    const operator = await paid(world)
    await operator.visitSigner('signer-1')
    world.signers.remove('signer-1')
    leave(world)
    await operator.visitSigner('signer-1')
    expect(world.signers.get('signer-1')).toBeUndefined()
  })

  test('confirmed too early, it still stays until nothing of it can land', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake(KEY, own)
    const operator = world.start()
    await world.visit(operator, KEY)
    annotate(world, { 'staking.dev/confirm-delete': 'signer-1' })
    world.signers.remove('signer-1')
    await operator.visitSigner('signer-1')
    expect(findCondition(world.signers.get('signer-1')?.status?.conditions, 'Ready')?.message).toContain('in flight')
    for (let block = 0; block < 4; block++) {
      world.chain.mine()
      world.clock.advance(12_000)
      await world.visit(operator, KEY)
    }
    await operator.visitSigner('signer-1')
    expect(world.signers.get('signer-1')).toBeUndefined()
  })

  test('its message names some networks only', () => {
    const networks = new Map(Array.from({ length: 600 }, (_, n) => [`${'n'.repeat(59)}-${n}`, 1]))
    const spec = { chain: 'Ethereum', address: testAddress(0) } as StakingSigner['spec']
    const message = controlsMessage({ spec }, { controls: networks, awaits: new Set(networks.keys()) })
    expect(message.match(/ and 590 more/g)).toHaveLength(2)
    expect(message.length).toBeLessThan(2_000)
  })

  describe('which is the withdrawal address of a stake that another key pays', () => {
    const notAdmitted = (world: World) => world.editPolicy({ allowedNamespaces: { names: ['team-b'] } }, 'signer-2')
    const others = { ...own, signer: 'signer-2' }
    function paidByAnother(change: object = {}) {
      const world = createWorld()
      world.addSigner()
      world.addSigner('signer-2', { keyName: 'key-1', address: testAddress(1) }, {}, 1)
      world.addStake(KEY, { ...others, ...change })
      return { world, operator: world.start() }
    }
    /** Looked at, deleted, and looked at again. */
    async function remains({ world, operator }: ReturnType<typeof paidByAnother>) {
      await operator.visitSigner('signer-1')
      expect(needed(world)).toBe('True ControlsStakes')
      world.signers.remove('signer-1')
      await operator.visitSigner('signer-1')
      const said = findCondition(world.signers.get('signer-1')?.status?.conditions, 'Ready')
      expect(said?.message).toMatch(/withdrawal address of (validators|deposits) on hoodi.*confirm-delete=signer-1/)
    }

    test('it is needed before that is signed, though it waits', async () => {
      const given = paidByAnother({ suspend: true })
      await given.world.visit(given.operator, KEY)
      await remains(given)
      expect(given.world.chain.everSent()).toEqual([])
      // The stake that was never paid goes, and with it what the key was kept for.
      given.world.stakes.remove(KEY)
      await given.world.visit(given.operator, KEY)
      await given.operator.visitSigner('signer-1')
      expect(given.world.signers.get('signer-1')).toBeUndefined()
    })

    test('while its deposit is in the pool, whatever somebody writes to its status', async () => {
      const given = paidByAnother()
      await given.world.visit(given.operator, KEY)
      expect(given.world.chain.everSent()).toHaveLength(1)
      for (const state of ['Failed', 'Confirmed']) {
        given.world.editStatus((status) => ({
          ...status,
          transaction: { ...status.transaction, state },
          validator: { pubkey: status.depositData?.pubkey, status: 'withdrawal_done' },
        }))
        await given.operator.visitSigner('signer-1')
        expect(needed(given.world)).toBe('True ControlsStakes')
      }
      await remains(given)
    })

    test('and after it', async () => {
      const given = paidByAnother()
      await given.world.settle(given.operator)
      await remains(given)
    })

    test.each<{ what: string; prepare: (world: World) => void }>([
      { what: 'a suspended signer', prepare: (world) => world.editSigner({ suspend: true }, 'signer-2') },
      { what: 'mode: Plan', prepare: (world) => world.editSpec({ mode: 'Plan' }) },
      { what: 'a limit for one transaction', prepare: (world) => world.editPolicy({ maxPerTransaction: '1' }, 'signer-2') },
      { what: 'a policy that cannot be read', prepare: (world) => world.editPolicy({ maxPerTransaction: 32 }, 'signer-2') },
      {
        what: 'the labels of its namespace, which are not known',
        prepare: (world) => {
          world.namespaces.delete('team-a')
          world.editPolicy({ allowedNamespaces: { selector: { matchLabels: { pays: 'yes' } } } }, 'signer-2')
        },
      },
    ])('it is needed while that waits for $what', async ({ prepare }) => {
      const given = paidByAnother()
      prepare(given.world)
      await remains(given)
    })

    test.each<{ what: string; change?: object; prepare?: (world: World) => void }>([
      { what: 'a namespace that its signer does not admit', prepare: (world) => notAdmitted(world) },
      {
        what: 'a namespace that its signer, which is suspended, does not admit',
        prepare: (world) => {
          notAdmitted(world)
          world.editSigner({ suspend: true }, 'signer-2')
        },
      },
      {
        what: 'a namespace without the labels that its signer asks for',
        prepare: (world) => {
          world.namespaces.set('team-a', { pays: 'no' })
          world.editPolicy({ allowedNamespaces: { selector: { matchLabels: { pays: 'yes' } } } }, 'signer-2')
        },
      },
      {
        what: 'an address that its signer does not admit',
        prepare: (world) => world.editPolicy({ allowedWithdrawalAddresses: [testAddress(1)] }, 'signer-2'),
      },
      { what: 'a signer that does not exist', change: { signer: 'nobody' } },
      { what: 'a network that does not exist', change: { network: 'elsewhere' } },
    ])('it is not needed for one of $what', async ({ change, prepare }) => {
      const { world, operator } = paidByAnother(change)
      prepare?.(world)
      await world.visit(operator, KEY)
      await operator.visitSigner('signer-1')
      expect(needed(world)).toBe('False Settled')
      world.signers.remove('signer-1')
      await operator.visitSigner('signer-1')
      expect(world.signers.get('signer-1')).toBeUndefined()
    })

    test('it is needed for what was sent before the policy was closed, until and after that is final', async () => {
      const { world, operator } = paidByAnother()
      await world.visit(operator, KEY)
      expect(world.chain.everSent()).toHaveLength(1)
      notAdmitted(world)
      world.editStatus(() => ({}))
      await operator.visitSigner('signer-1')
      expect(needed(world)).toBe('True ControlsStakes')
      for (let block = 0; block < 4; block++) {
        world.chain.mine()
        world.clock.advance(12_000)
        await operator.visitLanes()
      }
      expect(world.record()?.status?.outcome?.is).toBe('Landed')
      expect(world.status().transaction).toBeUndefined()
      await operator.visitSigner('signer-1')
      expect(needed(world)).toBe('True ControlsStakes')
    })

    test('many that nobody admits, each of another network, stop no status', async () => {
      const { world, operator } = paidByAnother()
      world.stakes.vanish(KEY)
      for (let n = 0; n < 600; n++) world.addStake(`team-x/stake-${n}`, { ...others, network: `${'n'.repeat(59)}-${n}` })
      await operator.visitSigner('signer-1')
      expect(ready(world)).toBe('True Succeeded')
      expect(needed(world)).toBe('False Settled')
    })

    test('not once it was reverted, by the log', async () => {
      const given = paidByAnother()
      await given.world.visit(given.operator, KEY)
      given.world.chain.state.contractReverts = true
      await given.world.settle(given.operator)
      expect(given.world.record()?.status?.outcome?.is).toBe('Reverted')
      await given.operator.visitSigner('signer-1')
      expect(needed(given.world)).toBe('False Settled')
    })
  })

  test('what nobody has paid holds nothing, whatever address it names', async () => {
    const world = createWorld()
    world.addSigner()
    world.addStake(KEY, { ...own, suspend: true })
    const operator = world.start()
    await world.visit(operator, KEY)
    await operator.visitSigner('signer-1')
    expect(needed(world)).toBe('True KeyInUse')
    world.signers.remove('signer-1')
    expect(world.signers.get('signer-1')).toBeUndefined()
  })
})

describe('of signers with one address', () => {
  const signer = (name: string, created: string, change: object = {}) =>
    ({
      metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: created },
      spec: { chain: 'Ethereum', address: '0xAb', ...change },
    }) as unknown as StakingSigner
  const old = signer('old', '2030-01-01T00:00:00Z')
  const young = signer('young', '2030-01-02T00:00:00Z')
  test('the oldest stands', () => {
    expect(duplicateOf(young, [young, old])).toBe('old')
    expect(duplicateOf(old, [young, old])).toBeUndefined()
  })
  test('of the same second, exactly one stands', () => {
    const twins = [signer('a', '2030-01-01T00:00:00Z'), signer('b', '2030-01-01T00:00:00Z')]
    expect(twins.map((twin) => duplicateOf(twin, twins))).toEqual([undefined, 'a'])
  })
  test('the case of the address does not matter, and the chain does', () => {
    expect(duplicateOf(young, [signer('old', '2030-01-01T00:00:00Z', { address: '0xaB' })])).toBe('old')
    expect(duplicateOf(young, [signer('old', '2030-01-01T00:00:00Z', { chain: 'Solana' })])).toBeUndefined()
  })
})

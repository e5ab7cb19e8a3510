import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ChainError, type Hex } from '../../chains/ethereum/chain.ts'
import { wei } from '../../lib/amounts.ts'
import type { InFlight } from '../../resources/staking-signer.ts'
import type { Origin } from '../engine/origin.ts'
import { Halt, stall } from '../engine/verdict.ts'
import { KubeTransportError } from '../kube/errors.ts'
import { testAddress } from '../testing/fake-keys.ts'
import { type Around, createWorld, ETH, type World } from '../testing/world.ts'
import type { NonceOffer } from './ledger.ts'
import { createSignerLedger, type LedgerVersion, type Reservation, type SignerLedger } from './signer-ledger.ts'

const originOf = (name: string): Origin => ({ uid: name, kind: 'EthereumStake', namespace: 'team-a', name })
const hex = (text: string, bytes: number): Hex =>
  `0x${Buffer.from(text)
    .toString('hex')
    .padEnd(bytes * 2, '0')
    .slice(0, bytes * 2)}`
const version = (hash: string, maxFeePerGas = 10n): LedgerVersion => ({
  gas: 100n,
  maxFeePerGas: wei(maxFeePerGas),
  maxPriorityFeePerGas: wei(1n),
  hash: hex(hash, 32),
})

interface Bench {
  readonly world: World
  readonly ledger: SignerLedger
  readonly gone: Set<string>
  readonly offered: NonceOffer[]
  reserve(origin: string, change?: Partial<Reservation> & { pubkey?: string }): Promise<InFlight>
  abort(): void
}
/** The ledger alone, on the world's API server and chain. Transactions are made up: their hash is their origin and nonce. */
function bench(world = makeWorld(), around: Around = () => {}): Bench {
  const operator = world.start(around)
  const gone = new Set<string>()
  const abort = new AbortController()
  const ledger = createSignerLedger({
    signers: operator.store,
    clock: world.clock,
    signal: abort.signal,
    exists: ({ origin }) => !gone.has(origin),
    isSettled: () => false,
  })
  const offered: NonceOffer[] = []
  return {
    world,
    ledger,
    gone,
    offered,
    abort: () => abort.abort(new Error('the lease was lost')),
    reserve: (origin, { pubkey, ...change } = {}) =>
      ledger.reserve({
        signer: 'signer-1',
        network: 'hoodi',
        chain: world.chain.chain,
        request: { origin, kind: 'EthereumStake', namespace: 'team-a', name: origin, step: 'stake', pubkey: pubkey ?? hex(origin, 48) },
        valueWei: wei(32n * ETH),
        costWei: wei(33n * ETH),
        build: async (offer) => {
          offered.push(offer)
          return version(`${origin}@${offer.nonce}`)
        },
        ...change,
      }),
  }
}
function makeWorld(): World {
  const world = createWorld()
  world.addSigner()
  world.addSigner('signer-2', {}, {}, 1)
  return world
}
const verdictOf = async (promise: Promise<unknown>): Promise<string> => {
  try {
    await promise
    return 'granted'
  } catch (error) {
    if (!(error instanceof Halt)) return (error as Error).message
    return error.verdict.kind === 'conflict' ? 'conflict' : `${error.verdict.kind} ${error.verdict.reason}`
  }
}
const stored = (world: World) => world.ledger()?.inFlight?.map(({ nonce, origin }) => `${nonce} ${origin}`)

describe('a reservation', () => {
  test('stands in the signer before it is granted', async () => {
    const { world, reserve } = bench()
    const entry = await reserve('a')
    expect(entry).toMatchObject({ nonce: 0, origin: 'a', hash: hex('a@0', 32) })
    expect(world.ledger()).toMatchObject({ nextNonce: 1, inFlight: [entry] })
  })

  test('is the same again for the same origin and step, without a write', async () => {
    const { world, reserve } = bench()
    const first = await reserve('a')
    expect(await reserve('a')).toEqual(first)
    expect(await bench(world).reserve('a')).toEqual(first)
    expect(world.signers.statusWrites('signer-1')).toBe(1)
  })

  test('of many that come together is one write', async () => {
    const { world, reserve } = bench()
    const entries = await Promise.all(Array.from({ length: 30 }, (_, index) => reserve(`o${index}`)))
    expect(entries.map(({ nonce }) => nonce)).toEqual(entries.map((_, nonce) => nonce))
    expect(world.signers.statusWrites('signer-1')).toBe(1)
  })

  test('that fails inside a batch fails alone, and its nonce goes to the next', async () => {
    const { reserve, world } = bench()
    const results = await Promise.allSettled([
      reserve('a'),
      reserve('b', {
        build: async () => {
          throw stall('KeyMissing', 'the key is gone')
        },
      }),
      reserve('c'),
    ])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(stored(world)).toEqual(['0 a', '1 c'])
  })

  test('is planned again, on what others have written meanwhile (409)', async () => {
    let interfered = false
    const world = makeWorld()
    const { reserve } = bench(world, (point) => {
      if (!point.startsWith('before signer write') || interfered) return
      interfered = true
      world.signers.edit('signer-1', (signer) => ({
        ...signer,
        status: { ledgers: [{ network: 'hoodi', nextNonce: 4, inFlight: [0, 1, 2, 3].map((nonce) => someone(nonce)) }] },
      }))
    })
    expect((await reserve('a')).nonce).toBe(4)
    expect(interfered).toBe(true)
    expect(stored(world)).toHaveLength(5)
  })

  test('that meets another writer each time gives up for now', async () => {
    let writes = 0
    const world = makeWorld()
    const { reserve } = bench(world, (point) => {
      if (point.startsWith('before signer write'))
        world.signers.edit('signer-1', (signer) => ({ ...signer, status: { address: `0x${++writes}` } }))
    })
    expect(await verdictOf(reserve('a'))).toBe('retry WaitingForNonce')
    expect(writes).toBe(5)
  })

  test.each(['before', 'after'])('whose write has no answer, %s it took place, is granted once and the same', async (when) => {
    const world = makeWorld()
    let fails = true
    const { reserve } = bench(world, (point) => {
      if (point === `${when} signers.mergePatch` && fails) {
        fails = false
        throw new KubeTransportError('TIMEOUT', 'no answer')
      }
    })
    expect(await verdictOf(reserve('a'))).toBe('no answer')
    // Nobody else pays for that validator as long as it is not known whether the first is to.
    expect(await verdictOf(reserve('b', { pubkey: hex('a', 48) }))).toBe('stall AdoptionMismatch')
    expect((await reserve('a')).nonce).toBe(0)
    expect(stored(world)).toEqual(['0 a'])
  })

  test('on a chain that does not answer is refused to all, and works later', async () => {
    const world = makeWorld()
    let down = true
    const { reserve } = bench(world)
    const chain = {
      ...world.chain.chain,
      balance: async () => (down ? Promise.reject(new ChainError('unavailable', 'no answer')) : wei(100n * ETH)),
    }
    expect(await verdictOf(reserve('a', { chain }))).toBe('no answer')
    down = false
    expect((await reserve('a', { chain })).nonce).toBe(0)
  })

  test('of a signer that is gone stalls', async () => {
    const { reserve } = bench()
    expect(await verdictOf(reserve('a', { signer: 'nobody' }))).toBe('stall SignerNotFound')
  })

  test('after the lease was lost is not even planned', async () => {
    const { reserve, abort, world } = bench()
    abort()
    expect(await verdictOf(reserve('a'))).toBe('the lease was lost')
    expect(world.ledger()).toBeUndefined()
  })

  test('when the lease is lost while it is signed, is not written', async () => {
    const { reserve, abort, world } = bench()
    const result = verdictOf(
      reserve('a', {
        build: async () => {
          abort()
          return version('a')
        },
      }),
    )
    expect(await result).toBe('the lease was lost')
    expect(world.ledger()).toBeUndefined()
  })

  test('beyond what is free waits for funds, and a smaller one behind it does not', async () => {
    const { reserve } = bench()
    const results = [reserve('a', { costWei: wei(2_000n * ETH) }), reserve('b'), reserve('c', { costWei: wei(980n * ETH) })].map(verdictOf)
    expect(await Promise.all(results)).toEqual(['wait InsufficientFunds', 'granted', 'wait InsufficientFunds'])
  })

  test('of the 121st in flight waits for those before', async () => {
    const { reserve, world } = bench()
    world.chain.fund(testAddress(0), 10_000n * ETH)
    await Promise.all(Array.from({ length: 120 }, (_, index) => reserve(`o${index}`)))
    expect(await verdictOf(reserve('late'))).toBe('wait WaitingForNonce')
    expect(world.ledger()?.inFlight).toHaveLength(120)
    for (let count = 0; count < 5; count++) world.chain.mineForeign({ from: testAddress(0) })
    world.chain.mine(3)
    expect((await reserve('late')).nonce).toBe(120)
    expect(world.ledger()?.inFlight).toHaveLength(116)
  })
})

const someone = (nonce: number, change: Partial<InFlight> = {}): InFlight => ({
  origin: `someone-${nonce}`,
  kind: 'EthereumStake',
  namespace: 'team-a',
  name: `someone-${nonce}`,
  step: 'stake',
  pubkey: hex(`someone-${nonce}`, 48),
  nonce,
  valueWei: '1',
  gas: '1',
  maxFeePerGasWei: '1',
  maxPriorityFeePerGasWei: '1',
  hash: hex(`someone@${nonce}`, 32),
  recordedAt: '2030-01-01T00:00:00Z',
  ...change,
})

describe('a nonce that was given up', () => {
  test('goes to the next, who must pay more than what it displaces', async () => {
    const { reserve, ledger, offered, world } = bench()
    await reserve('a')
    ledger.release('signer-1', 'hoodi', originOf('a'), 'stake')
    expect((await reserve('b')).nonce).toBe(0)
    expect(offered.at(-1)?.displaces).toMatchObject({ origin: 'a', maxFeePerGasWei: '10' })
    expect(world.ledger()).toMatchObject({ nextNonce: 1, inFlight: [{ origin: 'b', displacedPubkeys: [hex('a', 48)] }] })
  })

  test('is kept when its resource comes back first', async () => {
    const { reserve, ledger } = bench()
    await reserve('a')
    ledger.release('signer-1', 'hoodi', originOf('a'), 'stake')
    expect((await ledger.claim('signer-1', 'hoodi', originOf('a'), 'stake'))?.nonce).toBe(0)
    expect((await reserve('b')).nonce).toBe(1)
  })

  test('is given to one only when its resource and the next ask in the same batch, in either order', async () => {
    for (const order of [
      ['a', 'b'],
      ['b', 'a'],
    ]) {
      const { reserve, ledger, world } = bench()
      await reserve('a')
      ledger.release('signer-1', 'hoodi', originOf('a'), 'stake')
      const entries = await Promise.all(order.map((origin) => reserve(origin)))
      expect(entries.map(({ nonce, origin }) => `${nonce} ${origin}`).toSorted()).toEqual(['0 a', '1 b'])
      expect(stored(world)).toEqual(['0 a', '1 b'])
    }
  })

  test('is not claimed by one who lost it while the claim waited', async () => {
    const { reserve, ledger } = bench()
    await reserve('a')
    ledger.release('signer-1', 'hoodi', originOf('a'), 'stake')
    const [taken, claimed] = await Promise.all([reserve('b'), ledger.claim('signer-1', 'hoodi', originOf('a'), 'stake')])
    expect(taken.nonce).toBe(0)
    expect(claimed).toBeUndefined()
    expect(ledger.holder('signer-1', 'hoodi', 0)?.origin).toBe('b')
  })

  test('does not make the next nonce of the same resource look given up', async () => {
    const { reserve, ledger, world } = bench()
    await reserve('a')
    ledger.release('signer-1', 'hoodi', originOf('a'), 'stake')
    await reserve('b')
    world.chain.mineForeign({ from: testAddress(0) })
    world.chain.mine(3)
    expect((await reserve('a')).nonce).toBe(1)
    expect((await reserve('c')).nonce).toBe(2)
  })
})

describe('a validator', () => {
  test('is paid under one nonce only, whoever asks', async () => {
    const { reserve } = bench()
    await reserve('a')
    expect(await verdictOf(reserve('b', { pubkey: hex('a', 48) }))).toBe('stall AdoptionMismatch')
  })

  test('is paid by one signer only, also when two plan at the same moment', async () => {
    const { reserve } = bench()
    const results = await Promise.all([
      verdictOf(reserve('a', { pubkey: hex('p', 48) })),
      verdictOf(reserve('b', { pubkey: hex('p', 48), signer: 'signer-2' })),
    ])
    expect(results.toSorted()).toEqual(['granted', 'stall AdoptionMismatch'])
  })

  test('is not paid by another signer after a restart either', async () => {
    const { reserve, world } = bench()
    await reserve('a', { pubkey: hex('p', 48) })
    expect(await verdictOf(bench(world).reserve('b', { pubkey: hex('p', 48), signer: 'signer-2' }))).toBe('stall AdoptionMismatch')
  })

  test('that a displaced transaction would pay waits until that nonce is final', async () => {
    const { reserve, gone, world } = bench()
    await reserve('a')
    gone.add('a')
    await reserve('b')
    expect(await verdictOf(reserve('c', { pubkey: hex('a', 48) }))).toBe('stall AdoptionMismatch')
    world.chain.mineForeign({ from: testAddress(0) })
    world.chain.mine(3)
    expect((await reserve('c', { pubkey: hex('a', 48) })).nonce).toBe(1)
  })

  test('whose resource is gone is left to its heir: the same transaction, whatever else is free', async () => {
    const { reserve, gone, world } = bench()
    await reserve('a')
    await reserve('b')
    gone.add('a').add('b')
    const [heir, other] = await Promise.all([reserve('c', { pubkey: hex('b', 48) }), reserve('d')])
    expect(heir).toMatchObject({ nonce: 1, origin: 'c', hash: hex('b@1', 32) })
    expect(other.nonce).toBe(0)
    expect(stored(world)).toEqual(['0 d', '1 c'])
  })

  test('is not changed under a transaction that was made for another', async () => {
    const { reserve } = bench()
    await reserve('a')
    expect(await verdictOf(reserve('a', { pubkey: hex('z', 48) }))).toBe('stall AdoptionMismatch')
  })
})

describe('a replacement', () => {
  test('keeps the nonce and remembers the hashes before', async () => {
    const { reserve, ledger, world } = bench()
    await reserve('a')
    await ledger.replace('signer-1', 'hoodi', originOf('a'), 'stake', version('second', 11n))
    const entry = await ledger.replace('signer-1', 'hoodi', originOf('a'), 'stake', version('third', 13n))
    expect(entry).toMatchObject({
      nonce: 0,
      hash: hex('third', 32),
      maxFeePerGasWei: '13',
      earlierHashes: [hex('a@0', 32), hex('second', 32)],
    })
    expect(world.ledger()?.inFlight).toEqual([entry])
    expect(await ledger.replace('signer-1', 'hoodi', originOf('a'), 'stake', version('third', 13n))).toEqual(entry)
    expect(world.signers.statusWrites('signer-1')).toBe(3)
  })

  test('of what the ledger does not have is refused', async () => {
    const { ledger } = bench()
    expect(await verdictOf(ledger.replace('signer-1', 'hoodi', originOf('a'), 'stake', version('x')))).toBe('retry WaitingForNonce')
  })

  test('fifty times stays within what the CRD takes', async () => {
    const { reserve, ledger, world } = bench()
    await reserve('a')
    for (let count = 0; count < 50; count++)
      await ledger.replace('signer-1', 'hoodi', originOf('a'), 'stake', version(`v${count}`, BigInt(11 + count)))
    expect(world.ledger()?.inFlight?.[0]?.earlierHashes).toHaveLength(32)
  })
})

describe('transactions that nobody accounts for', () => {
  test('stop everything of that signer, and of no other', async () => {
    const { reserve, world } = bench()
    world.chain.mineForeign({ from: testAddress(0) })
    expect(await Promise.all([verdictOf(reserve('a')), verdictOf(reserve('b'))])).toEqual([
      'stall UnaccountedTransactions',
      'stall UnaccountedTransactions',
    ])
    expect(await verdictOf(reserve('c', { signer: 'signer-2' }))).toBe('granted')
  })

  test('are not seen in a cache that lags behind the ledger', async () => {
    const world = makeWorld()
    const operator = world.start()
    operator.caches.signers.frozen = true
    const late = createSignerLedger({
      signers: operator.store,
      clock: world.clock,
      signal: new AbortController().signal,
      exists: () => true,
      isSettled: () => false,
    })
    const now = bench(world)
    await now.reserve('a')
    world.chain.mineForeign({ from: testAddress(0) })
    const granted = late.reserve({
      signer: 'signer-1',
      network: 'hoodi',
      chain: world.chain.chain,
      request: { origin: 'b', kind: 'EthereumStake', namespace: 'team-a', name: 'b', step: 'stake', pubkey: hex('b', 48) },
      valueWei: wei(1n),
      costWei: wei(1n),
      build: async () => version('b'),
    })
    expect((await granted).nonce).toBe(1)
  })
})

test('strike takes off the entry of that nonce only', async () => {
  const { reserve, ledger } = bench()
  await reserve('a')
  await ledger.strike('signer-1', 'hoodi', originOf('a'), 'stake', 9)
  expect(ledger.has('signer-1', 'hoodi', originOf('a'), 'stake')).toBe(true)
  await ledger.strike('signer-1', 'hoodi', originOf('a'), 'stake', 0)
  expect(ledger.has('signer-1', 'hoodi', originOf('a'), 'stake')).toBe(false)
})

test('whatever is asked at the same time, no nonce has two holders, no validator two nonces, and there is no gap', async () => {
  const ask = fc.record({
    origin: fc.integer({ min: 0, max: 7 }),
    does: fc.constantFrom('reserve', 'reserve', 'reserve', 'release', 'claim', 'replace', 'vanish'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(ask, { maxLength: 30 }), fc.integer({ min: 0, max: 3 }), async (asks, conflicts) => {
      const world = makeWorld()
      let left = conflicts
      const { reserve, ledger, gone } = bench(world, (point) => {
        if (point.startsWith('before signer write') && left-- > 0)
          world.signers.edit('signer-1', (signer) => ({ ...signer, status: { ...signer.status, address: `0x${left + 10}` } }))
      })
      await Promise.allSettled(
        asks.map(async ({ origin, does }, index) => {
          const name = `o${origin}`
          if (does === 'reserve') await reserve(name)
          if (does === 'release') ledger.release('signer-1', 'hoodi', originOf(name), 'stake')
          if (does === 'claim') await ledger.claim('signer-1', 'hoodi', originOf(name), 'stake')
          if (does === 'replace') await ledger.replace('signer-1', 'hoodi', originOf(name), 'stake', version(`r${index}`, 20n))
          if (does === 'vanish') gone.add(name)
        }),
      )
      const entries = world.ledger()?.inFlight ?? []
      expect(new Set(entries.map(({ nonce }) => nonce)).size).toBe(entries.length)
      expect(new Set(entries.map(({ pubkey }) => pubkey)).size).toBe(entries.length)
      expect(new Set(entries.map(({ origin }) => origin)).size).toBe(entries.length)
      expect(entries.map(({ nonce }) => nonce)).toEqual(Array.from({ length: world.ledger()?.nextNonce ?? 0 }, (_, nonce) => nonce))
    }),
    { numRuns: 60 },
  )
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { InFlight, Ledger } from '../../resources/staking-signer.ts'
import {
  boundWei,
  emptyLedger,
  entryOf,
  hashesOf,
  MAX_DISPLACED,
  type NonceCounts,
  type Owner,
  offers,
  originOf,
  payersOf,
  pruned,
  unaccounted,
  unsettled,
  withEntry,
} from './ledger.ts'

const pubkey = (of: string): string => `0x${Buffer.from(of).toString('hex').padEnd(96, '0').slice(0, 96)}`
const entry = (origin: string, nonce: number, more: Partial<InFlight> = {}): InFlight => ({
  origin,
  kind: 'EthereumStake',
  namespace: 'team-a',
  name: origin,
  step: 'stake',
  pubkey: pubkey(origin),
  nonce,
  valueWei: '32',
  gas: '10',
  maxFeePerGasWei: '3',
  maxPriorityFeePerGasWei: '1',
  hash: `0x${'0'.repeat(63)}1`,
  recordedAt: '2030-01-01T00:00:00Z',
  ...more,
})
const at = (final: number, latest = final, pending = latest): NonceCounts => ({ final, latest, pending })
const ledgerWith = (...entries: InFlight[]): Ledger => entries.reduce(withEntry, emptyLedger('hoodi'))
const take = (ledger: Ledger, counts: NonceCounts, count: number, released: readonly string[] = []) => {
  const next = offers(ledger, counts, ({ origin }) => released.includes(origin))
  return Array.from({ length: count }, () => next.next().value)
}
const nonces = (given: ReturnType<typeof take>) => given.map(({ nonce }) => nonce)

describe('the nonces to hand out', () => {
  test.each<{ given: string; ledger: Ledger; counts: NonceCounts; released?: string[]; expected: number[] }>([
    { given: 'nothing yet', ledger: emptyLedger('hoodi'), counts: at(0), expected: [0, 1, 2] },
    { given: 'a key with a past', ledger: emptyLedger('hoodi'), counts: at(7), expected: [7, 8, 9] },
    { given: 'one in flight', ledger: ledgerWith(entry('a', 0)), counts: at(0), expected: [1, 2, 3] },
    { given: 'one in the pool', ledger: ledgerWith(entry('a', 0)), counts: at(0, 0, 1), expected: [1, 2, 3] },
    { given: 'one given up', ledger: ledgerWith(entry('a', 0), entry('b', 1)), counts: at(0), released: ['a'], expected: [0, 2, 3] },
    { given: 'one held by nobody', ledger: { ...ledgerWith(entry('a', 0)), nextNonce: 3 }, counts: at(0), expected: [1, 2, 3] },
    { given: 'strangers in the pool of a shared key', ledger: emptyLedger('hoodi'), counts: at(0, 0, 2), expected: [2, 3, 4] },
    { given: 'one given up that was mined', ledger: ledgerWith(entry('a', 0)), counts: at(0, 1), released: ['a'], expected: [1, 2, 3] },
  ])('with $given: $expected', ({ ledger, counts, released, expected }) => {
    expect(nonces(take(ledger, counts, 3, released))).toEqual(expected)
  })

  test('an offer says whom it displaces, since that one may have been sent', () => {
    expect(take(ledgerWith(entry('a', 0)), at(0), 1, ['a'])[0]?.displaces?.origin).toBe('a')
  })

  test('a nonce is not given on for ever', () => {
    const full = entry('a', 0, { displacedPubkeys: Array.from({ length: MAX_DISPLACED }, (_, index) => pubkey(String(index))) })
    expect(nonces(take({ ...emptyLedger('hoodi'), nextNonce: 1, inFlight: [full] }, at(0), 1, ['a']))).toEqual([1])
  })
})

describe('an entry', () => {
  test('takes the place of the one before under its nonce, which is remembered by whom it would have paid', () => {
    const ledger = withEntry(withEntry(ledgerWith(entry('a', 0)), entry('b', 0)), entry('c', 0))
    expect(ledger.inFlight).toHaveLength(1)
    expect(payersOf(ledger, pubkey('a')).map(({ origin }) => origin)).toEqual(['c'])
    expect(payersOf(ledger, pubkey('b')).map(({ origin }) => origin)).toEqual(['c'])
    expect(payersOf(ledger, pubkey('c').toUpperCase().replace('0X', '0x')).map(({ origin }) => origin)).toEqual(['c'])
    expect(payersOf(ledger, pubkey('d'))).toEqual([])
  })

  test('in a new version of itself displaces nobody', () => {
    expect(
      withEntry(ledgerWith(entry('a', 0)), entry('a', 0, { hash: `0x${'0'.repeat(63)}2` })).inFlight?.[0]?.displacedPubkeys,
    ).toBeUndefined()
  })

  test('is found by origin, place and step, and knows all its hashes, the current one last', () => {
    const ledger = ledgerWith(entry('a', 0, { hash: '0x3', earlierHashes: ['0x1', '0x2'] }))
    expect(hashesOf(entryOf(ledger, originOf(entry('a', 0)), 'stake') as InFlight)).toEqual(['0x1', '0x2', '0x3'])
    expect(entryOf(ledger, originOf(entry('a', 0)), 'exit')).toBeUndefined()
    expect(entryOf(ledger, originOf(entry('a', 0, { namespace: 'team-b' })), 'stake')).toBeUndefined()
    expect(entryOf(undefined, originOf(entry('a', 0)), 'stake')).toBeUndefined()
  })

  test('goes when its nonce is used at finality, not before; the highest nonce given out stays', () => {
    const ledger = ledgerWith(entry('a', 0), entry('b', 1))
    expect(pruned(ledger, at(0, 2), () => true).inFlight).toHaveLength(2)
    expect(pruned(ledger, at(1), () => true).inFlight?.map(({ origin }) => origin)).toEqual(['b'])
    expect(pruned(ledger, at(2), () => true)).toEqual({ network: 'hoodi', nextNonce: 2, inFlight: [] })
  })

  test('of a request stays until its resource knows the outcome: no contract tells whether it was made', () => {
    const ledger = ledgerWith(entry('a', 0, { step: 'exit' }), entry('b', 1, { step: 'withdrawal' }), entry('c', 2))
    const isOpen = ({ origin }: Owner) => origin !== 'b'
    expect(pruned(ledger, at(3), isOpen).inFlight?.map(({ origin }) => origin)).toEqual(['a'])
  })

  test('of a request is no payer of its validator, and what took its nonce remembers whose it was', () => {
    const request = entry('a', 0, { step: 'exit' })
    const ledger = ledgerWith(request)
    expect(payersOf(ledger, request.pubkey ?? '')).toEqual([])
    const displaced = withEntry(ledger, entry('b', 0, { step: 'withdrawal' }))
    expect(displaced.displacedRequests).toMatchObject([{ origin: 'a', kind: 'EthereumStake', name: 'a', nonce: 0, hashes: [request.hash] }])
    expect(displaced.inFlight?.[0]?.displacedPubkeys).toBeUndefined()
    // A version of its own displaces nobody, and nothing of before is forgotten.
    expect(withEntry(displaced, entry('b', 0, { step: 'withdrawal', hash: '0x3' })).displacedRequests).toEqual(displaced.displacedRequests)
    expect(withEntry(displaced, request).displacedRequests?.map(({ origin }) => origin)).toEqual(['a', 'b'])
  })

  test('whose nonce was given to another stays known until its outcome is', () => {
    const ledger = withEntry(ledgerWith(entry('a', 0, { step: 'exit' })), entry('b', 0))
    const given = (counts: NonceCounts, isOpen: boolean) => pruned(ledger, counts, () => isOpen).displacedRequests?.length
    expect(given(at(0), false)).toBe(1)
    expect(given(at(1), true)).toBe(1)
    expect(given(at(1), false)).toBeUndefined()
  })

  test('of a request is not given on where too many were', () => {
    const taken = Array.from({ length: 128 }, (_, index) => entry(`gone-${index}`, index, { step: 'exit' }))
    const ledger = taken.map((one) => entry(`late-${one.nonce}`, one.nonce)).reduce(withEntry, ledgerWith(...taken))
    expect(nonces(take(ledger, at(0), 1, ['late-0']))).toEqual([128])
  })

  test('binds its value and its highest fee until it is mined', () => {
    const ledger = ledgerWith(entry('a', 0), entry('b', 1))
    expect(boundWei(ledger, at(0))).toBe(124n)
    expect(boundWei(ledger, at(0, 1))).toBe(62n)
  })
})

describe('transactions that nobody accounts for', () => {
  test.each<{ given: string; nextNonce: number; counts: NonceCounts; acknowledged?: number; first: number | undefined }>([
    { given: 'a new key', nextNonce: 0, counts: at(0), first: undefined },
    { given: 'only our own', nextNonce: 3, counts: at(1, 2, 3), first: undefined },
    { given: 'one mined that is not ours', nextNonce: 3, counts: at(4), first: 3 },
    { given: 'one in the pool that is not ours', nextNonce: 3, counts: at(3, 3, 4), first: 3 },
    { given: 'an empty ledger and a past', nextNonce: 0, counts: at(5), first: 0 },
    { given: 'a past that a person has looked at', nextNonce: 0, counts: at(5), acknowledged: 5, first: undefined },
    { given: 'one more since a person looked', nextNonce: 0, counts: at(6), acknowledged: 5, first: 5 },
  ])('$given', ({ nextNonce, counts, acknowledged, first }) => {
    expect(unaccounted({ network: 'hoodi', nextNonce }, counts, acknowledged)).toBe(first)
  })
})

describe('acknowledged transactions that may still land', () => {
  test.each([
    { given: 'nothing acknowledged', nextNonce: 0, acknowledged: undefined, counts: at(0, 1, 2), first: undefined },
    { given: 'all of them final', nextNonce: 0, acknowledged: 2, counts: at(2), first: undefined },
    { given: 'one in the pool', nextNonce: 0, acknowledged: 2, counts: at(1, 1, 2), first: 1 },
    { given: 'one mined and not final', nextNonce: 0, acknowledged: 2, counts: at(1, 2, 2), first: 1 },
    { given: 'one in the pool that the ledger knows', nextNonce: 2, acknowledged: 2, counts: at(1, 1, 2), first: undefined },
    { given: 'more acknowledged than there are', nextNonce: 0, acknowledged: 1_000, counts: at(2), first: undefined },
    { given: 'newer ones of the ledger in the pool', nextNonce: 4, acknowledged: 2, counts: at(2, 2, 4), first: undefined },
  ])('with $given: from $first', ({ nextNonce, acknowledged, counts, first }) => {
    expect(unsettled({ network: 'hoodi', nextNonce }, counts, acknowledged)).toBe(first)
  })
})

test('whatever happens, no nonce has two holders, none is skipped, and what is given up goes first', () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('reserve' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('release' as const), which: fc.nat() }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('mine' as const), count: fc.integer({ min: 1, max: 3 }) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('finalize' as const) }) },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let ledger = emptyLedger('hoodi')
      let latest = 0
      let final = 0
      let made = 0
      const released = new Set<string>()
      const paidBy = new Map<string, Set<number>>()
      for (const next of steps) {
        const live = (ledger.inFlight ?? []).filter(({ nonce }) => nonce >= latest)
        switch (next.do) {
          case 'reserve': {
            ledger = pruned(ledger, at(final, latest), () => true)
            const offer = offers(ledger, at(final, latest), ({ origin }) => released.has(origin)).next().value
            const free = live.filter(({ origin, displacedPubkeys = [] }) => released.has(origin) && displacedPubkeys.length < MAX_DISPLACED)
            const lowest = Math.min(...free.map(({ nonce }) => nonce), Math.max(ledger.nextNonce, latest))
            expect(offer.nonce).toBe(lowest)
            const origin = `origin-${made++}`
            ledger = withEntry(ledger, entry(origin, offer.nonce))
            paidBy.set(pubkey(origin), new Set([offer.nonce]))
            break
          }
          case 'release': {
            const victim = live[next.which % Math.max(live.length, 1)]
            if (victim) released.add(victim.origin)
            break
          }
          case 'mine':
            latest = Math.min(latest + next.count, ledger.nextNonce)
            break
          case 'finalize':
            final = latest
        }
        const held = (ledger.inFlight ?? []).map(({ nonce }) => nonce)
        expect(new Set(held).size).toBe(held.length)
        // Every nonce from the chain's count to the highest given out has a holder: no gap that others wait behind.
        for (let nonce = latest; nonce < ledger.nextNonce; nonce++) expect(held).toContain(nonce)
        // Whoever may still be paid is found.
        for (const [key, under] of paidBy) if ([...under].some((nonce) => nonce >= final)) expect(payersOf(ledger, key)).not.toEqual([])
        for (const { displacedPubkeys = [] } of ledger.inFlight ?? []) expect(displacedPubkeys.length).toBeLessThanOrEqual(MAX_DISPLACED)
      }
    }),
    { numRuns: 300 },
  )
})

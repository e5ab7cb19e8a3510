import { describe, expect, test } from 'vitest'
import { type StakingSigner, stakingSigner, stakingSignerConditions } from '../../../resources/staking-signer.ts'
import type { Funds } from './funding.ts'
import { type SignerFacts, stakingSignerStatus } from './status.ts'

const address = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const signer = (status: object = {}): StakingSigner =>
  ({
    kind: 'StakingSigner',
    metadata: { name: 'main', uid: 'u', resourceVersion: '1', generation: 2 },
    spec: { chain: 'Ethereum', keyName: 'k', address },
    status,
  }) as unknown as StakingSigner
const now = new Date('2030-01-01T00:00:00Z')
const ETH = 10n ** 18n
const funds = (eth: bigint, change: Partial<Funds> = {}): Funds => ({ balance: eth * ETH, needed: 0n, at: now, isStale: false, ...change })
const facts = (change: Partial<SignerFacts> = {}): SignerFacts => ({
  key: { address },
  matches: true,
  duplicateOf: undefined,
  unreadable: undefined,
  networks: [{ name: 'hoodi', funds: funds(64n) }],
  need: { controls: new Map(), awaits: new Set(), hasUsers: false },
  isInFlight: false,
  ...change,
})

test.each<{ given: string; facts: SignerFacts; expected: Record<string, string> }>([
  {
    given: 'all well',
    facts: facts(),
    expected: { Ready: 'True Succeeded', Stalled: 'False Settled', KeyValid: 'True Succeeded', Funded: 'True Succeeded' },
  },
  {
    given: 'no key',
    facts: facts({ key: { reason: 'KeyMissing', message: 'mount it' }, matches: false }),
    expected: { Ready: 'False KeyMissing', Stalled: 'True KeyMissing', KeyValid: 'False KeyMissing' },
  },
  {
    given: 'the key of another address',
    facts: facts({ key: { address: `0x${'1'.repeat(40)}` }, matches: false }),
    expected: { Ready: 'False KeyAddressMismatch', KeyValid: 'False KeyAddressMismatch' },
  },
  {
    given: 'a twin',
    facts: facts({ duplicateOf: 'older' }),
    expected: { Ready: 'False DuplicateSigner', Stalled: 'True DuplicateSigner' },
  },
  {
    given: 'a policy that cannot be read',
    facts: facts({ unreadable: 'policy.maxPerTransaction' }),
    expected: { Ready: 'False PolicyUnreadable' },
  },
  {
    given: 'transactions that nobody accounts for',
    facts: facts({ networks: [{ name: 'hoodi', funds: funds(64n), unaccounted: { first: 2, count: 5 } }] }),
    expected: { Ready: 'False UnaccountedTransactions' },
  },
  {
    given: 'no funds: no reason not to be ready',
    facts: facts({ networks: [{ name: 'hoodi', funds: funds(0n) }] }),
    expected: { Ready: 'True Succeeded', Funded: 'False InsufficientFunds' },
  },
  {
    given: 'a chain that did not answer',
    facts: facts({ networks: [{ name: 'hoodi' }] }),
    expected: { Ready: 'True Succeeded', Funded: 'Unknown Pending' },
  },
  {
    given: 'less than what waits',
    facts: facts({ networks: [{ name: 'hoodi', funds: funds(1n, { needed: 32n * ETH }) }] }),
    expected: {
      Ready: 'False InsufficientFunds',
      Reconciling: 'True InsufficientFunds',
      Stalled: 'False InProgress',
      Funded: 'False InsufficientFunds',
    },
  },
  {
    given: 'less than what waits on one of its networks',
    facts: facts({
      networks: [
        { name: 'mainnet', funds: funds(64n) },
        { name: 'hoodi', funds: funds(0n, { needed: 1n }) },
      ],
    }),
    expected: { Ready: 'False InsufficientFunds', Funded: 'False InsufficientFunds' },
  },
  {
    given: 'just what waits',
    facts: facts({ networks: [{ name: 'hoodi', funds: funds(32n, { needed: 32n * ETH }) }] }),
    expected: { Ready: 'True Succeeded', Funded: 'True Succeeded' },
  },
  {
    given: 'a balance that cannot be read any more',
    facts: facts({ networks: [{ name: 'hoodi', funds: funds(64n, { isStale: true }) }] }),
    expected: { Ready: 'True Succeeded', Funded: 'Unknown ChainUnavailable' },
  },
  {
    given: 'a network that it never was funded on',
    facts: facts({
      networks: [
        { name: 'mainnet', funds: funds(64n) },
        { name: 'hoodi', funds: funds(0n) },
      ],
    }),
    expected: { Ready: 'True Succeeded', Funded: 'True Succeeded' },
  },
  {
    given: 'a remote signer that is away',
    facts: facts({ key: { reason: 'SignerUnavailable', message: 'It is away.', passes: true }, matches: false }),
    expected: {
      KeyValid: 'Unknown SignerUnavailable',
      Ready: 'False SignerUnavailable',
      Reconciling: 'True SignerUnavailable',
      Stalled: 'False InProgress',
    },
  },
  {
    given: 'a network that is not configured any more',
    facts: facts({
      networks: [
        { name: 'hoodi', funds: funds(64n) },
        { name: 'chain-5', isElsewhere: true, lane: { network: 'chain-5', open: 1, waiting: 0 } },
      ],
    }),
    expected: { Funded: 'True Succeeded' },
  },
])('with $given, it says so', ({ facts: found, expected }) => {
  const said = stakingSignerStatus(signer(), found, now)
  expect(Object.fromEntries((said.conditions ?? []).map(({ type, status, reason }) => [type, `${status} ${reason}`]))).toMatchObject(
    expected,
  )
  expect(said.conditions?.map(({ type }) => type)).toEqual([...stakingSignerConditions])
  expect(stakingSigner.status.safeParse(JSON.parse(JSON.stringify(said))).success).toBe(true)
})

test('one that is suspended says so: nothing is wrong with it', () => {
  const one = signer()
  const said = stakingSignerStatus({ ...one, spec: { ...one.spec, suspend: true } }, facts(), now)
  expect(Object.fromEntries((said.conditions ?? []).map(({ type, status, reason }) => [type, `${status} ${reason}`]))).toMatchObject({
    Ready: 'False SignerSuspended',
    Reconciling: 'False SignerSuspended',
    Stalled: 'False InProgress',
    Funded: 'True Succeeded',
  })
})

test('the ledger is left as it is, and the same facts change nothing', () => {
  const ledgers = [{ network: 'hoodi', nextNonce: 4 }]
  const said = stakingSignerStatus(signer({ ledgers }), facts(), now)
  expect(said.ledgers).toEqual(ledgers)
  expect(stakingSignerStatus(signer(said), facts(), new Date('2031-01-01T00:00:00Z'))).toEqual(said)
})

test('the number to acknowledge is named', () => {
  const said = stakingSignerStatus(
    signer(),
    facts({ networks: [{ name: 'hoodi', funds: funds(64n), unaccounted: { first: 2, count: 5 } }] }),
    now,
  )
  expect(said.conditions?.find(({ type }) => type === 'Ready')?.message).toContain('spec.acknowledgedNonce: 5')
})

describe('its balance', () => {
  const said = (given: Funds, status: object = {}, spec: object = {}) => {
    const one = signer(status)
    return stakingSignerStatus({ ...one, spec: { ...one.spec, ...spec } }, facts({ networks: [{ name: 'hoodi', funds: given }] }), now)
  }
  const later = (minutes: number) => new Date(now.getTime() + minutes * 60_000)

  test('stands in status in ETH, with the time of its reading, which alone is written once an hour', () => {
    const first = said(funds(64n))
    expect(first).toMatchObject({ balance: '64 ETH on hoodi', balanceReadAt: '2030-01-01T00:00:00Z' })
    expect(said(funds(64n, { at: later(59) }), first)).toEqual(first)
    expect(said(funds(64n, { at: later(60) }), first).balanceReadAt).toBe('2030-01-01T01:00:00Z')
    expect(said(funds(63n, { at: later(1) }), first)).toMatchObject({ balance: '63 ETH on hoodi', balanceReadAt: '2030-01-01T00:01:00Z' })
  })

  test.each([
    { eth: 1n, minimumBalance: '1', funded: 'True' },
    { eth: 1n, minimumBalance: '1.000000001', funded: 'False' },
    { eth: 0n, minimumBalance: '0.5', funded: 'False' },
  ])('of $eth ETH with a minimum of $minimumBalance: Funded is $funded, and it can be used', ({ eth, minimumBalance, funded }) => {
    const { conditions } = said(funds(eth), {}, { minimumBalance })
    const of = (type: string) => conditions?.find((one) => one.type === type)
    expect(of('Funded')).toMatchObject({ status: funded, reason: funded === 'True' ? 'Succeeded' : 'BalanceLow' })
    expect(of('Ready')?.status).toBe('True')
  })

  test('what is missing is named, in ETH', () => {
    const { conditions } = said(funds(1n, { balance: ETH / 10n, needed: 32n * ETH }))
    expect(conditions?.find(({ type }) => type === 'Funded')?.message).toBe(
      `It has 0.1 ETH on hoodi, and 32 ETH wait to be paid from it, fees and all. Fund ${address} with 31.9 ETH or more; it goes on by itself.`,
    )
  })
})

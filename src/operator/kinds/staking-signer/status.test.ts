import { expect, test } from 'vitest'
import { type StakingSigner, stakingSigner, stakingSignerConditions } from '../../../resources/staking-signer.ts'
import { type SignerFacts, stakingSignerStatus } from './status.ts'

const address = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const signer = (status: object = {}): StakingSigner =>
  ({
    kind: 'StakingSigner',
    metadata: { name: 'main', uid: 'u', resourceVersion: '1', generation: 2 },
    spec: { chain: 'Ethereum', keyName: 'k', address },
    status,
  }) as unknown as StakingSigner
const facts = (change: Partial<SignerFacts> = {}): SignerFacts => ({
  key: { address },
  matches: true,
  duplicateOf: undefined,
  unreadable: undefined,
  networks: [{ name: 'hoodi', hasFunds: true }],
  ...change,
})
const now = new Date('2030-01-01T00:00:00Z')

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
    facts: facts({ networks: [{ name: 'hoodi', hasFunds: true, unaccounted: { first: 2, count: 5 } }] }),
    expected: { Ready: 'False UnaccountedTransactions' },
  },
  {
    given: 'no funds: no reason not to be ready',
    facts: facts({ networks: [{ name: 'hoodi', hasFunds: false }] }),
    expected: { Ready: 'True Succeeded', Funded: 'False InsufficientFunds' },
  },
  {
    given: 'a chain that did not answer',
    facts: facts({ networks: [{ name: 'hoodi', hasFunds: undefined }] }),
    expected: { Ready: 'True Succeeded', Funded: 'Unknown Pending' },
  },
])('with $given, it says so', ({ facts: found, expected }) => {
  const said = stakingSignerStatus(signer(), found, now)
  expect(Object.fromEntries((said.conditions ?? []).map(({ type, status, reason }) => [type, `${status} ${reason}`]))).toMatchObject(
    expected,
  )
  expect(said.conditions?.map(({ type }) => type)).toEqual([...stakingSignerConditions])
  expect(stakingSigner.status.safeParse(JSON.parse(JSON.stringify(said))).success).toBe(true)
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
    facts({ networks: [{ name: 'hoodi', hasFunds: true, unaccounted: { first: 2, count: 5 } }] }),
    now,
  )
  expect(said.conditions?.find(({ type }) => type === 'Ready')?.message).toContain('spec.acknowledgedNonce: 5')
})

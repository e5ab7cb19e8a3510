import { expect, test } from 'vitest'
import { canonicalPlan, type Plan, planHash, planSchema, readPlan, withHash } from './plan.ts'

const plan: Plan = {
  resource: { kind: 'EthereumStake', namespace: 'team-a', name: 'validator-1', uid: '7a1b0e0c-0000-4000-8000-000000000001' },
  purpose: 'Deposit',
  network: 'hoodi',
  chainId: 560048,
  signer: 'treasury',
  from: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
  subject: `0x${'ab'.repeat(48)}`,
  amount: '32000000000',
  to: '0x00000000219ab540356cBB839Cbe05303d7705Fa',
  valueWei: '32000000000000000000',
  dataHash: `0x${'cd'.repeat(32)}`,
  withdrawalAddress: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  credentialsType: 'Compounding',
  maxFeePerGasWei: '100000000000',
}

test('the hash of a plan is that of another implementation of the same encoding', () => {
  expect(canonicalPlan(plan)).toBe(
    `staking.dev/plan/v1\n{"amount":"32000000000","chainId":"560048","credentialsType":"Compounding","dataHash":"0x${'cd'.repeat(32)}","from":"0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266","maxFeePerGasWei":"100000000000","network":"hoodi","purpose":"Deposit","resource":{"kind":"EthereumStake","name":"validator-1","namespace":"team-a","uid":"7a1b0e0c-0000-4000-8000-000000000001"},"signer":"treasury","subject":"0x${'ab'.repeat(48)}","to":"0x00000000219ab540356cbb839cbe05303d7705fa","valueWei":"32000000000000000000","withdrawalAddress":"0x70997970c51812dc3a010c7d01b50e0d17dc79c8"}`,
  )
  // Python: hashlib.sha256(('staking.dev/plan/v1\n' + json.dumps(plan, sort_keys=True, separators=(',', ':'))).encode()).hexdigest()
  expect(planHash(plan)).toBe('d517400615ff86086276670b8f9c850ec41468d2de00b882fe729459a5609387')
})

test('each fact of a plan is in its hash', () => {
  const { resource } = plan
  const others: Partial<Plan>[] = [
    { resource: { ...resource, kind: 'ValidatorExit' } },
    { resource: { ...resource, namespace: 'team-b' } },
    { resource: { ...resource, name: 'validator-2' } },
    { resource: { ...resource, uid: '7a1b0e0c-0000-4000-8000-000000000002' } },
    { purpose: 'Exit' },
    { network: 'mainnet' },
    { chainId: 1 },
    { genesisHash: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d' },
    { signer: 'other' },
    { from: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' },
    { withdrawSigner: 'cold' },
    { withdrawAuthority: '4Nd1mYQm7iBDRBJYb3kWqyvMgRf7uZsHEq2VjnpnRHsH' },
    { newStakeAuthority: '4Nd1mYQm7iBDRBJYb3kWqyvMgRf7uZsHEq2VjnpnRHsH' },
    { newWithdrawAuthority: '4Nd1mYQm7iBDRBJYb3kWqyvMgRf7uZsHEq2VjnpnRHsH' },
    { subject: `0x${'ac'.repeat(48)}` },
    { amount: '33000000000' },
    { amount: undefined },
    { to: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' },
    { valueWei: '33000000000000000000' },
    { dataHash: `0x${'ce'.repeat(32)}` },
    { withdrawalAddress: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266' },
    { credentialsType: 'Execution' },
    { voteAccount: '4Nd1mYQm7iBDRBJYb3kWqyvMgRf7uZsHEq2VjnpnRHsH' },
    { destination: '4Nd1mYQm7iBDRBJYb3kWqyvMgRf7uZsHEq2VjnpnRHsH' },
    { maxFeePerGasWei: '100000000001' },
    { maxRequestFeeWei: '100000000000' },
    { maxPriorityFeeLamports: '100000000000' },
  ]
  const keys = Object.keys((planSchema as unknown as { shape: object }).shape)
  expect(new Set(others.flatMap((one) => Object.keys(one)))).toEqual(new Set(keys))
  const hashes = [plan, ...others.map((one) => ({ ...plan, ...one }))].map(planHash)
  expect(new Set(hashes).size).toBe(others.length + 1)
})

test('neither the order of fields, the case of hex nor what is left out makes another plan', () => {
  const turned = Object.fromEntries(Object.entries(plan).toReversed()) as Plan
  expect(planHash(turned)).toBe(planHash(plan))
  expect(planHash({ ...plan, from: plan.from.toLowerCase(), voteAccount: undefined })).toBe(planHash(plan))
  // Base58 has no second spelling.
  const vote = '4Nd1mYQm7iBDRBJYb3kWqyvMgRf7uZsHEq2VjnpnRHsH'
  expect(planHash({ ...plan, voteAccount: vote })).not.toBe(planHash({ ...plan, voteAccount: vote.toLowerCase().replaceAll('l', 'm') }))
})

test('what is shown is believed only where its hash is that of its fields', () => {
  const shown = withHash(plan)
  expect(readPlan(shown)).toEqual(shown)
  expect(readPlan({ ...shown, amount: '1000000000' })).toBeUndefined()
  expect(readPlan({ ...shown, hash: planHash({ ...plan, amount: '1000000000' }) })).toBeUndefined()
  expect(readPlan({ ...shown, note: 'harmless' })).toBeUndefined()
  expect(readPlan({ ...shown, amount: 32_000_000_000 })).toBeUndefined()
  expect(readPlan(undefined)).toBeUndefined()
  expect(withHash(shown)).toEqual(shown)
})

test('a text can not be taken for another field', () => {
  const odd = { ...plan, subject: `x","to":"${plan.to}` }
  expect(canonicalPlan(odd)).toContain('\\"to\\"')
  expect(planHash(odd)).not.toBe(planHash({ ...plan, subject: 'x' }))
})

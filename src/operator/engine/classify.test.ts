import { describe, expect, test } from 'vitest'
import { ChainError, type ChainErrorCode } from '../../chains/ethereum/chain.ts'
import { NotSwitchedOnError } from '../../chains/ethereum/requests.ts'
import { SolanaError, type SolanaErrorCode } from '../../chains/solana/chain.ts'
import { StakingApiError, type StakingApiErrorFields } from '../../contract/client-error.ts'
import { type ProblemCode, problemCodes, problems } from '../../contract/problems.ts'
import { KubeError, KubeTransportError } from '../kube/errors.ts'
import { KeyError, type KeyErrorCode } from '../ports.ts'
import { classify } from './classify.ts'
import { conflict, stall } from './verdict.ts'

const api = (fields: Partial<StakingApiErrorFields>) =>
  new StakingApiError('SECRET', { kind: 'problem', outcomeUnknown: false, ...fields } as StakingApiErrorFields)
const each = 'node 1 of x does one thing; node 2 of x does another'
const of = (error: unknown): string => {
  const verdict = classify(error)
  return verdict.kind === 'conflict' ? 'conflict' : `${verdict.kind} ${verdict.reason}`
}

describe('what the staking API answers', () => {
  const expected: Record<ProblemCode, string> = {
    'invalid-request': 'stall RequestRefused',
    'idempotency-key-missing': 'stall RequestRefused',
    'idempotency-key-invalid': 'stall RequestRefused',
    unauthenticated: 'stall Unauthorized',
    forbidden: 'stall Unauthorized',
    'not-found': 'stall RequestRefused',
    'method-not-allowed': 'stall RequestRefused',
    'idempotency-key-reused': 'stall RequestRefused',
    'idempotency-key-in-progress': 'wait ServiceUnavailable',
    'reference-exists': 'stall AlreadyStaked',
    'invalid-state': 'stall RequestRefused',
    'already-submitted': 'stall RequestRefused',
    'challenge-expired': 'stall RequestRefused',
    'payload-too-large': 'stall RequestRefused',
    'unsupported-media-type': 'stall RequestRefused',
    'validation-failed': 'stall RequestRefused',
    'request-timeout': 'retry ServiceUnavailable',
    'headers-too-large': 'stall RequestRefused',
    'service-unavailable': 'wait ServiceUnavailable',
    'rate-limited': 'wait ServiceUnavailable',
    'internal-error': 'retry ServiceUnavailable',
    'chain-unavailable': 'wait ServiceUnavailable',
    'transaction-not-visible': 'wait ServiceUnavailable',
  }
  test.each(problemCodes.map((code) => ({ code, verdict: expected[code] })))('$code: $verdict', ({ code, verdict }) => {
    expect(of(api({ code, status: problems[code].status }))).toBe(verdict)
  })

  test.each<{ answer: string; fields: Partial<StakingApiErrorFields>; verdict: string }>([
    { answer: 'a time-out', fields: { kind: 'timeout' }, verdict: 'retry ServiceUnavailable' },
    { answer: 'no answer', fields: { kind: 'network' }, verdict: 'retry ServiceUnavailable' },
    { answer: 'HTML', fields: { kind: 'invalid-response', status: 200 }, verdict: 'retry ServiceUnavailable' },
    { answer: '401 by a proxy', fields: { status: 401 }, verdict: 'stall Unauthorized' },
    { answer: '403 by a proxy', fields: { status: 403 }, verdict: 'stall Unauthorized' },
    { answer: '404 by a proxy', fields: { status: 404 }, verdict: 'stall RequestRefused' },
    { answer: '408', fields: { status: 408 }, verdict: 'retry ServiceUnavailable' },
    { answer: '429 with Retry-After', fields: { status: 429, retryAfterMs: 9_000 }, verdict: 'wait ServiceUnavailable' },
    { answer: '502', fields: { status: 502 }, verdict: 'retry ServiceUnavailable' },
    { answer: '503 with Retry-After', fields: { status: 503, retryAfterMs: 9_000 }, verdict: 'wait ServiceUnavailable' },
    { answer: 'nothing, since no key could be sent', fields: { code: 'unauthenticated' }, verdict: 'stall Unauthorized' },
  ])('$answer: $verdict', ({ fields, verdict }) => {
    expect(of(api(fields))).toBe(verdict)
  })

  test('Retry-After is honoured to the millisecond', () => {
    expect(classify(api({ code: 'rate-limited', status: 429, retryAfterMs: 31_000 }))).toMatchObject({ afterMs: 31_000 })
  })
  test('a stake that is there already is named, so that it can be adopted', () => {
    expect(classify(api({ code: 'reference-exists', status: 409, existingId: 'abc123' }))).toMatchObject({
      message: expect.stringContaining('spec.adopt.stakeId to abc123'),
    })
  })
  test('a rule that failed is named, and cleaned of what is no rule', () => {
    expect(classify(api({ code: 'validation-failed', status: 422, rules: ['amount-too-small', '<script>SECRET'] }))).toMatchObject({
      message: expect.stringContaining('the rule amount-too-small; the rule script.'),
    })
  })
})

describe('what the node says', () => {
  const expected: Record<ChainErrorCode, string> = {
    'already-known': 'retry ChainUnavailable',
    'nonce-too-low': 'retry ChainUnavailable',
    'replacement-underpriced': 'wait FeeTooHigh',
    underpriced: 'wait FeeTooHigh',
    'insufficient-funds': 'wait InsufficientFunds',
    reverted: 'stall RequestRefused',
    'wrong-chain': 'stall WrongChain',
    unavailable: 'retry ChainUnavailable',
    'history-syncing': 'wait HistorySyncing',
    'access-denied': 'stall NodeAccessDenied',
    rejected: 'retry ChainUnavailable',
  }
  test.each(Object.entries(expected))('%s: %s', (code, verdict) => {
    expect(of(new ChainError(code as ChainErrorCode, 'x'))).toBe(verdict)
  })
  test('asked to wait, it waits', () => {
    expect(classify(new ChainError('unavailable', 'x', 7_000))).toMatchObject({ kind: 'wait', afterMs: 7_000 })
    expect(classify(new ChainError('history-syncing', 'x', 7_000))).toMatchObject({ kind: 'wait', afterMs: 7_000 })
  })
})

test.each([
  { of: 'Ethereum', error: new ChainError('rejected', 'the node does not serve eth_call', undefined, true) },
  { of: 'Solana', error: new SolanaError('rejected', 'the node does not serve eth_call', { isLasting: true }) },
])('what every node of $of would refuse again stalls, by the name of the method, and is asked again each minute', ({ error }) => {
  expect(classify(error)).toMatchObject({
    kind: 'stall',
    reason: 'MethodNotServed',
    message: expect.stringMatching(/does not serve eth_call.*add the RPC URL/),
    recheckAfterMs: 60_000,
  })
})

describe.each([
  { of: 'Ethereum', failed: (code: 'access-denied' | 'unavailable', afterMs?: number) => new ChainError(code, each, afterMs, false, true) },
  {
    of: 'Solana',
    failed: (code: 'access-denied' | 'unavailable', retryAfterMs?: number) => new SolanaError(code, each, { retryAfterMs, isOfEach: true }),
  },
])('where the nodes of $of fail each in its own way', ({ failed }) => {
  test('and one refuses us, that is the reason, the message tells each, and they are asked again when the other may answer', () => {
    expect(classify(failed('access-denied', 10_000))).toMatchObject({
      kind: 'stall',
      reason: 'NodeAccessDenied',
      message: expect.stringContaining(each),
      recheckAfterMs: 10_000,
    })
    expect(classify(failed('access-denied'))).toMatchObject({ recheckAfterMs: 60_000 })
  })
  test('and nobody has to act, the message tells each', () => {
    expect(classify(failed('unavailable'))).toMatchObject({
      kind: 'retry',
      reason: 'ChainUnavailable',
      message: expect.stringContaining(each),
    })
  })
})
test('where one Solana node keeps no history and another fails otherwise, the message tells each', () => {
  expect(classify(new SolanaError('no-history', each, { isOfEach: true }))).toMatchObject({
    reason: 'HistoryMissing',
    message: expect.stringContaining(each),
  })
  expect(classify(new SolanaError('node-behind', each, { isOfEach: true }))).toMatchObject({ message: expect.stringContaining(each) })
})

describe('what a Solana node, or a simulation, says', () => {
  const expected: Record<SolanaErrorCode, string> = {
    'blockhash-not-found': 'wait ChainUnavailable',
    'already-processed': 'wait AwaitingFinality',
    'insufficient-funds': 'wait InsufficientFunds',
    'account-in-use': 'wait AwaitingFinality',
    'epoch-rewards': 'wait EpochRewards',
    'lockup-in-force': 'stall LockupInForce',
    'already-deactivated': 'wait AwaitingFinality',
    'too-soon-to-redelegate': 'wait AwaitingFinality',
    'insufficient-delegation': 'stall RequestRefused',
    'wrong-authority': 'stall AuthorityChanged',
    'signature-failure': 'stall RequestRefused',
    busy: 'wait AwaitingFinality',
    failed: 'stall RequestRefused',
    'node-behind': 'wait ChainUnavailable',
    'no-history': 'stall HistoryMissing',
    unreadable: 'stall VerificationFailed',
    unavailable: 'retry ChainUnavailable',
    'wrong-cluster': 'stall WrongChain',
    'access-denied': 'stall NodeAccessDenied',
    rejected: 'retry ChainUnavailable',
  }
  test.each(Object.entries(expected))('%s: %s', (code, verdict) => {
    expect(of(new SolanaError(code as SolanaErrorCode, 'x'))).toBe(verdict)
  })
  test('asked to wait, it waits', () => {
    expect(classify(new SolanaError('unavailable', 'x', { retryAfterMs: 7_000 }))).toMatchObject({ kind: 'wait', afterMs: 7_000 })
    expect(classify(new SolanaError('node-behind', 'x', { retryAfterMs: 7_000 }))).toMatchObject({ kind: 'wait', afterMs: 7_000 })
  })
})

test.each<[KeyErrorCode, string]>([
  ['missing', 'stall KeyMissing'],
  ['malformed', 'stall KeyMalformed'],
  ['wrong-password', 'stall KeyMalformed'],
  ['address-mismatch', 'stall KeyAddressMismatch'],
  ['unavailable', 'wait SignerUnavailable'],
  ['refused', 'stall SignerRefused'],
  ['misbehaves', 'stall SignerMisbehaves'],
])('a key file, or a remote signer, that is %s: %s', (code, verdict) => {
  expect(of(new KeyError(code, 'the file'))).toBe(verdict)
})

test('a remote signer that asks to wait is asked after that', () => {
  expect(classify(new KeyError('unavailable', 'x', { retryAfterMs: 7_000 }))).toMatchObject({ kind: 'wait', afterMs: 7_000 })
})

test.each<[string, unknown, string]>([
  ['409', new KubeError(409, 'Conflict', 'x'), 'conflict'],
  ['500', new KubeError(500, 'InternalError', 'x'), 'retry Retrying'],
  ['403', new KubeError(403, 'Forbidden', 'x'), 'retry Retrying'],
  ['nothing', new KubeTransportError('TIMEOUT', 'x'), 'retry Retrying'],
])('the API server answers %s: %s', (_name, error, verdict) => {
  expect(of(error)).toBe(verdict)
})

test('a verdict is itself', () => {
  expect(of(stall('InvalidSpec', 'x'))).toBe('stall InvalidSpec')
  expect(of(conflict())).toBe('conflict')
})

test('a bug is no failure that is handled: it comes through', () => {
  expect(() => classify(new TypeError('bug'))).toThrow('bug')
})

test('nothing that the other side wrote is in a message', () => {
  for (const error of [
    api({ kind: 'timeout' }),
    api({ status: 500 }),
    api({ status: 401 }),
    api({ status: 418 }),
    new KubeError(500, 'x', 'SECRET'),
  ]) {
    const verdict = classify(error)
    expect(verdict.kind === 'conflict' ? '' : verdict.message).not.toContain('SECRET')
  }
})

test('a contract that is not switched on yet is waited for, in words', () => {
  expect(classify(new NotSwitchedOnError(7n))).toMatchObject({
    kind: 'wait',
    afterMs: 60_000,
    message: expect.stringMatching(
      /^The EIP-7002 contract is not switched on at block 7: requests are possible from .* It goes on by itself then\.$/,
    ),
  })
})

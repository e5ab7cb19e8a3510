import { describe, expect, test } from 'vitest'
import { decideLanding, type LandingFacts, type SignatureStatus } from './expiry.ts'

const status = (commitment: SignatureStatus['commitment'], more: Partial<SignatureStatus> = {}): SignatureStatus => ({
  slot: 5n,
  commitment,
  ...more,
})
const facts = (finalizedBlockHeight: bigint, statuses: LandingFacts['statuses'], historySince?: bigint): LandingFacts => ({
  finalizedBlockHeight,
  statuses,
  ...(historySince === undefined ? {} : { historySince }),
})

describe('a transaction that is valid up to height 100', () => {
  test.each<{ name: string; facts: readonly (LandingFacts | undefined)[]; preparedAtSlot?: bigint; expected: object }>([
    { name: 'may land while nobody answers', facts: [], expected: { kind: 'may-land', blocksLeft: 101n } },
    { name: 'may land at 99', facts: [facts(99n, [undefined])], expected: { kind: 'may-land', blocksLeft: 2n } },
    { name: 'may land at 100', facts: [facts(100n, [undefined])], expected: { kind: 'may-land', blocksLeft: 1n } },
    { name: 'has expired at 101, final', facts: [facts(101n, [undefined])], expected: { kind: 'expired' } },
    {
      name: 'has landed, whatever the height',
      facts: [facts(500n, [status('finalized')])],
      expected: { kind: 'landed', index: 0, final: true },
    },
    {
      name: 'has landed, not yet for good',
      facts: [facts(50n, [status('confirmed')])],
      expected: { kind: 'landed', final: false },
    },
    {
      name: 'is not expired while a block that is not final holds it',
      facts: [facts(101n, [status('processed')])],
      expected: { kind: 'landed', final: false },
    },
    {
      name: 'has landed under its second signature',
      facts: [facts(101n, [undefined, status('finalized')])],
      expected: { kind: 'landed', index: 1, final: true },
    },
    {
      name: 'has landed when one node of two has it',
      facts: [facts(300n, [undefined]), facts(90n, [status('finalized')])],
      expected: { kind: 'landed', final: true },
    },
    {
      name: 'has landed for good when one node of two says so',
      facts: [facts(300n, [status('processed')]), facts(90n, [status('finalized')])],
      expected: { kind: 'landed', final: true },
    },
    {
      name: 'has landed and failed',
      facts: [facts(101n, [status('finalized', { failure: { name: 'Custom', custom: 0, instruction: 1 } })])],
      expected: { kind: 'landed', status: { failure: { custom: 0 } } },
    },
    {
      name: 'is unknown to a node whose history begins later',
      facts: [facts(101n, [undefined], 51n)],
      preparedAtSlot: 50n,
      expected: { kind: 'unknown' },
    },
    {
      name: 'has expired when a node with enough history says so',
      facts: [facts(200n, [undefined], 51n), facts(101n, [undefined], 50n)],
      preparedAtSlot: 50n,
      expected: { kind: 'expired' },
    },
    {
      name: 'may land while one of two nodes is not beyond it',
      facts: [facts(200n, [undefined]), facts(100n, [undefined])],
      expected: { kind: 'may-land' },
    },
    { name: 'may land while one of two nodes is silent', facts: [facts(200n, [undefined]), undefined], expected: { kind: 'may-land' } },
    {
      name: 'has landed when the only node that answers has it',
      facts: [undefined, facts(90n, [status('finalized')])],
      expected: { kind: 'landed', final: true },
    },
    {
      name: 'is unknown when the node with enough history lags',
      facts: [facts(200n, [undefined], 51n), facts(100n, [undefined], 0n)],
      preparedAtSlot: 50n,
      expected: { kind: 'unknown' },
    },
  ])('$name', ({ facts: given, preparedAtSlot, expected }) => {
    expect(decideLanding({ lastValidBlockHeight: 100n, facts: given, preparedAtSlot })).toMatchObject(expected)
  })
})

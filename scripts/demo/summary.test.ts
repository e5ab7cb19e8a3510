import { describe, expect, test } from 'vitest'
import { signDepositMessage, withdrawalCredentials } from '../../src/chains/ethereum/deposit.ts'
import { parseEth } from '../../src/lib/amounts.ts'
import type { EthereumStake } from '../../src/resources/ethereum-stake.ts'
import type { SeenDeposit } from '../../test/chains/deposit-contract.ts'
import { summarise } from './summary.ts'

const address = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const secretKey = new Uint8Array(32).fill(7)
const txHash = `0x${'ab'.repeat(32)}` as const

const deposit: SeenDeposit = {
  ...signDepositMessage(secretKey, {
    withdrawalCredentials: withdrawalCredentials('0x02', address),
    amountGwei: parseEth('32'),
    genesisForkVersion: '0x10000038',
  }),
  index: 0,
  txHash,
  blockNumber: 5,
}

const condition = (type: string, status: string) => ({
  type,
  status,
  reason: 'Some',
  message: 'As it is.',
  lastTransitionTime: '2026-01-01T00:00:00Z',
  observedGeneration: 1,
})

const listed = (name: string, namespace: string, status: object): EthereumStake =>
  ({
    metadata: { name, namespace },
    spec: { amountEth: '32', withdrawalAddress: address, credentialsType: 'Compounding' },
    status,
  }) as unknown as EthereumStake

const ready = listed('validator-1', 'team-a', {
  depositData: { pubkey: deposit.pubkey },
  transaction: { minedHash: txHash },
  conditions: [condition('Ready', 'True')],
})
const refused = listed('not-admitted', 'team-c', { conditions: [condition('Ready', 'False'), condition('Stalled', 'True')] })

const failuresOf = async (deposits: readonly SeenDeposit[], stakes: readonly EthereumStake[] = [ready, refused]) =>
  (await summarise({ deposits: async () => deposits, depositCount: async () => deposits.length, forkVersion: '0x10000038' }, stakes))
    .failures

describe('what the demo says does not hold', () => {
  test('is nothing when each accepted stake is one deposit that pays as its manifest says', async () => {
    expect(await failuresOf([deposit])).toEqual([])
  })

  test.each([
    { given: 'no deposit', deposits: [], expected: /0 deposits on the chain/ },
    { given: 'the same deposit twice', deposits: [deposit, deposit], expected: /deposited twice/ },
    {
      given: 'a deposit more',
      deposits: [deposit, { ...deposit, pubkey: `0x${'cd'.repeat(48)}` as const }],
      expected: /counts 2 deposits for 1/,
    },
    { given: 'another amount', deposits: [{ ...deposit, amountGwei: 33_000_000_000n }], expected: /pays 33 ETH/ },
    {
      given: 'another address',
      deposits: [{ ...deposit, withdrawalCredentials: withdrawalCredentials('0x02', `0x${'11'.repeat(20)}` as const) }],
      expected: /pays another address/,
    },
    {
      given: 'another signature',
      deposits: [{ ...deposit, signature: `0x${'00'.repeat(96)}` as const }],
      expected: /invalid BLS signature/,
    },
    { given: 'another transaction', deposits: [{ ...deposit, txHash: `0x${'00'.repeat(32)}` as const }], expected: /another transaction/ },
  ])('with $given, it is told', async ({ deposits, expected }) => {
    expect((await failuresOf(deposits)).join('\n')).toMatch(expected)
  })

  test('a stake that is not ready, and one that should have been refused, are told', async () => {
    const waiting = listed('validator-1', 'team-a', { conditions: [condition('Ready', 'False')] })
    expect((await failuresOf([], [waiting, refused])).join('\n')).toMatch(/validator-1 is not ready/)
    const admitted = listed('not-admitted', 'team-c', { conditions: [condition('Ready', 'True')] })
    expect((await failuresOf([deposit], [ready, admitted])).join('\n')).toMatch(/should have been refused/)
  })
})

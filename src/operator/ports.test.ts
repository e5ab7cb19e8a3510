import { expect, test } from 'vitest'
import type { Hash, Pubkey, Signature } from '../lib/chain-types.ts'
import type { StakingApi, ValidatorRequestsApi } from './ports.ts'

const never = new AbortController().signal
const pubkey: Pubkey = '0xab'
const hash: Hash = '0xcd'
const signature: Signature = '5Sig'

/** A staking API that writes down what it was asked, and has nothing. */
function asked() {
  const calls: unknown[][] = []
  const refuse =
    (name: string) =>
    async (...given: unknown[]): Promise<never> => {
      calls.push([name, ...given.filter((one) => typeof one === 'string')])
      throw new Error('nothing is here')
    }
  const api: Pick<StakingApi, 'submitEthereumStake'> & Pick<ValidatorRequestsApi, 'exitRequest' | 'submitExitRequest'> = {
    submitEthereumStake: refuse('stake'),
    exitRequest: refuse('exit'),
    submitExitRequest: refuse('report'),
  }
  return { api, calls }
}

test('the staking API is told of transactions by their hash and of validators by their key: the compiler takes no other (npm run types)', async () => {
  const { api, calls } = asked()
  const outcomes = await Promise.allSettled([
    api.submitExitRequest(pubkey, 'r1', hash, never),
    // @ts-expect-error: the hash stands where the key belongs, and the key where the hash belongs.
    api.submitExitRequest(hash, 'r1', pubkey, never),
    // @ts-expect-error: a transaction is no validator.
    api.exitRequest(hash, 'r1', never),
    // @ts-expect-error: a validator is no transaction.
    api.submitEthereumStake('s1', pubkey, never),
    // @ts-expect-error: a transaction of Solana pays no Ethereum stake.
    api.submitEthereumStake('s1', signature, never),
  ])
  expect(outcomes.map(({ status }) => status)).toEqual(Array(5).fill('rejected'))
  expect(calls[0]).toEqual(['report', pubkey, 'r1', hash])
})

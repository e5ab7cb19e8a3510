import { describe, expect, test } from 'vitest'
import type { ChainReceipt, Hash } from '../chains/ethereum/chain.ts'
import { signDepositMessage, withdrawalCredentials } from '../chains/ethereum/deposit.ts'
import { gwei } from '../lib/amounts.ts'
import type { Cluster } from './cluster.ts'
import { conclusionOf, verdict } from './verdict.ts'
import { landedOf, verifyDepositTarget, verifyStake } from './verify-commands.ts'

const never = new AbortController().signal
const PAYEE = '0x52908400098527886E0F7030069857D2E4169EE7'
const hashOf = (version: number) => `0x${String(version).repeat(64)}` as Hash
const versions = [3, 2, 1].map((version) => ({ hash: hashOf(version) }))
const found = (mined: number | undefined, of = versions) =>
  landedOf(of, { receipt: async (hash) => (mined !== undefined && hash === hashOf(mined) ? ({ hash } as ChainReceipt) : undefined) }, never)

test('of several versions of a transaction, that one is verified which is in a block', async () => {
  for (const mined of [1, 2, 3]) expect(await found(mined)).toBe(hashOf(mined))
})

test('and the latest, where none is', async () => {
  expect(await found(undefined)).toBe(hashOf(3))
  expect(await found(undefined, versions.slice(2))).toBe(hashOf(1))
})

test.each(['', '0X'])('the digits of a hash after %j are a hash without its 0x, and no file that is not there', async (before) => {
  const digits = 'aB'.repeat(32)
  await expect(verifyDepositTarget(`${before}${digits}`, { networks: '/nowhere', network: 'hoodi' }, never)).rejects.toThrow(
    `${before}${digits} is no file, and the hash of a transaction begins with 0x: write 0x${digits}`,
  )
})

describe('what the rules come to', () => {
  const [holds, broken, unknown] = [verdict('a', true, ''), verdict('b', false, ''), verdict('c', 'unknown', '')]
  test.each([
    ['all hold', [holds, holds], true, 0],
    ['one is broken', [holds, broken], false, 1],
    ['one is not known', [holds, unknown], 'unknown', 2],
    ['one is broken, and one not known', [unknown, broken], false, 1],
    ['one was not asked for', [holds, { ...unknown, notAsked: true as const }], true, 0],
  ])('%s', (_what, verdicts, of, exitCode) => {
    expect(conclusionOf(verdicts)).toMatchObject({ holds: of, exitCode })
  })
})

test('of a stake without a transaction it is not known what was paid', async () => {
  const {
    pubkey,
    withdrawalCredentials: credentials,
    signature,
    depositDataRoot,
    amountGwei,
  } = signDepositMessage(new Uint8Array(32).fill(7), {
    withdrawalCredentials: withdrawalCredentials('0x02', PAYEE),
    amountGwei: gwei(32_000_000_000n),
    genesisForkVersion: '0x10000910',
  })
  const depositData = { pubkey, withdrawalCredentials: credentials, signature, depositDataRoot, amountGwei: String(amountGwei) }
  const stake = {
    metadata: { name: 'validator-1', namespace: 'team-a' },
    spec: { network: 'hoodi', amountEth: '32', withdrawalAddress: PAYEE, credentialsType: 'Compounding' },
    status: { depositData },
  }
  const cluster = { get: async () => stake } as unknown as Pick<Cluster, 'get'>
  const verdicts = (await verifyStake(cluster, { target: 'validator-1', namespace: 'team-a' }, { networks: '/nowhere' }, never)).flatMap(
    (group) => group.verdicts,
  )
  expect(verdicts.filter((one) => one.holds !== true)).toEqual([
    { rule: 'transaction', holds: 'unknown', says: expect.stringMatching(/^its status names none/) },
  ])
})

import { describe, expect, test } from 'vitest'
import type { ChainReceipt, EthereumChain, Hash } from '../chains/ethereum/chain.ts'
import { signDepositMessage, withdrawalCredentials } from '../chains/ethereum/deposit.ts'
import { gwei } from '../lib/amounts.ts'
import { transactionName } from '../operator/transactions/names.ts'
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

const data = signDepositMessage(new Uint8Array(32).fill(7), {
  withdrawalCredentials: withdrawalCredentials('0x02', PAYEE),
  amountGwei: gwei(32_000_000_000n),
  genesisForkVersion: '0x10000910',
})
/** With deposit data that holds, of hoodi. */
const stakeWith = (status: object, metadata: object = {}) => ({
  metadata: { name: 'validator-1', namespace: 'team-a', uid: 'uid-1', ...metadata },
  spec: { network: 'hoodi', amountEth: '32', withdrawalAddress: PAYEE, credentialsType: 'Compounding' },
  status: {
    depositData: {
      pubkey: data.pubkey,
      withdrawalCredentials: data.withdrawalCredentials,
      signature: data.signature,
      depositDataRoot: data.depositDataRoot,
      amountGwei: String(data.amountGwei),
    },
    ...status,
  },
})

test('of a stake without a transaction it is not known what was paid', async () => {
  const cluster = { get: async () => stakeWith({}) } as unknown as Pick<Cluster, 'get'>
  const verdicts = (await verifyStake(cluster, { target: 'validator-1', namespace: 'team-a' }, { networks: '/nowhere' }, never)).flatMap(
    (group) => group.verdicts,
  )
  expect(verdicts.filter((one) => one.holds !== true)).toEqual([
    { rule: 'transaction', holds: 'unknown', says: expect.stringMatching(/^its status names none/) },
  ])
})

describe('whose deposit a status shows is told by the transaction log', () => {
  const NAME = transactionName({ purpose: 'Deposit', chainId: 560048, pubkey: data.pubkey })
  const owner = { kind: 'EthereumStake', namespace: 'team-a', name: 'validator-1', originUid: 'uid-1' }
  const call = (version: number) => ({ hash: hashOf(version), kind: 'Call', nonce: 7 })
  const recordOf = (of: object, status: object = { attempts: [call(1), call(2)] }) => ({ spec: { owner: { ...owner, ...of } }, status })

  /** What is told of the log, and which transactions are looked up. */
  async function tell(record: object | 'absent' | 'forbidden', metadata: object = {}) {
    const asked: (string | undefined)[] = []
    const looked: Hash[] = []
    const transaction = { hash: hashOf(2), replaced: [{ hash: hashOf(1) }] }
    const cluster = {
      get: async ({ kind }: { readonly kind: string }, { name, namespace }: { readonly name: string; readonly namespace?: string }) => {
        if (kind === 'EthereumStake') return stakeWith({ transaction }, metadata)
        asked.push(kind, name, namespace)
        return record
      },
    } as unknown as Pick<Cluster, 'get'>
    const chain = {
      receipt: async () => undefined,
      transaction: async (hash: Hash) => void looked.push(hash),
    } as unknown as EthereumChain
    const target = { target: 'validator-1', namespace: 'team-a' }
    const groups = await verifyStake(cluster, target, { networks: '/nowhere', rpcUrl: ['http://127.0.0.1:1'] }, never, () => chain)
    expect(asked).toEqual(['StakingTransaction', NAME, undefined])
    const logged = groups.flatMap(({ verdicts }) => verdicts).find(({ rule }) => rule === 'transaction log')
    return { holds: logged?.holds, says: logged?.says, looked }
  }

  test.each<[string, object | 'absent' | 'forbidden', boolean | 'unknown', RegExp]>([
    ['as it is this stake’s', recordOf({}), true, /has it for this stake$/],
    ['as it is a twin’s', recordOf({ name: 'twin' }), false, /has this deposit for EthereumStake team-a\/twin: /],
    ['as it is that of another namespace', recordOf({ namespace: 'team-b' }), false, /for EthereumStake team-b\/validator-1: /],
    ['as it is that of an earlier one of its name', recordOf({ originUid: 'uid-0' }), false, /an earlier resource of this name/],
    ['as it is another transaction', recordOf({}, { attempts: [call(3)] }), false, /does not have transaction 0x2222/],
    ['as nothing of it was signed', recordOf({}, {}), false, /does not have transaction 0x2222/],
    [
      'as one that came second',
      recordOf({}, { attempts: [call(1), call(2)], outcome: { ...call(2), is: 'FrontRun' } }),
      false,
      /FrontRun: somebody else/,
    ],
    [
      'as one that failed',
      recordOf({}, { attempts: [call(2)], outcome: { ...call(2), is: 'Reverted' } }),
      false,
      /Reverted: nothing was deposited/,
    ],
    [
      'as one that was cancelled',
      recordOf({}, { attempts: [call(1), call(2)], closed: [{ nonce: 7, by: 'Cancel', hash: hashOf(3) }] }),
      'unknown',
      /nothing of it that can still land: nonce 7 was used by 0x3333\w+ \(Cancel\)/,
    ],
    [
      'as one that is made again',
      recordOf({}, { attempts: [call(1), { ...call(2), nonce: 8 }], closed: [{ nonce: 7, by: 'Cancel', hash: hashOf(3) }] }),
      true,
      /has it for this stake$/,
    ],
    ['as it has none for the key', 'absent', 'unknown', /^there is no StakingTransaction deposit-560048-.* ask who runs the operator$/],
    ['as whoever looks may not read it', 'forbidden', 'unknown', /^you may not read StakingTransactions.* staking-operator-signers/],
  ])('%s', async (_what, record, holds, says) => {
    expect(await tell(record)).toMatchObject({ holds, says: expect.stringMatching(says) })
  })

  test('what landed by the log is looked up, and its latest version before', async () => {
    expect((await tell(recordOf({}))).looked).toEqual([hashOf(2)])
    expect((await tell(recordOf({}, { attempts: [call(1), call(2)], outcome: call(1) }))).looked).toEqual([hashOf(1)])
  })

  test('a restored stake is itself by its annotation, in its own place alone', async () => {
    const restored = { uid: 'uid-2', annotations: { 'staking.dev/origin': 'uid-1/team-a/validator-1' } }
    expect((await tell(recordOf({}), restored)).holds).toBe(true)
    expect((await tell(recordOf({ name: 'twin' }), restored)).holds).toBe(false)
  })
})

import { describe, expect, test } from 'vitest'
import { type RpcClient, RpcFailure } from '../../lib/json-rpc.ts'
import { ACCOUNTS_AT_ONCE, gathered, SIGNATURES_AT_ONCE } from './gathered-client.ts'

const never = new AbortController().signal
interface Call {
  readonly method: string
  readonly keys: number
  readonly minContextSlot: unknown
}

/** A node that answers each key with itself, and takes lists as long as `most`. */
function nodeOf({ most = 1_000, refusal = -32602 }: { most?: number; refusal?: number } = {}) {
  const calls: Call[] = []
  const call: RpcClient['call'] = async (method, params) => {
    const [first, options] = params as readonly [unknown, { readonly minContextSlot?: number } | undefined]
    const keys = Array.isArray(first) ? first.length : 1
    calls.push({ method, keys, minContextSlot: options?.minContextSlot })
    if (method === 'getEpochInfo') return { epoch: calls.length }
    if (keys > most) throw new RpcFailure('node', 'no', { node: { code: refusal, message: 'Too many inputs provided' }, method })
    return { context: { slot: 7 }, value: Array.isArray(first) ? first.map((key) => `of ${key}`) : `of ${String(first)}` }
  }
  const clock = { at: 0 }
  const client = gathered({ call, batch: async () => [] }, { monotonicMs: () => clock.at })
  const counts = () =>
    Object.fromEntries([...Map.groupBy(calls, ({ method }) => method)].map(([method, found]) => [method, found.length] as const))
  return { client, calls, counts, clock }
}
const finalized = { commitment: 'finalized', encoding: 'base64' }
const each = <T>(count: number, ask: (n: number) => Promise<T>) => Promise.all(Array.from({ length: count }, (_, n) => ask(n)))

describe('a thousand stakes that are looked at at the same time', () => {
  test('have their accounts, signatures and heights asked for in 10, 4 and 1 calls, and each gets its own', async () => {
    const { client, counts } = nodeOf()
    const answers = await each(1_000, async (n) => {
      const [account, statuses, { epoch }] = await Promise.all([
        client.call('getAccountInfo', [`a${n}`, { ...finalized, minContextSlot: n + 1 }], never),
        client.call('getSignatureStatuses', [[`s${n}`], { searchTransactionHistory: true }], never),
        client.call('getEpochInfo', [{ commitment: 'finalized' }], never) as Promise<{ epoch: number }>,
      ])
      return { account, statuses, epoch }
    })
    expect(answers.map(({ account }) => account)).toEqual(answers.map((_, n) => ({ context: { slot: 7 }, value: `of a${n}` })))
    expect(answers.map(({ statuses }) => statuses)).toEqual(answers.map((_, n) => ({ context: { slot: 7 }, value: [`of s${n}`] })))
    expect(new Set(answers.map(({ epoch }) => epoch)).size).toBe(1)
    expect(counts()).toEqual({
      getMultipleAccounts: 1_000 / ACCOUNTS_AT_ONCE,
      getSignatureStatuses: Math.ceil(1_000 / SIGNATURES_AT_ONCE),
      getEpochInfo: 1,
    })
  })

  test('and each with the same sysvars share these', async () => {
    const { client, calls } = nodeOf()
    const answers = await each(96, (n) => client.call('getMultipleAccounts', [[`a${n}`, 'clock', 'rewards'], finalized], never))
    expect(answers.at(-1)).toEqual({ context: { slot: 7 }, value: ['of a95', 'of clock', 'of rewards'] })
    expect(calls).toMatchObject([{ keys: 98 }])
  })
})

test('what is asked together is not before the latest slot that one of them asks for', async () => {
  const { client, calls } = nodeOf()
  await each(3, (n) => client.call('getAccountInfo', [`a${n}`, { ...finalized, minContextSlot: 10 + n }], never))
  expect(calls).toEqual([{ method: 'getMultipleAccounts', keys: 3, minContextSlot: 12 }])
})

test('what is asked of another commitment is not asked together', async () => {
  const { client, counts } = nodeOf()
  await Promise.all([
    client.call('getAccountInfo', ['a', finalized], never),
    client.call('getAccountInfo', ['b', { ...finalized, commitment: 'confirmed' }], never),
  ])
  expect(counts()).toEqual({ getAccountInfo: 2 })
})

test('an answer is never older than its question', async () => {
  const { client, counts } = nodeOf()
  const first = client.call('getEpochInfo', [], never)
  await Promise.resolve()
  const second = client.call('getEpochInfo', [], never)
  expect(await first).not.toEqual(await second)
  expect(counts()).toEqual({ getEpochInfo: 2 })
})

describe('a node that does not take lists so long', () => {
  test('is asked one by one, and for some minutes at once so', async () => {
    const { client, calls, clock } = nodeOf({ most: 5 })
    const ask = () => each(10, (n) => client.call('getAccountInfo', [`a${n}`, finalized], never))
    expect(await ask()).toEqual(Array.from({ length: 10 }, (_, n) => ({ context: { slot: 7 }, value: `of a${n}` })))
    expect(calls.splice(0).map(({ method }) => method)).toEqual(['getMultipleAccounts', ...Array(10).fill('getAccountInfo')])
    await ask()
    expect(calls.splice(0).map(({ method }) => method)).toEqual(Array(10).fill('getAccountInfo'))
    clock.at += 300_000
    await ask()
    expect(calls[0]?.method).toBe('getMultipleAccounts')
  })

  test('has its refusal of a question that was asked alone told, and is not asked again', async () => {
    const { client, calls } = nodeOf({ most: 0 })
    await expect(client.call('getAccountInfo', ['a', finalized], never)).rejects.toMatchObject({ kind: 'node' })
    expect(calls).toHaveLength(1)
  })

  test('or can’t answer now, is not asked ten times for that', async () => {
    const { client, calls } = nodeOf({ most: 5, refusal: -32005 })
    const answers = await Promise.allSettled(
      Array.from({ length: 10 }, (_, n) => client.call('getAccountInfo', [`a${n}`, finalized], never)),
    )
    expect(answers.every(({ status }) => status === 'rejected')).toBe(true)
    expect(calls).toHaveLength(1)
  })
})

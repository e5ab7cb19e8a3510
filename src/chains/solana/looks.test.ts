import { describe, expect, test } from 'vitest'
import { systemClock } from '../../lib/clock.ts'
import { encodeBase58 } from './base58.ts'
import { SolanaError } from './chain.ts'
import { features } from './features.ts'
import { knownGenesisHashes, solanaNetworkConfig } from './networks.ts'
import { clockSysvar, featureProgram, stakeHistorySysvar, stakeProgram, sysvarOwner, voteProgram } from './programs.ts'
import { createSolanaChain } from './rpc-chain.ts'
import { testAddress } from './testing.ts'

/** What nodes answer to the calls that decide about money, and what is asked of them. */

const never = new AbortController().signal
type Answer = (params: readonly unknown[]) => unknown
class Refusal {
  readonly code: number
  constructor(code: number) {
    this.code = code
  }
}
function chainOver(...nodes: readonly Readonly<Record<string, Answer>>[]) {
  const calls: { readonly node: number; readonly method: string; readonly params: readonly unknown[] }[] = []
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const node = Number(new URL(String(input)).hostname.slice(1, 2))
    const { method, params, id } = JSON.parse(String(init?.body)) as { method: string; params: readonly unknown[]; id: number }
    calls.push({ node, method, params })
    const answer = method === 'getGenesisHash' ? () => knownGenesisHashes.devnet : nodes[node - 1]?.[method]
    const result = answer?.(params) ?? new Refusal(-32601)
    const body = result instanceof Refusal ? { error: { code: result.code, message: 'no' } } : { result }
    return Response.json({ jsonrpc: '2.0', id, ...body })
  }
  const rpcUrls = nodes.map((_, index) => `https://n${index + 1}.test`)
  const config = solanaNetworkConfig.parse({ name: 'devnet', chain: 'Solana', rpcUrls })
  const asked = (method: string) => calls.filter((call) => call.method === method)
  return { chain: createSolanaChain({ config, clock: systemClock, fetch, timeoutMs: 5_000 }), asked }
}
const optionsOf = (call: { readonly params: readonly unknown[] } | undefined) => call?.params[1] as Record<string, unknown> | undefined
const codeOf = (promise: Promise<unknown>) => promise.then(String, (error: unknown) => (error instanceof SolanaError ? error.code : error))

const at = (slot: number, value: unknown) => ({ context: { slot }, value })
const account = (owner: string, data: Uint8Array = new Uint8Array()) => ({
  lamports: 1,
  owner,
  data: [Buffer.from(data).toString('base64'), 'base64'],
  executable: false,
})
const epochInfo = { epoch: 5, absoluteSlot: 1_000, slotIndex: 10, slotsInEpoch: 432_000, blockHeight: 900 }
const node = {
  getEpochInfo: () => epochInfo,
  getAccountInfo: () => at(1_000, null),
  getSignatureStatuses: () => at(1_001, [null]),
  getFirstAvailableBlock: () => 7,
}

describe('a look of every node', () => {
  test('asks for an account that is not older than the height, and for statuses with the whole history', async () => {
    const { chain, asked } = chainOver(node)
    expect(await chain.looks(testAddress(1), ['a'], never)).toEqual([
      { finalizedBlockHeight: 900n, slot: 1_000n, account: undefined, statuses: [undefined], historySince: 7n },
    ])
    expect(optionsOf(asked('getAccountInfo')[0])).toMatchObject({ commitment: 'finalized', minContextSlot: 1_000 })
    expect(optionsOf(asked('getSignatureStatuses')[0])).toEqual({ searchTransactionHistory: true })
  })

  test.each<{ what: string; change: Readonly<Record<string, Answer>> }>([
    { what: 'an account of an earlier slot', change: { getAccountInfo: () => at(999, null) } },
    { what: 'statuses of an earlier slot, by another node behind the same URL', change: { getSignatureStatuses: () => at(999, [null]) } },
    { what: 'that it has not come so far (−32016)', change: { getAccountInfo: () => new Refusal(-32016) } },
  ])('takes $what for no answer: what is not seen there proves nothing', async ({ change }) => {
    const broken = { ...node, ...change }
    expect(await codeOf(chainOver(broken).chain.looks(testAddress(1), ['a'], never))).toBe('node-behind')
    expect(await chainOver(node, broken).chain.looks(testAddress(1), ['a'], never)).toMatchObject([{ slot: 1_000n }, undefined])
  })

  test('of a node without transaction history has what happened just now, and says that it knows of nothing before', async () => {
    const bare = {
      ...node,
      getSignatureStatuses: (params: readonly unknown[]) =>
        (params[1] as { searchTransactionHistory: boolean }).searchTransactionHistory ? new Refusal(-32011) : at(1_001, [null]),
    }
    expect(await chainOver(bare).chain.looks(testAddress(1), ['a'], never)).toMatchObject([{ statuses: [undefined], historySince: 1_000n }])
  })
})

describe('the history of an account', () => {
  const past = [{ signature: encodeBase58(new Uint8Array(64).fill(7)), slot: 5, err: null }]
  test('is asked of nodes that have come far enough', async () => {
    const behind = { getSignaturesForAddress: () => new Refusal(-32016) }
    const { chain, asked } = chainOver(behind, { getSignaturesForAddress: () => [] })
    expect(await chain.past(testAddress(1), 1_234n, never)).toEqual([])
    expect(asked('getSignaturesForAddress').map((call) => optionsOf(call)?.minContextSlot)).toEqual([1_234, 1_234])
    expect(await codeOf(chainOver(behind).chain.past(testAddress(1), 1_234n, never))).toBe('node-behind')
  })
  test('is missing where every node keeps none, and taken from the one that does', async () => {
    const none = { getSignaturesForAddress: () => new Refusal(-32011) }
    expect(await codeOf(chainOver(none, none).chain.past(testAddress(1), 0n, never))).toBe('no-history')
    expect(await chainOver(none, { getSignaturesForAddress: () => past }).chain.past(testAddress(1), 0n, never)).toHaveLength(1)
  })
})

describe("a stake's view", () => {
  const clockData = (epoch: number) => {
    const data = Buffer.alloc(40)
    data.writeBigUInt64LE(1_000n, 0)
    data.writeBigUInt64LE(BigInt(epoch), 16)
    return data
  }
  const historyData = (epoch: number) => {
    const data = Buffer.alloc(8 + 32)
    data.writeBigUInt64LE(1n, 0)
    data.writeBigUInt64LE(BigInt(epoch), 8)
    return data
  }
  const featureData = (isOn: boolean) => Buffer.from([isOn ? 1 : 0, 0, 0, 0, 0, 0, 0, 0, 0])
  /** A cluster in an epoch; `feature`: the account of SIMD-0391's gate. */
  const cluster = (state: { epoch: number; feature: unknown }) => ({
    getMultipleAccounts: (params: readonly unknown[]) =>
      at(
        1_000,
        (params[0] as readonly string[]).map((address) => {
          if (address === clockSysvar) return account(sysvarOwner, clockData(state.epoch))
          if (address === stakeHistorySysvar) return account(sysvarOwner, historyData(state.epoch - 1))
          return address === features.fixedPointStake ? state.feature : null
        }),
      ),
  })

  test.each([
    { what: 'there is no gate', feature: null, arithmetic: 'float' },
    { what: 'the gate waits', feature: account(featureProgram, featureData(false)), arithmetic: 'float' },
    { what: 'the gate is on', feature: account(featureProgram, featureData(true)), arithmetic: 'fixed-point' },
    { what: 'somebody has put an account of his own there', feature: account(stakeProgram, featureData(true)), arithmetic: 'float' },
  ])('is reckoned in $arithmetic where $what', async ({ feature, arithmetic }) => {
    expect(await chainOver(cluster({ epoch: 5, feature })).chain.stakeView(testAddress(1), 'finalized', never)).toMatchObject({
      arithmetic,
    })
  })

  test('has the history of stakes read once in an epoch, for all of them', async () => {
    const state = { epoch: 5, feature: null }
    const { chain, asked } = chainOver(cluster(state))
    const readsHistory = () =>
      asked('getMultipleAccounts').filter(({ params }) => (params[0] as string[]).includes(stakeHistorySysvar)).length
    for (let n = 1; n < 4; n++) {
      const view = await chain.stakeView(testAddress(n), 'finalized', never)
      expect([...view.history.keys()]).toEqual([4n])
    }
    expect(readsHistory()).toBe(1)
    state.epoch = 6
    expect([...(await chain.stakeView(testAddress(1), 'finalized', never)).history.keys()]).toEqual([5n])
    expect(readsHistory()).toBe(2)
    // By a thousand at once, of which nobody knows the new epoch yet.
    state.epoch = 7
    const before = asked('getMultipleAccounts').length
    await Promise.all(
      Array.from({ length: 1_000 }, (_, n) => chain.stakeView(`${testAddress(1).slice(0, 36)}${1_000 + n}`, 'finalized', never)),
    )
    expect(readsHistory() - 2).toBeLessThanOrEqual(12)
    expect(asked('getMultipleAccounts').length - before).toBeLessThanOrEqual(24)
    // What is not final may be of another fork: it is read each time.
    const known = readsHistory()
    await chain.stakeView(testAddress(1), 'confirmed', never)
    expect(readsHistory()).toBe(known + 1)
  })
})

test.each([
  { feature: null, needs: undefined },
  { feature: account(featureProgram, new Uint8Array([1, 0, 0, 0, 0, 0, 0, 0, 0])), needs: true },
])('a vote account is read with whether the cluster asks for a BLS key: $needs', async ({ feature, needs }) => {
  const address = testAddress(3)
  const { chain } = chainOver({
    getMultipleAccounts: (params) =>
      at(
        1,
        (params[0] as readonly string[]).map((one) => (one === address ? account(voteProgram, new Uint8Array(200)) : feature)),
      ),
    getVoteAccounts: () => ({
      current: [{ votePubkey: address, nodePubkey: testAddress(4), activatedStake: 1, commission: 7 }],
      delinquent: [],
    }),
  })
  const found = await chain.voteAccount(address, never)
  expect(found).toMatchObject({ kind: 'vote-account', account: { commission: 7 } })
  expect(found.kind === 'vote-account' ? found.account.needsBlsKey : 'none').toBe(needs)
})

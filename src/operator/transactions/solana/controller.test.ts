import { describe, expect, test } from 'vitest'
import { type NodeLook, SolanaError } from '../../../chains/solana/chain.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import type { StakingTransactionSpec, StakingTransactionStatus } from '../../../resources/staking-transaction.ts'
import { conflict, stall } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import { createTestClock } from '../../testing/test-clock.ts'
import type { Approvable } from '../approvals.ts'
import { createMemory } from '../memory.ts'
import { transactionName } from '../names.ts'
import type { RecordObject } from '../store.ts'
import { createSolanaLog } from './controller.ts'
import type { SolanaTransactionKind, Sought } from './kind.ts'
import { createSolanaLimiter } from './limiter.ts'

const signal = new AbortController().signal
const name = transactionName({ purpose: 'SolanaStake', genesisHash: 'genesis', stakeAccount: 'account' })
const spec: StakingTransactionSpec = {
  chain: 'Solana',
  network: 'devnet',
  genesisHash: 'genesis',
  purpose: 'SolanaStake',
  subject: 'account',
  amount: '5 SOL',
  apiId: 's1',
  owner: { kind: 'SolanaStake', namespace: 'a', name: 'b', originUid: 'u' },
  generation: 0,
  signer: 'payer',
  from: 'payer-address',
}
type Nodes = readonly (
  | (Partial<Omit<NodeLook, 'statuses'>> & { done?: boolean; statuses?: NodeLook['statuses'] | undefined })
  | undefined
)[]

/** One record, its kind and its nodes, all scripted; what happens is listed in order. */
function worldOf(status: StakingTransactionStatus = {}) {
  const happened: string[] = []
  let version = 1
  let record = {
    apiVersion: '',
    kind: 'StakingTransaction',
    metadata: { name, uid: 'r', resourceVersion: '1' },
    spec,
    status,
  } as RecordObject
  const state = {
    nodes: [{ finalizedBlockHeight: 10n }] as Nodes,
    message: 0,
    sought: { is: 'unknown' } as Sought,
    refusal: undefined as Error | undefined,
    freshRefusal: undefined as Error | undefined,
    tells: [] as ('taken' | 'later' | Error)[],
    sendError: undefined as Error | undefined,
    lives: false,
    rival: false,
  }
  const clock = createTestClock()
  const memory = createMemory(
    () => {},
    () => 0,
  )
  const kind: SolanaTransactionKind = {
    purposes: ['SolanaStake'],
    what: () => 'The stake transaction',
    step: () => ({ landedIsDone: true, leavesNoTrace: true, needsEveryNode: false }),
    isDone: (_record, { account }) => account !== undefined,
    seek: async () => state.sought,
    async mayBeSigned(_record, fresh) {
      happened.push(fresh ? 'asked past the cache' : 'asked')
      const refusal = state.refusal ?? (fresh ? state.freshRefusal : undefined)
      if (refusal !== undefined) throw refusal
      return {}
    },
    async obtain(_record, _admission, { everywhere, highest }) {
      happened.push(`obtained at ${everywhere}/${highest}`)
      state.message += 1
      return { apiId: 't1', message: new Uint8Array([state.message]), lastValidBlockHeight: 100 * state.message, sinceSlot: 1 }
    },
    approvableOf: () => ({}) as Approvable,
    payerOf: () => ({ metadata: { name: 'payer' }, spec: { chain: 'Solana', policy: {} } }) as StakingSigner,
    sign: async (_record, _admission, message) => ({ raw: message, signature: `S${message[0]}` }),
    signAgain: async (_record, _admission, { hash }) => ({ raw: new Uint8Array([Number(hash.slice(1))]), signature: hash }),
    async tell(_record, { hash }) {
      happened.push(`told ${hash}`)
      const answer = state.tells.shift() ?? 'taken'
      if (answer instanceof Error) throw answer
      return answer
    },
    proves: async () => true,
    explain: (_record, error) => error,
  }
  const chain = {
    // It has no Clock sysvar.
    account: async () => undefined,
    looks: async (_address: string, signatures: readonly string[]) =>
      state.nodes.map(
        (node) =>
          node && {
            finalizedBlockHeight: 10n,
            slot: 1_000n,
            historySince: 0n,
            ...node,
            account: node.done === true ? { lamports: 1n } : undefined,
            statuses: node.statuses ?? signatures.map(() => undefined),
          },
      ),
    feeFor: async () => (state.lives ? 5_000n : undefined),
    async sendTransaction(raw: Uint8Array, { skipPreflight }: { skipPreflight: boolean }) {
      happened.push(`${skipPreflight ? 'sent again' : 'sent'} S${raw[0]}`)
      if (state.sendError !== undefined) throw state.sendError
    },
  }
  const start = () =>
    createSolanaLog({
      store: {
        record: () => record,
        read: async () => record,
        async writeStatus(_before, next) {
          if (state.rival) throw conflict()
          happened.push(
            `wrote ${next.outcome === undefined ? `${next.attempts?.length ?? 0}/${next.closed?.length ?? 0}` : `outcome ${next.outcome.hash}`}`,
          )
          record = { ...record, status: next, metadata: { ...record.metadata, resourceVersion: String(++version) } }
          return record
        },
        releaseRecord: async () => undefined,
      },
      approvals: { assertApproved: async () => undefined, within: async (_record, admission) => admission },
      limits: createSolanaLimiter({ store: { signedSince: () => [], readRecords: async () => {}, unsettledOf: () => [] }, memory, clock }),
      countedUntil: async () => undefined,
      ownerExists: async () => true,
      signers: () => [],
      network: (genesis) =>
        genesis === 'genesis' ? ({ config: { name: 'devnet', pollIntervalMs: 1_000 }, chain } as unknown as SolanaNetwork) : undefined,
      kindOf: () => kind,
      memory,
      clock,
      assertMayAct: () => {},
      random: () => 0.5,
    })
  const reconcile = start()
  return {
    state,
    happened,
    memory,
    visit: async () => {
      happened.length = 0
      return reconcile(name, signal)
    },
    status: () => record.status ?? {},
    annotate: (annotations: Record<string, string>) => {
      record = { ...record, metadata: { ...record.metadata, annotations } }
    },
  }
}

describe('an attempt', () => {
  test('is asked for, written, told, asked for past the cache, and only then sent', async () => {
    const world = worldOf()
    await world.visit()
    expect(world.happened).toEqual(['asked', 'obtained at 10/10', 'asked', 'wrote 1/0', 'told S1', 'asked past the cache', 'sent S1'])
    expect(world.status()).toMatchObject({
      state: 'Open',
      attempts: [{ hash: 'S1', message: 'AQ==', lastValidBlockHeight: 100, apiId: 't1' }],
    })
  })

  test('that the staking API wants to see first is told again right after it was sent', async () => {
    const world = worldOf()
    world.state.tells = ['later', 'later']
    await world.visit()
    expect(world.happened.slice(3)).toEqual(['wrote 1/0', 'told S1', 'asked past the cache', 'sent S1', 'told S1'])
    await world.visit()
    expect(world.happened).toEqual(['asked', 'sent again S1'])
  })

  test.each<{ what: string; broken: Partial<ReturnType<typeof worldOf>['state']> }>([
    { what: 'the staking API can not be told', broken: { tells: [new SolanaError('unavailable', '')] } },
    { what: 'owner or signer, read past the cache, do not admit it', broken: { freshRefusal: stall('OwnerGone', '') } },
    { what: 'another leader has written meanwhile', broken: { rival: true } },
  ])('is not sent where $what', async ({ broken }) => {
    const world = worldOf()
    Object.assign(world.state, broken)
    await world.visit()
    expect(world.happened).not.toContain('sent S1')
  })

  test('that may land is sent again by whoever leads, each time asked for, and is made no second time', async () => {
    const world = worldOf()
    await world.visit()
    for (let count = 0; count < 3; count++) await world.visit()
    expect(world.happened).toEqual(['asked', 'sent again S1'])
    expect(world.status().attempts).toHaveLength(1)
    world.state.refusal = stall('NamespaceNotAllowed', 'no')
    await world.visit()
    expect(world.happened).toEqual(['asked'])
    expect(world.memory.standing(name)).toMatchObject({ kind: 'stall', reason: 'NamespaceNotAllowed' })
  })

  test('is made anew only when every node is beyond it, and the cluster takes its blockhash no more', async () => {
    const world = worldOf()
    await world.visit()
    world.state.nodes = [{ finalizedBlockHeight: 60n }, { finalizedBlockHeight: 150n }]
    await world.visit()
    expect(world.happened).toEqual([])
    expect(world.memory.standing(name)).toMatchObject({ reason: 'AwaitingFinality', message: expect.stringContaining('node 1 of devnet') })
    world.state.nodes = [undefined, { finalizedBlockHeight: 150n }]
    await world.visit()
    expect(world.happened).toEqual([])
    world.state.nodes = [{ finalizedBlockHeight: 140n }, { finalizedBlockHeight: 150n }]
    world.state.lives = true
    await world.visit()
    expect(world.happened).toEqual([])
    world.state.lives = false
    await world.visit()
    expect(world.happened.slice(0, 5)).toEqual(['wrote 1/1', 'asked', 'obtained at 140/150', 'asked', 'wrote 2/1'])
    expect(world.status().attempts?.map(({ hash }) => hash)).toEqual(['S1', 'S2'])
  })

  test('is not made while a node’s history, or the record before it was lost, knows who did it', async () => {
    const world = worldOf()
    world.state.sought = { is: 'found', hash: 'theirs', slot: 7n }
    await world.visit()
    expect(world.happened).toEqual(['wrote outcome theirs'])
    expect(world.status()).toMatchObject({ attempts: [{ hash: 'theirs', found: true }], outcome: { blockNumber: 7 } })
  })

  test('is not made a seventeenth time before a person has allowed it', async () => {
    const attempts = Array.from({ length: 16 }, (_, index) => ({
      hash: `X${index}`,
      kind: 'Call' as const,
      lastValidBlockHeight: 1,
      at: '',
    }))
    const world = worldOf({
      attempts,
      closed: attempts.map(({ hash }, nonce) => ({ nonce, by: 'Expired' as const, hash, blockNumber: 1 })),
    })
    await world.visit()
    expect(world.memory.standing(name)).toMatchObject({ kind: 'stall', reason: 'RemadeTooOften' })
    expect(world.happened).toEqual([])
    world.annotate({ 'staking.dev/allow-remakes': '1' })
    await world.visit()
    expect(world.happened).toContain('wrote 17/16')
  })
})

describe('what became of it', () => {
  test('is written once it is final, and the record is done', async () => {
    const world = worldOf()
    await world.visit()
    world.state.nodes = [{ statuses: [{ slot: 20n, commitment: 'confirmed' }] }]
    await world.visit()
    expect(world.happened).toEqual([])
    world.state.nodes = [{ statuses: [{ slot: 20n, commitment: 'finalized' }], done: true }]
    expect(await world.visit()).toEqual({ kind: 'done' })
    expect(world.status()).toMatchObject({ state: 'Landed', outcome: { is: 'Landed', hash: 'S1', blockNumber: 20 } })
    await world.visit()
    expect(world.happened).toEqual([])
  })

  test('is not concluded while nodes contradict each other', async () => {
    const world = worldOf()
    await world.visit()
    world.state.nodes = [{ statuses: [{ slot: 20n, commitment: 'finalized' }] }, {}]
    await world.visit()
    expect(world.happened).toEqual([])
    expect(world.memory.standing(name)).toMatchObject({ reason: 'NodesDisagree', message: expect.stringContaining('1 and 2') })
  })

  test('that it was refused when it was sent is told, and it is looked for as before', async () => {
    const world = worldOf()
    world.state.sendError = new SolanaError('insufficient-funds', '')
    const result = await world.visit()
    expect(world.memory.standing(name)).toMatchObject({ reason: 'InsufficientFunds' })
    expect(result).toMatchObject({ kind: 'wait', afterMs: 1_000 })
  })
})

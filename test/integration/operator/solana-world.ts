import { encodeBase58 } from '../../../src/chains/solana/base58.ts'
import { encodeOffchainMessage } from '../../../src/chains/solana/challenge.ts'
import { createSolanaChain } from '../../../src/chains/solana/rpc-chain.ts'
import { createStakingClient } from '../../../src/contract/client.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { Secret } from '../../../src/lib/secret.ts'
import { Halt } from '../../../src/operator/engine/verdict.ts'
import type { Result } from '../../../src/operator/kube/controller.ts'
import type { KubeObject } from '../../../src/operator/kube/objects.ts'
import { apiOver } from '../../../src/operator/networks/staking-api.ts'
import { KeyError, type SolanaKeys, type SolanaNetwork, type SolanaStakingApi } from '../../../src/operator/ports.ts'
import { createFakeKeys } from '../../../src/operator/testing/fake-keys.ts'
import { createFakeKube } from '../../../src/operator/testing/fake-kube.ts'
import { type Around, KILLED } from '../../../src/operator/testing/mortal.ts'
import { startInMemory } from '../../../src/operator/testing/operator-in-memory.ts'
import { type Condition, findCondition } from '../../../src/resources/conditions.ts'
import { type SolanaStake, type SolanaStakeSpec, type SolanaStakeStatus, solanaStake } from '../../../src/resources/solana-stake.ts'
import { type StakingSigner, stakingSigner } from '../../../src/resources/staking-signer.ts'
import type { Store } from '../../../src/service/store/database.ts'
import { domain, type SolanaService, sol, startSolanaService } from '../service/solana-harness.ts'
import type { Wallet } from '../solana-chain/wallet.ts'

export const KEY = 'team-a/stake-1'
export const AMOUNT = 5n * sol
export const FEE = 5_000n

export type { Around } from '../../../src/operator/testing/mortal.ts'

/** What a port's method answers in place of what it would: the lies of a service. */
type Lie = (answer: never) => unknown

/** The service and the cluster, real, in this process; they are shared by the worlds of a file. */
export async function startSolanaParts(store: Store) {
  const solana = await startSolanaService(store, { defaultVoteAccount: true })
  const client = createStakingClient({ baseUrl: solana.service.url, apiKey: () => new Secret(solana.key), clock: systemClock })
  const { api } = apiOver(client, { clock: systemClock }).solana
  const config = {
    name: 'solana-test',
    chain: 'Solana' as const,
    rpcUrls: [solana.cluster.url],
    genesisHash: solana.cluster.genesisHash,
    pollIntervalMs: 1_000,
  }
  return {
    ...solana,
    api,
    config,
    close: async () => {
      await client.close()
      await solana.close()
    },
  }
}
export type SolanaParts = Awaited<ReturnType<typeof startSolanaParts>>

export type SolanaWorld = ReturnType<typeof createSolanaWorld>
/** One running operator, as far as time is driven by the world. */
export interface SolanaOperator {
  readonly killed: boolean
  visit(key: string): Promise<Result | typeof KILLED>
}

/** An API server in memory, and operators over the real service, cluster and programs. Time is blocks, which are made by hand. */
export function createSolanaWorld(parts: Pick<SolanaService, 'cluster' | 'payer' | 'withdrawer' | 'validator'> & SolanaParts) {
  const { cluster, payer, withdrawer } = parts
  const mounted = new Map<string, Wallet>([
    ['payer', payer],
    ['withdrawer', withdrawer],
  ])
  /** Everything that any operator of this world has signed. */
  const signed: { readonly by: string; readonly what: 'message' | 'challenge'; readonly bytes: Uint8Array }[] = []
  const lies = new Map<keyof SolanaStakingApi, Lie>()
  const events: { readonly reason: string; readonly note: string }[] = []
  const refusals: string[] = []
  const logged: unknown[] = []
  const state: { now: () => Date; rpcUrls: readonly string[] } = { now: () => new Date(), rpcUrls: [cluster.url] }
  const clock = { ...systemClock, now: () => state.now() }
  const kube = createFakeKube(clock)
  const stakes = kube.collection<SolanaStake & KubeObject>(solanaStake)
  const signers = kube.collection<StakingSigner & KubeObject>(stakingSigner)

  const walletOf = (keyName: string, expected: string): Wallet => {
    const wallet = mounted.get(keyName)
    if (wallet === undefined) throw new KeyError('missing', `keys/${keyName}: missing`)
    if (wallet.address !== expected) throw new KeyError('address-mismatch', `keys/${keyName}: another address`)
    return wallet
  }
  const keys: SolanaKeys = {
    address: async (keyName) => {
      const wallet = mounted.get(keyName)
      if (wallet === undefined) throw new KeyError('missing', `keys/${keyName}: missing`)
      return wallet.address
    },
    signMessage: async (keyName, expected, message) => {
      signed.push({ by: keyName, what: 'message', bytes: message })
      return walletOf(keyName, expected).sign(message)
    },
    signOffchainMessage: async (keyName, expected, text) => {
      const bytes = encodeOffchainMessage(text)
      signed.push({ by: keyName, what: 'challenge', bytes })
      return encodeBase58(walletOf(keyName, expected).sign(bytes))
    },
  }
  const lying = new Proxy(parts.api, {
    get(target, method: keyof SolanaStakingApi) {
      const call = target[method] as (...args: unknown[]) => Promise<unknown>
      return async (...args: unknown[]) => {
        const answer = await call(...args)
        const lie = lies.get(method)
        return lie === undefined ? answer : lie(structuredClone(answer) as never)
      }
    },
  })

  function start(around: Around = () => {}): SolanaOperator {
    function note(...line: unknown[]) {
      logged.push(line)
    }
    const log = { debug: note, info: note, warn: note, child: () => log }
    const operator = startInMemory(
      kube,
      {
        clock,
        log,
        namespace: (name) => ({ name, labels: {} }),
        onEvent: (_object, { reason, note: text }) => void events.push({ reason, note: text }),
        onRefusal: (reason) => void refusals.push(reason),
        ports(instrument) {
          const network: SolanaNetwork = {
            config: parts.config,
            chain: instrument(
              'chain',
              createSolanaChain({ config: { ...parts.config, rpcUrls: [...state.rpcUrls] }, clock: systemClock, timeoutMs: 5_000 }),
            ),
            api: instrument('api', lying),
            challengeDomain: domain,
          }
          return {
            networks: {
              ethereum: () => undefined,
              solana: (name) => (name === parts.config.name ? network : undefined),
              names: (chain) => (chain === 'Solana' ? [parts.config.name] : []),
            },
            keys: createFakeKeys().keys,
            solanaKeys: instrument('keys', keys),
          }
        },
      },
      around,
    )
    return {
      get killed() {
        return operator.killed
      },
      visit: (key) => operator.reconcile('solanaStakes', key),
    }
  }

  const statusOf = (key = KEY): SolanaStakeStatus => stakes.get(key)?.status ?? {}
  const world = {
    parts,
    cluster,
    stakes,
    signers,
    mounted,
    signed,
    /** Messages of transactions that were signed. */
    signedMessages: () => signed.filter(({ what }) => what === 'message'),
    lies,
    events,
    refusals,
    logged,
    state,
    start,
    addSigners(policy: Partial<StakingSigner['spec']['policy']> = {}) {
      for (const [name, { address }] of [
        ['payer', payer],
        ['withdrawer', withdrawer],
      ] as const)
        signers.create({
          metadata: { name },
          spec: {
            chain: 'Solana',
            keyName: name,
            address,
            policy: {
              allowedNamespaces: { names: ['team-a'] },
              maxPerTransaction: String(100n * sol),
              maxFeePerGasGwei: '100',
              maxPriorityFeeLamports: '100000',
              ...policy,
            },
          },
        })
    },
    addStake(change: Partial<SolanaStakeSpec> = {}, key = KEY, metadata: object = {}) {
      const [namespace = '', name = ''] = key.split('/')
      return stakes.create({
        metadata: { namespace, name, ...metadata },
        spec: {
          network: parts.config.name,
          amountLamports: String(AMOUNT),
          stakeAuthority: { signer: 'payer' },
          withdrawAuthority: { signer: 'withdrawer' },
          desiredState: 'Active',
          maxPriorityFeeLamports: '10000',
          ...change,
        },
      })
    },
    status: statusOf,
    condition: (type: string, key = KEY): Condition | undefined => findCondition(statusOf(key).conditions, type),
    ready: (key = KEY): boolean => findCondition(statusOf(key).conditions, 'Ready')?.status === 'True',
    stalled(key = KEY): string {
      const condition = findCondition(statusOf(key).conditions, 'Stalled')
      return condition?.status === 'True' ? condition.reason : ''
    },
    editStatus: (change: (status: SolanaStakeStatus) => object | undefined, key = KEY) =>
      stakes.edit(key, (stake) => ({ ...stake, status: change(stake.status ?? {}) })),
    editSpec: (change: Partial<SolanaStakeSpec>, key = KEY) =>
      stakes.edit(key, (stake) => ({ ...stake, spec: { ...stake.spec, ...change } })),
    annotate: (annotations: Record<string, string>, key = KEY) =>
      stakes.edit(key, (stake) => ({
        ...stake,
        metadata: { ...stake.metadata, annotations: { ...stake.metadata.annotations, ...annotations } },
      })),
    /** Visits a resource until it has nothing to do at once. */
    async visit(operator: SolanaOperator, key = KEY): Promise<Result | { kind: 'error'; error: unknown } | { kind: 'killed' }> {
      for (let count = 0; count < 20; count++) {
        try {
          const result = await operator.visit(key)
          if (result === KILLED) return { kind: 'killed' }
          if (result.kind === 'again' || (result.kind === 'wait' && result.afterMs < 500)) continue
          return result
        } catch (error) {
          return { kind: 'error', error }
        }
      }
      throw new Error(`${key} always has something to do at once: a loop without an end`)
    },
    /** Visits, and makes blocks and now and then an epoch, until it is Ready, gone, stalled, or the rounds are over. */
    async settle(operator: SolanaOperator, { key = KEY, rounds = 16 }: { key?: string; rounds?: number } = {}): Promise<void> {
      for (let round = 0; round < rounds; round++) {
        const result = await world.visit(operator, key)
        // What often passes is a Halt; all else is a defect, of the operator or of the test.
        if (result.kind === 'error' && !(result.error instanceof Halt)) throw result.error
        if (result.kind === 'killed' || stakes.get(key) === undefined || world.ready(key) || world.stalled(key) !== '') return
        cluster.settle()
        const phase = statusOf(key).phase
        if (phase === 'Activating' || phase === 'Deactivating') cluster.nextEpoch()
      }
    },
    /** Makes as many blocks as a blockhash lives, and their finality. */
    expire: () => {
      cluster.produce(160)
      cluster.settle()
    },
    explain: (key = KEY): string => JSON.stringify({ status: statusOf(key), events }, null, 1),
  }
  return world
}

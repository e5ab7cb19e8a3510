import { encodeBase58 } from '../../../src/chains/solana/base58.ts'
import { encodeOffchainMessage } from '../../../src/chains/solana/challenge.ts'
import { createSolanaChain } from '../../../src/chains/solana/rpc-chain.ts'
import { createStakingClient } from '../../../src/contract/client.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { Secret } from '../../../src/lib/secret.ts'
import type { KubeObject } from '../../../src/operator/kube/objects.ts'
import { apiOver } from '../../../src/operator/networks/staking-api.ts'
import { KeyError, type SolanaKeys, type SolanaNetwork, type SolanaStakingApi } from '../../../src/operator/ports.ts'
import { createFakeKeys } from '../../../src/operator/testing/fake-keys.ts'
import { createFakeKube } from '../../../src/operator/testing/fake-kube.ts'
import type { Around } from '../../../src/operator/testing/mortal.ts'
import { startInMemory } from '../../../src/operator/testing/operator-in-memory.ts'
import { KEY, recordsOf, type SolanaOperator, solanaResources, visitWithLog } from '../../../src/operator/testing/solana-resources.ts'
import { type SolanaStake, solanaStake } from '../../../src/resources/solana-stake.ts'
import { type SolanaStakeAuthorization, solanaStakeAuthorization } from '../../../src/resources/solana-stake-authorization.ts'
import { type StakingSigner, stakingSigner } from '../../../src/resources/staking-signer.ts'
import { type StakingTransaction, stakingTransaction } from '../../../src/resources/staking-transaction.ts'
import type { Store } from '../../../src/service/store/database.ts'
import { domain, type SolanaService, sol, startSolanaService } from '../service/solana-harness.ts'
import type { Wallet } from '../solana-chain/wallet.ts'

export const AMOUNT = 5n * sol
export const FEE = 5_000n

export type { Around } from '../../../src/operator/testing/mortal.ts'
export { KEY, type SolanaOperator } from '../../../src/operator/testing/solana-resources.ts'

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
  const authorizations = kube.collection<SolanaStakeAuthorization & KubeObject>(solanaStakeAuthorization)
  const records = kube.collection<StakingTransaction & KubeObject>(stakingTransaction)

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
      const member: unknown = target[method]
      if (typeof member !== 'function') return member
      const call = member as (...args: unknown[]) => Promise<unknown>
      return async (...args: unknown[]) => {
        const answer = await call(...args)
        const lie = lies.get(method)
        return lie === undefined ? answer : lie(structuredClone(answer) as never)
      }
    },
  })

  function start(around: Around = () => {}): SolanaOperator & { visitAuthorization(key: string): Promise<unknown> } {
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
        refreshNamespace: async () => {},
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
      records: (key) => recordsOf(operator, key),
      visit: (key) => visitWithLog(operator, key),
      visitAuthorization: (key) => visitWithLog(operator, key, 'authorizations'),
    }
  }

  const resources = solanaResources(
    { stakes, signers },
    {
      network: parts.config.name,
      amount: AMOUNT,
      signers: { payer: payer.address, withdrawer: withdrawer.address },
      passTime: cluster.settle,
      nextEpoch: () => void cluster.nextEpoch(),
    },
  )
  return {
    parts,
    cluster,
    stakes,
    signers,
    authorizations,
    records,
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
    ...resources,
    /** Makes as many blocks as a blockhash lives, and their finality. */
    expire: () => {
      cluster.produce(160)
      cluster.settle()
    },
    explain: (key = KEY): string => JSON.stringify({ status: resources.status(key), events }, null, 1),
  }
}

import { decodeInstruction } from '../../chains/solana/instructions.ts'
import { testAddress } from '../../chains/solana/testing.ts'
import { type SolanaStake, solanaStake } from '../../resources/solana-stake.ts'
import {
  type SolanaStakeAuthorization,
  type SolanaStakeAuthorizationSpec,
  solanaStakeAuthorization,
} from '../../resources/solana-stake-authorization.ts'
import { type StakingSigner, stakingSigner } from '../../resources/staking-signer.ts'
import { type StakingTransaction, stakingTransaction } from '../../resources/staking-transaction.ts'
import type { EventText } from '../kube/events.ts'
import type { KubeObject } from '../kube/objects.ts'
import type { SolanaNetwork } from '../ports.ts'
import { createFakeApprovals } from './fake-approvals.ts'
import { createFakeKeys } from './fake-keys.ts'
import { createFakeKube } from './fake-kube.ts'
import { createFakeNamespaces } from './fake-namespaces.ts'
import { createFakeSolanaChain } from './fake-solana-chain.ts'
import { createFakeSolanaKeys } from './fake-solana-keys.ts'
import { createFakeSolanaStakingApi } from './fake-solana-staking-api.ts'
import type { Around } from './mortal.ts'
import { startInMemory } from './operator-in-memory.ts'
import { KEY, recordsOf, SOL, solanaResources, visitWithLog } from './solana-resources.ts'
import { createTestClock } from './test-clock.ts'

export { KEY, SOL, type SolanaOperator } from './solana-resources.ts'
export const AMOUNT = 5n * SOL
export const NETWORK = 'devnet'
const DOMAIN = 'staking.example'
export const GENESIS = testAddress(98)
/** Keys of `testKey` by folder, each with a StakingSigner of its name. */
const numbers = new Map([
  ['payer', 1],
  ['withdrawer', 2],
])
export const payer = testAddress(1)
export const withdrawer = testAddress(2)
export const voteAccount = testAddress(3)
const FUNDS = 1_000n * SOL

export type SolanaWorld = ReturnType<typeof createSolanaWorld>
/**
 * Everything that SolanaStakes need, in memory: an API server, a cluster that executes real messages, a staking API, keys, time. `start` starts an
 * operator, by its own composition, with fresh memory on the same stores.
 */
export function createSolanaWorld() {
  const clock = createTestClock()
  const kube = createFakeKube(clock)
  const stakes = kube.collection<SolanaStake & KubeObject>(solanaStake)
  const signers = kube.collection<StakingSigner & KubeObject>(stakingSigner)
  const cluster = createFakeSolanaChain(NETWORK, () => clock.now().getTime())
  const authorizations = kube.collection<SolanaStakeAuthorization & KubeObject>(solanaStakeAuthorization)
  cluster.addVoteAccount(voteAccount)
  for (const address of [payer, withdrawer]) cluster.fund(address, FUNDS)
  cluster.settle()
  const service = createFakeSolanaStakingApi({ chain: cluster.apiChain, clock, domain: DOMAIN, voteAccount })
  const keys = createFakeSolanaKeys(numbers)
  const namespaces = createFakeNamespaces([['team-a', {}]])
  const approvals = createFakeApprovals(kube)
  const events: { readonly key: string; readonly text: EventText }[] = []
  const refusals: string[] = []
  /** Genesis hashes by the network's name: any other than `GENESIS` is a cluster where nothing ever was. */
  const networks = new Map([[NETWORK, GENESIS]])

  function start(around: Around = () => {}) {
    const operator = startInMemory(
      kube,
      {
        clock,
        ...namespaces.ports,
        ...approvals.ports,
        onEvent: (object, text) => void events.push({ key: object.metadata.name, text }),
        onRefusal: (reason) => void refusals.push(reason),
        ports(instrument) {
          const own = { chain: instrument('chain', cluster.chain), api: instrument('api', service.api), challengeDomain: DOMAIN }
          const other = { ...own, chain: createFakeSolanaChain('other').chain }
          const solana = (name: string): SolanaNetwork | undefined => {
            const genesisHash = networks.get(name)
            if (genesisHash === undefined) return undefined
            const config = { name, chain: 'Solana' as const, rpcUrls: ['http://127.0.0.1:1'], genesisHash, pollIntervalMs: 5_000 }
            return { config, ...(genesisHash === GENESIS ? own : other) }
          }
          return {
            networks: {
              ethereum: () => undefined,
              solana,
              names: (chain) => (chain === 'Solana' ? [...networks.keys()] : []),
            },
            keys: createFakeKeys().keys,
            solanaKeys: instrument('keys', keys.keys),
          }
        },
      },
      around,
    )
    return {
      kill: operator.kill,
      state: operator.state,
      get killed() {
        return operator.killed
      },
      caches: {
        stakes: operator.cache<SolanaStake & KubeObject>(solanaStake),
        signers: operator.cache<StakingSigner & KubeObject>(stakingSigner),
        log: operator.cache<StakingTransaction & KubeObject>(stakingTransaction),
      },
      records: (key: string) => recordsOf(operator, key),
      visit: (key: string) => visitWithLog(operator, key),
      visitAuthorization: (key: string) => visitWithLog(operator, key, 'authorizations'),
      authorizationRecords: (key: string) => recordsOf(operator, key, solanaStakeAuthorization.kind),
      visitRecord: (name: string) => operator.reconcile('records', name),
      visitSigner: (name: string) => operator.reconcile('signers', name),
    }
  }

  const resources = solanaResources(
    { stakes, signers },
    {
      network: NETWORK,
      amount: AMOUNT,
      signers: { payer, withdrawer },
      passTime: () => {
        cluster.settle()
        clock.advance(60_000)
      },
      nextEpoch: cluster.nextEpoch,
    },
  )
  return {
    /** The objects of a kind. */
    collection: kube.collection,
    /** All of etcd as it is now, as in a backup. @returns what sets it to that */
    copyEtcd: kube.copy,
    clock,
    cluster,
    service,
    keys,
    stakes,
    authorizations,
    signers,
    approvals,
    /** Hands authorities of a stake over. */
    addAuthorization(spec: Partial<SolanaStakeAuthorizationSpec>, key = 'team-a/hand-over', metadata: object = {}) {
      const [namespace = '', name = ''] = key.split('/')
      return authorizations.create({
        metadata: { namespace, name, ...metadata },
        spec: { stakeRef: { name: 'stake-1' }, maxPriorityFeeLamports: '10000', ...spec },
      })
    },
    namespaces: namespaces.actual,
    silenceNamespaces: namespaces.silence,
    events,
    refusals,
    networks,
    start,
    ...resources,
    /** What must hold whatever happened: each stake's account was funded once with its amount at most, and all money is where it belongs. */
    assertMoney(expected: { readonly funded: number; readonly withdrawn: number }): void {
      const problems: string[] = []
      const landed = cluster.landed()
      const made = landed
        .filter(({ failure }) => failure === undefined)
        .flatMap(({ message }) => message.instructions.map(decodeInstruction))
        .flatMap((one) => (one.kind === 'initialize' ? [one.account] : []))
      if (new Set(made).size !== made.length) problems.push('an account was funded twice')
      if (made.length !== expected.funded) problems.push(`${made.length} accounts were funded instead of ${expected.funded}`)
      const fees = landed.reduce((sum, { fee }) => sum + fee, 0n)
      const staked = BigInt(expected.funded - expected.withdrawn) * AMOUNT
      const back = BigInt(expected.withdrawn) * AMOUNT
      const holds = { payer: cluster.balance(payer), withdrawer: cluster.balance(withdrawer) }
      if (holds.payer !== FUNDS - staked - back - fees) problems.push(`the payer holds ${holds.payer} lamports after ${fees} of fees`)
      if (holds.withdrawer !== FUNDS + back) problems.push(`the withdrawer holds ${holds.withdrawer} lamports`)
      if (problems.length > 0) throw new Error(problems.join('\n'))
    },
    explain: (key = KEY): string => JSON.stringify({ status: resources.status(key), events }, null, 1),
  }
}

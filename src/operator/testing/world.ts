import type { Address, Hex } from '../../chains/ethereum/chain.ts'
import { type EthereumNetworkConfig, ethereumNetworkConfig } from '../../chains/ethereum/networks.ts'
import { withdrawalRequestContract } from '../../chains/ethereum/requests.ts'
import type { SolanaAddress } from '../../chains/solana/chain.ts'
import { gwei, lamports } from '../../lib/amounts.ts'
import { type Condition, findCondition } from '../../resources/conditions.ts'
import { type EthereumStake, type EthereumStakeSpec, type EthereumStakeStatus, ethereumStake } from '../../resources/ethereum-stake.ts'
import { type SignerNonce, signerNonce } from '../../resources/signer-nonce.ts'
import { type StakingApproval, stakingApproval } from '../../resources/staking-approval.ts'
import { type StakingSigner, type StakingSignerSpec, stakingSigner } from '../../resources/staking-signer.ts'
import { type StakingTransaction, stakingTransaction } from '../../resources/staking-transaction.ts'
import { type ValidatorExit, type ValidatorExitSpec, validatorExit } from '../../resources/validator-exit.ts'
import type { ValidatorRequestStatus } from '../../resources/validator-request.ts'
import { type ValidatorWithdrawal, type ValidatorWithdrawalSpec, validatorWithdrawal } from '../../resources/validator-withdrawal.ts'
import type { Result } from '../kube/controller.ts'
import type { EventText } from '../kube/events.ts'
import type { KubeObject } from '../kube/objects.ts'
import { type Clock, type EthereumKeys, type EthereumNetwork, KeyError, type SolanaNetwork } from '../ports.ts'
import { senderOf } from '../transactions/ethereum-texts.ts'
import { laneKey } from '../transactions/names.ts'
import { createFakeApprovals } from './fake-approvals.ts'
import { createFakeChain } from './fake-chain.ts'
import { createFakeKeys, testAddress } from './fake-keys.ts'
import { createFakeKube } from './fake-kube.ts'
import { createFakeNamespaces } from './fake-namespaces.ts'
import { createFakeRequestsApi } from './fake-requests-api.ts'
import { createFakeStakingApi, makeStake } from './fake-staking-api.ts'
import { type Around, KILLED } from './mortal.ts'
import { startInMemory } from './operator-in-memory.ts'
import { createTestClock } from './test-clock.ts'

export const ETH = 10n ** 18n
export const GWEI = 10n ** 9n
/** A withdrawal address with a right checksum. */
export const withdrawalAddress = '0x52908400098527886E0F7030069857D2E4169EE7'
export const KEY = 'team-a/stake-1'
export const EXIT = 'exit:team-a/exit-1'
export const WITHDRAWAL = 'withdrawal:team-a/withdrawal-1'
/** What kind a key of this world names. */
function kindOf(key: string): { readonly kind: 'stake' | 'exit' | 'withdrawal'; readonly key: string } {
  const [, prefix, rest = key] = /^(?:(exit|withdrawal):)?(.*)$/.exec(key) ?? []
  return { kind: prefix === 'exit' || prefix === 'withdrawal' ? prefix : 'stake', key: rest }
}
const someStake = {
  network: 'hoodi',
  amountGwei: gwei(32_000_000_000n),
  withdrawalAddress,
  credentialsType: '0x02',
  externalReference: 'none',
} as const

export const hoodi: EthereumNetworkConfig = ethereumNetworkConfig.parse({
  name: 'hoodi',
  chain: 'Ethereum',
  rpcUrls: ['http://127.0.0.1:1'],
  pollIntervalMs: 12_000,
})

/** One running operator, as far as time is driven by the world. */
interface Visits {
  visit(key: string): Promise<Result | typeof KILLED>
  /** Looks at every lane that has something open or waiting. */
  visitLanes(): Promise<Result | typeof KILLED>
  /** Whether the log has told of news for a resource since this was asked last. */
  hasNews(key: string): boolean
}
const kindNames = { stake: 'EthereumStake', exit: 'ValidatorExit', withdrawal: 'ValidatorWithdrawal' } as const

export { type Around, KILLED } from './mortal.ts'
export type World = ReturnType<typeof createWorld>
export type Operator = ReturnType<World['start']>

/**
 * Everything the operator's spine needs, in memory: an API server, a chain, a staking API, keys, time. `start` starts an operator with fresh
 * memory on the same stores; it can be ended at any point and another started, as a crash and a restart do.
 */
export function createWorld(
  options: {
    readonly depth?: number
    readonly bumpAfterMs?: number
    readonly nodes?: number
    /** The keys of each operator that starts, in place of mounted ones. */
    readonly openKeys?: (clock: Clock) => EthereumKeys
  } = {},
) {
  const clock = createTestClock()
  const begunMs = clock.now().getTime()
  const chain = createFakeChain({
    // By the true time, wherever a test sets the clock.
    blockSeconds: () => Math.floor((begunMs + clock.monotonicMs()) / 1_000),
    chainId: hoodi.chainId,
    contract: hoodi.depositContractAddress,
    depth: options.depth ?? 2,
    nodes: options.nodes ?? 1,
  })
  const service = createFakeStakingApi(hoodi)
  const requests = createFakeRequestsApi(hoodi, chain)
  requests.state.withdrawalAddress = testAddress(0)
  const keys = createFakeKeys()
  const kube = createFakeKube(clock)
  const exits = kube.collection<ValidatorExit & KubeObject>(validatorExit)
  const withdrawals = kube.collection<ValidatorWithdrawal & KubeObject>(validatorWithdrawal)
  const stakes = kube.collection<EthereumStake & KubeObject>(ethereumStake)
  const signers = kube.collection<StakingSigner & KubeObject>(stakingSigner)
  const records = kube.collection<StakingTransaction & KubeObject>(stakingTransaction)
  const places = kube.collection<SignerNonce & KubeObject>(signerNonce)
  const fakeNamespaces = createFakeNamespaces([
    ['team-a', { team: 'a' }],
    ['team-b', { team: 'b' }],
  ])
  const approvals = createFakeApprovals(kube)
  const networks = new Map<string, EthereumNetworkConfig>([['hoodi', hoodi]])
  /** Addresses of the mounted Solana keys by folder, and what they hold in lamports. */
  const solanaKeys = new Map<string, string>()
  const solanaBalances = new Map<string, bigint>()
  const keyOfSolana = (keyName: string): SolanaAddress => {
    const address = solanaKeys.get(keyName)
    if (address === undefined) throw new KeyError('missing', `There is no key ${keyName}.`)
    return address as SolanaAddress
  }
  const events: { readonly key: string; readonly text: EventText }[] = []
  const refusals: string[] = []
  const alarms: { readonly network: string; readonly signer: string; readonly reason: string }[] = []

  function start(around: Around = () => {}, random: () => number = () => 0.5) {
    const operator = startInMemory(
      kube,
      {
        clock,
        random,
        ...fakeNamespaces.ports,
        ...approvals.ports,
        onEvent: (object, text) => void events.push({ key: object.metadata.name, text }),
        onRefusal: (reason) => void refusals.push(reason),
        onAlarm: (alarm) => void alarms.push(alarm),
        ports(instrument) {
          const port: Pick<EthereumNetwork, 'chain' | 'api' | 'requests'> = {
            chain: instrument('chain', chain.chain),
            api: instrument('api', service.api),
            requests: instrument('requests', requests.api),
          }
          return {
            networks: {
              ethereum: (name) => {
                const config = networks.get(name)
                return config && { config, ...port, bumpAfterMs: options.bumpAfterMs ?? 60_000 }
              },
              // What a signer's own conditions need of a cluster: the balance.
              solana: (name) =>
                name === 'devnet'
                  ? ({
                      chain: { balance: async (address: string) => lamports(solanaBalances.get(address) ?? 0n) },
                    } as unknown as SolanaNetwork)
                  : undefined,
              names: (chain) => (chain === 'Ethereum' ? [...networks.keys()] : ['devnet']),
            },
            keys: instrument('keys', options.openKeys?.(clock) ?? keys.keys),
            solanaKeys: { ...noSolanaSignatures, address: async (keyName) => keyOfSolana(keyName) },
          }
        },
      },
      around,
    )
    const cacheNamed = { stake: 'stakes', exit: 'exits', withdrawal: 'withdrawals' } as const
    return {
      ...operator,
      get killed() {
        return operator.killed
      },
      caches: {
        stakes: operator.cache<EthereumStake & KubeObject>(ethereumStake),
        signers: operator.cache<StakingSigner & KubeObject>(stakingSigner),
        exits: operator.cache<ValidatorExit & KubeObject>(validatorExit),
        withdrawals: operator.cache<ValidatorWithdrawal & KubeObject>(validatorWithdrawal),
        records: operator.cache<StakingTransaction & KubeObject>(stakingTransaction),
        places: operator.cache<SignerNonce & KubeObject>(signerNonce),
        approvals: operator.cache<StakingApproval & KubeObject>(stakingApproval),
      },
      hasNews: (key: string) => operator.hasNews(`${kindNames[kindOf(key).kind]}/${kindOf(key).key}`),
      async visitLanes(): Promise<Result | typeof KILLED> {
        let result: Result | typeof KILLED = { kind: 'done' }
        const lanes = new Set(
          [...operator.cache<StakingTransaction & KubeObject>(stakingTransaction).list()]
            .filter(({ spec, status }) => spec.chainId !== undefined && status?.outcome === undefined)
            .map(({ spec }) => laneKey({ chainId: spec.chainId ?? 0, address: senderOf({ spec }) })),
        )
        for (const lane of lanes)
          for (let looks = 0; ; looks++) {
            if (looks === 100) throw new Error(`${lane} is looked at again and again`)
            result = await operator.reconcile('records', lane)
            if (result === KILLED) return KILLED
            if (result.kind !== 'again') break
          }
        return result
      },
      /** `exit:` and `withdrawal:` before the key say the kind; a stake's has none. */
      visit: (key: string) => operator.reconcile(cacheNamed[kindOf(key).kind], kindOf(key).key),
      visitSigner: (name: string) => operator.reconcile('signers', name),
    }
  }

  const collectionOf = (key: string) => ({ stake: stakes, exit: exits, withdrawal: withdrawals })[kindOf(key).kind]
  const objectOf = (key: string) => collectionOf(key).get(kindOf(key).key)
  const conditionsOf = (key: string) => objectOf(key)?.status?.conditions
  const statusOf = (key = KEY): EthereumStakeStatus => stakes.get(key)?.status ?? {}
  const requestStatusOf = (key: string): ValidatorRequestStatus => (objectOf(key)?.status ?? {}) as ValidatorRequestStatus
  const pubkeys = new Map<number, Hex>()
  /** The public key of a validator whose withdrawal address is the first signer's. */
  const validator = (index = 0): Hex => {
    const known = pubkeys.get(index) ?? makeStake(hoodi, someStake, '', 1_000 + index).depositData.pubkey
    pubkeys.set(index, known)
    return known
  }
  const world = {
    /** The objects of a kind. */
    collection: kube.collection,
    /** All of etcd as it is now, as in a backup. @returns what sets it to that */
    copyEtcd: kube.copy,
    clock,
    chain,
    service,
    requests,
    validator,
    exits,
    withdrawals,
    keys,
    stakes,
    signers,
    records,
    places,
    approvals,
    namespaces: fakeNamespaces.actual,
    silenceNamespaces: fakeNamespaces.silence,
    networks,
    solanaKeys,
    solanaBalances,
    events,
    refusals,
    /** What was counted as an alarm. */
    alarms,
    start,
    addSigner(name = 'signer-1', change: Partial<StakingSignerSpec> = {}, policy: Partial<StakingSignerSpec['policy']> = {}, index = 0) {
      const address = testAddress(index)
      if (chain.balance(address) === 0n) chain.fund(address, 1_000n * ETH)
      return signers.create({
        metadata: { name },
        spec: {
          chain: 'Ethereum',
          keyName: `key-${index}`,
          address,
          policy: {
            allowedNamespaces: { names: ['team-a'] },
            maxPerTransaction: '2048',
            maxFeePerGasGwei: '100',
            maxRequestFeeGwei: '1000000',
            // Most requests of the tests are for validators that nobody here has staked.
            validators: 'Any',
            ...policy,
          },
          ...change,
        },
      })
    },
    addStake(key = KEY, change: Partial<EthereumStakeSpec> = {}, metadata: object = {}) {
      const [namespace = '', name = ''] = key.split('/')
      return stakes.create({
        metadata: { namespace, name, ...metadata },
        spec: { network: 'hoodi', amountEth: '32', withdrawalAddress, credentialsType: 'Compounding', signer: 'signer-1', ...change },
      })
    },
    addExit(key = EXIT, change: Partial<ValidatorExitSpec> = {}, metadata: object = {}) {
      const [namespace = '', name = ''] = kindOf(key).key.split('/')
      return exits.create({
        metadata: { namespace, name, ...metadata },
        spec: { validator: { network: 'hoodi', pubkey: validator() }, signer: 'signer-1', ...change },
      })
    },
    addWithdrawal(key = WITHDRAWAL, change: Partial<ValidatorWithdrawalSpec> = {}, metadata: object = {}) {
      const [namespace = '', name = ''] = kindOf(key).key.split('/')
      return withdrawals.create({
        metadata: { namespace, name, ...metadata },
        spec: { validator: { network: 'hoodi', pubkey: validator() }, signer: 'signer-1', amountGwei: '1000000000', ...change },
      })
    },
    object: objectOf,
    requestStatus: requestStatusOf,
    editRequest: (
      key: string,
      change: (object: { spec: ValidatorExitSpec; status?: ValidatorRequestStatus; metadata: object }) => unknown,
    ) => collectionOf(key).edit(kindOf(key).key, change as never),
    editRequestStatus: (change: (status: ValidatorRequestStatus) => object | undefined, key: string) =>
      collectionOf(key).edit(kindOf(key).key, ((object: { status?: ValidatorRequestStatus }) => ({
        ...object,
        status: change(object.status ?? {}),
      })) as never),
    remove: (key: string) => collectionOf(key).remove(kindOf(key).key),
    status: statusOf,
    condition: (type: string, key = KEY): Condition | undefined => findCondition(conditionsOf(key), type),
    /** Why it needs a person; '' when it doesn't. */
    stalled(key = KEY): string {
      const condition = findCondition(conditionsOf(key), 'Stalled')
      return condition?.status === 'True' ? condition.reason : ''
    },
    ready: (key = KEY): boolean => findCondition(conditionsOf(key), 'Ready')?.status === 'True',
    /** The record of a resource's transaction. */
    record: (key = KEY): (StakingTransaction & KubeObject) | undefined =>
      records
        .list()
        .find(
          ({ spec }) => `${spec.owner.namespace}/${spec.owner.name}` === kindOf(key).key && spec.owner.kind === kindNames[kindOf(key).kind],
        ),
    /** As when a cluster is lost and rebuilt from Git, or etcd is set back to before anything was signed. */
    loseLog(): void {
      for (const { metadata } of records.list()) records.vanish(metadata.name)
      for (const { metadata } of places.list()) places.vanish(metadata.name)
    },
    editRecord: (change: (record: StakingTransaction & KubeObject) => unknown, key = KEY) => {
      const name = world.record(key)?.metadata.name
      if (name === undefined) throw new Error(`${key} has no record`)
      return records.edit(name, change as never)
    },
    editStatus: (change: (status: EthereumStakeStatus) => object | undefined, key = KEY) =>
      stakes.edit(key, (stake) => ({ ...stake, status: change(stake.status ?? {}) })),
    editSpec: (change: Partial<EthereumStakeSpec>, key = KEY) =>
      stakes.edit(key, (stake) => ({ ...stake, spec: { ...stake.spec, ...change } })),
    editSigner: (change: Partial<StakingSignerSpec>, name = 'signer-1') =>
      signers.edit(name, (signer) => ({ ...signer, spec: { ...signer.spec, ...change } })),
    editPolicy: (change: object, name = 'signer-1') =>
      signers.edit(name, (signer) => ({ ...signer, spec: { ...signer.spec, policy: { ...signer.spec.policy, ...change } } })),
    annotate: (annotations: Record<string, string | undefined>, key = KEY) =>
      stakes.edit(key, (stake) => ({
        ...stake,
        metadata: {
          ...stake.metadata,
          annotations: Object.fromEntries(
            Object.entries({ ...stake.metadata.annotations, ...annotations }).filter(([, value]) => value !== undefined),
          ),
        },
      })),
    /** Visits a resource, and the lanes, until there is nothing to do at once. @returns the resource's last result, or the error. */
    async visit(operator: Visits, key = KEY): Promise<Result | { kind: 'error'; error: unknown } | { kind: 'killed' }> {
      let last: Result | { kind: 'error'; error: unknown } = { kind: 'done' }
      for (let count = 0; count < 30; count++) {
        try {
          operator.hasNews(key)
          const result = await operator.visit(key)
          if (result === KILLED) return { kind: 'killed' }
          last = result
          if (result.kind === 'again' || (result.kind === 'wait' && result.afterMs < 1_000)) continue
        } catch (error) {
          last = { kind: 'error', error }
        }
        try {
          if ((await operator.visitLanes()) === KILLED) return { kind: 'killed' }
        } catch (error) {
          return { kind: 'error', error }
        }
        if (!operator.hasNews(key)) return last
      }
      throw new Error(`${key} always has something to do at once: a loop without an end`)
    },
    /** Visits and mines by turns, until all are Ready or gone, or `rounds` are over. */
    async settle(operator: Visits, given: readonly string[] = [KEY], rounds = 12): Promise<void> {
      for (let round = 0; round < rounds; round++) {
        for (const key of given) if (objectOf(key) !== undefined) await world.visit(operator, key)
        if (given.every((key) => objectOf(key) === undefined || world.ready(key))) return
        clock.advance(12_000)
        chain.mine()
      }
    },
    /** What must hold whatever happened: each deposit pays what a resource asked for, no validator twice, and no two transactions ever could have. */
    assertMoney(expected: { readonly deposits: number; readonly amountEth?: string }): void {
      const deposits = chain.deposits()
      const problems = [...chain.violations]
      if (deposits.length !== expected.deposits) problems.push(`${deposits.length} deposits instead of ${expected.deposits}`)
      const pubkeys = deposits.map(({ pubkey }) => pubkey.toLowerCase())
      if (new Set(pubkeys).size !== pubkeys.length) problems.push('a validator was paid twice')
      const credentials = `0x02${'00'.repeat(11)}${withdrawalAddress.slice(2)}`.toLowerCase()
      for (const { withdrawalCredentials, amountGwei } of deposits) {
        if (withdrawalCredentials.toLowerCase() !== credentials) problems.push('a deposit pays to other credentials')
        if (amountGwei !== BigInt(expected.amountEth ?? '32') * GWEI) problems.push(`a deposit of ${amountGwei} gwei`)
      }
      for (const { transaction } of keys.signed)
        if (
          transaction.to !== hoodi.depositContractAddress &&
          transaction.to !== withdrawalRequestContract &&
          !(transaction.valueWei === 0n && transaction.data === '0x')
        )
          problems.push(`something was signed for ${transaction.to}`)
      if (problems.length > 0) throw new Error(problems.join('\n'))
    },
  }
  return world
}

const refuseToSign = async (): Promise<never> => {
  throw new Error('nothing is signed for Solana in this world')
}
const noSolanaSignatures = { signMessage: refuseToSign, signOffchainMessage: refuseToSign }

export const addressOf = (index: number): Address => testAddress(index)

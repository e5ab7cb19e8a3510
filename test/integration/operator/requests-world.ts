import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { type CredentialsType, signDepositMessage, withdrawalCredentials } from '../../../src/chains/ethereum/deposit.ts'
import { decodeRequestLog, withdrawalRequestContract } from '../../../src/chains/ethereum/requests.ts'
import { gwei } from '../../../src/lib/amounts.ts'
import { findCondition } from '../../../src/resources/conditions.ts'
import type { Anvil } from '../../chains/anvil.ts'
import { type BeaconSimulator, startBeaconSimulator } from '../../chains/beacon/simulator.ts'
import type { RpcLog } from '../../chains/deposit-contract.ts'
import { type FaultyProxy, startFaultyHttp } from '../../chains/faulty-http.ts'
import type { ControlPlane } from '../../cluster/control-plane.ts'
import { startStackEthereum } from '../../stack/ethereum.ts'
import {
  eventsOf,
  eventually,
  getOne,
  type Kinds,
  PAYER,
  seen,
  untilSeen,
  validatorExit,
  validatorWithdrawal,
} from '../../stack/resources.ts'
import { clientOf, FAST_BEACON, NETWORK, type Stack, startStack } from '../../stack/stack.ts'
import { PATIENT_LEASE } from './harness.ts'

type Hex = `0x${string}`
export type RequestPlural = 'validatorexits' | 'validatorwithdrawals'
export const bothKinds: readonly RequestPlural[] = ['validatorexits', 'validatorwithdrawals']

export const ETH = 1_000_000_000n
/** The lowest cap there is, in gwei, and an excess that asks for some 0.05 gwei: it takes two minutes to fall to one wei. */
export const ONE_WEI = '0.000000001'
export const OVER_ONE_WEI = 300n
/**
 * An epoch takes four seconds. Young validators, and withdrawals that are still to be paid, stay so for minutes: tests see them, and then jump.
 */
export const YOUNG_EPOCHS = 64
const LONG_BEACON = {
  ...FAST_BEACON,
  spec: { ...FAST_BEACON.spec, SHARD_COMMITTEE_PERIOD: YOUNG_EPOCHS, MIN_VALIDATOR_WITHDRAWABILITY_DELAY: 32 },
}

/** The whole system with a proxy in front of each: the node, the staking API, the beacon chain. */
export interface RequestsWorld {
  readonly stack: Stack
  readonly cluster: ControlPlane
  readonly anvil: Anvil
  readonly beacon: BeaconSimulator
  readonly rpcFaults: FaultyProxy
  readonly beaconFaults: FaultyProxy
  /** Public key of a 0x02 validator of the signer with 40 ETH, active and old enough for everything; each handed out once. */
  fresh(): Hex
  /** Of the signer, with 0x01 credentials and 33 ETH. */
  readonly oldStyle: Hex
  /** With 0x02 credentials of the second account, and 40 ETH. */
  readonly ofSecond: Hex
  stop(): Promise<void>
}

const FORK_VERSION = FAST_BEACON.spec?.GENESIS_FORK_VERSION ?? '0x10000038'

async function startRequestsWorld(): Promise<RequestsWorld> {
  const undo: (() => Promise<unknown>)[] = []
  const stop = async () => {
    for (const step of undo.toReversed()) await step().catch(() => undefined)
  }
  try {
    const { source, anvil, stop: stopChain } = await startStackEthereum({ anvil: { mining: 1, accounts: 6 } })
    undo.push(stopChain)
    if (anvil === undefined) throw new Error('anvil did not start')
    let made = 0
    const validator = (eth: bigint, type: CredentialsType, owner = 0) => {
      made += 1
      const message = {
        withdrawalCredentials: withdrawalCredentials(type, anvil.accounts[owner]?.address ?? PAYER),
        amountGwei: gwei(eth * ETH),
        genesisForkVersion: FORK_VERSION,
      }
      const { pubkey } = signDepositMessage(new Uint8Array(32).fill(made), message)
      return { pubkey, withdrawalCredentials: message.withdrawalCredentials, amountGwei: eth * ETH }
    }
    const pool = Array.from({ length: 24 }, () => validator(40n, '0x02'))
    const [oldStyle, ofSecond] = [validator(33n, '0x01'), validator(40n, '0x02', 1)]
    const beacon = await startBeaconSimulator({ ...LONG_BEACON, anvil, validators: [...pool, oldStyle, ofSecond] })
    undo.push(() => beacon.stop())
    await beacon.advanceEpochs(YOUNG_EPOCHS + 1)
    const beaconFaults = await startFaultyHttp({ target: beacon.url })
    undo.push(() => beaconFaults.stop())
    const stack = await startStack({
      ethereum: { ...source, beaconUrl: beaconFaults.url },
      faults: true,
      operatorArgs: [...PATIENT_LEASE, '--stall-recheck', '1s', '--observe-activating', '1s'],
    })
    undo.push(() => stack.stop())
    const { rpcFaults, cluster } = stack
    if (rpcFaults === undefined) throw new Error('the proxy did not start')
    const keys = pool.map(({ pubkey }) => pubkey)
    return {
      stack,
      cluster,
      anvil,
      beacon,
      rpcFaults,
      beaconFaults,
      fresh: () => keys.shift() ?? expect.fail('the pool of validators is empty'),
      oldStyle: oldStyle.pubkey,
      ofSecond: ofSecond.pubkey,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** One world for all tests of a file. Call what it returns within tests. */
export function useRequestsWorld(): () => RequestsWorld {
  let world: RequestsWorld | undefined
  beforeAll(async () => {
    world = await startRequestsWorld()
  })
  afterEach(async () => {
    // Of a test that failed: the next one is not to suffer from it.
    world?.rpcFaults.clear()
    world?.beaconFaults.clear()
    world?.stack.apiFaults?.clear()
    world?.beacon.setBehind(0)
  })
  afterAll(async () => {
    await world?.stop()
  })
  return () => {
    if (world === undefined) throw new Error('the world did not start')
    return world
  }
}

export const byKey = (pubkey: Hex) => ({ network: NETWORK, pubkey })

/** An exit and a withdrawal of one ETH of two validators, of one name. */
export function pairOf(world: RequestsWorld, name: string, spec: Readonly<Record<string, unknown>> = {}) {
  const pubkeys = { validatorexits: world.fresh(), validatorwithdrawals: world.fresh() }
  const objects = [
    validatorExit(name, byKey(pubkeys.validatorexits), spec),
    validatorWithdrawal(name, byKey(pubkeys.validatorwithdrawals), String(ETH), spec),
  ]
  return { pubkeys, objects }
}

/** No block comes until what it returns is called. */
export async function holdBlocks({ anvil }: RequestsWorld): Promise<() => Promise<void>> {
  await anvil.rpc('evm_setIntervalMining', [0])
  return () => anvil.rpc('evm_setIntervalMining', [1])
}

/** Every EIP-7002 request in the chain, in order: `exit <pubkey>` or `<gwei> <pubkey>`. */
export async function requestsOnChain({ anvil }: Pick<RequestsWorld, 'anvil'>): Promise<readonly string[]> {
  const logs = await anvil.rpc<readonly RpcLog[]>('eth_getLogs', [
    { address: withdrawalRequestContract, fromBlock: '0x0', toBlock: 'latest' },
  ])
  return logs
    .map(decodeRequestLog)
    .map(({ request }) => `${request.kind === 'exit' ? 'exit' : request.amountGwei} ${request.pubkey.toLowerCase()}`)
}
export const requestsOf = async (world: RequestsWorld, pubkey: string): Promise<readonly string[]> =>
  (await requestsOnChain(world)).filter((request) => request.endsWith(pubkey.toLowerCase())).map((request) => request.split(' ')[0] ?? '')

/** Runs `story`, in which nothing may be signed: no request in the chain, no transaction sent, no nonce used. */
export async function whileNothingIsAsked<T>(world: RequestsWorld, story: () => Promise<T>): Promise<T> {
  const look = async () => ({
    requests: (await requestsOnChain(world)).length,
    nonces: await Promise.all(world.anvil.accounts.slice(0, 2).map(({ address }) => world.anvil.transactionCount(address, 'pending'))),
    sent: world.rpcFaults.calls('eth_sendRawTransaction'),
  })
  const before = await look()
  const result = await story()
  expect(await look(), 'nothing may be signed and sent').toEqual(before)
  return result
}

interface Where {
  readonly space?: string
  readonly timeoutMs?: number
}

/** Waits until Ready shows a reason and a text. */
export const untilShows = <K extends keyof Kinds>(
  { cluster }: RequestsWorld,
  plural: K,
  name: string,
  reason: string,
  text: RegExp,
  { space, timeoutMs = 60_000 }: Where = {},
): Promise<Kinds[K]> =>
  untilSeen(cluster, plural, name, `shows ${reason} ${text}`, (now) => now.reason === reason && text.test(now.message), timeoutMs, space)

export const untilPhase = ({ cluster }: RequestsWorld, plural: RequestPlural, name: string, phase: string) =>
  untilSeen(cluster, plural, name, `is ${phase}`, (now) => now.phase === phase)

/** Waits until it waits: with a reason and a text for people, and nobody is needed. */
export async function untilWaits<K extends RequestPlural>(
  world: RequestsWorld,
  plural: K,
  name: string,
  reason: string,
  text: RegExp,
  where: Where = {},
): Promise<Kinds[K]> {
  const resource = await untilShows(world, plural, name, reason, text, where)
  const stateOf = (type: string) => findCondition(resource.status?.conditions, type)?.status
  expect({ ready: stateOf('Ready'), reconciling: stateOf('Reconciling'), stalled: stateOf('Stalled') }).toEqual({
    ready: 'False',
    reconciling: 'True',
    stalled: 'False',
  })
  return resource
}

/** Waits until it stalls: with a reason, a text for people, and a Warning event that says the same. */
export async function untilStalls<K extends RequestPlural>(
  world: RequestsWorld,
  plural: K,
  name: string,
  reason: string,
  text: RegExp,
  where: Where = {},
): Promise<Kinds[K]> {
  const resource = await untilShows(world, plural, name, reason, text, where)
  expect(seen(resource)).toMatchObject({ ready: 'False', stalled: true })
  expect(findCondition(resource.status?.conditions, 'Stalled')).toMatchObject({ status: 'True', reason })
  await eventually(
    `a Warning event of ${name} with ${reason}`,
    () => eventsOf(world.cluster, name, where.space),
    (events) => events.some((event) => event.type === 'Warning' && event.reason === reason && text.test(event.note)),
  )
  return resource
}

/** Waits until it is accepted, and looks at the chain and the service: one request, of what it asks for. */
export async function untilAccepted<K extends RequestPlural>(
  world: RequestsWorld,
  plural: K,
  name: string,
  { space, timeoutMs = 60_000 }: Where = {},
): Promise<Kinds[K]> {
  const resource = await untilSeen(world.cluster, plural, name, 'is accepted', ({ ready }) => ready === 'True', timeoutMs, space)
  const { status, spec } = resource
  expect(status).toMatchObject({ phase: 'Accepted', consensus: { status: 'Accepted' }, transaction: { state: 'Confirmed' } })
  const asked = 'amountGwei' in spec ? spec.amountGwei : 'exit'
  const made = await requestsOf(world, status?.validator?.pubkey ?? '')
  expect(
    made.filter((request) => request === asked),
    `the requests of ${name}`,
  ).toEqual([asked])
  expect(await serviceRequest(world, plural, resource)).toMatchObject({
    status: 'confirmed',
    consensus: { status: 'accepted' },
    transaction: { hash: status?.transaction?.minedHash },
  })
  return resource
}

/** What the staking API has for a resource, by its external reference. */
export async function serviceRequest(
  { stack }: RequestsWorld,
  plural: RequestPlural,
  resource: Kinds[RequestPlural],
  pubkey: string = resource.status?.validator?.pubkey ?? '',
) {
  const client = clientOf(stack)
  const signal = AbortSignal.timeout(60_000)
  const kind = plural === 'validatorexits' ? 'ValidatorExit' : 'ValidatorWithdrawal'
  const ask = {
    params: { pubkey: pubkey as Hex },
    query: { externalReference: `${kind}/${resource.metadata.namespace}/${resource.metadata.name}` },
  }
  const { items } = (
    plural === 'validatorexits' ? await client.listExitRequests(ask, signal) : await client.listWithdrawalRequests(ask, signal)
  ).body
  await client.close()
  // One that was cancelled has made room for another.
  const [found, ...others] = [...items].sort((a, b) => Number(a.status === 'cancelled') - Number(b.status === 'cancelled'))
  expect(others.filter(({ status }) => status !== 'cancelled')).toEqual([])
  return found
}

/** A request for deletion that doesn't wait for it. */
export const deleteRequest = ({ cluster }: RequestsWorld, plural: RequestPlural, name: string, space = 'default') =>
  cluster.kubectlOk(['delete', plural, name, '-n', space, '--wait=false', '--ignore-not-found'])

export const untilGone = ({ cluster }: RequestsWorld, plural: RequestPlural, name: string, { space, timeoutMs = 60_000 }: Where = {}) =>
  eventually(
    `${plural} ${name} is gone`,
    () => getOne(cluster, plural, name, space),
    (resource) => resource === undefined,
    timeoutMs,
  )

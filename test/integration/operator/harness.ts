import { isDeepStrictEqual } from 'node:util'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import type { Address, Hex } from '../../../src/chains/ethereum/chain.ts'
import { findCondition } from '../../../src/resources/conditions.ts'
import type { EthereumStake } from '../../../src/resources/ethereum-stake.ts'
import type { StakingTransaction } from '../../../src/resources/staking-transaction.ts'
import type { SeenDeposit } from '../../chains/deposit-contract.ts'
import type { FaultyProxy } from '../../chains/faulty-http.ts'
import type { ControlPlane } from '../../cluster/control-plane.ts'
import { eventsOf, eventually, getStake, type Seen, seen } from '../../stack/resources.ts'
import { type Stack, type StackOptions, startStack } from '../../stack/stack.ts'

/** A stack with proxies in front of the chain and the service. */
export type FaultyStack = Stack & { readonly rpcFaults: FaultyProxy; readonly apiFaults: FaultyProxy }

/** A busy machine can't keep a lease of a few seconds, and what is tested here is not who leads. */
export const PATIENT_LEASE = ['--lease-duration', '30s', '--renew-deadline', '20s', '--retry-period', '1s']

/** One stack for all tests of a file; it takes some ten seconds to start. Call what it returns within tests. */
export function useStack(options: StackOptions = {}): () => FaultyStack {
  let stack: Stack | undefined
  const current = (): FaultyStack => {
    if (stack?.rpcFaults === undefined || stack.apiFaults === undefined) throw new Error('the stack did not start')
    return stack as FaultyStack
  }
  beforeAll(async () => {
    stack = await startStack({
      faults: true,
      anvil: { mining: 0.3, accounts: 6 },
      ...options,
      operatorArgs: [...PATIENT_LEASE, '--stall-recheck', '1s', ...(options.operatorArgs ?? [])],
    })
  })
  afterEach(() => {
    // Of a test that failed: the next one is not to suffer from it.
    stack?.rpcFaults?.clear()
    stack?.apiFaults?.clear()
  })
  afterAll(async () => {
    await stack?.stop()
  })
  return current
}

/** What shows whether money has moved: deposits on the chain, and transactions that reached the node. */
export interface Money {
  readonly deposits: number
  readonly sent: number
}
export const moneyOf = async ({ anvil, rpcFaults }: FaultyStack): Promise<Money> => ({
  deposits: await anvil.depositCount(),
  sent: rpcFaults.passed('eth_sendRawTransaction'),
})

/** Runs `story`, in which nothing may be signed and sent. */
export async function whileNoMoneyMoves<T>(stack: FaultyStack, story: () => Promise<T>): Promise<T> {
  const before = await moneyOf(stack)
  const result = await story()
  expect(await moneyOf(stack), 'no money may move').toEqual(before)
  return result
}

/** A block now and then until `work` is done: where blocks come when a test says so. */
export async function whileMining<T>({ anvil }: Pick<Stack, 'anvil'>, work: () => Promise<T>): Promise<T> {
  let mining = true
  const miner = (async () => {
    while (mining) {
      await anvil.mine()
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
  })()
  try {
    return await work()
  } finally {
    mining = false
    await miner
  }
}

export const conditionOf = (stake: EthereumStake, type: string) => {
  const found = findCondition(stake.status?.conditions, type)
  if (found === undefined) throw new Error(`${stake.metadata.name} has no condition ${type}`)
  return found
}

/** Waits until the stake's Ready condition shows a reason and a text. */
export const untilShows = async (
  cluster: ControlPlane,
  name: string,
  reason: string,
  text: RegExp,
  { space = 'default', timeoutMs = 60_000 } = {},
): Promise<EthereumStake> =>
  (await eventually(
    `stake ${name} shows ${reason} ${text}`,
    () => getStake(cluster, name, space),
    (value) => seen(value).reason === reason && text.test(seen(value).message),
    timeoutMs,
  )) as EthereumStake

/** Waits until the stake stalls: with a reason, a text for people, and a Warning event that says the same. */
export async function untilStalls(
  cluster: ControlPlane,
  name: string,
  reason: string,
  text: RegExp,
  options: { readonly space?: string; readonly timeoutMs?: number } = {},
): Promise<EthereumStake> {
  const stake = await untilShows(cluster, name, reason, text, options)
  const { stalled, ready }: Seen = seen(stake)
  expect({ stalled, ready }).toEqual({ stalled: true, ready: 'False' })
  expect(conditionOf(stake, 'Reconciling').status).toBe('False')
  expect(conditionOf(stake, 'Stalled')).toMatchObject({ status: 'True', reason })
  await eventually(
    `a Warning event of ${name} with ${reason}`,
    () => eventsOf(cluster, name, options.space),
    (events) => events.some((event) => event.type === 'Warning' && event.reason === reason && text.test(event.note)),
  )
  return stake
}

/** What the log has of a stake's deposit, with the resource gone or not. */
export async function recordOf({ kubectlOk }: ControlPlane, name: string, space = 'default'): Promise<StakingTransaction> {
  const owner = `spec.owner.namespace=${space},spec.owner.name=${name},spec.purpose=Deposit`
  const { items } = JSON.parse(await kubectlOk(['get', 'stx', '--field-selector', owner, '-o', 'json'])) as {
    items: readonly StakingTransaction[]
  }
  const [record] = items
  if (record === undefined || items.length > 1) throw new Error(`there are ${items.length} records of ${space}/${name}`)
  return record
}

/** The deposits on the chain for this stake's validator. */
export const depositsOf = async (stack: Stack, stake: EthereumStake): Promise<readonly SeenDeposit[]> =>
  (await stack.anvil.deposits()).filter(({ pubkey }) => pubkey.toLowerCase() === stake.status?.depositData?.pubkey.toLowerCase())

/** Waits until the stake is ready, and looks at the chain and the service: one deposit, of the right amount, to the right place; one stake. */
export async function untilPaidOnce(stack: Stack, name: string, { space = 'default', timeoutMs = 60_000 } = {}): Promise<EthereumStake> {
  const stake = (await eventually(
    `stake ${name} is ready`,
    () => getStake(stack.cluster, name, space),
    (value) => seen(value).ready === 'True',
    timeoutMs,
  )) as EthereumStake
  await expectPaidOnce(stack, stake)
  return stake
}

export async function expectPaidOnce(stack: Stack, stake: EthereumStake): Promise<void> {
  const { amountEth, withdrawalAddress, credentialsType } = stake.spec
  const deposits = await depositsOf(stack, stake)
  expect(
    deposits.map(({ withdrawalCredentials, amountGwei, txHash }) => ({ withdrawalCredentials, amountGwei, txHash })),
    `the deposits of ${stake.metadata.name}`,
  ).toEqual([
    {
      withdrawalCredentials: `0x${credentialsType === 'Execution' ? '01' : '02'}${'0'.repeat(22)}${withdrawalAddress.slice(2).toLowerCase()}`,
      amountGwei: BigInt(Math.round(Number(amountEth) * 1e9)),
      txHash: stake.status?.transaction?.minedHash,
    },
  ])
  const known = await serviceStakes(stack, stake.metadata.name, stake.metadata.namespace)
  // One whose deposit was reverted has made room for another.
  expect(known.filter(({ transaction }) => transaction.status !== 'failed')).toHaveLength(1)
}

export interface ServiceStake {
  readonly stakeId: string
  readonly depositData: { readonly pubkey: Hex; readonly withdrawalCredentials: Hex; readonly amountGwei: string; readonly signature: Hex }
  readonly transaction: { readonly status: string; readonly hash?: Hex }
  readonly withdrawalAddress: Address
}
/** The stakes that the service has for a resource's name, asked past the proxy. */
export async function serviceStakes(stack: Stack, name: string, space = 'default'): Promise<readonly ServiceStake[]> {
  const { readFileSync } = await import('node:fs')
  const response = await fetch(
    `${stack.serviceUrl}/v1/ethereum/stakes?externalReference=${encodeURIComponent(`EthereumStake/${space}/${name}`)}`,
    { headers: { authorization: `Bearer ${readFileSync(stack.apiKeyFile, 'utf8').trim()}` } },
  )
  const body = (await response.json()) as { items?: readonly ServiceStake[]; data?: readonly ServiceStake[] }
  return body.items ?? body.data ?? []
}

const stakePath = (name: string, space: string) => `/apis/staking.dev/v1alpha1/namespaces/${space}/ethereumstakes/${name}`

/** `kubectl patch --type merge`. @throws unless the API server took it. */
export async function patch(cluster: ControlPlane, path: string, body: unknown): Promise<void> {
  const answer = await cluster.request({ method: 'PATCH', path, body, contentType: 'application/merge-patch+json' })
  if (answer.status !== 200) throw new Error(`PATCH ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
}
export const patchStake = (cluster: ControlPlane, name: string, body: unknown, space = 'default') =>
  patch(cluster, stakePath(name, space), body)
export const patchStatus = (cluster: ControlPlane, name: string, status: unknown, space = 'default') =>
  patch(cluster, `${stakePath(name, space)}/status`, { status })
export const patchSigner = (cluster: ControlPlane, name: string, spec: unknown) =>
  patch(cluster, `/apis/staking.dev/v1alpha1/stakingsigners/${name}`, { spec })

export const untilGone = (cluster: ControlPlane, name: string, { space = 'default', timeoutMs = 60_000 } = {}) =>
  eventually(
    `stake ${name} is gone`,
    () => getStake(cluster, name, space),
    (value) => value === undefined,
    timeoutMs,
  )

/** A request for deletion that doesn't wait for it. */
export const deleteStake = (cluster: ControlPlane, name: string, space = 'default') =>
  cluster.kubectlOk(['delete', 'ethereumstake', name, '-n', space, '--wait=false'])

export const metricsOf = async (stack: Stack): Promise<string> => (await fetch(stack.operatorMetrics)).text()

/** The sum of a metric's samples whose labels contain all the given ones; 0 when there are none. */
export async function metric(stack: Stack, name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
  let sum = 0
  for (const line of (await metricsOf(stack)).split('\n')) {
    const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? (\S+)$/.exec(line)
    if (match?.[1] !== name) continue
    if (Object.entries(labels).every(([key, value]) => match[2]?.includes(`${key}="${value}"`))) sum += Number(match[3])
  }
  return sum
}

/**
 * A value that comes to rest: what is on its way still arrives, then nothing changes for `forMs`. Returns it.
 * @throws with the last two values when it never rests.
 */
export async function comesToRest<T>(forMs: number, look: () => Promise<T>, withinMs = 30_000): Promise<T> {
  const deadline = Date.now() + withinMs + forMs
  let before = await look()
  let since = Date.now()
  while (Date.now() - since < forMs) {
    await new Promise((resolve) => setTimeout(resolve, 250))
    const now = await look()
    if (isDeepStrictEqual(now, before)) continue
    if (Date.now() > deadline) throw new Error(`it never rests: ${JSON.stringify(before)}, then ${JSON.stringify(now)}`)
    before = now
    since = Date.now()
  }
  return before
}

/** A value that does not change for so long. @throws with both values. */
export async function staysFor<T>(ms: number, look: () => Promise<T>): Promise<T> {
  const before = await look()
  const deadline = Date.now() + ms
  while (Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 250))
    expect(await look()).toEqual(before)
  }
  return before
}

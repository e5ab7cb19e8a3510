import { setTimeout as delay } from 'node:timers/promises'
import { type Condition, findCondition } from '../../src/resources/conditions.ts'
import type { EthereumStake } from '../../src/resources/ethereum-stake.ts'
import type { SolanaStake } from '../../src/resources/solana-stake.ts'
import type { StakingSigner } from '../../src/resources/staking-signer.ts'
import type { ValidatorExit } from '../../src/resources/validator-exit.ts'
import type { ValidatorWithdrawal } from '../../src/resources/validator-withdrawal.ts'
import { applyObjects } from '../cluster/apply.ts'
import type { ControlPlane } from '../cluster/control-plane.ts'
import {
  KEY_NAME,
  NETWORK,
  SOLANA_NETWORK,
  SOLANA_STAKER,
  SOLANA_STAKER_ADDRESS,
  SOLANA_WITHDRAWER,
  SOLANA_WITHDRAWER_ADDRESS,
} from './stack.ts'

/** Well-known test addresses (anvil's accounts): never fund them on a real network. */
export const PAYER = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
export const WITHDRAWAL_ADDRESS = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
export const OTHER_ADDRESS = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
export const SIGNER = 'treasury'

type Json = Readonly<Record<string, unknown>>

export const namespace = (name: string, labels: Json = {}): Json => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })

export const signer = (spec: Json & { readonly policy?: Json } = {}, name = SIGNER): Json => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind: 'StakingSigner',
  metadata: { name },
  spec: {
    chain: 'Ethereum',
    keyName: KEY_NAME,
    address: PAYER,
    ...spec,
    policy: { allowedNamespaces: { names: ['default'] }, maxPerTransaction: '64', validators: 'Any', ...spec.policy },
  },
})

export const stake = (name: string, spec: Json = {}, metadata: Json = {}): Json => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind: 'EthereumStake',
  metadata: { name, namespace: 'default', ...metadata },
  spec: { network: NETWORK, amountEth: '32', withdrawalAddress: WITHDRAWAL_ADDRESS, signer: SIGNER, ...spec },
})

const resource = (kind: string, name: string, spec: Json, metadata: Json): Json => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind,
  metadata: { name, namespace: 'default', ...metadata },
  spec,
})

/** A stake whose withdrawal address is the signer's own: only that address may ask for the exit or a withdrawal. */
export const ownStake = (name: string, spec: Json = {}, metadata: Json = {}): Json =>
  stake(name, { withdrawalAddress: PAYER, ...spec }, metadata)

/** Which validator: a stake of the same namespace, or a network's public key. */
export type ValidatorRef = { readonly stakeRef: { readonly name: string } } | { readonly network: string; readonly pubkey: string }

export const validatorExit = (name: string, validator: ValidatorRef, spec: Json = {}, metadata: Json = {}): Json =>
  resource('ValidatorExit', name, { validator, signer: SIGNER, ...spec }, metadata)

export const validatorWithdrawal = (
  name: string,
  validator: ValidatorRef,
  amountGwei: string,
  spec: Json = {},
  metadata: Json = {},
): Json => resource('ValidatorWithdrawal', name, { validator, amountGwei, signer: SIGNER, ...spec }, metadata)

/** The two Solana signers: the staker pays and may delegate; the money belongs to the withdrawer. Limits in lamports. */
export const solanaSigner = (
  name: typeof SOLANA_STAKER | typeof SOLANA_WITHDRAWER,
  spec: Json & { readonly policy?: Json } = {},
): Json => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind: 'StakingSigner',
  metadata: { name },
  spec: {
    chain: 'Solana',
    keyName: name,
    address: name === SOLANA_STAKER ? SOLANA_STAKER_ADDRESS : SOLANA_WITHDRAWER_ADDRESS,
    ...spec,
    policy: { allowedNamespaces: { names: ['default'] }, maxPerTransaction: String(100n * SOL), ...spec.policy },
  },
})
export const solanaSigners = (): readonly Json[] => [solanaSigner(SOLANA_STAKER), solanaSigner(SOLANA_WITHDRAWER)]

export const SOL = 1_000_000_000n

/** Five SOL to the network's default vote account. */
export const solanaStake = (name: string, spec: Json = {}, metadata: Json = {}): Json =>
  resource(
    'SolanaStake',
    name,
    {
      network: SOLANA_NETWORK,
      amountLamports: String(5n * SOL),
      stakeAuthority: { signer: SOLANA_STAKER },
      withdrawAuthority: { signer: SOLANA_WITHDRAWER },
      ...spec,
    },
    metadata,
  )

/** @throws with what the API server said. */
export const applyAll = (cluster: ControlPlane, objects: readonly Json[]): Promise<void> => applyObjects(cluster, objects)

const path = (name: string, space: string) => `/apis/staking.dev/v1alpha1/namespaces/${space}/ethereumstakes/${name}`

export async function getStake(cluster: ControlPlane, name: string, space = 'default'): Promise<EthereumStake | undefined> {
  const { status, body } = await cluster.request({ path: path(name, space) })
  if (status === 404) return undefined
  if (status !== 200) throw new Error(`GET ${name}: ${status}`)
  return body as EthereumStake
}

export async function getStakes(cluster: ControlPlane): Promise<readonly EthereumStake[]> {
  const { status, body } = await cluster.request({ path: '/apis/staking.dev/v1alpha1/ethereumstakes' })
  if (status !== 200) throw new Error(`GET ethereumstakes: ${status}`)
  return (body as { items: EthereumStake[] }).items
}

export async function getSigner(cluster: ControlPlane, name = SIGNER): Promise<StakingSigner> {
  const { status, body } = await cluster.request({ path: `/apis/staking.dev/v1alpha1/stakingsigners/${name}` })
  if (status !== 200) throw new Error(`GET ${name}: ${status}`)
  return body as StakingSigner
}

/** Patches a resource's status as somebody with the rights for it might: by hand. */
export async function patchStakeStatus(cluster: ControlPlane, name: string, status: Json | null): Promise<void> {
  const answer = await cluster.request({
    method: 'PATCH',
    path: `${path(name, 'default')}/status`,
    body: { status },
    contentType: 'application/merge-patch+json',
  })
  if (answer.status !== 200) throw new Error(`PATCH ${name}/status: ${answer.status} ${JSON.stringify(answer.body)}`)
}

export interface Seen {
  readonly ready: string
  readonly reason: string
  readonly message: string
  readonly stalled: boolean
  readonly phase: string
}
/** What people look at, of any kind. */
export interface Shown {
  readonly status?:
    | { readonly conditions?: readonly Condition[] | undefined; readonly phase?: string | undefined; readonly [field: string]: unknown }
    | undefined
}

export function seen(resource: Shown | undefined): Seen {
  const ready = findCondition(resource?.status?.conditions, 'Ready')
  return {
    ready: ready?.status ?? 'absent',
    reason: ready?.reason ?? '',
    message: ready?.message ?? '',
    stalled: findCondition(resource?.status?.conditions, 'Stalled')?.status === 'True',
    phase: resource?.status?.phase ?? '',
  }
}

const withoutManagedFields = (key: string, value: unknown): unknown => (key === 'managedFields' ? undefined : value)

/**
 * Looks again and again until `check` holds. A look that fails counts as "not yet": an API server is busy for a moment, a record is not there yet. An assertion
 * within `look` fails at once: it says what has to hold all the while.
 * @throws with what was seen last when `timeoutMs` pass.
 */
export const eventually = <T>(what: string, look: () => Promise<T>, check: (value: T) => boolean, timeoutMs?: number): Promise<T> =>
  lookUntil(what, look, (value) => (check(value) ? undefined : 'not so yet'), timeoutMs)

/**
 * As `eventually`, until an assertion no longer fails. What belongs together is asserted together: a line after the wait may look at what a later request writes.
 * @throws with the assertion that failed last
 */
export const untilHolds = <T>(what: string, look: () => Promise<T>, assertion: (value: T) => void, timeoutMs?: number): Promise<T> =>
  lookUntil(
    what,
    look,
    (value) => {
      try {
        assertion(value)
        return undefined
      } catch (error) {
        return String(error)
      }
    },
    timeoutMs,
  )

async function lookUntil<T>(
  what: string,
  look: () => Promise<T>,
  missing: (value: T) => string | undefined,
  timeoutMs = 60_000,
): Promise<T> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    let last: string
    try {
      const value = await look()
      const lacks = missing(value)
      if (lacks === undefined) return value
      last = `${lacks}; last seen: ${JSON.stringify(value, withoutManagedFields, 1)?.slice(0, 6_000)}`
    } catch (error) {
      if (error instanceof Error && error.name === 'AssertionError') throw error
      last = String(error)
    }
    if (Date.now() > deadline) throw new Error(`${what}: not within ${timeoutMs} ms: ${last}`)
    await delay(150)
  }
}

export const untilStake = (
  cluster: ControlPlane,
  name: string,
  what: string,
  check: (stake: EthereumStake, now: Seen) => boolean,
  timeoutMs?: number,
): Promise<EthereumStake> =>
  eventually(
    `stake ${name} ${what}`,
    () => getStake(cluster, name),
    (value) => value !== undefined && check(value, seen(value)),
    timeoutMs,
  ) as Promise<EthereumStake>
export const untilReady = (cluster: ControlPlane, name: string, timeoutMs?: number) =>
  untilStake(cluster, name, 'is ready', (_stake, { ready }) => ready === 'True', timeoutMs)
export const untilReason = (cluster: ControlPlane, name: string, reason: string, timeoutMs?: number) =>
  untilStake(cluster, name, `shows ${reason}`, (_stake, now) => now.reason === reason, timeoutMs)

/** The kinds in a namespace, as their paths name them. */
export interface Kinds {
  readonly ethereumstakes: EthereumStake
  readonly validatorexits: ValidatorExit
  readonly validatorwithdrawals: ValidatorWithdrawal
  readonly solanastakes: SolanaStake
}

export async function getOne<K extends keyof Kinds>(
  cluster: ControlPlane,
  plural: K,
  name: string,
  space = 'default',
): Promise<Kinds[K] | undefined> {
  const { status, body } = await cluster.request({ path: `/apis/staking.dev/v1alpha1/namespaces/${space}/${plural}/${name}` })
  if (status === 404) return undefined
  if (status !== 200) throw new Error(`GET ${plural} ${name}: ${status}`)
  return body as Kinds[K]
}

/** A resource of any kind, until it is as asked for. @throws with what was seen last when `timeoutMs` (default 60,000) pass. */
export const untilSeen = async <K extends keyof Kinds>(
  cluster: ControlPlane,
  plural: K,
  name: string,
  what: string,
  check: (now: Seen, resource: Kinds[K]) => boolean,
  timeoutMs?: number,
  space?: string,
): Promise<Kinds[K]> =>
  (await eventually(
    `${plural} ${name} ${what}`,
    () => getOne(cluster, plural, name, space),
    (resource) => resource !== undefined && check(seen(resource), resource),
    timeoutMs,
  )) as Kinds[K]

/** Events that regard an object, as `kubectl describe` shows them. */
export async function eventsOf(
  cluster: ControlPlane,
  name: string,
  space = 'default',
): Promise<readonly { readonly type: string; readonly reason: string; readonly note: string }[]> {
  const { status, body } = await cluster.request({ path: `/apis/events.k8s.io/v1/namespaces/${space}/events` })
  if (status !== 200) throw new Error(`GET events: ${status}`)
  return (body as { items: { type: string; reason: string; note: string; regarding?: { name?: string } }[] }).items.filter(
    (event) => event.regarding?.name === name,
  )
}

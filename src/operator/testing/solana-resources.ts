import { type Condition, findCondition } from '../../resources/conditions.ts'
import type { SolanaStake, SolanaStakeSpec, SolanaStakeStatus } from '../../resources/solana-stake.ts'
import type { StakingSigner, StakingSignerSpec } from '../../resources/staking-signer.ts'
import { Halt } from '../engine/verdict.ts'
import type { Result } from '../kube/controller.ts'
import type { KubeObject } from '../kube/objects.ts'
import type { RecordObject } from '../transactions/store.ts'
import type { FakeCollection } from './fake-kube.ts'
import { KILLED } from './mortal.ts'
import type { InMemoryOperator } from './operator-in-memory.ts'

export const KEY = 'team-a/stake-1'
export const SOL = 1_000_000_000n

/** One running operator, as far as time is driven by the world. */
export interface SolanaOperator {
  readonly killed: boolean
  visit(key: string): Promise<Result | typeof KILLED>
  /** What the log has of a resource. */
  records(key: string): readonly RecordObject[]
}

/**
 * Visits a resource and, once each, its records in the log, as long as one has news for the other: what a wake comes to in production, where a record
 * that waits is not looked at again at once.
 */
export async function visitWithLog(
  operator: InMemoryOperator,
  key: string,
  saga: 'solanaStakes' | 'authorizations' = 'solanaStakes',
): Promise<Result | typeof KILLED> {
  const kind = kindsOf[saga]
  const looked = new Set<string>()
  for (let count = 0; count < 20; count++) {
    const result = await operator.reconcile(saga, key)
    if (result === KILLED || result.kind === 'again' || (result.kind === 'wait' && result.afterMs < 500)) return result
    operator.hasNews(`${kind}/${key}`)
    for (const { metadata } of recordsOf(operator, key, kind)) {
      if (looked.has(metadata.name)) continue
      looked.add(metadata.name)
      if ((await operator.reconcile('records', metadata.name)) === KILLED) return KILLED
    }
    if (!operator.hasNews(`${kind}/${key}`)) return result
  }
  throw new Error(`${key} always has news: a loop without an end`)
}
/** What the log has of a resource, as the operator holds it. */
export function recordsOf({ transactions }: InMemoryOperator, key: string, kind = 'SolanaStake'): readonly RecordObject[] {
  const [namespace = '', name = ''] = key.split('/')
  return transactions.recordsOf({ kind, namespace, name })
}
const kindsOf = { solanaStakes: 'SolanaStake', authorizations: 'SolanaStakeAuthorization' } as const

/** SolanaStakes and their signers in an API server in memory: what worlds over a cluster in memory and over real programs do alike. */
export function solanaResources(
  {
    stakes,
    signers,
  }: { readonly stakes: FakeCollection<SolanaStake & KubeObject>; readonly signers: FakeCollection<StakingSigner & KubeObject> },
  given: {
    readonly network: string
    readonly amount: bigint
    /** Addresses by the name of the signer and of its key. */
    readonly signers: Readonly<Record<string, string>>
    /** Makes blocks, so that what has landed is final. */
    readonly passTime: () => void
    readonly nextEpoch: () => void
  },
) {
  const statusOf = (key = KEY): SolanaStakeStatus => stakes.get(key)?.status ?? {}
  const self = {
    addSigner: (name: string, address: string, policy: Partial<StakingSignerSpec['policy']> = {}) =>
      signers.create({
        metadata: { name },
        spec: {
          chain: 'Solana',
          keyName: name,
          address,
          policy: {
            allowedNamespaces: { names: ['team-a'] },
            maxPerTransaction: String(100n * SOL),
            maxFeePerGasGwei: '100',
            maxPriorityFeeLamports: '100000',
            ...policy,
          },
        },
      }),
    addSigners(policy: Partial<StakingSignerSpec['policy']> = {}) {
      for (const [name, address] of Object.entries(given.signers)) self.addSigner(name, address, policy)
    },
    addStake(change: Partial<SolanaStakeSpec> = {}, key = KEY, metadata: object = {}) {
      const [namespace = '', name = ''] = key.split('/')
      return stakes.create({
        metadata: { namespace, name, ...metadata },
        spec: {
          network: given.network,
          amountLamports: String(given.amount),
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
    /** Why it needs a person; '' when it doesn't. */
    stalled(key = KEY): string {
      const condition = findCondition(statusOf(key).conditions, 'Stalled')
      return condition?.status === 'True' ? condition.reason : ''
    },
    editStatus: (change: (status: SolanaStakeStatus) => object | undefined, key = KEY) =>
      stakes.edit(key, (stake) => ({ ...stake, status: change(stake.status ?? {}) })),
    editSpec: (change: Partial<SolanaStakeSpec>, key = KEY) =>
      stakes.edit(key, (stake) => ({ ...stake, spec: { ...stake.spec, ...change } })),
    editSigner: (change: Partial<StakingSignerSpec>, name = 'payer') =>
      signers.edit(name, (signer) => ({ ...signer, spec: { ...signer.spec, ...change } })),
    editPolicy: (change: object, name = 'payer') =>
      signers.edit(name, (signer) => ({ ...signer, spec: { ...signer.spec, policy: { ...signer.spec.policy, ...change } } })),
    annotate: (annotations: Record<string, string>, key = KEY) =>
      stakes.edit(key, (stake) => ({
        ...stake,
        metadata: { ...stake.metadata, annotations: { ...stake.metadata.annotations, ...annotations } },
      })),
    /** Visits a resource until it has nothing to do at once. @returns the last result, or the error. */
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
    /** Visits, and makes blocks and where it waits for one an epoch, by turns, until it is Ready, gone, ended or in need of a person. */
    async settle(operator: SolanaOperator, { key = KEY, rounds = 20 }: { key?: string; rounds?: number } = {}): Promise<void> {
      for (let round = 0; round < rounds; round++) {
        const result = await self.visit(operator, key)
        // What often passes is a Halt; all else is a defect, of the operator or of the test.
        if (result.kind === 'error' && !(result.error instanceof Halt)) throw result.error
        if (result.kind === 'killed' || stakes.get(key) === undefined || self.ready(key) || self.stalled(key) !== '') return
        given.passTime()
        const { phase } = statusOf(key)
        if (phase === 'Activating' || phase === 'Deactivating') given.nextEpoch()
      }
    },
  }
  return self
}

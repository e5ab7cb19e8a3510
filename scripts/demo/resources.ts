import { findCondition, isTrue } from '../../src/resources/conditions.ts'
import type { EthereumStake } from '../../src/resources/ethereum-stake.ts'
import type { SolanaStake } from '../../src/resources/solana-stake.ts'
import type { ValidatorExit } from '../../src/resources/validator-exit.ts'
import type { ValidatorWithdrawal } from '../../src/resources/validator-withdrawal.ts'
import type { Stack } from '../../test/stack/stack.ts'

/** Everything that the demo follows, by kind. */
export interface Resources {
  readonly stakes: readonly EthereumStake[]
  readonly withdrawals: readonly ValidatorWithdrawal[]
  readonly exits: readonly ValidatorExit[]
  readonly solana: readonly SolanaStake[]
}
export type Any = Pick<EthereumStake, 'kind' | 'metadata'> & {
  readonly status?: Partial<Pick<NonNullable<EthereumStake['status']>, 'conditions' | 'phase'>>
}

export async function listResources({ cluster }: Pick<Stack, 'cluster'>): Promise<Resources> {
  const list = async <T>(plural: string, kind: string): Promise<readonly T[]> => {
    const { body } = await cluster.request({ path: `/apis/staking.dev/v1alpha1/${plural}` })
    // Items of a list don't say their kind.
    return (body as { items: T[] }).items.map((item) => ({ ...item, kind }))
  }
  const [stakes, withdrawals, exits, solana] = await Promise.all([
    list<EthereumStake>('ethereumstakes', 'EthereumStake'),
    list<ValidatorWithdrawal>('validatorwithdrawals', 'ValidatorWithdrawal'),
    list<ValidatorExit>('validatorexits', 'ValidatorExit'),
    list<SolanaStake>('solanastakes', 'SolanaStake'),
  ])
  return { stakes, withdrawals, exits, solana }
}

export const nameOf = ({ metadata }: Any): string => `${metadata.namespace}/${metadata.name}`
export const isReady = ({ status }: Any): boolean => isTrue(status?.conditions, 'Ready')
export const isStalled = ({ status }: Any): boolean => isTrue(status?.conditions, 'Stalled')
export const readyMessage = ({ status }: Any): string => findCondition(status?.conditions, 'Ready')?.message ?? ''
export const readyReason = ({ status }: Any): string => findCondition(status?.conditions, 'Ready')?.reason ?? ''

/** The one of that name. @throws where there is none: the examples have it */
export function named<T extends Any>(all: readonly T[], name: string): T {
  const found = all.find((resource) => nameOf(resource) === name)
  if (found === undefined) throw new Error(`there is no ${name}: did examples/ change?`)
  return found
}

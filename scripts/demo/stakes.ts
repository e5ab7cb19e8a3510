import { findCondition, isTrue } from '../../src/resources/conditions.ts'
import type { EthereumStake } from '../../src/resources/ethereum-stake.ts'
import type { Stack } from '../../test/stack/stack.ts'

export type ListedStake = EthereumStake

export async function listStakes(stack: Stack): Promise<readonly ListedStake[]> {
  const { body } = await stack.cluster.request({ path: '/apis/staking.dev/v1alpha1/ethereumstakes' })
  return (body as { items: ListedStake[] }).items
}

export const nameOf = ({ metadata }: ListedStake): string => `${metadata.namespace}/${metadata.name}`
export const isReady = (stake: ListedStake): boolean => isTrue(stake.status?.conditions, 'Ready')
export const isStalled = (stake: ListedStake): boolean => isTrue(stake.status?.conditions, 'Stalled')
export const readyMessage = (stake: ListedStake): string => findCondition(stake.status?.conditions, 'Ready')?.message ?? ''
export const readyReason = (stake: ListedStake): string => findCondition(stake.status?.conditions, 'Ready')?.reason ?? ''

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { verifyDepositSignature, withdrawalCredentials } from '../../src/chains/ethereum/deposit.ts'
import { gwei, parseEth } from '../../src/lib/amounts.ts'
import { isTrue } from '../../src/resources/conditions.ts'
import type { EthereumStake } from '../../src/resources/ethereum-stake.ts'
import type { Anvil } from '../chains/anvil.ts'
import type { SeenDeposit } from '../chains/deposit-contract.ts'
import type { ControlPlane } from '../cluster/control-plane.ts'
import { eventually, getStakes, PAYER, seen } from '../stack/resources.ts'
import type { Stack } from '../stack/stack.ts'

/** A stake as the staking API lists it. */
export interface ListedStake {
  readonly stakeId: string
  readonly externalReference?: string
  readonly depositData: { readonly pubkey: string }
  readonly transaction: { readonly status: string; readonly hash?: string }
}

/** Everything the service has, over all pages. */
export async function serviceStakes(stack: Stack): Promise<readonly ListedStake[]> {
  const headers = { authorization: `Bearer ${readFileSync(stack.apiKeyFile, 'utf8').trim()}` }
  const all: ListedStake[] = []
  let cursor: string | undefined
  do {
    const query = new URLSearchParams({ limit: '200', ...(cursor === undefined ? {} : { cursor }) })
    const answer = await fetch(`${stack.serviceUrl}/v1/ethereum/stakes?${query}`, { headers })
    if (!answer.ok) throw new Error(`the service answered ${answer.status}`)
    const page = (await answer.json()) as { readonly items: readonly ListedStake[]; readonly nextCursor?: string }
    all.push(...page.items)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return all
}

export const referenceOf = (name: string, namespace = 'default'): string => `EthereumStake/${namespace}/${name}`

/** What of a deposit doesn't hold against the resource that asked for it. */
export function wrongsOf(resource: Pick<EthereumStake, 'spec' | 'status'>, deposits: readonly SeenDeposit[]): readonly string[] {
  const { spec, status } = resource
  const own = deposits.filter(({ pubkey }) => pubkey === status?.depositData?.pubkey)
  const [deposit] = own
  if (deposit === undefined || own.length !== 1) return [`${own.length} deposits`]
  const type = spec.credentialsType === 'Execution' ? '0x01' : '0x02'
  return [
    ...(deposit.amountGwei === parseEth(spec.amountEth) ? [] : [`amount ${deposit.amountGwei}`]),
    ...(deposit.withdrawalCredentials === withdrawalCredentials(type, spec.withdrawalAddress as `0x${string}`) ? [] : ['another address']),
    ...(verifyDepositSignature({ ...deposit, amountGwei: gwei(deposit.amountGwei) }, '0x10000038') ? [] : ['an invalid signature']),
    ...(deposit.txHash === status?.transaction?.minedHash ? [] : ['another transaction than in status']),
  ]
}

/**
 * Waits until there are so many stakes and all are ready; meanwhile `tend` may start again what has ended, as a kubelet does.
 * @throws with what the others say of themselves, and the last lines of the logs.
 */
export async function untilAllReady(
  stack: Stack,
  count: number,
  tend: () => Promise<void> = async () => undefined,
  timeoutMs = 180_000,
): Promise<void> {
  const look = async () => {
    await tend()
    const stakes = await getStakes(stack.cluster)
    return {
      count: stakes.length,
      others: stakes
        .filter(({ status }) => !isTrue(status?.conditions, 'Ready'))
        .map((one) => `${one.metadata.name}: ${JSON.stringify(seen(one))}`),
    }
  }
  await eventually(`${count} stakes are ready`, look, (now) => now.count === count && now.others.length === 0, timeoutMs).catch(
    (error: Error) => {
      throw new Error(`${error.message}\n${readFileSync(join(stack.dir, 'operator.log'), 'utf8').slice(-4_000)}`)
    },
  )
}

/** The nonces of the payer's transactions in the chain, in the order they were mined. */
export async function minedNonces(anvil: Anvil): Promise<readonly number[]> {
  const nonces: number[] = []
  for (let number = 0; number <= (await anvil.blockNumber()); number++) {
    const { transactions } = await anvil.rpc<{ transactions: readonly { from: string; nonce: string }[] }>('eth_getBlockByNumber', [
      `0x${number.toString(16)}`,
      true,
    ])
    for (const { from, nonce } of transactions) if (from.toLowerCase() === PAYER.toLowerCase()) nonces.push(Number(nonce))
  }
  return nonces
}

/**
 * All stakes of the cluster are ready; for each there is exactly one stake at the service and one deposit in the contract, which pays the amount
 * to the address that the spec says and is validly signed; the signer sent one transaction for each, without a gap.
 */
export async function expectExactlyOnce(stack: Stack, count: number): Promise<void> {
  const stakes = await getStakes(stack.cluster)
  const deposits = await stack.anvil.deposits()
  const listed = await serviceStakes(stack)
  expect(stakes.filter(({ status }) => !isTrue(status?.conditions, 'Ready')).map(({ metadata }) => metadata.name)).toEqual([])
  expect(stakes).toHaveLength(count)
  expect(await stack.anvil.depositCount()).toBe(count)
  expect(deposits).toHaveLength(count)
  expect(new Set(deposits.map(({ pubkey }) => pubkey)).size).toBe(count)
  expect(stakes.flatMap((one) => wrongsOf(one, deposits).map((wrong) => `${one.metadata.name}: ${wrong}`))).toEqual([])
  expect(listed).toHaveLength(count)
  expect(listed.map(({ externalReference }) => externalReference).sort()).toEqual(
    stakes.map(({ metadata: { name, namespace } }) => referenceOf(name, namespace)).sort(),
  )
  expect(await minedNonces(stack.anvil)).toEqual(Array.from({ length: count }, (_, nonce) => nonce))
}

/**
 * Takes the lease away from a process that is known to be dead, as a person may: whoever starts next need not wait until it expires. What is lost
 * by that is nothing: safety does not rest on the lease.
 */
export const dropLease = async (cluster: ControlPlane): Promise<void> => {
  const { status } = await cluster.request({
    method: 'DELETE',
    path: '/apis/coordination.k8s.io/v1/namespaces/staking-system/leases/staking-operator',
  })
  if (status !== 200 && status !== 404) throw new Error(`DELETE lease: ${status}`)
}

const pathOf = (name: string, namespace: string): string => `/apis/staking.dev/v1alpha1/namespaces/${namespace}/ethereumstakes/${name}`

/** Asks for deletion, as `kubectl delete --wait=false`. */
export async function deleteStake(cluster: ControlPlane, name: string, namespace = 'default'): Promise<void> {
  const { status } = await cluster.request({ method: 'DELETE', path: pathOf(name, namespace) })
  if (status !== 200 && status !== 202) throw new Error(`DELETE ${name}: ${status}`)
}

/** Changes metadata as a person may, `kubectl patch`. A list of finalizers replaces the one there is. */
export async function patchMetadata(cluster: ControlPlane, name: string, metadata: object, namespace = 'default'): Promise<void> {
  const { status, body } = await cluster.request({
    method: 'PATCH',
    path: pathOf(name, namespace),
    contentType: 'application/merge-patch+json',
    body: { metadata },
  })
  if (status !== 200) throw new Error(`PATCH ${name}: ${status} ${JSON.stringify(body)}`)
}

export const annotateStake = (cluster: ControlPlane, name: string, annotations: Readonly<Record<string, string>>, namespace = 'default') =>
  patchMetadata(cluster, name, { annotations }, namespace)

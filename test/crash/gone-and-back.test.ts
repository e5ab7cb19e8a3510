import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { EthereumStake } from '../../src/resources/ethereum-stake.ts'
import { CONFIRM_DELETE_ANNOTATION } from '../../src/resources/meta.ts'
import { untilEstablished } from '../cluster/apply.ts'
import {
  applyAll,
  eventually,
  getStake,
  namespace,
  OTHER_ADDRESS,
  PAYER,
  patchStakeStatus,
  SIGNER,
  seen,
  signer,
  stake,
  untilReady,
  untilReason,
  untilStake,
} from '../stack/resources.ts'
import { type Stack, startStack } from '../stack/stack.ts'
import { annotateStake, deleteStake, dropLease, expectExactlyOnce, patchMetadata } from './exactly-once.ts'

/**
 * Resources vanish, by accident or by force, and are applied again, as a GitOps tool does at once. Nothing is bought twice: not what was final,
 * and not what was on its way.
 */
const TIMEOUT = { timeout: 300_000 }
const SLOW_MS = 120_000

let stack: Stack
async function start(): Promise<void> {
  stack = await startStack({
    controllerManager: true,
    operatorArgs: [
      '--lease-duration',
      '30s',
      '--renew-deadline',
      '20s',
      '--retry-period',
      '1s',
      '--stall-recheck',
      '1s',
      '--signer-interval',
      '1s',
    ],
  })
  await applyAll(stack.cluster, [namespace('team-a'), signer({ policy: { allowedNamespaces: { names: ['default', 'team-a'] } } })])
}

const look = (name: string, space: string) => getStake(stack.cluster, name, space)
const until = (name: string, space: string, what: string, check: (one: EthereumStake | undefined) => boolean) =>
  eventually(`${space}/${name} is ${what}`, () => look(name, space), check, SLOW_MS)
const untilGone = (name: string, space = 'default') => until(name, space, 'gone', (one) => one === undefined)
const isSent = (one: EthereumStake | undefined) => one?.status?.transaction?.broadcastHash !== undefined
const inSpace = (name: string, space: string) => stake(name, { withdrawalAddress: OTHER_ADDRESS }, { namespace: space })
/** The transaction log of this cluster is gone, whatever holds it: its records and its places. */
async function loseLog(): Promise<void> {
  const names = (await stack.cluster.kubectlOk(['get', 'stx', '-o', 'name'])).split('\n').filter((name) => name !== '')
  for (const name of names)
    await stack.cluster.kubectlOk(['patch', name, '--type=merge', '-p', JSON.stringify({ metadata: { finalizers: null } })])
  await stack.cluster.kubectlOk(['delete', 'stakingtransactions.staking.dev,signernonces.staking.dev', '--all', '--all-namespaces'])
}
const acknowledge = async (nonce: number) => {
  const { status } = await stack.cluster.request({
    method: 'PATCH',
    path: `/apis/staking.dev/v1alpha1/stakingsigners/${SIGNER}`,
    contentType: 'application/merge-patch+json',
    body: { spec: { acknowledgedNonce: nonce } },
  })
  expect(status).toBe(200)
}

/** One stake that is final and one whose transaction waits in the node's pool. */
async function oneFinalOneInFlight(space: string): Promise<void> {
  await applyAll(stack.cluster, [inSpace('final', space)])
  await until('final', space, 'sent', isSent)
  await stack.anvil.mine(3)
  await until('final', space, 'ready', (one) => seen(one).ready === 'True')
  await stack.anvil.setAutomine(false)
  await applyAll(stack.cluster, [inSpace('in-flight', space)])
  await until('in-flight', space, 'sent', isSent)
  expect(await stack.anvil.depositCount()).toBe(1)
  expect(await stack.anvil.transactionCount(PAYER, 'pending')).toBe(2)
}

/** The blocks go on; both deposits are final, and there are no others, now or a while later. */
async function twoDepositsAndNoMore(): Promise<void> {
  await stack.anvil.setAutomine(true)
  await stack.anvil.mine(4)
  expect(await stack.anvil.depositCount()).toBe(2)
}

async function stopped(what: () => Promise<unknown>): Promise<void> {
  await stack.operator.kill()
  await what()
  await dropLease(stack.cluster)
  await stack.operator.start()
}

async function adopts(name: string, space: string): Promise<void> {
  const one = await until(name, space, 'AlreadyStaked', (now) => seen(now).reason === 'AlreadyStaked')
  expect(seen(one).stalled).toBe(true)
  const stakeId = /adopt\.stakeId to ([A-Za-z0-9_-]+)/.exec(seen(one).message)?.[1] ?? ''
  expect(stakeId).not.toBe('')
  const adopting = stake(name, { withdrawalAddress: OTHER_ADDRESS, adopt: { stakeId } }, { namespace: space })
  await applyAll(stack.cluster, [adopting])
  await until(name, space, 'ready by adoption', (now) => seen(now).ready === 'True')
}

describe('taken away and applied again', () => {
  beforeEach(start, 180_000)
  afterEach(() => stack?.stop())

  test('the finalizers are removed by force: what was bought stalls with AlreadyStaked until it is adopted', TIMEOUT, async () => {
    await oneFinalOneInFlight('default')
    for (const name of ['final', 'in-flight']) {
      // A finalizer that the operator puts back before the deletion comes is removed once more.
      await deleteStake(stack.cluster, name)
      await patchMetadata(stack.cluster, name, { finalizers: null }).catch(() => undefined)
      await untilGone(name)
    }
    await applyAll(stack.cluster, [inSpace('final', 'default'), inSpace('in-flight', 'default')])
    await untilReason(stack.cluster, 'final', 'AlreadyStaked', SLOW_MS)
    await untilReason(stack.cluster, 'in-flight', 'AlreadyStaked', SLOW_MS)
    // What was on its way for a resource that is gone gives way to a cancel, unless it lands first. Who adopts it has it paid.
    await stack.anvil.setAutomine(true)
    await stack.anvil.mine(4)
    expect(await stack.anvil.depositCount()).toBeLessThanOrEqual(2)
    const mining = setInterval(() => void stack.anvil.mine().catch(() => undefined), 1_000)
    try {
      await adopts('final', 'default')
      await adopts('in-flight', 'default')
    } finally {
      clearInterval(mining)
    }
    const deposits = await stack.anvil.deposits()
    expect(deposits).toHaveLength(2)
    expect(new Set(deposits.map(({ pubkey }) => pubkey)).size).toBe(2)
  })

  test('the namespace is deleted: its stakes wait for their money, and come back as AlreadyStaked', TIMEOUT, async () => {
    await oneFinalOneInFlight('team-a')
    await stack.cluster.kubectlOk(['delete', 'namespace', 'team-a', '--wait=false'])
    await until('final', 'team-a', 'held', (one) => seen(one).reason === 'Deleting')
    await until('in-flight', 'team-a', 'held', (one) => seen(one).reason === 'Deleting')
    // A tool that applies all the time changes nothing about that.
    await stack.cluster.kubectl(['apply', '-f', '-'], {
      input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [inSpace('final', 'team-a'), inSpace('in-flight', 'team-a')] }),
    })
    await twoDepositsAndNoMore()
    await until('in-flight', 'team-a', 'final', (one) => one?.status?.transaction?.state === 'Confirmed')
    expect(await look('final', 'team-a')).toBeDefined()
    for (const name of ['final', 'in-flight']) await annotateStake(stack.cluster, name, { [CONFIRM_DELETE_ANNOTATION]: name }, 'team-a')
    await eventually(
      'the namespace is gone',
      async () => (await stack.cluster.request({ path: '/api/v1/namespaces/team-a' })).status,
      (status) => status === 404,
      SLOW_MS,
    )
    await applyAll(stack.cluster, [namespace('team-a'), inSpace('final', 'team-a'), inSpace('in-flight', 'team-a')])
    await until('final', 'team-a', 'AlreadyStaked', (one) => seen(one).reason === 'AlreadyStaked')
    await until('in-flight', 'team-a', 'AlreadyStaked', (one) => seen(one).reason === 'AlreadyStaked')
    await adopts('final', 'team-a')
    await adopts('in-flight', 'team-a')
    await expectExactlyOnce(stack, 2)
  })

  test('the CRDs are deleted: the stakes wait for their money; the signer, gone with the log, must be acknowledged', TIMEOUT, async () => {
    await oneFinalOneInFlight('default')
    const crds = new URL('../../crds', import.meta.url).pathname
    await stack.cluster.kubectlOk(['delete', '-f', crds, '--wait=false'])
    // What is in flight may say first that the operator signs nothing while definitions are missing.
    for (const name of ['final', 'in-flight']) await until(name, 'default', 'held', (one) => seen(one).message.includes('Deleted, but'))
    await twoDepositsAndNoMore()
    // The log's records went with their definition: that it is staked is read from the deposits of its key.
    await until('in-flight', 'default', 'known to be staked', (one) => seen(one).message.includes('32 ETH are staked'))
    for (const name of ['final', 'in-flight']) await annotateStake(stack.cluster, name, { [CONFIRM_DELETE_ANNOTATION]: name })
    await eventually(
      'the definitions are gone',
      () => stack.cluster.kubectlOk(['get', 'crd', '-o', 'name']),
      (names) => !names.includes('staking.dev'),
      SLOW_MS,
    )
    // Everything again, as from Git.
    await stack.cluster.kubectlOk(['apply', '-f', crds])
    await untilEstablished(stack.cluster)
    const again = [
      signer({ policy: { allowedNamespaces: { names: ['default', 'team-a'] } } }),
      inSpace('final', 'default'),
      inSpace('in-flight', 'default'),
      inSpace('fresh', 'default'),
    ]
    await applyAll(stack.cluster, again)
    await untilReason(stack.cluster, 'final', 'AlreadyStaked', SLOW_MS)
    await untilReason(stack.cluster, 'in-flight', 'AlreadyStaked', SLOW_MS)
    await untilReason(stack.cluster, 'fresh', 'UnaccountedTransactions', SLOW_MS)
    expect(await stack.anvil.depositCount()).toBe(2)
    await acknowledge(2)
    await untilStake(stack.cluster, 'fresh', 'is sent', isSent, SLOW_MS)
    await stack.anvil.mine(4)
    await untilReady(stack.cluster, 'fresh', SLOW_MS)
    await adopts('final', 'default')
    await adopts('in-flight', 'default')
    await expectExactlyOnce(stack, 3)
  })
})

describe('records are wiped', () => {
  beforeEach(start, 180_000)
  afterEach(() => stack?.stop())

  // One after the other, of the same stakes: the second time nothing may be left of the first.
  test('the status of stakes, while the operator runs and while it is down: each resumes the transaction it had', TIMEOUT, async () => {
    await oneFinalOneInFlight('default')
    const hashes = async () =>
      Promise.all(['final', 'in-flight'].map(async (name) => (await look(name, 'default'))?.status?.transaction?.hash ?? ''))
    const before = await hashes()
    const wipe = async () => {
      await patchStakeStatus(stack.cluster, 'final', null)
      await patchStakeStatus(stack.cluster, 'in-flight', null)
    }
    for (const wiped of [wipe, () => stopped(wipe)]) {
      await wiped()
      await untilStake(stack.cluster, 'in-flight', 'is sent', isSent, SLOW_MS)
      await untilReady(stack.cluster, 'final', SLOW_MS)
      expect(await hashes()).toEqual(before)
      expect(await stack.anvil.transactionCount(PAYER, 'pending')).toBe(2)
    }
    await twoDepositsAndNoMore()
    await untilReady(stack.cluster, 'in-flight', SLOW_MS)
    await expectExactlyOnce(stack, 2)
  })

  test('the log: it is made again from what the chain and the staking API know; nothing is paid twice', TIMEOUT, async () => {
    await oneFinalOneInFlight('default')
    await stopped(loseLog)
    await applyAll(stack.cluster, [inSpace('fresh', 'default')])
    await untilStake(stack.cluster, 'fresh', 'is sent', isSent, SLOW_MS)
    expect(await stack.anvil.transactionCount(PAYER, 'pending')).toBe(3)
    await stack.anvil.setAutomine(true)
    await stack.anvil.mine(4)
    for (const name of ['in-flight', 'fresh']) await untilReady(stack.cluster, name, SLOW_MS)
    await expectExactlyOnce(stack, 3)
  })

  test('the log and the status of a stake in flight: it is not paid twice', TIMEOUT, async () => {
    await oneFinalOneInFlight('default')
    await stopped(async () => {
      await loseLog()
      await patchStakeStatus(stack.cluster, 'in-flight', null)
    })
    await untilStake(stack.cluster, 'in-flight', 'is sent', isSent, SLOW_MS)
    expect(await stack.anvil.transactionCount(PAYER, 'pending')).toBe(2)
    await twoDepositsAndNoMore()
    await untilReady(stack.cluster, 'in-flight', SLOW_MS)
    await expectExactlyOnce(stack, 2)
  })
})

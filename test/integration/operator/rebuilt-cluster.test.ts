import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { EthereumStake } from '../../../src/resources/ethereum-stake.ts'
import { untilEstablished } from '../../cluster/apply.ts'
import { installRights } from '../../cluster/chart.ts'
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts'
import { createProgram, type Program } from '../../stack/program.ts'
import { applyAll, eventsOf, eventually, getSigner, SIGNER, seen, signer, stake } from '../../stack/resources.ts'
import type { Stack } from '../../stack/stack.ts'
import {
  conditionOf,
  moneyOf,
  patchSigner,
  patchStake,
  recordOf,
  untilPaidOnce,
  untilStalls,
  useStack,
  whileNoMoneyMoves,
} from './harness.ts'

/** The same manifests, keys, service and chain, and a new, empty cluster: as after a disaster, or by a mistaken kubeconfig. */
const stack = useStack()
const dir = mkdtempSync(join(tmpdir(), 'staking-rebuilt-'))
const manifests = [signer(), stake('first'), stake('second', { amountEth: '40' })]

let rebuilt: ControlPlane
let operator: Program
let inNewCluster: Stack
const bought = new Map<string, EthereumStake>()

beforeAll(async () => {
  await applyAll(stack().cluster, manifests)
  for (const name of ['first', 'second']) bought.set(name, await untilPaidOnce(stack(), name))
  await stack().operator.stop()

  rebuilt = await startControlPlane({})
  const serviceAccount = await installRights(rebuilt)
  await untilEstablished(rebuilt)
  const kubeconfig = join(dir, 'operator.kubeconfig')
  writeFileSync(kubeconfig, await rebuilt.kubeconfigFor(serviceAccount), { mode: 0o600 })
  const [command = '', ...args] = stack().operator.command
  operator = createProgram({
    name: 'operator of the new cluster',
    command,
    args: args.map((arg) => (arg === stack().operatorKubeconfig ? kubeconfig : arg)),
    logFile: join(dir, 'operator.log'),
    readyUrl: new URL('/readyz', stack().operatorMetrics).href,
  })
  await operator.start()
  inNewCluster = { ...stack(), cluster: rebuilt }
})
afterAll(async () => {
  await operator?.stop()
  await rebuilt?.stop()
  rmSync(dir, { recursive: true, force: true })
})

test('nothing is bought twice, and it is told clearly', async () => {
  await whileNoMoneyMoves(stack(), async () => {
    await applyAll(rebuilt, [...manifests, stake('third')])
    for (const name of ['first', 'second']) {
      const stalled = await untilStalls(
        rebuilt,
        name,
        'AlreadyStaked',
        /has a stake for this namespace and name already: \S+\. Nothing was bought again/,
      )
      expect(conditionOf(stalled, 'Stalled').message).toContain(bought.get(name)?.status?.stakeId)
    }
    // A stake that is new can't tell: the key's transactions are not accounted for.
    await untilStalls(
      rebuilt,
      'third',
      'UnaccountedTransactions',
      /shows 2 transactions of 0xf39F\w+ on local.*one may be a deposit that these manifests made before\. Then set spec\.acknowledgedNonce: 2/,
    )
    await eventually(
      'the signer says so too',
      () => getSigner(rebuilt),
      (value) => seen(value).reason === 'UnaccountedTransactions' && seen(value).stalled,
    )
    await eventually(
      'and its event',
      () => eventsOf(rebuilt, SIGNER),
      (events) => events.some(({ type, reason }) => type === 'Warning' && reason === 'UnaccountedTransactions'),
    )
  })
})

/** The stake whose deposit used this nonce, by its name. */
const payerOf = (nonce: number): string => {
  const [name] = [...bought].find(([, { status }]) => status?.transaction?.nonce === nonce) ?? []
  if (name === undefined) throw new Error(`no stake used nonce ${nonce}`)
  return name
}
async function adopt(name: string): Promise<void> {
  const { status } = bought.get(name) ?? {}
  await patchStake(rebuilt, name, { spec: { adopt: { stakeId: status?.stakeId } } })
  const adopted = await untilPaidOnce(inNewCluster, name)
  expect(adopted.status?.transaction).toMatchObject({ nonce: status?.transaction?.nonce, minedHash: status?.transaction?.minedHash })
  expect(adopted.status?.depositData).toEqual(status?.depositData)
}

test('a stake that is adopted is ready with the very deposit that was made, which the new log then has', async () => {
  await whileNoMoneyMoves(stack(), async () => {
    const name = payerOf(0)
    await adopt(name)
    // The staking API was told of it: nobody has signed it here.
    expect((await recordOf(rebuilt, name)).status).toMatchObject({
      state: 'Landed',
      place: 0,
      attempts: [{ kind: 'Call', found: true, hash: bought.get(name)?.status?.transaction?.minedHash }],
    })
    // The other one's transaction is still nobody's.
    await untilStalls(rebuilt, 'third', 'UnaccountedTransactions', /knows of those below nonce 1 only/)
  })
})

test('once the transactions are acknowledged, what is new is paid, with the next nonce', async () => {
  const before = await moneyOf(stack())
  await patchSigner(rebuilt, SIGNER, { acknowledgedNonce: 2 })
  const third = await untilPaidOnce(inNewCluster, 'third')
  expect(third.status?.transaction?.nonce).toBe(2)
  expect((await moneyOf(stack())).deposits).toBe(before.deposits + 1)
  await eventually(
    'the signer is ready',
    () => getSigner(rebuilt),
    (value) => seen(value).ready === 'True',
  )
})

test('what was acknowledged can be adopted afterwards', async () => {
  await whileNoMoneyMoves(stack(), () => adopt(payerOf(1)))
})

import { beforeAll, describe, expect, test } from 'vitest'
import type { Hex } from '../../../src/chains/ethereum/chain.ts'
import { signDepositMessage, withdrawalCredentials } from '../../../src/chains/ethereum/deposit.ts'
import { gwei } from '../../../src/lib/amounts.ts'
import type { EthereumStake } from '../../../src/resources/ethereum-stake.ts'
import { RECONCILE_ANNOTATION } from '../../../src/resources/meta.ts'
import { httpStatus } from '../../chains/faults.ts'
import { applyAll, eventually, getStake, OTHER_ADDRESS, seen, signer, stake } from '../../stack/resources.ts'
import { metric, patchStake, patchStatus, untilPaidOnce, untilStalls, useStack, whileNoMoneyMoves } from './harness.ts'

/**
 * Somebody changes a status by hand between the moment when the transaction is written down and the moment when it is sent. Status is
 * compared, never believed.
 */
const stack = useStack()

beforeAll(async () => {
  await applyAll(stack().cluster, [signer()])
})

/** Stops a stake where its transaction is written down and the node doesn't take it. */
async function prepared(name: string): Promise<{ readonly made: EthereumStake; readonly letGo: () => void }> {
  const { cluster, rpcFaults } = stack()
  const down = rpcFaults.when('eth_sendRawTransaction').always(httpStatus(500))
  await applyAll(cluster, [stake(name)])
  const made = await eventually(
    `stake ${name} has a transaction that is not sent`,
    () => getStake(cluster, name),
    (value) => value?.status?.transaction?.state === 'Prepared' && seen(value).reason === 'ChainUnavailable',
  )
  if (made === undefined) throw new Error(`there is no stake ${name}`)
  return { made, letGo: () => down.remove() }
}

/** A deposit for a validator of the thief's own, valid in itself. */
const thiefs = (() => {
  const {
    amountGwei,
    depositMessageRoot: _root,
    ...deposit
  } = signDepositMessage(new Uint8Array(32).fill(9), {
    withdrawalCredentials: withdrawalCredentials('0x02', OTHER_ADDRESS),
    amountGwei: gwei(32_000_000_000n),
    genesisForkVersion: '0x10000038',
  })
  return { ...deposit, amountGwei: amountGwei.toString() }
})()
const hash: Hex = `0x${'ab'.repeat(32)}`

type Transaction = NonNullable<NonNullable<EthereumStake['status']>['transaction']>
type Edit = (transaction: Transaction) => object
const inTransaction =
  (change: (transaction: Transaction) => object): Edit =>
  (transaction) => ({ transaction: change(transaction) })

describe('a forged status is not signed, and once it is taken out the same nonce pays', () => {
  test.each<{ forged: string; name: string; edit: Edit; says: RegExp }>([
    { forged: 'the recipient', name: 'to', edit: inTransaction(() => ({ to: OTHER_ADDRESS })), says: /status\.transaction\.to is not/ },
    {
      forged: 'the value',
      name: 'value',
      edit: inTransaction(() => ({ valueWei: '64000000000000000000' })),
      says: /status\.transaction\.valueWei is not/,
    },
    {
      forged: 'the nonce',
      name: 'nonce',
      edit: inTransaction(({ nonce }) => ({ nonce: nonce + 1 })),
      says: /status\.transaction(\.nonce)? is not/,
    },
    { forged: 'the calldata', name: 'data', edit: inTransaction(() => ({ dataHash: hash })), says: /status\.transaction\.dataHash is not/ },
    { forged: 'the sender', name: 'from', edit: inTransaction(() => ({ from: OTHER_ADDRESS })), says: /status\.transaction\.from is not/ },
    { forged: 'the chain', name: 'chain', edit: inTransaction(() => ({ chainId: 1 })), says: /status\.transaction\.chainId is not/ },
    { forged: 'the hash', name: 'hash', edit: inTransaction(() => ({ hash })), says: /status\.transaction\.hash is not/ },
    { forged: 'the gas limit', name: 'gas', edit: inTransaction(() => ({ gas: '900000' })), says: /status\.transaction\.gas is not/ },
    {
      forged: 'the fee',
      name: 'fee',
      edit: inTransaction(() => ({ maxFeePerGasWei: '99000000000' })),
      says: /status\.transaction\.maxFeePerGasWei is not/,
    },
    {
      forged: 'the credentials in the deposit data',
      name: 'credentials',
      edit: () => ({ depositData: { withdrawalCredentials: thiefs.withdrawalCredentials } }),
      says: /deposit data in status does not match this resource's spec: .*withdrawal credentials/,
    },
    {
      forged: "the whole deposit data, by a thief's own",
      name: 'deposit',
      edit: () => ({ depositData: thiefs, verifiedRoot: thiefs.depositDataRoot }),
      says: /does not match this resource's spec: .*withdrawal credentials/,
    },
    {
      forged: 'the deposit data without its verification',
      name: 'unverified',
      edit: () => ({ depositData: thiefs, verifiedRoot: null }),
      says: /status\.stakeId or status\.depositData is not what the staking API gave/,
    },
  ])('$forged', async ({ name, edit, says }) => {
    const { cluster } = stack()
    const { made, letGo } = await prepared(`forged-${name}`)
    await whileNoMoneyMoves(stack(), async () => {
      await patchStatus(cluster, `forged-${name}`, edit(made.status?.transaction as Transaction))
      const stalled = await untilStalls(cluster, `forged-${name}`, 'VerificationFailed', says)
      expect(seen(stalled).message).toMatch(/Nothing was signed/)
      // Not the node keeps it from being sent: it takes everything again, and what is forged is looked at once more.
      letGo()
      const looks = () => metric(stack(), 'staking_operator_step_duration_seconds_count', { outcome: 'VerificationFailed' })
      const before = await looks()
      await patchStake(cluster, `forged-${name}`, { metadata: { annotations: { [RECONCILE_ANNOTATION]: 'again' } } })
      await eventually('another look', looks, (value) => value > before, 10_000)
    })
    // What the message says, or more.
    await patchStatus(cluster, `forged-${name}`, { transaction: null, stakeId: null, depositData: null, verifiedRoot: null })
    const paid = await untilPaidOnce(stack(), `forged-${name}`)
    expect(paid.status?.transaction?.nonce).toBe(made.status?.transaction?.nonce)
    expect(paid.status?.depositData).toEqual(made.status?.depositData)
  })
})

describe('a forged status that can do no harm is put right', () => {
  test.each<{ forged: string; name: string; edit: Edit }>([
    {
      forged: 'that it was sent',
      name: 'sent',
      edit: inTransaction((transaction) => ({ broadcastHash: transaction.hash, state: 'Broadcast' })),
    },
    { forged: 'that it was reported', name: 'reported', edit: inTransaction((transaction) => ({ reportedHash: transaction.hash })) },
    { forged: 'that another root was verified', name: 'root', edit: () => ({ verifiedRoot: hash }) },
    { forged: 'a phase and conditions', name: 'phase', edit: () => ({ phase: 'Confirmed', conditions: [] }) },
    {
      forged: 'that there is nothing at all',
      name: 'nothing',
      edit: () => ({ transaction: null, stakeId: null, depositData: null, verifiedRoot: null, conditions: null }),
    },
  ])('$forged', async ({ name, edit }) => {
    const { made, letGo } = await prepared(`harmless-${name}`)
    await patchStatus(stack().cluster, `harmless-${name}`, edit(made.status?.transaction as Transaction))
    letGo()
    const paid = await untilPaidOnce(stack(), `harmless-${name}`)
    expect(paid.status?.transaction?.minedHash).toBe(made.status?.transaction?.hash)
  })

  test('and the status of a paid stake that somebody empties is found again on the chain', async () => {
    const { cluster } = stack()
    const before = await getStake(cluster, 'harmless-nothing')
    await whileNoMoneyMoves(stack(), async () => {
      await patchStatus(cluster, 'harmless-nothing', null)
      const again = await untilPaidOnce(stack(), 'harmless-nothing')
      expect(again.status?.transaction?.minedHash).toBe(before?.status?.transaction?.minedHash)
    })
  })
})

describe('a definition that is older than the operator', () => {
  type Schema = { properties?: Record<string, Schema>; required?: string[] }
  /** The installed definition as an older version of the project would have it: without one field. */
  async function withoutField(plural: string, path: readonly string[]): Promise<void> {
    const { cluster } = stack()
    const url = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${plural}.staking.dev`
    const { body } = await cluster.request({ path: url })
    const definition = body as { spec: { versions: { schema: { openAPIV3Schema: Schema } }[] } }
    let schema: Schema | undefined = definition.spec.versions[0]?.schema.openAPIV3Schema
    for (const step of path.slice(0, -1)) schema = schema?.properties?.[step]
    const field = path.at(-1) ?? ''
    expect(schema?.properties?.[field], `${plural} has ${path.join('.')}`).toBeDefined()
    delete schema?.properties?.[field]
    const answer = await cluster.request({ method: 'PUT', path: url, body: definition })
    expect(answer.status).toBe(200)
  }

  test.each([
    { plural: 'stakingsigners', path: ['spec', 'policy', 'allowedWithdrawalAddresses'], name: 'old-policy' },
    { plural: 'ethereumstakes', path: ['status', 'transaction', 'broadcastHash'], name: 'old-status' },
  ])('$plural without $path: nothing is signed, until it is applied again', async ({ plural, path, name }) => {
    const { cluster } = stack()
    await whileNoMoneyMoves(stack(), async () => {
      await withoutField(plural, path)
      await applyAll(cluster, [stake(name)])
      await untilStalls(
        cluster,
        name,
        'OutdatedCRD',
        new RegExp(
          `older than this operator: ${plural}\\.staking\\.dev \\(lacks \\.${path.join('\\.')}\\)\\. Nothing is signed\\. Apply the CRDs of this version`,
        ),
      )
    })
    await cluster.kubectlOk(['apply', '-f', new URL('../../../crds', import.meta.url).pathname])
    await untilPaidOnce(stack(), name)
  })
})

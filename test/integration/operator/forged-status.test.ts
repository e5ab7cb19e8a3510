import { isDeepStrictEqual } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Hex } from '../../../src/chains/ethereum/chain.ts'
import { signDepositMessage, withdrawalCredentials } from '../../../src/chains/ethereum/deposit.ts'
import { gwei } from '../../../src/lib/amounts.ts'
import type { EthereumStake } from '../../../src/resources/ethereum-stake.ts'
import { httpStatus } from '../../chains/faults.ts'
import { applyAll, eventually, getStake, OTHER_ADDRESS, seen, signer, stake } from '../../stack/resources.ts'
import { patchStatus, untilPaidOnce, untilStalls, useStack, whileNoMoneyMoves } from './harness.ts'

/**
 * Somebody changes a status by hand between the moment when the transaction is written down and the moment when it is sent. Status mirrors the
 * log, for people: nothing is decided by it.
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

/** What a stake's status says of its stake and its money. */
const evidenceOf = (value: EthereumStake | undefined) => {
  const { stakeId, depositData, verifiedRoot, transaction } = value?.status ?? {}
  return { stakeId, depositData, verifiedRoot, transaction }
}

describe('a forged status is put right by what the log has, and that is what pays', () => {
  test.each<{ forged: string; name: string; edit: Edit }>([
    { forged: 'the recipient', name: 'to', edit: inTransaction(() => ({ to: OTHER_ADDRESS })) },
    { forged: 'the value', name: 'value', edit: inTransaction(() => ({ valueWei: '64000000000000000000' })) },
    { forged: 'the nonce', name: 'nonce', edit: inTransaction(({ nonce }) => ({ nonce: nonce + 1 })) },
    { forged: 'the calldata', name: 'data', edit: inTransaction(() => ({ dataHash: hash })) },
    { forged: 'the sender', name: 'from', edit: inTransaction(() => ({ from: OTHER_ADDRESS })) },
    { forged: 'the chain', name: 'chain', edit: inTransaction(() => ({ chainId: 1 })) },
    { forged: 'the hash', name: 'hash', edit: inTransaction(() => ({ hash })) },
    { forged: 'the gas limit', name: 'gas', edit: inTransaction(() => ({ gas: '900000' })) },
    { forged: 'the fee', name: 'fee', edit: inTransaction(() => ({ maxFeePerGasWei: '99000000000' })) },
    {
      forged: 'that it is final',
      name: 'final',
      edit: inTransaction(() => ({ state: 'Confirmed', minedHash: hash, blockNumber: 1, blockHash: hash })),
    },
    { forged: 'that it was reverted', name: 'reverted', edit: inTransaction(() => ({ state: 'Failed', minedHash: hash, blockNumber: 1 })) },
    {
      forged: 'the credentials in the deposit data',
      name: 'credentials',
      edit: () => ({ depositData: { withdrawalCredentials: thiefs.withdrawalCredentials } }),
    },
    {
      forged: "the whole deposit data, by a thief's own",
      name: 'deposit',
      edit: () => ({ depositData: thiefs, verifiedRoot: thiefs.depositDataRoot }),
    },
    { forged: 'the deposit data without its verification', name: 'unverified', edit: () => ({ depositData: thiefs, verifiedRoot: null }) },
    {
      forged: 'that there is nothing at all',
      name: 'nothing',
      edit: () => ({ transaction: null, stakeId: null, depositData: null, verifiedRoot: null, conditions: null }),
    },
  ])('$forged', async ({ name, edit }) => {
    const { cluster } = stack()
    const { made, letGo } = await prepared(`forged-${name}`)
    await whileNoMoneyMoves(stack(), async () => {
      const forged = edit(made.status?.transaction as Transaction)
      await patchStatus(cluster, `forged-${name}`, forged)
      const right = await eventually(
        'status is put right',
        () => getStake(cluster, `forged-${name}`),
        (value) => isDeepStrictEqual(evidenceOf(value), evidenceOf(made)),
      )
      expect(seen(right)).toMatchObject({ ready: 'False', stalled: false })
    })
    letGo()
    const paid = await untilPaidOnce(stack(), `forged-${name}`)
    expect(paid.status?.transaction).toMatchObject({ nonce: made.status?.transaction?.nonce, minedHash: made.status?.transaction?.hash })
    expect(paid.status?.depositData).toEqual(made.status?.depositData)
  })
})

describe('a forged status that can do no harm changes nothing', () => {
  test.each<{ forged: string; name: string; edit: Edit }>([
    {
      forged: 'that it was sent',
      name: 'sent',
      edit: inTransaction((transaction) => ({ broadcastHash: transaction.hash, state: 'Broadcast' })),
    },
    { forged: 'that it was reported', name: 'reported', edit: inTransaction((transaction) => ({ reportedHash: transaction.hash })) },
    { forged: 'that another root was verified', name: 'root', edit: () => ({ verifiedRoot: hash }) },
    { forged: 'a phase and conditions', name: 'phase', edit: () => ({ phase: 'Confirmed', conditions: [] }) },
  ])('$forged', async ({ name, edit }) => {
    const { made, letGo } = await prepared(`harmless-${name}`)
    await patchStatus(stack().cluster, `harmless-${name}`, edit(made.status?.transaction as Transaction))
    letGo()
    const paid = await untilPaidOnce(stack(), `harmless-${name}`)
    expect(paid.status?.transaction?.minedHash).toBe(made.status?.transaction?.hash)
  })

  test('and the status of a paid stake that somebody empties is shown again from the log', async () => {
    const { cluster } = stack()
    const before = await getStake(cluster, 'harmless-phase')
    await whileNoMoneyMoves(stack(), async () => {
      await patchStatus(cluster, 'harmless-phase', null)
      const again = await untilPaidOnce(stack(), 'harmless-phase')
      expect(evidenceOf(again)).toMatchObject({ depositData: before?.status?.depositData, stakeId: before?.status?.stakeId })
      expect(again.status?.transaction?.minedHash).toBe(before?.status?.transaction?.minedHash)
      // As docs/how-to/stalled.md has it.
      const parts = '{"status":{"stakeId":null,"depositData":null}}'
      await cluster.kubectlOk(['patch', 'ethstake', 'harmless-phase', '-n', 'default', '--subresource=status', '--type=merge', '-p', parts])
      await eventually(
        'they are read again',
        () => getStake(cluster, 'harmless-phase'),
        (value) => isDeepStrictEqual(evidenceOf(value), evidenceOf(again)) && seen(value).ready === 'True',
      )
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
    // The API server writes the definition's status by itself: what that has overtaken is read again.
    if (answer.status === 409) return withoutField(plural, path)
    expect(answer.status).toBe(200)
  }

  test.each([
    { plural: 'stakingsigners', path: ['spec', 'policy', 'allowedWithdrawalAddresses'], name: 'old-policy' },
    { plural: 'ethereumstakes', path: ['status', 'transaction', 'broadcastHash'], name: 'old-status' },
    { plural: 'stakingtransactions', path: ['status', 'closed'], name: 'old-log' },
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
          `not those of this operator: ${plural}\\.staking\\.dev \\(differs in \\.${path.join('\\.')}\\)\\. Nothing is signed\\. Apply the CRDs of its version`,
        ),
      )
    })
    await cluster.kubectlOk(['apply', '-f', new URL('../../../crds', import.meta.url).pathname])
    await untilPaidOnce(stack(), name)
  })
})

import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Hex } from '../../../src/chains/ethereum/chain.ts'
import { depositDataRoot, encodeDepositCalldata, signDepositMessage, withdrawalCredentials } from '../../../src/chains/ethereum/deposit.ts'
import { gwei, gweiToWei } from '../../../src/lib/amounts.ts'
import { idempotencyKey } from '../../../src/operator/engine/origin.ts'
import { encodeDeposit } from '../../chains/deposit-contract.ts'
import { endlessBody, html, httpStatus, reset, resetAfterPassing, rewriteJson, timeoutAfterPassing } from '../../chains/faults.ts'
import type { Fault } from '../../chains/faulty-http.ts'
import { rpcError } from '../../chains/faulty-rpc.ts'
import { applyAll, eventsOf, eventually, getStake, OTHER_ADDRESS, PAYER, signer, stake, WITHDRAWAL_ADDRESS } from '../../stack/resources.ts'
import { NETWORK } from '../../stack/stack.ts'
import {
  comesToRest,
  conditionOf,
  deleteStake,
  depositsOf,
  metric,
  moneyOf,
  patchStake,
  recordOf,
  serviceStakes,
  untilGone,
  untilPaidOnce,
  untilShows,
  untilStalls,
  useStack,
  whileNoMoneyMoves,
} from './harness.ts'

/** A staking service that lies, refuses, breaks or doesn't answer: nothing is paid that isn't what the resource says, and never twice. */
const stack = useStack()
const CREATE = 'POST /v1/ethereum/stakes'

const problem = (status: number, code: string, headers = {}, more = {}): Fault =>
  httpStatus(
    status,
    { 'content-type': 'application/problem+json', ...headers },
    JSON.stringify({ type: `/problems/${code}`, title: code, status, code, ...more }),
  )

interface StakeAnswer {
  readonly depositData: Readonly<Record<string, unknown>> & {
    readonly pubkey: Hex
    readonly signature: Hex
    readonly withdrawalCredentials: Hex
  }
  readonly unsignedTransaction: Readonly<Record<string, unknown>>
}

/** A deposit for a validator of the liar's own: valid in itself, on every side. */
function valid({ address = WITHDRAWAL_ADDRESS, eth = 32n, forkVersion = '0x10000038' as Hex } = {}) {
  const amountGwei = gwei(eth * 1_000_000_000n)
  const signed = signDepositMessage(new Uint8Array(32).fill(7), {
    withdrawalCredentials: withdrawalCredentials('0x02', address as Hex),
    amountGwei,
    genesisForkVersion: forkVersion,
  })
  return {
    depositData: { ...signed, amountGwei: amountGwei.toString() },
    unsignedTransaction: { data: encodeDepositCalldata(signed), valueWei: gweiToWei(amountGwei).toString() },
  }
}
type Lie = (answer: StakeAnswer) => object
/** Puts the parts in place of the service's own. */
const instead =
  (parts: { depositData?: object; unsignedTransaction?: object }): Lie =>
  (answer) => ({
    ...answer,
    depositData: { ...answer.depositData, ...parts.depositData },
    unsignedTransaction: { ...answer.unsignedTransaction, ...parts.unsignedTransaction },
  })
/** A signature of the same validator for something else: well-formed, and wrong here. */
const otherSignature: Lie = (answer) => {
  const amountGwei = gwei(32_000_000_000n)
  const { signature } = valid({ address: OTHER_ADDRESS }).depositData
  const data = { ...answer.depositData, amountGwei, signature }
  const root = depositDataRoot(data)
  return instead({
    depositData: { signature, depositDataRoot: root },
    unsignedTransaction: { data: encodeDepositCalldata({ ...data, depositDataRoot: root }) },
  })(answer)
}

beforeAll(async () => {
  await applyAll(stack().cluster, [signer()])
})

describe('a service that lies: nothing is signed, and the truth is taken once it is told', () => {
  test.each<{ what: string; name: string; lie: Lie; says: RegExp }>([
    {
      what: 'another withdrawal address in the credentials, all else valid',
      name: 'lie-address',
      lie: instead(valid({ address: OTHER_ADDRESS })),
      says: /withdrawal credentials are not 0x02\w+, which spec\.withdrawalAddress and spec\.credentialsType make/,
    },
    {
      what: 'another amount, all else valid',
      name: 'lie-amount',
      lie: instead(valid({ eth: 33n })),
      says: /amount of the deposit data is not 32 ETH.*the transaction's value is not 32 ETH/,
    },
    { what: 'a signature of something else', name: 'lie-signature', lie: otherSignature, says: /BLS signature is not valid/ },
    {
      what: 'a signature for another network',
      name: 'lie-fork',
      lie: instead(valid({ forkVersion: '0x00000000' })),
      says: /BLS signature is not valid for this network/,
    },
    {
      what: 'a wrong deposit data root',
      name: 'lie-root',
      lie: instead({ depositData: { depositDataRoot: `0x${'11'.repeat(32)}` } }),
      says: /deposit data root is not that of the deposit data/,
    },
    {
      what: 'another contract address',
      name: 'lie-contract',
      lie: instead({ depositData: { depositContractAddress: OTHER_ADDRESS }, unsignedTransaction: { to: OTHER_ADDRESS } }),
      says: /another deposit contract than 0x0000.*does not go to the deposit contract/,
    },
    {
      what: 'another chain id',
      name: 'lie-chain',
      lie: instead({ depositData: { chainId: 1 }, unsignedTransaction: { chainId: 1 } }),
      says: /not for chain id 31337/,
    },
    {
      what: 'calldata of another deposit',
      name: 'lie-calldata',
      lie: instead({ unsignedTransaction: { data: valid({ address: OTHER_ADDRESS }).unsignedTransaction.data } }),
      says: /not the call of deposit\(\) that the deposit data makes, byte for byte/,
    },
    {
      what: 'a public key that is none',
      name: 'lie-pubkey',
      lie: instead({ depositData: { pubkey: `0x${'00'.repeat(48)}` } }),
      says: /public key is not a valid BLS12-381 public key/,
    },
  ])('$what', async ({ name, lie, says }) => {
    const { cluster, apiFaults } = stack()
    const refusedBefore = await metric(stack(), 'staking_operator_signatures_refused_total', { reason: 'VerificationFailed' })
    const lying = apiFaults.when(CREATE).always(rewriteJson(lie))
    await whileNoMoneyMoves(stack(), async () => {
      await applyAll(cluster, [stake(name)])
      const stalled = await untilStalls(cluster, name, 'VerificationFailed', says)
      expect(conditionOf(stalled, 'Verified')).toMatchObject({ status: 'False', reason: 'VerificationFailed' })
      expect(conditionOf(stalled, 'Stalled').message).toMatch(/Nothing was signed\. Do not work around this/)
    })
    const refused = () => metric(stack(), 'staking_operator_signatures_refused_total', { reason: 'VerificationFailed' })
    await eventually('the refusal is counted', refused, (count) => count > refusedBefore)
    lying.remove()
    await untilPaidOnce(stack(), name)
  })

  test('the stake of another resource, paid already: it is not taken for this one', async () => {
    const { cluster, apiFaults } = stack()
    const paid = await getStake(cluster, 'lie-root')
    const [body] = await serviceStakes(stack(), 'lie-root')
    const lying = apiFaults.when(CREATE).always(rewriteJson(() => body))
    await whileNoMoneyMoves(stack(), async () => {
      await applyAll(cluster, [stake('lie-stake')])
      await untilStalls(cluster, 'lie-stake', 'VerificationFailed', /belongs to (another resource|EthereumStake default\/lie-root)/)
    })
    lying.remove()
    const own = await untilPaidOnce(stack(), 'lie-stake')
    expect(own.status?.depositData?.pubkey).not.toBe(paid?.status?.depositData?.pubkey)
  })
})

describe('a service that refuses', () => {
  test('an API key that it does not know (401): until the key file is mended', async () => {
    const { cluster, apiKeyFile } = stack()
    const good = readFileSync(apiKeyFile, 'utf8')
    const swap = (text: string) => {
      writeFileSync(`${apiKeyFile}.new`, text)
      renameSync(`${apiKeyFile}.new`, apiKeyFile)
    }
    const wrong = `sop_${'A'.repeat(43)}`
    await whileNoMoneyMoves(stack(), async () => {
      swap(`${wrong}\n`)
      await applyAll(cluster, [stake('unauthorized')])
      const stalled = await untilStalls(
        cluster,
        'unauthorized',
        'Unauthorized',
        /refused the operator's API key \(401\)\. Whoever runs the operator must check the key file/,
      )
      expect(JSON.stringify(stalled)).not.toContain(wrong)
      rmSync(apiKeyFile)
      await untilStalls(cluster, 'unauthorized', 'ApiKeyUnreadable', /API key file .* cannot be read \(ENOENT\)\. Mount the Secret/)
      swap('\n')
      await untilStalls(cluster, 'unauthorized', 'ApiKeyUnreadable', /does not hold an API key/)
    })
    swap(good)
    await untilPaidOnce(stack(), 'unauthorized')
  })

  test.each([
    {
      what: 'a key without the scope (403)',
      name: 'refuse-403',
      fault: problem(403, 'forbidden'),
      reason: 'Unauthorized',
      says: /API key \(403\)/,
    },
    {
      what: 'a rule of the chain (422)',
      name: 'refuse-422',
      fault: problem(
        422,
        'validation-failed',
        {},
        { errors: [{ pointer: '/amountEth', code: 'amount-out-of-range', detail: 'secret detail' }] },
      ),
      reason: 'RequestRefused',
      says: /spec\.amountEth or spec\.amountLamports must be an amount that the chain takes: .* \(amount-out-of-range\)\. Delete this resource/,
    },
    {
      what: 'no such path (404)',
      name: 'refuse-404',
      fault: problem(404, 'not-found'),
      reason: 'RequestRefused',
      says: /does not know this \(404\)/,
    },
  ])('$what: it stalls, and goes on when the service has changed its mind', async ({ name, fault, reason, says }) => {
    const { cluster, apiFaults } = stack()
    const refusing = apiFaults.when(CREATE).always(fault)
    await whileNoMoneyMoves(stack(), async () => {
      await applyAll(cluster, [stake(name)])
      const stalled = await untilStalls(cluster, name, reason, says)
      expect(JSON.stringify([stalled, await eventsOf(cluster, name)])).not.toContain('secret detail')
    })
    refusing.remove()
    await untilPaidOnce(stack(), name)
  })

  test('the same request still in progress (409): it waits, and takes what came of it', async () => {
    const { cluster, apiFaults } = stack()
    const busy = apiFaults.when(CREATE).always(problem(409, 'idempotency-key-in-progress', { 'retry-after': '1' }))
    await applyAll(cluster, [stake('in-progress')])
    const waiting = await untilShows(cluster, 'in-progress', 'ServiceUnavailable', /still working on this very request/)
    expect(conditionOf(waiting, 'Stalled').status).toBe('False')
    await eventually(
      'it is asked again',
      async () => busy.hits(),
      (hits) => hits >= 2,
    )
    busy.remove()
    await untilPaidOnce(stack(), 'in-progress')
  })

  /** As if somebody used the operator's own API key by hand. */
  const createByHand = async (key: string, body: object) => {
    const response = await fetch(`${stack().serviceUrl}/v1/ethereum/stakes`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${readFileSync(stack().apiKeyFile, 'utf8').trim()}`,
        'content-type': 'application/json',
        'idempotency-key': key,
      },
      body: JSON.stringify({ network: NETWORK, amountEth: 32, withdrawalAddress: WITHDRAWAL_ADDRESS, ...body }),
    })
    return (await response.json()) as { stakeId: string }
  }

  test('the idempotency key was used for another request (409): it stalls, and made anew it is paid', async () => {
    const { cluster } = stack()
    await whileNoMoneyMoves(stack(), async () => {
      await applyAll(cluster, [stake('reused', { suspend: true })])
      const { metadata } = await untilShows(cluster, 'reused', 'Suspended', /./)
      const origin = { uid: metadata.uid, kind: 'EthereumStake', namespace: 'default', name: 'reused' }
      await createByHand(idempotencyKey(origin, 'stake'), { amountEth: 64 })
      await patchStake(cluster, 'reused', { spec: { suspend: null } })
      await untilStalls(
        cluster,
        'reused',
        'RequestRefused',
        /knows the idempotency key of this resource with another request.*Delete this resource, and create one under another name/,
      )
      await deleteStake(cluster, 'reused')
      await untilGone(cluster, 'reused')
    })
    await applyAll(cluster, [stake('reused')])
    await untilPaidOnce(stack(), 'reused')
  })

  test('a stake of that name that was never paid (409): it is named, and adopted it is paid once', async () => {
    const { cluster } = stack()
    const { stakeId } = await createByHand('by-hand-1', { externalReference: 'EthereumStake/default/by-hand' })
    await whileNoMoneyMoves(stack(), async () => {
      await applyAll(cluster, [stake('by-hand')])
      await untilStalls(
        cluster,
        'by-hand',
        'AlreadyStaked',
        new RegExp(`Nothing was bought again\\. To take it over as it is .*, set spec\\.adopt\\.stakeId to ${stakeId};`),
      )
    })
    const before = await moneyOf(stack())
    await patchStake(cluster, 'by-hand', { spec: { adopt: { stakeId } } })
    await untilPaidOnce(stack(), 'by-hand')
    expect((await moneyOf(stack())).deposits).toBe(before.deposits + 1)
  })
})

describe('a service that breaks', () => {
  test.each<{ what: string; name: string; fault: Fault; says: RegExp }>([
    {
      what: 'a 500 that it tells of itself',
      name: 'break-500',
      fault: problem(500, 'internal-error'),
      says: /answered 500; it is tried again with the same idempotency key/,
    },
    { what: 'a 500 of whatever is in between', name: 'break-gateway', fault: httpStatus(500), says: /not its contract/ },
    {
      what: 'HTML with a 200',
      name: 'break-html',
      fault: html(200),
      says: /not its contract \(is the URL right\? is a proxy in between\?\)/,
    },
    { what: 'HTML with a 404', name: 'break-404', fault: html(404), says: /not its contract/ },
    { what: 'HTML with a 502', name: 'break-502', fault: html(502), says: /not its contract/ },
    { what: 'a body that never ends', name: 'break-endless', fault: endlessBody, says: /not its contract/ },
    { what: 'a reset connection', name: 'break-reset', fault: reset, says: /cannot be reached; it is tried again/ },
    { what: 'an empty object', name: 'break-empty', fault: rewriteJson(() => ({})), says: /not its contract/ },
    { what: 'a reset after it did the work', name: 'break-lost', fault: resetAfterPassing, says: /cannot be reached; it is tried again/ },
    {
      what: 'silence after it did the work',
      name: 'break-silence',
      fault: timeoutAfterPassing,
      says: /did not answer in time\. The same request is sent again/,
    },
  ])('$what: it is told and tried again, one stake is made and one deposit', async ({ name, fault, says }) => {
    const { cluster, apiFaults } = stack()
    const broken = apiFaults.when(CREATE).always(fault)
    const asked = apiFaults.history().length
    const before = await moneyOf(stack())
    await applyAll(cluster, [stake(name)])
    await eventually(
      'the trouble is told',
      async () => (await getStake(cluster, name))?.status?.conditions?.find(({ type }) => type === 'Ready')?.message ?? '',
      (message) => says.test(message),
    )
    await eventually(
      'it is asked again',
      async () => broken.hits(),
      (hits) => hits >= 2,
    )
    broken.remove()
    await untilPaidOnce(stack(), name)
    const keys = apiFaults
      .history()
      .slice(asked)
      .filter(({ names }) => names.includes(CREATE))
      .map(({ headers }) => headers['idempotency-key'])
    expect(keys.length).toBeGreaterThan(2)
    expect(new Set(keys).size, 'the same idempotency key each time').toBe(1)
    expect((await moneyOf(stack())).deposits).toBe(before.deposits + 1)
  })
})

test('a hash that the service was told and no node knows: nothing is signed before a person has looked', async () => {
  const { cluster, rpcFaults, anvil } = stack()
  const lost = `0x${'5e'.repeat(32)}`
  const nonce = await anvil.transactionCount(PAYER, 'pending')
  await whileNoMoneyMoves(stack(), async () => {
    const held = rpcFaults.when('eth_estimateGas').always(rpcError('not now'))
    await applyAll(cluster, [stake('told')])
    const told = await untilShows(cluster, 'told', 'ChainUnavailable', /RPC node refused the call/)
    // As an operator does that ends before it sends, and whose log is lost with it.
    const answer = await fetch(`${stack().serviceUrl}/v1/ethereum/stakes/${told.status?.stakeId}/submission`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${readFileSync(stack().apiKeyFile, 'utf8').trim()}`, 'content-type': 'application/json' },
      body: JSON.stringify({ transactionHash: lost, from: PAYER, nonce }),
    })
    expect(answer.status).toBe(200)
    held.remove()
    await untilStalls(
      cluster,
      'told',
      'UnknownSubmission',
      new RegExp(`was told of transaction ${lost} for this, and no RPC node knows it`),
    )
  })
  const { message } = conditionOf((await getStake(cluster, 'told')) ?? raise(), 'Stalled')
  const [, command = ''] = /: kubectl (annotate stx .+)$/.exec(message) ?? []
  await cluster.kubectlOk(command.split(' '))
  const paid = await untilPaidOnce(stack(), 'told')
  // Under the same nonce, of which one transaction can land: this is why the service takes another hash.
  expect(paid.status?.transaction?.nonce).toBe(nonce)
})

describe('a public key that somebody else has deposited for', () => {
  /** Deposits from an account that is not the signer's. */
  const depositByOther = async (name: string, credentials?: Hex) => {
    const { anvil, cluster } = stack()
    const made = await eventually(
      `stake ${name} has its deposit data`,
      () => getStake(cluster, name),
      (value) => value?.status?.depositData !== undefined,
    )
    const data = made?.status?.depositData
    if (data === undefined) throw new Error('no deposit data')
    const count = await anvil.depositCount()
    await anvil.rpc('eth_sendTransaction', [
      {
        from: anvil.accounts[1]?.address,
        to: anvil.depositContract,
        value: `0x${(32n * 10n ** 18n).toString(16)}`,
        data: encodeDeposit({
          pubkey: data.pubkey as Hex,
          withdrawalCredentials: credentials ?? (data.withdrawalCredentials as Hex),
          signature: data.signature as Hex,
          amountGwei: 32_000_000_000n,
        }),
      },
    ])
    await eventually(
      'the deposit of another is mined',
      () => anvil.depositCount(),
      (now) => now === count + 1,
    )
  }
  const thiefs = withdrawalCredentials('0x01', OTHER_ADDRESS)

  test.each([
    {
      what: 'with credentials of their own, before the transaction is made',
      name: 'front-run',
      at: 'eth_estimateGas',
      credentials: thiefs,
    },
    {
      what: 'with the very same data, before the transaction is made',
      name: 'front-run-same',
      at: 'eth_estimateGas',
      credentials: undefined,
    },
    {
      what: 'with credentials of their own, before the transaction is sent',
      name: 'front-run-late',
      at: 'eth_sendRawTransaction',
      credentials: thiefs,
    },
  ])('$what: it is not paid again, and another resource can take its place', async ({ name, at, credentials }) => {
    const { cluster, rpcFaults } = stack()
    const held = rpcFaults.when(at).always(rpcError('not now'))
    const sent = rpcFaults.passed('eth_sendRawTransaction')
    await applyAll(cluster, [stake(name)])
    await untilShows(cluster, name, 'ChainUnavailable', /RPC node refused the call/)
    await depositByOther(name, credentials)
    // Until the operator has looked: what it was about to send when theirs was mined comes second, which is told as FrontRun.
    if (at === 'eth_sendRawTransaction') {
      const isCancelling = (record: Awaited<ReturnType<typeof recordOf>>) => record.status?.attempts?.at(-1)?.kind === 'Cancel'
      await eventually('its cancel is written down', () => recordOf(cluster, name), isCancelling)
    } else await untilStalls(cluster, name, 'PubkeyAlreadyDeposited', /did not make/)
    held.remove()
    const stalled = await untilStalls(
      cluster,
      name,
      'PubkeyAlreadyDeposited',
      /deposit for this public key that this resource did not make \(transaction 0x\w{64}\)\. Paying it again would top up/,
    )
    expect(await depositsOf(stack(), stalled), 'only that of somebody else').toHaveLength(1)
    if (at === 'eth_estimateGas') expect(rpcFaults.passed('eth_sendRawTransaction')).toBe(sent)
    else {
      // A node that answered "not now" may have kept it: what may still land is cancelled.
      const cancelled = () => recordOf(cluster, name)
      const { status } = await eventually('it is cancelled', cancelled, (record) => record.status?.closed?.[0]?.by === 'Cancel')
      expect(status?.attempts?.map(({ kind }) => kind)).toEqual(['Call', 'Cancel'])
      expect(rpcFaults.passed('eth_sendRawTransaction')).toBe(sent + 1)
    }
    expect(conditionOf(stalled, 'Stalled').message).toMatch(/another name/)
    // What became of its transaction is mirrored; then it is looked at again and again, and that is not written down.
    await comesToRest(2_500, async () => (await getStake(cluster, name))?.metadata.resourceVersion)
    await deleteStake(cluster, name)
    await applyAll(cluster, [stake(`${name}-again`)])
    await untilPaidOnce(stack(), `${name}-again`)
    await untilGone(cluster, name)
  })
})

function raise(): never {
  throw new Error('it is not there')
}

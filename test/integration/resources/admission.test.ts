import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { customResourceDefinition } from '../../../src/resources/crd.ts'
import { kinds } from '../../../src/resources/kinds.ts'
import { applyObjects, untilEstablished } from '../../cluster/apply.ts'
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts'
import { applyAll, eventually, signer, solanaSigner, stake, validatorExit, validatorWithdrawal } from '../../stack/resources.ts'
import { SOLANA_STAKER } from '../../stack/stack.ts'

/** What people get from a real API server when they apply a manifest: it is taken, or the message says what to do. */
let cluster: ControlPlane
beforeAll(async () => {
  cluster = await startControlPlane()
  await cluster.kubectlOk(['apply', '-f', new URL('../../../crds', import.meta.url).pathname])
  await untilEstablished(cluster)
})
afterAll(async () => {
  await cluster?.stop()
})

const apply = (manifest: unknown) => cluster.kubectl(['apply', '-f', '-'], { input: JSON.stringify(manifest) })
let count = 0
const next = () => `m-${++count}`

describe('an EthereumStake', () => {
  test.each([
    { what: '32 ETH', spec: {} },
    { what: '2048 ETH', spec: { amountEth: '2048' } },
    { what: '9 decimals', spec: { amountEth: '32.000000001' } },
    { what: '32 ETH with Execution', spec: { amountEth: '32', credentialsType: 'Execution' } },
    { what: 'a lower-case address', spec: { withdrawalAddress: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8' } },
    { what: 'a fee cap', spec: { maxFeePerGasGwei: '2.5' } },
    { what: 'a stake to adopt', spec: { adopt: { stakeId: '0123456789abcdef0123456789abcdef' } } },
    { what: 'suspend', spec: { suspend: true } },
  ])('with $what is taken', async ({ spec }) => {
    expect(await apply(stake(next(), spec))).toMatchObject({ code: 0 })
  })

  test.each([
    { what: '31 ETH', spec: { amountEth: '31' }, says: 'must be at least 32 ETH: a validator needs 32 ETH to become active' },
    { what: '31.999999999 ETH', spec: { amountEth: '31.999999999' }, says: 'must be at least 32 ETH' },
    {
      what: '33 ETH with Execution',
      spec: { amountEth: '33', credentialsType: 'Execution' },
      says: 'must be 32 with credentialsType Execution',
    },
    { what: '2048.000000001 ETH', spec: { amountEth: '2048.000000001' }, says: 'must be at most 2048 ETH' },
    {
      what: '10 decimals',
      spec: { amountEth: '32.0000000001' },
      says: 'must be a plain decimal number of ETH such as "32" or "32.5", with at most 9 decimals',
    },
    { what: 'a number for text', spec: { amountEth: 32 }, says: 'spec.amountEth in body must be of type string: "integer"' },
    { what: 'an exponent', spec: { amountEth: '3.2e1' }, says: 'must be a plain decimal number of ETH' },
    { what: 'a sign', spec: { amountEth: '+32' }, says: 'must be a plain decimal number of ETH' },
    { what: 'white space', spec: { amountEth: ' 32' }, says: 'must be a plain decimal number of ETH' },
    { what: 'a unit', spec: { amountEth: '32 ETH' }, says: 'must be a plain decimal number of ETH' },
    { what: 'an empty amount', spec: { amountEth: '' }, says: 'spec.amountEth' },
    {
      what: 'the zero address',
      spec: { withdrawalAddress: `0x${'0'.repeat(40)}` },
      says: 'must not be the zero address: nobody can withdraw from there',
    },
    {
      what: 'a precompile',
      spec: { withdrawalAddress: `0x${'0'.repeat(38)}0B` },
      says: 'must not be a precompile (EIP-1352: 0x0001 to 0xffff): nobody can withdraw from there',
    },
    {
      what: 'the deposit contract',
      spec: { withdrawalAddress: '0x00000000219ab540356cBB839Cbe05303d7705Fa' },
      says: 'must not be a contract of the protocol',
    },
    {
      what: 'the EIP-7002 contract in lower case',
      spec: { withdrawalAddress: '0x00000961ef480eb55e80d19ad83579a64c007002' },
      says: 'must not be a contract of the protocol',
    },
    {
      what: 'the EIP-7251 contract in upper case',
      spec: { withdrawalAddress: '0x0000BBDDC7CE488642FB579F8B00F3A590007251' },
      says: 'must not be a contract of the protocol',
    },
    { what: 'a short address', spec: { withdrawalAddress: '0x1234' }, says: 'must be an Ethereum address: 0x and 40 hex digits' },
    {
      what: 'an address without 0x',
      spec: { withdrawalAddress: '70997970C51812dc3A010C7d01b50e0d17dc79C8' },
      says: 'must be an Ethereum address: 0x and 40 hex digits',
    },
    {
      what: 'a name for an address',
      spec: { withdrawalAddress: 'treasury.eth' },
      says: 'must be an Ethereum address: 0x and 40 hex digits',
    },
    { what: 'credentials by their prefix', spec: { credentialsType: '0x02' }, says: 'supported values: "Compounding", "Execution"' },
    { what: 'a field that is mistyped', spec: { withdrawlAddress: 'x' }, says: 'unknown field "spec.withdrawlAddress"' },
    {
      what: 'an amount in wei',
      spec: { amountEth: '32000000000000000000' },
      says: 'must be a plain decimal number of ETH such as "32" or "32.5", with at most 9 decimals (1 gwei)',
    },
    {
      what: 'a fee cap in wei',
      spec: { maxFeePerGasGwei: '100000000000000000000' },
      says: 'must be a plain decimal number of gwei such as "30" or "2.5"',
    },
    {
      what: 'an address twice',
      spec: { withdrawalAddress: `0x${'70'.repeat(40)}` },
      says: 'must be an Ethereum address: 0x and 40 hex digits',
    },
    { what: 'a network in capitals', spec: { network: 'Hoodi' }, says: 'must be the name of a network: at most 63 lower-case' },
    { what: 'a network of 64 characters', spec: { network: 'a'.repeat(64) }, says: 'must be the name of a network: at most 63' },
    { what: 'no signer', spec: { signer: undefined }, says: 'spec.signer: Required value' },
    { what: 'a fee cap of nothing', spec: { maxFeePerGasGwei: '0' }, says: 'must be more than 0, or nothing is ever sent' },
    {
      what: 'a fee cap of nothing with decimals',
      spec: { maxFeePerGasGwei: '0.000' },
      says: 'must be more than 0, or nothing is ever sent',
    },
    { what: 'a fee cap of 5 gwei in wei', spec: { maxFeePerGasGwei: '5000000000' }, says: 'must be under a million gwei: it is in gwei' },
    { what: 'a fee cap in words', spec: { maxFeePerGasGwei: '30 gwei' }, says: 'must be a plain decimal number of gwei' },
  ])('with $what is refused, and told why', async ({ spec, says }) => {
    const { code, stderr } = await apply(stake(next(), spec))
    expect(code).not.toBe(0)
    expect(stderr).toContain(says)
  })

  test.each([
    { field: 'amountEth', value: '64' },
    { field: 'network', value: 'mainnet' },
    { field: 'withdrawalAddress', value: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC' },
    { field: 'credentialsType', value: 'Execution' },
    { field: 'signer', value: 'other' },
  ])('cannot change its $field', async ({ field, value }) => {
    const name = next()
    await apply(stake(name))
    const { stderr } = await cluster.kubectl([
      'patch',
      'ethstake',
      name,
      '--type=merge',
      '-p',
      JSON.stringify({ spec: { [field]: value } }),
    ])
    expect(stderr).toContain(`${field} cannot be changed: delete this resource and create another`)
  })

  test('may change suspend and its fee cap, and adopt as long as it has no stake', async () => {
    const name = next()
    await apply(stake(name))
    const patch = (spec: unknown) => cluster.kubectl(['patch', 'ethstake', name, '--type=merge', '-p', JSON.stringify({ spec })])
    expect(await patch({ suspend: true, maxFeePerGasGwei: '7' })).toMatchObject({ code: 0 })
    expect(await patch({ suspend: null, maxFeePerGasGwei: null })).toMatchObject({ code: 0 })
    expect(await patch({ adopt: { stakeId: 'typo' } })).toMatchObject({ code: 0 })
    expect(await patch({ adopt: { stakeId: 'a2' } })).toMatchObject({ code: 0 })
    expect(await patch({ adopt: null })).toMatchObject({ code: 0 })
    await writeStatus(name, { stakeId: 's1', phase: 'Created', verifiedRoot: `0x${'ab'.repeat(32)}` })
    const { code, stderr } = await patch({ adopt: { stakeId: 'garbage' } })
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/spec\.adopt: .*only while this resource has no stake, and it has stake s1 \(Created\)/),
    })
    expect(await patch({ suspend: true })).toMatchObject({ code: 0 })
  })

  test('that has an adopted stake keeps naming it', async () => {
    const name = next()
    await apply(stake(name, { adopt: { stakeId: 's1' } }))
    await writeStatus(name, { stakeId: 's1', phase: 'Active', verifiedRoot: `0x${'ab'.repeat(32)}` })
    for (const adopt of [null, { stakeId: 's2' }]) {
      const { stderr } = await cluster.kubectl(['patch', 'ethstake', name, '--type=merge', '-p', JSON.stringify({ spec: { adopt } })])
      expect(stderr).toContain('it has stake s1 (Active). Put it back as it was')
    }
  })

  test.each([
    { state: 'Prepared', keeps: true },
    { state: 'Broadcast', keeps: true },
    { state: 'Confirmed', keeps: true },
    { state: 'Failed', keeps: false },
  ])('whose deposit is $state is told what to do with a change that can not be made', async ({ state, keeps }) => {
    const name = next()
    await apply(stake(name))
    await writeStatus(name, { stakeId: 's1', transaction: { ...transaction, state } })
    const { stderr } = await cluster.kubectl(['patch', 'ethstake', name, '--type=merge', '-p', '{"spec":{"amountEth":"64"}}'])
    expect(stderr).toContain('amountEth cannot be changed: ')
    expect(stderr).toContain(keeps ? 'Put the old value back and keep this resource' : 'delete this resource and create another')
    if (keeps) expect(stderr).not.toContain('delete')
  })
})

const transaction = {
  chainId: 1,
  from: `0x${'11'.repeat(20)}`,
  to: `0x${'22'.repeat(20)}`,
  valueWei: '1',
  dataHash: `0x${'33'.repeat(32)}`,
  hash: `0x${'44'.repeat(32)}`,
  nonce: 0,
  gas: '1',
  maxFeePerGasWei: '1',
  maxPriorityFeePerGasWei: '1',
  preparedAt: '2030-01-01T00:00:00Z',
}
const writeStatus = (name: string, status: object) =>
  cluster.kubectlOk(['patch', 'ethstake', name, '--subresource=status', '--type=merge', '-p', JSON.stringify({ status })])

describe('a StakingSigner', () => {
  const solana = { chain: 'Solana', address: '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T' }
  test.each([
    { what: 'names', spec: {} },
    {
      what: 'a label selector',
      spec: {
        policy: {
          allowedNamespaces: {
            selector: { matchLabels: { team: 'a' }, matchExpressions: [{ key: 'env', operator: 'In', values: ['prod'] }] },
          },
        },
      },
    },
    { what: 'nothing admitted', spec: { policy: { allowedNamespaces: {} } } },
    {
      what: 'all of what there is in SOL',
      spec: {
        ...solana,
        policy: {
          maxPerTransaction: '100000',
          limits: [{ window: '24h', maxTotalSol: '999999999.999999999' }],
          approval: { by: [{ user: 'bob' }], aboveSol: '999999999' },
        },
      },
    },
    {
      what: 'all of its policy',
      spec: {
        acknowledgedNonce: 7,
        policy: { allowedWithdrawalAddresses: ['0x70997970C51812dc3A010C7d01b50e0d17dc79C8'], maxFeePerGasGwei: '50', sharedKey: true },
      },
    },
  ])('with $what is taken', async ({ spec }) => {
    expect(await apply(signer(spec, next()))).toMatchObject({ code: 0 })
  })

  test.each([
    {
      what: 'a Solana address for Ethereum',
      spec: { address: '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T' },
      says: 'must be an Ethereum address',
    },
    { what: 'an Ethereum address for Solana', spec: { chain: 'Solana' }, says: 'must be a Solana address in base58' },
    { what: 'no policy', spec: { policy: null }, says: 'spec.policy' },
    {
      what: 'a star for all namespaces',
      spec: { policy: { allowedNamespaces: { names: ['*'] } } },
      says: 'must be the name of a namespace: nothing stands for all of them',
    },
    { what: 'a limit in words', spec: { policy: { maxPerTransaction: '32 ETH' } }, says: 'must be a plain decimal number such as "32"' },
    {
      what: 'gwei for ETH',
      spec: { policy: { maxPerTransaction: '32000000000' } },
      says: 'it is in ETH, and under a million: 32 ETH is "32"',
    },
    {
      what: 'SOL for lamports',
      spec: { ...solana, policy: { maxPerTransaction: '10' } },
      says: 'it is in lamports, and 0 or at least 100000: 10 SOL is "10000000000"',
    },
    {
      what: 'a fee cap of nothing',
      spec: { policy: { maxFeePerGasGwei: '0' } },
      says: 'must be more than 0, or nothing is ever sent',
    },
    { what: 'a fee cap in wei', spec: { policy: { maxFeePerGasGwei: '5000000000' } }, says: 'must be under a million gwei: it is in gwei' },
    {
      what: 'a fee of nothing for requests',
      spec: { policy: { maxRequestFeeGwei: '0.000000000' } },
      says: 'spec.policy.maxRequestFeeGwei: Invalid value: "0.000000000": must be more than 0, or no exit and no withdrawal is ever sent',
    },
    {
      what: 'lamports for SOL in a limit',
      spec: { ...solana, policy: { maxPerTransaction: '100000', limits: [{ window: '24h', maxTotalSol: '5000000000' }] } },
      says: 'spec.policy.limits[0].maxTotalSol: Invalid value: "5000000000": must be under a billion SOL: it is in SOL, not in lamports',
    },
    {
      what: 'lamports for SOL above which it needs an approval',
      spec: { ...solana, policy: { maxPerTransaction: '100000', approval: { by: [{ user: 'bob' }], aboveSol: '5000000000.5' } } },
      says: 'spec.policy.approval.aboveSol: Invalid value: "5000000000.5": must be under a billion SOL',
    },
    {
      what: 'gwei for ETH in a limit',
      spec: { policy: { limits: [{ window: '24h', maxTotalEth: '320000000000' }] } },
      says: 'maxTotalEth is in ETH, and under a hundred million',
    },
    {
      what: 'gwei for ETH above which it needs an approval',
      spec: { policy: { approval: { by: [{ user: 'bob' }], aboveEth: '64000000000' } } },
      says: 'aboveEth is in ETH, and under a million',
    },
    {
      what: 'the name of a file for a key name',
      spec: { keyName: 'treasury.privateKey' },
      says: 'treasury, where the Secret has treasury.privateKey',
    },
    { what: 'a path for a key name', spec: { keyName: '../other' }, says: 'spec.keyName' },
    { what: 'a negative nonce', spec: { acknowledgedNonce: -1 }, says: 'spec.acknowledgedNonce' },
  ])('with $what is refused, and told why', async ({ spec, says }) => {
    const manifest = signer(spec.policy === null ? {} : spec, next())
    if (spec.policy === null) (manifest.spec as Record<string, unknown>).policy = null
    const { code, stderr } = await apply(manifest)
    expect(code).not.toBe(0)
    expect(stderr).toContain(says)
  })

  test('can only raise acknowledgedNonce, and not change its address', async () => {
    const name = next()
    await apply(signer({ acknowledgedNonce: 5 }, name))
    const patch = (spec: unknown) => cluster.kubectl(['patch', 'signer', name, '--type=merge', '-p', JSON.stringify({ spec })])
    expect((await patch({ acknowledgedNonce: 4 })).stderr).toContain('acknowledgedNonce can only be raised')
    expect(await patch({ acknowledgedNonce: 6 })).toMatchObject({ code: 0 })
    expect((await patch({ address: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' })).stderr).toContain('address cannot be changed')
  })
})

test('both kinds explain every field of their spec', async () => {
  for (const kind of ['ethstake', 'signer']) {
    const text = await cluster.kubectlOk(['explain', `${kind}.spec`, '--recursive'])
    expect(text).toContain('FIELDS')
    expect(await cluster.kubectlOk(['explain', `${kind}.spec`])).not.toContain('<no description>')
  }
})

test('stakes are selected by network and signer', async () => {
  const name = next()
  await apply(stake(name, { network: 'hoodi', signer: 'chosen' }))
  expect(await cluster.kubectlOk(['get', 'ethstake', '--field-selector', 'spec.network=hoodi,spec.signer=chosen', '-o', 'name'])).toBe(
    `ethereumstake.staking.dev/${name}\n`,
  )
  expect(await cluster.kubectlOk(['get', 'staking', '-A', '-o', 'name'])).toContain(`ethereumstake.staking.dev/${name}`)
})

describe('the transaction log', () => {
  const hash = (digit: string) => `0x${digit.repeat(64)}`
  const attempt = (digit: string) => ({ hash: hash(digit), kind: 'Call', nonce: 0, at: '2026-01-01T00:00:00Z' })
  const record = (name: string) => ({
    apiVersion: 'staking.dev/v1alpha1',
    kind: 'StakingTransaction',
    metadata: { name },
    spec: {
      chain: 'Ethereum',
      network: 'local',
      chainId: 31337,
      purpose: 'Deposit',
      subject: `0x${'ab'.repeat(48)}`,
      amount: '32 ETH',
      owner: { kind: 'EthereumStake', namespace: 'team-a', name: 'one', originUid: '1' },
      generation: 0,
      signer: 'treasury',
      from: `0x${'12'.repeat(20)}`,
      call: { to: `0x${'34'.repeat(20)}`, data: '0x', valueWei: '1' },
    },
  })
  const place = (name: string) => ({
    apiVersion: 'staking.dev/v1alpha1',
    kind: 'SignerNonce',
    metadata: { name },
    spec: { chainId: 31337, address: `0x${'12'.repeat(20)}`, nonce: 0 },
  })
  const patch = (kind: string, name: string, change: unknown, ...more: readonly string[]) =>
    cluster.kubectl(['patch', kind, name, '--type=merge', '-p', JSON.stringify(change), ...more])

  test.each<{ what: string; change: object; says?: string }>([
    { what: 'another purpose', change: { purpose: 'Exit' }, says: 'purpose cannot be changed' },
    { what: 'another validator', change: { subject: '0x12' }, says: 'subject cannot be changed' },
    { what: 'another chain', change: { chainId: 1 }, says: 'chainId cannot be changed' },
    {
      what: 'another sender without a hand-over',
      change: { from: `0x${'56'.repeat(20)}` },
      says: 'signer and from change by a hand-over only, which raises generation',
    },
    { what: 'another signer without a hand-over', change: { signer: 'two' }, says: 'by a hand-over only' },
    // What has landed passes so.
    { what: 'another owner', change: { owner: { name: 'two' } } },
    { what: 'another owner with a hand-over', change: { owner: { name: 'two' }, generation: 1 } },
  ])('a record and $what', async ({ change, says }) => {
    const name = next()
    await apply(record(name))
    const { code, stderr } = await patch('stx', name, { spec: change })
    expect({ code, stderr }).toEqual(says === undefined ? { code: 0, stderr: '' } : { code: 1, stderr: expect.stringContaining(says) })
  })

  test('a record is made once by its name, never goes back a generation, and forgets no attempt', async () => {
    const name = next()
    const create = () => cluster.kubectl(['create', '-f', '-'], { input: JSON.stringify(record(name)) })
    expect(await create()).toMatchObject({ code: 0 })
    expect((await create()).stderr).toContain('already exists')
    // Before anybody has looked at it.
    expect(await cluster.kubectl(['get', 'stx', name, '-o', 'jsonpath={.status}'])).toMatchObject({ stdout: '{"state":"Waiting"}' })
    expect(await patch('stx', name, { spec: { generation: 2 } })).toMatchObject({ code: 0 })
    expect((await patch('stx', name, { spec: { generation: 1 } })).stderr).toContain('generation can only be raised')
    const write = (attempts: unknown) => patch('stx', name, { status: { attempts } }, '--subresource=status')
    expect(await write([attempt('a'), attempt('b')])).toMatchObject({ code: 0 })
    for (const fewer of [[attempt('a')], null]) expect((await write(fewer)).stderr).toContain('no attempt is ever forgotten')
  })

  test('a place is made once by its name, and never changes', async () => {
    const name = next()
    const create = () => cluster.kubectl(['create', '-f', '-'], { input: JSON.stringify(place(name)) })
    expect(await create()).toMatchObject({ code: 0 })
    expect((await create()).stderr).toContain('already exists')
    for (const change of [{ nonce: 1 }, { transaction: { name: 'a', uid: '1', generation: 0 } }])
      expect((await patch('nonce', name, { spec: change })).stderr).toContain('a place in a lane never changes')
  })
})

describe('what an older definition let through', () => {
  const crds = () => kinds.map((kind) => customResourceDefinition(kind))
  const newer = /must be more than 0|under a million gwei|under a billion SOL/
  /** Without the rules that came later. */
  const older = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.filter((one) => !newer.test(String((one as { message?: unknown })?.message))).map(older)
    if (typeof node !== 'object' || node === null) return node
    return Object.fromEntries(Object.entries(node).map(([name, child]) => [name, older(child)]))
  }
  const define = (definitions: readonly unknown[]) => applyObjects(cluster, definitions as Parameters<typeof applyObjects>[1])
  const isRefused = async () =>
    (await cluster.kubectl(['apply', '--dry-run=server', '-f', '-'], { input: JSON.stringify(exit('tried')) })).code !== 0
  const validator = { network: 'hoodi', pubkey: `0x${'ab'.repeat(48)}` }
  const exit = (name: string) => validatorExit(name, validator, { maxRequestFeeGwei: '0' })

  test('can be changed, told about, let go of, and mended; only the field that can never work must be', { timeout: 120_000 }, async () => {
    await define(crds().map(older) as readonly unknown[])
    await eventually('the older definition counts', isRefused, (is) => !is)
    const policy = { maxPerTransaction: '100000', limits: [{ window: '24h', maxTotalSol: '5000000000' }] }
    const held = { finalizers: ['staking.dev/holds-money'] }
    const given = [
      { kind: 'ethstake', field: ['maxFeePerGasGwei'], object: stake('old-stake', { maxFeePerGasGwei: '5000000000' }, held) },
      { kind: 'vexit', field: ['maxRequestFeeGwei'], object: { ...exit('old-exit') } },
      {
        kind: 'vwd',
        field: ['maxRequestFeeGwei'],
        object: validatorWithdrawal('old-wd', validator, '1000000000', { maxRequestFeeGwei: '0.0' }),
      },
      { kind: 'signer', field: ['policy', 'maxRequestFeeGwei'], object: signer({ policy: { maxRequestFeeGwei: '0' } }, 'old-signer') },
      { kind: 'signer', field: ['policy', 'limits'], object: solanaSigner(SOLANA_STAKER, { policy }) },
    ]
    await applyAll(
      cluster,
      given.map(({ object }) => object),
    )
    await define(crds())
    await eventually('the rules count', isRefused, (is) => is)

    for (const { kind, field, object } of given) {
      const { name } = object.metadata as { readonly name: string }
      const patch = (change: unknown, ...more: readonly string[]) =>
        cluster.kubectl(['patch', kind, name, '--type=merge', '-p', JSON.stringify(change), ...more])
      const within = (value: unknown) => ({ spec: field.reduceRight<unknown>((inner, part) => ({ [part]: inner }), value) })
      expect(await patch({ metadata: { annotations: { 'staking.dev/reconcile-at': '1' } } }), name).toMatchObject({ code: 0 })
      expect(await patch({ spec: { suspend: true } }), name).toMatchObject({ code: 0 })
      expect(await patch({ status: { observedGeneration: 2 } }, '--subresource=status'), name).toMatchObject({ code: 0 })
      const stillWrong =
        field.at(-1) === 'limits'
          ? [{ window: '24h', maxTotalSol: '6000000000' }]
          : field.at(-1) === 'maxRequestFeeGwei'
            ? '0.00'
            : '6000000000'
      const { code, stderr } = await patch(within(stillWrong))
      expect({ code, stderr }, name).toEqual({ code: 1, stderr: expect.stringMatching(newer) })
      expect(stderr).toContain(`spec.${field.join('.')}`)
      expect(await patch(within(field.at(-1) === 'limits' ? [{ window: '24h', maxTotalSol: '5' }] : '1')), name).toMatchObject({ code: 0 })
      expect(await patch({ metadata: { finalizers: null } }), name).toMatchObject({ code: 0 })
      await cluster.kubectlOk(['delete', kind, name, '--timeout=20s'])
    }
  })
})

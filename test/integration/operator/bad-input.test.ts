import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { findCondition } from '../../../src/resources/conditions.ts'
import { wrongChainId } from '../../chains/faulty-rpc.ts'
import { swapVolume } from '../../stack/keys.ts'
import {
  applyAll,
  eventually,
  getSigner,
  getStake,
  namespace,
  OTHER_ADDRESS,
  seen,
  signer,
  stake,
  untilHolds,
} from '../../stack/resources.ts'
import { writeKey } from '../../stack/stack.ts'
import {
  conditionOf,
  deleteStake,
  metricsOf,
  patch,
  patchSigner,
  serviceStakes,
  untilGone,
  untilPaidOnce,
  untilStalls,
  useStack,
  whileNoMoneyMoves,
} from './harness.ts'

/** Everything that people can get wrong: each is told in words, costs nothing, and goes on by itself once it is mended. */
const stack = useStack({ anvil: { mining: 0.3, accounts: 7 } })

/** A signer with one of anvil's accounts, so that no two share a sequence of nonces. */
const signerOf = (account: number, name: string, spec: Parameters<typeof signer>[0] = {}) =>
  signer({ keyName: name, address: stack().anvil.accounts[account]?.address, ...spec }, name)
const privateKey = (account: number): string => stack().anvil.accounts[account]?.privateKey ?? ''
const untilSigner = (name: string, reason: string) =>
  eventually(
    `signer ${name} shows ${reason}`,
    () => getSigner(stack().cluster, name),
    (value) => seen(value).reason === reason,
  )

beforeAll(async () => {
  await applyAll(stack().cluster, [signer(), namespace('team-a'), namespace('team-b')])
})

describe('what the API server refuses, in words', () => {
  const given = (spec: object) => stake('refused', spec as Record<string, unknown>)
  test.each([
    { what: '31 ETH', object: given({ amountEth: '31' }), says: 'must be at least 32 ETH' },
    { what: '31.999999999 ETH', object: given({ amountEth: '31.999999999' }), says: 'must be at least 32 ETH' },
    { what: '2049 ETH', object: given({ amountEth: '2049' }), says: 'must be at most 2048 ETH' },
    {
      what: '33 ETH with Execution credentials',
      object: given({ amountEth: '33', credentialsType: 'Execution' }),
      says: 'must be 32 with credentialsType Execution',
    },
    { what: 'ten decimals', object: given({ amountEth: '32.0000000001' }), says: 'at most 9 decimals' },
    { what: 'an exponent', object: given({ amountEth: '3.2e1' }), says: 'plain decimal number of ETH' },
    { what: 'a sign', object: given({ amountEth: '+32' }), says: 'plain decimal number of ETH' },
    { what: 'a space', object: given({ amountEth: '32 ' }), says: 'plain decimal number of ETH' },
    { what: 'no amount', object: given({ amountEth: '' }), says: 'spec.amountEth' },
    { what: 'a number in place of text', object: given({ amountEth: 32 }), says: 'must be of type string' },
    { what: 'the zero address', object: given({ withdrawalAddress: `0x${'0'.repeat(40)}` }), says: 'must not be the zero address' },
    { what: 'a short address', object: given({ withdrawalAddress: '0x1234' }), says: '0x and 40 hex digits' },
    { what: 'an ENS name', object: given({ withdrawalAddress: 'vitalik.eth' }), says: '0x and 40 hex digits' },
    { what: 'unknown credentials', object: given({ credentialsType: '0x01' }), says: 'supported values: "Compounding", "Execution"' },
    { what: 'an unknown field', object: given({ withdrawalAdress: OTHER_ADDRESS }), says: 'unknown field "spec.withdrawalAdress"' },
    { what: 'a fee cap with a unit', object: given({ maxFeePerGasGwei: '30gwei' }), says: 'plain decimal number of gwei' },
    {
      what: 'a signer without namespaces',
      object: signer({ policy: { allowedNamespaces: undefined } }, 'refused'),
      says: 'allowedNamespaces',
    },
    {
      what: 'a signer with a bad address',
      object: signer({ address: `0x${'g'.repeat(40)}` }, 'refused'),
      says: 'must be an Ethereum address',
    },
  ])('$what', async ({ object, says }) => {
    const { code, stderr } = await stack().cluster.kubectl(['create', '--dry-run=server', '-f', '-'], { input: JSON.stringify(object) })
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(says) })
  })

  test.each([
    { field: 'amountEth', value: '33' },
    { field: 'withdrawalAddress', value: OTHER_ADDRESS },
    { field: 'network', value: 'mainnet' },
    { field: 'signer', value: 'other' },
    { field: 'credentialsType', value: 'Execution' },
  ])('$field cannot be changed', async ({ field, value }) => {
    const { cluster } = stack()
    await applyAll(cluster, [stake('fixed', { suspend: true })])
    const { code, stderr } = await cluster.kubectl([
      'patch',
      'ethstake',
      'fixed',
      '--type=merge',
      '-p',
      JSON.stringify({ spec: { [field]: value } }),
    ])
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining(`${field} cannot be changed: delete this resource and create another`),
    })
  })
})

describe('what no schema can see', () => {
  test('a wrong checksum: the right spelling is shown, and the resource made anew is paid', async () => {
    const { cluster } = stack()
    await whileNoMoneyMoves(stack(), async () => {
      await applyAll(cluster, [stake('checksum', { withdrawalAddress: '0x3c44CdDdB6a900fa2b585dd299e03d12FA4293BC' })])
      await untilStalls(
        cluster,
        'checksum',
        'InvalidSpec',
        new RegExp(`wrong EIP-55 checksum.*it is written ${OTHER_ADDRESS}.*Delete this resource`),
      )
      expect(await serviceStakes(stack(), 'checksum'), 'nothing was asked of the service').toEqual([])
      await deleteStake(cluster, 'checksum')
      await untilGone(cluster, 'checksum')
    })
    await applyAll(cluster, [stake('checksum', { withdrawalAddress: OTHER_ADDRESS })])
    await untilPaidOnce(stack(), 'checksum')
  })

  test('a network that the operator does not have, until its file has it', async () => {
    const { cluster, networks, writeNetworks } = stack()
    const [local] = networks.networks
    writeNetworks({ ...networks, networks: [{ ...local, name: 'elsewhere' }] })
    await whileNoMoneyMoves(stack(), async () => {
      await eventually(
        'the networks file is in use',
        async () => stack().logs(),
        (text) => text.includes('the networks file changed and is in use'),
      )
      await applyAll(cluster, [stake('network')])
      await untilStalls(
        cluster,
        'network',
        'UnknownNetwork',
        /no Ethereum network "local"; it has elsewhere\. Add it to the operator's networks file/,
      )
    })
    writeNetworks(networks)
    await untilPaidOnce(stack(), 'network')
  })

  test('a networks file that cannot be read is told, and the last good one stays in use', async () => {
    const { cluster, networks, writeNetworks } = stack()
    writeNetworks({ ...networks, networks: [{ name: 'local', chain: 'Ethereum', rpcUrls: ['http://secret-path.example/abc'] }] })
    const line = await eventually(
      'the file is refused',
      async () =>
        stack()
          .logs()
          .split('\n')
          .find((text) => text.includes('the last good one stays in use')) ?? '',
      (text) => text !== '',
    )
    expect(line).toMatch(/networks\[0\]\.chainId/)
    expect(line).not.toContain('secret-path')
    await applyAll(cluster, [stake('last-good')])
    await untilPaidOnce(stack(), 'last-good')
    writeNetworks(networks)
  })

  test('a signer that is not there, until it is', async () => {
    const { cluster, keysDir } = stack()
    await whileNoMoneyMoves(stack(), async () => {
      await applyAll(cluster, [stake('signerless', { signer: 'late' })])
      await untilStalls(cluster, 'signerless', 'SignerNotFound', /no StakingSigner late\. Create it/)
    })
    writeKey(keysDir, 'late', privateKey(1))
    await applyAll(cluster, [signerOf(1, 'late')])
    await untilPaidOnce(stack(), 'signerless')
  })

  test('two signers with one address: the younger is not used', async () => {
    const { cluster } = stack()
    await whileNoMoneyMoves(stack(), async () => {
      // Creation times are whole seconds; the name decides between equals.
      await applyAll(cluster, [signerOf(1, 'later', { keyName: 'late' }), stake('twin', { signer: 'later' })])
      await untilStalls(cluster, 'twin', 'DuplicateSigner', /StakingSigner late declares the same address as later.*delete one of them/)
      await untilSigner('later', 'DuplicateSigner')
      await deleteStake(cluster, 'twin')
      await untilGone(cluster, 'twin')
      await cluster.kubectlOk(['delete', 'signer', 'later'])
    })
  })

  test('a namespace that the signer does not admit, until its policy names it', async () => {
    const { cluster } = stack()
    await whileNoMoneyMoves(stack(), async () => {
      await applyAll(cluster, [stake('stranger', {}, { namespace: 'team-a' })])
      await untilStalls(cluster, 'stranger', 'NamespaceNotAllowed', /does not admit namespace team-a\. Ask its owner/, { space: 'team-a' })
    })
    await untilHolds(
      'it is counted',
      () => metricsOf(stack()),
      (scraped) => {
        expect(scraped).toMatch(/^staking_operator_signatures_refused_total\{[^}]*reason="NamespaceNotAllowed"[^}]*\} [1-9]/m)
        expect(scraped).toContain('staking_operator_stalled_resources{kind="EthereumStake",reason="NamespaceNotAllowed"} 1')
      },
    )
    await patchSigner(cluster, 'treasury', { policy: { allowedNamespaces: { names: ['default', 'team-a'] } } })
    await untilPaidOnce(stack(), 'stranger', { space: 'team-a' })
  })

  test('a namespace without the label that the signer selects, until it has it', async () => {
    const { cluster } = stack()
    await patchSigner(cluster, 'treasury', {
      policy: { allowedNamespaces: { selector: { matchLabels: { 'staking.example/may': 'stake' } } } },
    })
    await whileNoMoneyMoves(stack(), async () => {
      await applyAll(cluster, [stake('unlabelled', {}, { namespace: 'team-b' })])
      await untilStalls(cluster, 'unlabelled', 'NamespaceNotAllowed', /does not admit namespace team-b/, { space: 'team-b' })
    })
    await patch(cluster, '/api/v1/namespaces/team-b', { metadata: { labels: { 'staking.example/may': 'stake' } } })
    await untilPaidOnce(stack(), 'unlabelled', { space: 'team-b' })
  })

  test.each([
    {
      what: 'an amount over the limit, until it is raised',
      name: 'over-limit',
      spec: { amountEth: '64.000000001' },
      reason: 'OverLimit',
      says: /64\.000000001 ETH is over StakingSigner treasury's limit of 64 ETH for one transaction/,
      before: {},
      mend: { maxPerTransaction: '65' },
    },
    {
      what: 'a withdrawal address that the policy leaves out, until it has it',
      name: 'address-policy',
      spec: {},
      reason: 'WithdrawalAddressNotAllowed',
      says: /does not admit withdrawal address 0x7099/,
      before: { allowedWithdrawalAddresses: [OTHER_ADDRESS] },
      mend: { allowedWithdrawalAddresses: null },
    },
    {
      what: 'an empty list of withdrawal addresses admits none',
      name: 'address-none',
      spec: {},
      reason: 'WithdrawalAddressNotAllowed',
      says: /does not admit withdrawal address 0x7099/,
      before: { allowedWithdrawalAddresses: [] },
      mend: { allowedWithdrawalAddresses: null },
    },
    {
      what: 'a policy that admits nobody',
      name: 'nobody',
      spec: {},
      reason: 'NamespaceNotAllowed',
      says: /does not admit namespace default/,
      before: { allowedNamespaces: { names: null, selector: { matchLabels: null } } },
      mend: { allowedNamespaces: { names: ['default'] } },
    },
  ])('$what', async ({ name, spec, reason, says, before, mend }) => {
    const { cluster } = stack()
    await patchSigner(cluster, 'treasury', { policy: before })
    await whileNoMoneyMoves(stack(), async () => {
      await applyAll(cluster, [stake(name, spec)])
      await untilStalls(cluster, name, reason, says)
    })
    await patchSigner(cluster, 'treasury', { policy: mend })
    await untilPaidOnce(stack(), name)
  })
})

describe('keys', () => {
  test('a key file that is missing, then not a key, then a wrong one, then right', async () => {
    const { cluster, keysDir } = stack()
    const canary = 'my-canary-passphrase-in-the-wrong-file'
    const file = join(keysDir, 'vault', 'privateKey')
    await whileNoMoneyMoves(stack(), async () => {
      await applyAll(cluster, [signerOf(2, 'vault'), stake('vaulted', { signer: 'vault' })])
      await untilStalls(cluster, 'vaulted', 'KeyMissing', /vault/)
      expect(findCondition((await untilSigner('vault', 'KeyMissing')).status?.conditions, 'KeyValid')?.status).toBe('False')

      writeKey(keysDir, 'vault', canary)
      await untilStalls(cluster, 'vaulted', 'KeyMalformed', /must hold a private key of 64 hex digits/)
      await untilSigner('vault', 'KeyMalformed')

      writeFileSync(file, '')
      await untilStalls(cluster, 'vaulted', 'KeyMalformed', /is empty/)

      writeKey(keysDir, 'vault', privateKey(3))
      const mismatch = await untilStalls(
        cluster,
        'vaulted',
        'KeyAddressMismatch',
        /belongs to 0x\w+, but StakingSigner vault declares 0x\w+\. Nothing was signed\. Mount the right key/,
      )
      expect(conditionOf(mismatch, 'Stalled').message).toContain(stack().anvil.accounts[3]?.address)
      await untilSigner('vault', 'KeyAddressMismatch')
      expect(await serviceStakes(stack(), 'vaulted'), 'no stake is made that nobody could pay').toEqual([])
    })
    writeKey(keysDir, 'vault', privateKey(2))
    await untilPaidOnce(stack(), 'vaulted')
    await untilSigner('vault', 'Succeeded')
    for (const text of [stack().logs(), await everything()]) {
      expect(text).not.toContain(canary)
      expect(text).not.toContain(privateKey(3).slice(2))
    }
  })

  test('a key that is taken away stops what is not paid yet, and nothing else', async () => {
    const { cluster, keysDir } = stack()
    await whileNoMoneyMoves(stack(), async () => {
      rmSync(join(keysDir, 'vault'), { recursive: true })
      await applyAll(cluster, [stake('after-removal', { signer: 'vault' })])
      await untilStalls(cluster, 'after-removal', 'KeyMissing', /vault/)
      expect(seen(await getStake(cluster, 'vaulted')).ready).toBe('True')
    })
    writeKey(keysDir, 'vault', privateKey(2))
    await untilPaidOnce(stack(), 'after-removal')
  })
})

test('a signer whose Secret comes later, is rotated and goes, in a volume that holds many keys: seen without a restart', async () => {
  const { cluster, keysDir, operator } = stack()
  const { pid } = operator.process()

  swapVolume(keysDir, { 'other.privateKey': privateKey(5) })
  await whileNoMoneyMoves(stack(), async () => {
    await applyAll(cluster, [signerOf(4, 'flat'), stake('flat', { signer: 'flat' })])
    await untilStalls(cluster, 'flat', 'KeyMissing', /there is no key flat .*add the file as flat\.privateKey/)
  })
  swapVolume(keysDir, { 'other.privateKey': privateKey(5), 'flat.privateKey': privateKey(4) })
  await untilSigner('flat', 'Succeeded')
  await untilPaidOnce(stack(), 'flat')

  swapVolume(keysDir, { 'flat.privateKey': privateKey(5) })
  await untilSigner('flat', 'KeyAddressMismatch')
  swapVolume(keysDir, {})
  await untilSigner('flat', 'KeyMissing')
  await whileNoMoneyMoves(stack(), async () => {
    await applyAll(cluster, [stake('flat-2', { signer: 'flat' })])
    await untilStalls(cluster, 'flat-2', 'KeyMissing', /flat/)
  })
  swapVolume(keysDir, { 'flat.privateKey': privateKey(4) })
  await untilPaidOnce(stack(), 'flat-2')
  expect(operator.process().alive()).toBe(true)
  expect(operator.process().pid).toBe(pid)
})

test('an RPC URL of another chain: nothing is signed, until the right one answers', async () => {
  const { cluster, networks, writeNetworks, rpcFaults } = stack()
  const wrong = rpcFaults.when('eth_chainId').always(wrongChainId())
  const [local] = networks.networks
  // A new URL, so that its chain id is asked for.
  writeNetworks({ ...networks, networks: [{ ...local, rpcUrls: [`${rpcFaults.url}/?node=other`] }] })
  await eventually(
    'the wrong node is asked',
    async () => wrong.hits(),
    (hits) => hits > 0,
  )
  await whileNoMoneyMoves(stack(), async () => {
    await applyAll(cluster, [stake('wrong-chain')])
    await untilStalls(
      cluster,
      'wrong-chain',
      'WrongChain',
      /does not serve chain id 31337\. Nothing was signed\. Whoever runs the operator must mend/,
    )
  })
  wrong.remove()
  await untilPaidOnce(stack(), 'wrong-chain')
  writeNetworks(networks)
})

/** All resources and events, as text. */
const everything = () => stack().cluster.kubectlOk(['get', 'staking,events', '-A', '-o', 'json'])

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gwei, lamports } from '../../src/lib/amounts.ts'
import { createSolanaKeys } from '../../src/operator/keys/solana-keys.ts'
import { createPayer } from '../integration/service/payer.ts'
import { eventually, ownStake, PAYER, SOL, solanaSigners, solanaStake, validatorExit, validatorWithdrawal } from './resources.ts'
import {
  clientOf,
  FAST_BEACON,
  NETWORK,
  SOLANA_NETWORK,
  SOLANA_STAKER,
  SOLANA_STAKER_ADDRESS,
  SOLANA_WITHDRAWER,
  SOLANA_WITHDRAWER_ADDRESS,
  type Stack,
  startStack,
} from './stack.ts'

const never = new AbortController().signal
const byKey = { network: NETWORK, pubkey: `0x${'ab'.repeat(48)}` }
let stack: Stack
beforeAll(async () => {
  stack = await startStack({ beacon: FAST_BEACON, solana: {}, faults: true, startOperator: false })
})
afterAll(async () => {
  await stack?.stop()
})

describe('a stack with all its chains', () => {
  test('has both networks in both programs’ configuration', async () => {
    const { body } = await clientOf(stack).listNetworks({}, never)
    expect(body.networks).toMatchObject([
      { network: NETWORK, chain: 'ethereum', chainId: stack.anvil.chainId },
      { network: SOLANA_NETWORK, chain: 'solana', genesisHash: stack.solana.genesisHash },
    ])
    expect(stack.networks.networks).toMatchObject([
      { name: NETWORK, chain: 'Ethereum', rpcUrls: [stack.rpcFaults?.url], beaconApiUrls: [stack.beacon.url] },
      { name: SOLANA_NETWORK, chain: 'Solana', rpcUrls: [stack.solana.faults?.url], genesisHash: stack.solana.genesisHash },
    ])
  })

  test.each([
    ['a stake that may be exited later', () => [ownStake('own')]],
    [
      'requests on a validator',
      () => [validatorExit('exit', byKey), validatorWithdrawal('some', { stakeRef: { name: 'own' } }, '1000000000')],
    ],
    ['the Solana signers, and a stake of theirs', () => [...solanaSigners(), solanaStake('sol')]],
  ])('admits %s, as the helpers for manifests make it', async (_, manifests) => {
    await stack.cluster.kubectlOk(['apply', '--dry-run=server', '-f', '-'], {
      input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests() }),
    })
  })

  test('mounts Solana keys that are the declared addresses’ own, and funded', async () => {
    const keys = createSolanaKeys({ dir: stack.keysDir })
    expect(await keys.address(SOLANA_STAKER, never)).toBe(SOLANA_STAKER_ADDRESS)
    expect(await keys.address(SOLANA_WITHDRAWER, never)).toBe(SOLANA_WITHDRAWER_ADDRESS)
    for (const address of [SOLANA_STAKER_ADDRESS, SOLANA_WITHDRAWER_ADDRESS])
      expect(stack.solana.balance(address)).toBeGreaterThanOrEqual(10n * SOL)
  })

  test('makes a Solana stake, to the default vote account', async () => {
    const { status, body } = await clientOf(stack).createSolanaStake(
      {
        idempotencyKey: 'stack-test-solana',
        body: {
          network: SOLANA_NETWORK,
          amountLamports: lamports(5n * SOL),
          stakeAuthority: SOLANA_STAKER_ADDRESS,
          withdrawAuthority: SOLANA_WITHDRAWER_ADDRESS,
        },
      },
      never,
    )
    expect(status).toBe(201)
    expect(body).toMatchObject({ voteAccount: stack.solana.validator.voteAccount, protocol: { status: 'CREATED' } })
  })

  test('makes a deposit an active validator, as the service sees it', async () => {
    const service = clientOf(stack)
    const { body: stake } = await service.createEthereumStake(
      {
        idempotencyKey: 'stack-test',
        body: { network: NETWORK, amountEth: gwei(32_000_000_000n), withdrawalAddress: PAYER, credentialsType: '0x02' },
      },
      never,
    )
    const transactionHash = await createPayer(stack.anvil).pay(stake.unsignedTransaction)
    await stack.anvil.mine(3)
    await service.submitEthereumStake({ params: { stakeId: stake.stakeId }, body: { transactionHash } }, never)
    await stack.beacon.advanceUntil(stake.depositData.pubkey, ['active_ongoing'])
    await eventually(
      'the stake’s validator',
      async () => (await service.getEthereumStake({ params: { stakeId: stake.stakeId } }, never)).body,
      ({ validator, transaction }) => validator.status === 'active_ongoing' && transaction.status === 'confirmed',
    )
  })
})

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { privateKeyToAccount } from 'viem/accounts'
import { beforeAll, describe, expect, test } from 'vitest'
import { signDepositMessage, withdrawalCredentials } from '../../../src/chains/ethereum/deposit.ts'
import { gwei } from '../../../src/lib/amounts.ts'
import { createSender } from '../../chains/beacon/sender.ts'
import { startProcess } from '../../cluster/process.ts'
import {
  applyAll,
  eventually,
  getSigner,
  namespace,
  SIGNER,
  seen,
  signer,
  validatorExit,
  validatorWithdrawal,
} from '../../stack/resources.ts'
import { clientOf, mainEntry, NETWORK, writeKey } from '../../stack/stack.ts'
import { patchSigner } from './harness.ts'
import {
  bothKinds,
  byKey,
  deleteRequest,
  ETH,
  requestsOf,
  serviceRequest,
  untilAccepted,
  untilGone,
  untilStalls,
  untilWaits,
  useRequestsWorld,
  whileNothingIsAsked,
  YOUNG_EPOCHS,
} from './requests-world.ts'

/** What people get wrong about validators, and what validators are not ready for: told in words, costs nothing, and goes on by itself once it can. */
const world = useRequestsWorld()

beforeAll(async () => {
  const { cluster, stack, anvil } = world()
  const [, second] = anvil.accounts
  writeKey(stack.keysDir, 'second', second?.privateKey ?? '')
  await applyAll(cluster, [namespace('team-a'), signer(), signer({ keyName: 'second', address: second?.address }, 'second')])
  await eventually(
    'the signers are ready',
    () => Promise.all([SIGNER, 'second'].map((name) => getSigner(cluster, name))),
    (signers) => signers.every((each) => seen(each).ready === 'True'),
  )
})

/** An exit and a withdrawal of one ETH, of one name. */
const bothOf = (name: string, pubkey: `0x${string}`) => [
  validatorExit(name, byKey(pubkey)),
  validatorWithdrawal(name, byKey(pubkey), String(ETH)),
]

describe('a public key', () => {
  test('that is no point of the curve: the digit that is mistyped is looked for in the spec, and nobody is asked', async () => {
    const pubkey = `0x${'ab'.repeat(48)}` as const
    await whileNothingIsAsked(world(), async () => {
      const asked = world().stack.apiFaults?.calls(/requests/)
      await applyAll(world().cluster, bothOf('off-curve', pubkey))
      for (const plural of bothKinds)
        await untilStalls(
          world(),
          plural,
          'off-curve',
          'InvalidSpec',
          /spec\.validator\.pubkey is not a BLS public key: .*A digit is mistyped; create this resource anew with the right key/,
        )
      expect(world().stack.apiFaults?.calls(/requests/)).toBe(asked)
    })
  })

  test('of another account: it is as if there was none, and whose key is used is asked', async () => {
    const { stack, cluster } = world()
    const run = await startProcess({
      name: 'api-keys',
      command: process.execPath,
      args: [mainEntry, 'api-keys', 'create', '--account', 'other', '--label', 'test', '--config', stack.serviceConfigFile],
    })
    expect((await run.exited).code, run.output()).toBe(0)
    const apiKeyFile = join(stack.dir, 'other-api-key')
    writeFileSync(apiKeyFile, `${run.output().trim().split('\n').at(-1)}\n`, { mode: 0o600 })
    const other = clientOf({ serviceUrl: stack.serviceUrl, apiKeyFile })
    const withdrawalAddress = world().anvil.accounts[0]?.address ?? '0x'
    const { body } = await other.createEthereumStake(
      { idempotencyKey: 'other-1', body: { network: NETWORK, amountEth: gwei(32n * ETH), withdrawalAddress, credentialsType: '0x02' } },
      AbortSignal.timeout(10_000),
    )
    await other.close()
    await whileNothingIsAsked(world(), async () => {
      await applyAll(cluster, bothOf('foreign', body.depositData.pubkey))
      for (const plural of bothKinds)
        await untilStalls(
          world(),
          plural,
          'foreign',
          'UnknownValidator',
          /knows no such validator, or it belongs to another account.*Check spec\.validator, and with which account the operator calls/,
        )
    })
  })

  test('that nobody knows, until its validator is there, is active, and is old enough', async () => {
    const { anvil, beacon, cluster } = world()
    const sender = createSender({ ...anvil, genesisForkVersion: beacon.spec.GENESIS_FORK_VERSION })
    const depositor = privateKeyToAccount(anvil.accounts[3]?.privateKey ?? '0x')
    const secret = new Uint8Array(32).fill(99)
    // Made known only below: what it will be is told by the secret.
    const pubkey = pubkeyOf(secret)
    await whileNothingIsAsked(world(), async () => {
      await applyAll(cluster, bothOf('unknown', pubkey))
      for (const plural of bothKinds)
        await untilStalls(
          world(),
          plural,
          'unknown',
          'UnknownValidator',
          /the beacon chain knows no validator with this public key \(unknown-validator\)\. Nothing was signed/,
        )
      await sender.deposit(depositor, secret, { amountGwei: 40n * ETH, to: anvil.accounts[0]?.address ?? '0x' })
      await beacon.advanceUntil(pubkey, ['pending_queued', 'pending_initialized'])
      await untilWaits(world(), 'validatorexits', 'unknown', 'ValidatorNotActive', /not active yet.*It goes on by itself/)
      await beacon.advanceUntil(pubkey, ['active_ongoing'])
      const tooYoung = new RegExp(`it may from epoch ${(await activationOf(pubkey)) + YOUNG_EPOCHS} on\\. It goes on by itself`)
      await untilWaits(world(), 'validatorexits', 'unknown', 'ValidatorTooYoung', tooYoung)
      await untilWaits(world(), 'validatorwithdrawals', 'unknown', 'WaitingForValidator', /ValidatorExit default\/unknown is .*older/)
      await deleteRequest(world(), 'validatorexits', 'unknown')
      await untilGone(world(), 'validatorexits', 'unknown')
      await untilWaits(world(), 'validatorwithdrawals', 'unknown', 'ValidatorTooYoung', tooYoung)
    })
    await beacon.advanceEpochs(YOUNG_EPOCHS)
    await untilAccepted(world(), 'validatorwithdrawals', 'unknown')
    expect(await requestsOf(world(), pubkey)).toEqual([String(ETH)])
  })
})

describe('a validator', () => {
  test('with 0x01 credentials pays nothing by request, and may exit', async () => {
    const { cluster, oldStyle } = world()
    await whileNothingIsAsked(world(), async () => {
      await applyAll(cluster, [validatorWithdrawal('old', byKey(oldStyle), '1000000')])
      await untilStalls(
        world(),
        'validatorwithdrawals',
        'old',
        'ValidatorNotEligible',
        /credentials are not 0x02 \(Compounding\), which a partial withdrawal needs \(credentials-not-compounding\)\. Nothing was signed/,
      )
    })
    await applyAll(cluster, [validatorExit('old', byKey(oldStyle))])
    await untilAccepted(world(), 'validatorexits', 'old')
    expect(await requestsOf(world(), oldStyle)).toEqual(['exit'])
  })

  test('with less than is asked for: all numbers are told, and it goes on once its balance has grown', async () => {
    const { cluster, beacon } = world()
    const pubkey = world().fresh()
    await whileNothingIsAsked(world(), async () => {
      await applyAll(cluster, [validatorWithdrawal('over', byKey(pubkey), '8000000001')])
      await untilStalls(
        world(),
        'validatorwithdrawals',
        'over',
        'OverAvailable',
        /\(amount-over-available\)\. 8000000001 gwei \(8\.000000001 ETH\) are asked for, and some 8 ETH are available: the balance is some 40 ETH, of which 32 ETH must stay and 0 ETH are in withdrawals .*Create a resource with a lower amount/,
      )
    })
    await beacon.setBalance(pubkey, 41n * ETH)
    await untilAccepted(world(), 'validatorwithdrawals', 'over')
  })

  test.each([
    { eth: 32, name: 'nothing-over', reason: 'OverAvailable', text: /nothing over 32 ETH was available.*the balance is some 32 ETH/ },
    {
      eth: 30,
      name: 'too-low',
      reason: 'ValidatorNotEligible',
      text: /effective balance is under 32 ETH \(effective-balance-too-low\).*it is 30 ETH/,
    },
  ])('with $eth ETH has nothing to pay', async ({ eth, name, reason, text }) => {
    const { cluster, beacon } = world()
    const pubkey = world().fresh()
    await beacon.setBalance(pubkey, BigInt(eth) * ETH)
    await beacon.advanceEpochs(2)
    await whileNothingIsAsked(world(), async () => {
      await applyAll(cluster, [validatorWithdrawal(name, byKey(pubkey), '1000000')])
      await untilStalls(world(), 'validatorwithdrawals', name, reason, text)
    })
  })

  test('that was slashed leaves by itself', async () => {
    const pubkey = world().fresh()
    await world().beacon.slash(pubkey)
    await whileNothingIsAsked(world(), async () => {
      await applyAll(world().cluster, bothOf('slashed', pubkey))
      for (const plural of bothKinds)
        await untilStalls(
          world(),
          plural,
          'slashed',
          'ValidatorSlashed',
          /the validator was slashed and leaves by itself \(slashed\)\. Nothing was signed/,
        )
    })
  })

  test('that exits already is asked nothing more', async () => {
    const pubkey = world().fresh()
    await applyAll(world().cluster, [validatorExit('leaves', byKey(pubkey))])
    await untilAccepted(world(), 'validatorexits', 'leaves')
    await whileNothingIsAsked(world(), async () => {
      await applyAll(world().cluster, bothOf('leaves-again', pubkey))
      for (const plural of bothKinds)
        await untilStalls(
          world(),
          plural,
          'leaves-again',
          'AlreadyExiting',
          /the validator is exiting already \(already-exiting\)\. Nothing was signed/,
        )
    })
    expect(await requestsOf(world(), pubkey)).toEqual(['exit'])
  })

  test('with withdrawals that are still to be paid exits after them', async () => {
    const { cluster, beacon } = world()
    const pubkey = world().fresh()
    await applyAll(cluster, [validatorWithdrawal('first', byKey(pubkey), String(3n * ETH))])
    await untilAccepted(world(), 'validatorwithdrawals', 'first')
    await whileNothingIsAsked(world(), async () => {
      await applyAll(cluster, [validatorExit('after', byKey(pubkey))])
      await untilWaits(
        world(),
        'validatorexits',
        'after',
        'PendingWithdrawals',
        /Partial withdrawals of 3 ETH in all are still to be paid, and a full exit is possible after them \(rule pending-withdrawals\)\. It goes on by itself/,
      )
    })
    await beacon.advanceEpochs(beacon.spec.MIN_VALIDATOR_WITHDRAWABILITY_DELAY + 4)
    await untilAccepted(world(), 'validatorexits', 'after')
    expect(await requestsOf(world(), pubkey)).toEqual([String(3n * ETH), 'exit'])
  })
})

describe('a signer', () => {
  test('that is not the withdrawal address signs nothing; with the right one it is accepted', async () => {
    const { cluster, anvil, ofSecond } = world()
    const [first, second] = anvil.accounts
    await whileNothingIsAsked(world(), async () => {
      await applyAll(cluster, bothOf('wrong-signer', ofSecond))
      for (const plural of bothKinds)
        await untilStalls(
          world(),
          plural,
          'wrong-signer',
          'SignerNotWithdrawalAddress',
          new RegExp(
            `StakingSigner treasury has address ${first?.address}, but only the validator's withdrawal address ${second?.address} may ask for this\\. Nothing was signed\\. Create this resource with the signer of that address`,
            'i',
          ),
        )
      for (const plural of bothKinds) await deleteRequest(world(), plural, 'wrong-signer')
      for (const plural of bothKinds) await untilGone(world(), plural, 'wrong-signer')
    })
    await applyAll(cluster, [validatorExit('wrong-signer', byKey(ofSecond), { signer: 'second' })])
    await untilAccepted(world(), 'validatorexits', 'wrong-signer')
    expect(await requestsOf(world(), ofSecond)).toEqual(['exit'])
  })

  test('that does not admit the namespace signs nothing, until its policy names it', async () => {
    const { cluster } = world()
    const [leaving, paying] = [world().fresh(), world().fresh()]
    const space = 'team-a'
    await whileNothingIsAsked(world(), async () => {
      await applyAll(cluster, [
        validatorExit('stranger', byKey(leaving), {}, { namespace: space }),
        validatorWithdrawal('stranger', byKey(paying), String(ETH), {}, { namespace: space }),
      ])
      for (const plural of bothKinds) {
        const stalled = await untilStalls(
          world(),
          plural,
          'stranger',
          'NamespaceNotAllowed',
          /does not admit namespace team-a\. Ask its owner/,
          {
            space,
          },
        )
        const pubkey = plural === 'validatorexits' ? leaving : paying
        expect(await serviceRequest(world(), plural, stalled, pubkey), 'nothing is made that nobody may send').toBeUndefined()
      }
    })
    await patchSigner(cluster, SIGNER, { policy: { allowedNamespaces: { names: ['default', space] } } })
    for (const plural of bothKinds) await untilAccepted(world(), plural, 'stranger', { space })
  })
})

function pubkeyOf(secret: Uint8Array): `0x${string}` {
  return signDepositMessage(secret, {
    withdrawalCredentials: withdrawalCredentials('0x02', world().anvil.accounts[0]?.address ?? '0x'),
    amountGwei: gwei(40n * ETH),
    genesisForkVersion: world().beacon.spec.GENESIS_FORK_VERSION,
  }).pubkey
}

async function activationOf(pubkey: string): Promise<number> {
  const response = await fetch(`${world().beacon.url}/eth/v1/beacon/states/head/validators?id=${pubkey}`)
  const { data } = (await response.json()) as { data: { validator: { activation_epoch: string } }[] }
  return Number(data[0]?.validator.activation_epoch)
}

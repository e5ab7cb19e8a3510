import { privateKeyToAccount } from 'viem/accounts'
import { beforeAll, describe, expect, test } from 'vitest'
import { findCondition } from '../../../src/resources/conditions.ts'
import { createSender, exitOf } from '../../chains/beacon/sender.ts'
import { reset, resetAfterPassing } from '../../chains/faults.ts'
import { applyAll, eventually, getOne, getSigner, SIGNER, seen, signer, validatorExit, validatorWithdrawal } from '../../stack/resources.ts'
import { writeKey } from '../../stack/stack.ts'
import { patch, staysFor } from './harness.ts'
import {
  bothKinds,
  byKey,
  deleteRequest,
  ETH,
  holdBlocks,
  ONE_WEI,
  OVER_ONE_WEI,
  pairOf,
  type RequestPlural,
  requestsOf,
  serviceRequest,
  untilAccepted,
  untilGone,
  untilPhase,
  untilShows,
  untilStalls,
  untilWaits,
  useRequestsWorld,
  whileNothingIsAsked,
} from './requests-world.ts'

/** Fees that rise, requests that come to nothing, and people who change their minds. */
const world = useRequestsWorld()

beforeAll(async () => {
  const { cluster, stack, anvil } = world()
  const [, second] = anvil.accounts
  writeKey(stack.keysDir, 'second', second?.privateKey ?? '')
  await applyAll(cluster, [signer(), signer({ keyName: 'second', address: second?.address }, 'second')])
  await eventually(
    'the signers are ready',
    () => Promise.all([SIGNER, 'second'].map((name) => getSigner(cluster, name))),
    (signers) => signers.every((each) => seen(each).ready === 'True'),
  )
})

const pathOf = (plural: RequestPlural, name: string) => `/apis/staking.dev/v1alpha1/namespaces/default/${plural}/${name}`

/** An excess of 500 asks for some 5,900 gwei. It falls by two a block: below 1,000 gwei after 15 seconds, and below one after two minutes. */
const HIGH_EXCESS = 500n
const tooHigh =
  /asks for more than 10{0,3} gwei for a request now, and the cap is 1 gwei\. It goes on when the fee falls, or when maxRequestFeeGwei/

describe('a fee above the cap', () => {
  test('is waited for; one goes on when its cap is raised, the other when the fee falls', async () => {
    const { beacon, cluster } = world()
    await beacon.setRequestExcess(HIGH_EXCESS)
    const { objects } = pairOf(world(), 'costly', { maxRequestFeeGwei: '1' })
    await whileNothingIsAsked(world(), async () => {
      await applyAll(cluster, objects)
      for (const plural of bothKinds) await untilWaits(world(), plural, 'costly', 'RequestFeeTooHigh', tooHigh)
    })
    await patch(cluster, pathOf('validatorexits', 'costly'), { spec: { maxRequestFeeGwei: '20000' } })
    const paid = await untilAccepted(world(), 'validatorexits', 'costly')
    expect(BigInt(paid.status?.transaction?.valueWei ?? 0)).toBeLessThanOrEqual(20_000n * 1_000_000_000n)
    await untilWaits(world(), 'validatorwithdrawals', 'costly', 'RequestFeeTooHigh', /the cap is 1 gwei/)
    await beacon.setRequestExcess(0n)
    const cheap = await untilAccepted(world(), 'validatorwithdrawals', 'costly')
    expect(BigInt(cheap.status?.transaction?.valueWei ?? 0)).toBeLessThanOrEqual(1_000n)
  })

  test('and a deletion meanwhile: nothing is sent, each is cancelled, and applied again each is asked for once', async () => {
    const { beacon, cluster } = world()
    await beacon.setRequestExcess(HIGH_EXCESS)
    const { objects, pubkeys } = pairOf(world(), 'given-up', { maxRequestFeeGwei: '1' })
    await whileNothingIsAsked(world(), async () => {
      await applyAll(cluster, objects)
      for (const plural of bothKinds) {
        const resource = await untilWaits(world(), plural, 'given-up', 'RequestFeeTooHigh', tooHigh)
        expect(await serviceRequest(world(), plural, resource)).toMatchObject({ status: 'awaiting_submission' })
        await deleteRequest(world(), plural, 'given-up')
        await untilGone(world(), plural, 'given-up')
        expect(await serviceRequest(world(), plural, resource)).toMatchObject({ status: 'cancelled' })
        // There is nothing more to delete.
        await deleteRequest(world(), plural, 'given-up')
      }
    })
    await beacon.setRequestExcess(0n)
    await applyAll(cluster, objects)
    for (const plural of bothKinds) {
      await untilAccepted(world(), plural, 'given-up')
      expect(await requestsOf(world(), pubkeys[plural])).toHaveLength(1)
    }
  })
})

describe('a staking API whose answers are lost', () => {
  test('has one request of each, and none of an exit that is deleted', async () => {
    const { stack, cluster, beacon } = world()
    const { apiFaults } = stack
    if (apiFaults === undefined) throw new Error('there is no proxy')
    await beacon.setRequestExcess(OVER_ONE_WEI)
    const { objects, pubkeys } = pairOf(world(), 'unheard', { maxRequestFeeGwei: ONE_WEI })
    const [creations, cancellations] = [/^POST .*-requests$/, /^DELETE .*\/exit-requests\//]
    await whileNothingIsAsked(world(), async () => {
      const lost = apiFaults.when(creations).times(2, resetAfterPassing)
      await applyAll(cluster, objects)
      for (const plural of bothKinds) {
        const resource = await untilWaits(world(), plural, 'unheard', 'RequestFeeTooHigh', /the cap is 0\.000000001 gwei/)
        expect(await serviceRequest(world(), plural, resource)).toMatchObject({ requestId: resource.status?.requestId })
      }
      expect(lost.hits()).toBe(2)
      const unheard = apiFaults.when(cancellations).once(resetAfterPassing)
      const exit = await getOne(cluster, 'validatorexits', 'unheard')
      await deleteRequest(world(), 'validatorexits', 'unheard')
      await untilGone(world(), 'validatorexits', 'unheard')
      if (exit === undefined) throw new Error('there was no exit')
      expect(await serviceRequest(world(), 'validatorexits', exit)).toMatchObject({ status: 'cancelled' })
      expect(unheard.hits()).toBe(1)
    })
    const unreported = apiFaults.when(/\/submission$/).once(resetAfterPassing)
    await patch(cluster, pathOf('validatorwithdrawals', 'unheard'), { spec: { maxRequestFeeGwei: '1' } })
    await untilAccepted(world(), 'validatorwithdrawals', 'unheard')
    expect(unreported.hits()).toBe(1)
    expect(await requestsOf(world(), pubkeys.validatorwithdrawals)).toEqual([String(ETH)])
    expect(await requestsOf(world(), pubkeys.validatorexits)).toEqual([])
    await beacon.setRequestExcess(0n)
  })
})

describe('a deletion after the request was sent', () => {
  test('takes nothing back: once and twice deleted it stays until the outcome is known, and goes then', async () => {
    const { cluster } = world()
    const { objects, pubkeys } = pairOf(world(), 'too-late')
    // One after the other: nobody waits behind either.
    for (const [index, plural] of bothKinds.entries()) {
      const goOn = await holdBlocks(world())
      await applyAll(cluster, objects.slice(index, index + 1))
      const resource = await untilPhase(world(), plural, 'too-late', 'Confirming')
      for (let times = 0; times < 2; times++) await deleteRequest(world(), plural, 'too-late')
      await untilShows(
        world(),
        plural,
        'too-late',
        'Deleting',
        /its transaction 0x\w+ \(nonce \d+\) may still land; nothing more of it is signed/,
      )
      await staysFor(1_000, async () => (await getOne(cluster, plural, 'too-late'))?.metadata.finalizers)
      await goOn()
      await untilGone(world(), plural, 'too-late')
      expect(await requestsOf(world(), pubkeys[plural])).toHaveLength(1)
      expect(await serviceRequest(world(), plural, resource)).toMatchObject({ status: 'confirmed', consensus: { status: 'accepted' } })
    }
  })

  test('with somebody behind it in the lane, it is cancelled, and that one goes on', async () => {
    const { cluster } = world()
    const { objects, pubkeys } = pairOf(world(), 'in-the-way')
    const [exit, withdrawal] = objects
    const goOn = await holdBlocks(world())
    await applyAll(cluster, [exit ?? {}])
    await untilPhase(world(), 'validatorexits', 'in-the-way', 'Confirming')
    await deleteRequest(world(), 'validatorexits', 'in-the-way')
    await applyAll(cluster, [withdrawal ?? {}])
    const selector = 'spec.purpose=Exit,spec.owner.name=in-the-way'
    const kindsOf = () =>
      cluster.kubectlOk(['get', 'stx', '--field-selector', selector, '-o', 'jsonpath={.items[*].status.attempts[*].kind}'])
    await eventually('it is cancelled', kindsOf, (kinds) => kinds === 'Call Cancel')
    await goOn()
    await untilAccepted(world(), 'validatorwithdrawals', 'in-the-way')
    await untilGone(world(), 'validatorexits', 'in-the-way')
    expect(await requestsOf(world(), pubkeys.validatorexits)).toEqual([])
  })
})

describe('a request that is mined and dropped', () => {
  /** Applies it, and changes what its transaction meets after it was sent and before it is mined: what is not sent yet would be refused. */
  async function overtaken(
    plural: RequestPlural,
    name: string,
    object: Readonly<Record<string, unknown>>,
    meanwhile: () => Promise<unknown>,
  ) {
    const goOn = await holdBlocks(world())
    try {
      await applyAll(world().cluster, [object])
      await untilPhase(world(), plural, name, 'Confirming')
      await meanwhile()
    } finally {
      await goOn()
    }
  }
  async function untilDropped(plural: RequestPlural, name: string, rule: string, text: RegExp) {
    const dropped = await untilStalls(world(), plural, name, 'RequestDropped', text)
    expect(dropped.status).toMatchObject({ phase: 'Dropped', transaction: { state: 'Confirmed' }, consensus: { status: 'Dropped' } })
    expect(dropped.status?.consensus?.rules).toContain(rule)
    const conditionOf = (type: string) => findCondition(dropped.status?.conditions, type)
    expect(conditionOf('Confirmed')?.status).toBe('True')
    expect(conditionOf('Accepted')).toMatchObject({ status: 'False', reason: 'RequestDropped' })
    await staysFor(2_000, () => requestsOf(world(), dropped.status?.validator?.pubkey ?? ''))
    await deleteRequest(world(), plural, name)
    await untilGone(world(), plural, name)
  }

  test('an exit of a validator that is slashed before: the rule is told, and it is not tried again', async () => {
    const pubkey = world().fresh()
    await overtaken('validatorexits', 'slashed', validatorExit('slashed', byKey(pubkey)), () => world().beacon.slash(pubkey))
    await untilDropped(
      'validatorexits',
      'slashed',
      'slashed',
      /was mined \(transaction 0x\w+, block \d+\), and the consensus layer has dropped it: .*the validator was slashed and leaves by itself \(slashed\).*create another resource/,
    )
    expect(await requestsOf(world(), pubkey)).toEqual(['exit'])
  })

  test('a withdrawal of a balance that is gone before: the rule is told, and it is not tried again', async () => {
    const pubkey = world().fresh()
    await overtaken('validatorwithdrawals', 'shrunk', validatorWithdrawal('shrunk', byKey(pubkey), String(ETH)), () =>
      world().beacon.setBalance(pubkey, 32n * ETH),
    )
    await untilDropped(
      'validatorwithdrawals',
      'shrunk',
      'nothing-available',
      /has dropped it: .*nothing over 32 ETH was available \(nothing-available\)/,
    )
    expect(await requestsOf(world(), pubkey)).toEqual([String(ETH)])
  })

  test('an exit that somebody else sends with the same key and the same nonce is the very same: it is made once, and accepted', async () => {
    const { anvil, beacon, ofSecond, rpcFaults, cluster } = world()
    const sender = createSender({ ...anvil, genesisForkVersion: beacon.spec.GENESIS_FORK_VERSION })
    const held = rpcFaults.when('eth_sendRawTransaction').always(reset)
    await applyAll(cluster, [validatorExit('overtaken', byKey(ofSecond), { signer: 'second' })])
    const prepared = await eventually(
      'its transaction is held back',
      () => getOne(cluster, 'validatorexits', 'overtaken'),
      (resource) => resource?.status?.transaction !== undefined && held.hits() > 0,
    )
    const theirs = await sender.request(privateKeyToAccount(anvil.accounts[1]?.privateKey ?? '0x'), exitOf(ofSecond))
    held.remove()
    // What used a nonce is known by its call, not by its hash.
    const accepted = await untilAccepted(world(), 'validatorexits', 'overtaken')
    expect(accepted.status?.transaction).toMatchObject({ nonce: prepared?.status?.transaction?.nonce, minedHash: theirs.hash })
    expect(await requestsOf(world(), ofSecond)).toEqual(['exit'])
  })
})

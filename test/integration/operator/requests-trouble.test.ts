import { privateKeyToAccount } from 'viem/accounts'
import { beforeAll, describe, expect, test } from 'vitest'
import { findCondition } from '../../../src/resources/conditions.ts'
import { createSender, exitOf } from '../../chains/beacon/sender.ts'
import { html, httpStatus, reset, rewriteJson } from '../../chains/faults.ts'
import {
  applyAll,
  eventually,
  getOne,
  getSigner,
  SIGNER,
  seen,
  signer,
  untilSeen,
  validatorExit,
  validatorWithdrawal,
} from '../../stack/resources.ts'
import { writeKey } from '../../stack/stack.ts'
import { patch, staysFor } from './harness.ts'
import {
  byKey,
  deleteRequest,
  ETH,
  type RequestPlural,
  requestsOf,
  serviceRequest,
  untilAccepted,
  untilGone,
  untilShows,
  untilStalls,
  untilWaits,
  useRequestsWorld,
  whileNothingIsAsked,
} from './requests-world.ts'

/** Fees that rise, beacon chains that are away, requests that come to nothing, and people who change their minds. */
const world = useRequestsWorld()
const both: readonly RequestPlural[] = ['validatorexits', 'validatorwithdrawals']

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

/** An exit and a withdrawal of one ETH of two validators, of one name. */
function bothOf(name: string, spec: Readonly<Record<string, unknown>> = {}) {
  const pubkeys = { validatorexits: world().fresh(), validatorwithdrawals: world().fresh() }
  const objects = [
    validatorExit(name, byKey(pubkeys.validatorexits), spec),
    validatorWithdrawal(name, byKey(pubkeys.validatorwithdrawals), String(ETH), spec),
  ]
  return { pubkeys, objects }
}
const pathOf = (plural: RequestPlural, name: string) => `/apis/staking.dev/v1alpha1/namespaces/default/${plural}/${name}`
/** No block comes until it is called off. */
async function holdBlocks(): Promise<() => Promise<void>> {
  await world().anvil.rpc('evm_setIntervalMining', [0])
  return () => world().anvil.rpc('evm_setIntervalMining', [1])
}
const untilPhase = (plural: RequestPlural, name: string, phase: string) =>
  untilSeen(world().cluster, plural, name, `is ${phase}`, (now) => now.phase === phase, 30_000)

/** An excess of 500 asks for some 5,900 gwei, and takes four minutes to fall below one gwei. */
const HIGH_EXCESS = 500n
const tooHigh =
  /asks for 5\d\d\d(\.\d+)? gwei for a request now, and the cap is 1 gwei\. It goes on when the fee falls, or when maxRequestFeeGwei/

describe('a fee above the cap', () => {
  test('is waited for; one goes on when its cap is raised, the other when the fee falls', async () => {
    const { beacon, cluster } = world()
    await beacon.setRequestExcess(HIGH_EXCESS)
    const { objects } = bothOf('costly', { maxRequestFeeGwei: '1' })
    await whileNothingIsAsked(world(), async () => {
      await applyAll(cluster, objects)
      for (const plural of both) await untilWaits(world(), plural, 'costly', 'RequestFeeTooHigh', tooHigh)
    })
    await patch(cluster, pathOf('validatorexits', 'costly'), { spec: { maxRequestFeeGwei: '20000' } })
    const paid = await untilAccepted(world(), 'validatorexits', 'costly')
    expect(BigInt(paid.status?.transaction?.valueWei ?? 0)).toBeLessThanOrEqual(20_000n * 1_000_000_000n)
    await untilWaits(world(), 'validatorwithdrawals', 'costly', 'RequestFeeTooHigh', /the cap is 1 gwei/)
    await beacon.setRequestExcess(0n)
    const cheap = await untilAccepted(world(), 'validatorwithdrawals', 'costly')
    expect(BigInt(cheap.status?.transaction?.valueWei ?? 0)).toBeLessThanOrEqual(1_000n)
  })

  test('and a deletion meanwhile: nothing is sent, the exit is cancelled, and applied again each is asked for once', async () => {
    const { beacon, cluster } = world()
    await beacon.setRequestExcess(HIGH_EXCESS)
    const { objects, pubkeys } = bothOf('given-up', { maxRequestFeeGwei: '1' })
    await whileNothingIsAsked(world(), async () => {
      await applyAll(cluster, objects)
      const statusAfter = { validatorexits: 'cancelled', validatorwithdrawals: 'awaiting_submission' } as const
      for (const plural of both) {
        const resource = await untilWaits(world(), plural, 'given-up', 'RequestFeeTooHigh', tooHigh)
        expect(await serviceRequest(world(), plural, resource)).toMatchObject({ status: 'awaiting_submission' })
        await deleteRequest(world(), plural, 'given-up')
        await untilGone(world(), plural, 'given-up')
        expect(await serviceRequest(world(), plural, resource)).toMatchObject({ status: statusAfter[plural] })
        // There is nothing more to delete.
        await deleteRequest(world(), plural, 'given-up')
      }
    })
    await beacon.setRequestExcess(0n)
    await applyAll(cluster, objects)
    for (const plural of both) {
      await untilAccepted(world(), plural, 'given-up')
      expect(await requestsOf(world(), pubkeys[plural])).toHaveLength(1)
    }
  })
})

describe('a beacon chain', () => {
  const GENESIS = 'GET /eth/v1/beacon/genesis'
  test.each([
    { what: 'that is behind', name: 'behind', strike: () => world().beacon.setBehind(40) },
    { what: 'that is down', name: 'down', strike: () => void world().beaconFaults.when(/./).always(reset) },
    { what: 'that answers with errors', name: 'errors', strike: () => void world().beaconFaults.when(/./).always(httpStatus(500)) },
    { what: 'behind a proxy that answers for it', name: 'proxy', strike: () => void world().beaconFaults.when(/./).always(html(200)) },
    {
      what: 'of another network',
      name: 'elsewhere',
      strike: () => {
        const { beaconFaults } = world()
        beaconFaults.when(GENESIS).always(
          rewriteJson<{ data: object }>(({ data }) => ({
            data: { ...data, genesis_fork_version: '0x90000069' },
          })),
        )
        // A node is asked who it is once, and again after it failed.
        beaconFaults.when(/validators|syncing|headers/).once(reset)
      },
    },
  ])('$what: nothing is asked for until it is as it should be', async ({ name, strike }) => {
    const { cluster, beacon, beaconFaults } = world()
    const { objects } = bothOf(name)
    strike()
    await whileNothingIsAsked(world(), async () => {
      await applyAll(cluster, objects)
      for (const plural of both)
        await untilWaits(world(), plural, name, 'ServiceUnavailable', /cannot see the chain now; it is asked again/)
    })
    beacon.setBehind(0)
    beaconFaults.clear()
    for (const plural of both) await untilAccepted(world(), plural, name)
  })

  test('that goes away once a request is in the chain: its outcome is waited for, deleted or not', async () => {
    const { cluster, beaconFaults } = world()
    const { objects, pubkeys } = bothOf('outcome')
    const goOn = await holdBlocks()
    await applyAll(cluster, objects)
    for (const plural of both) await untilPhase(plural, 'outcome', 'Confirming')
    beaconFaults.when(/./).always(reset)
    await goOn()
    for (const plural of both)
      await untilWaits(
        world(),
        plural,
        'outcome',
        'AwaitingConsensus',
        /in final block \d+\. The consensus layer has not decided on it yet/,
      )
    await deleteRequest(world(), 'validatorexits', 'outcome')
    await untilShows(
      world(),
      'validatorexits',
      'outcome',
      'Deleting',
      /its request was made in block \d+, and can't be taken back\. It goes once the consensus layer has decided on it/,
    )
    await staysFor(1_500, async () => (await getOne(cluster, 'validatorexits', 'outcome'))?.status?.consensus)
    beaconFaults.clear()
    await untilGone(world(), 'validatorexits', 'outcome')
    expect(await requestsOf(world(), pubkeys.validatorexits)).toEqual(['exit'])
    await untilAccepted(world(), 'validatorwithdrawals', 'outcome')
  })
})

describe('a deletion after the request was sent', () => {
  test('takes nothing back: once and twice deleted it stays until the outcome is known, and goes then', async () => {
    const { cluster } = world()
    const { objects, pubkeys } = bothOf('too-late')
    const goOn = await holdBlocks()
    await applyAll(cluster, objects)
    const sent = new Map<RequestPlural, Awaited<ReturnType<typeof untilPhase>>>()
    for (const plural of both) {
      sent.set(plural, await untilPhase(plural, 'too-late', 'Confirming'))
      for (let times = 0; times < 2; times++) await deleteRequest(world(), plural, 'too-late')
      await untilShows(
        world(),
        plural,
        'too-late',
        'Deleting',
        /its transaction 0x\w+ \(nonce \d+\) may still land; nothing more is signed/,
      )
    }
    await staysFor(1_500, async () => (await getOne(cluster, 'validatorexits', 'too-late'))?.metadata.finalizers)
    await goOn()
    for (const [plural, resource] of sent) {
      await untilGone(world(), plural, 'too-late')
      expect(await requestsOf(world(), pubkeys[plural])).toHaveLength(1)
      expect(await serviceRequest(world(), plural, resource)).toMatchObject({ status: 'confirmed', consensus: { status: 'accepted' } })
    }
  })
})

describe('a request that is mined and dropped', () => {
  /** Applies it, and holds its transaction back until `meanwhile` has changed what it meets. */
  async function overtaken(
    plural: RequestPlural,
    name: string,
    object: Readonly<Record<string, unknown>>,
    meanwhile: () => Promise<unknown>,
  ) {
    const held = world().rpcFaults.when('eth_sendRawTransaction').always(reset)
    await applyAll(world().cluster, [object])
    await eventually(
      `the transaction of ${name} is held back`,
      () => getOne(world().cluster, plural, name),
      (resource) => resource?.status?.transaction !== undefined && held.hits() > 0,
      30_000,
    )
    await meanwhile()
    held.remove()
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

  test('an exit after another one that somebody sent from the same address', async () => {
    const { anvil, beacon, ofSecond } = world()
    const sender = createSender({ ...anvil, genesisForkVersion: beacon.spec.GENESIS_FORK_VERSION })
    await overtaken('validatorexits', 'overtaken', validatorExit('overtaken', byKey(ofSecond), { signer: 'second' }), () =>
      sender.request(privateKeyToAccount(anvil.accounts[1]?.privateKey ?? '0x'), exitOf(ofSecond)),
    )
    await untilDropped(
      'validatorexits',
      'overtaken',
      'already-exiting',
      /has dropped it: .*the validator is exiting already \(already-exiting\)/,
    )
  })
})

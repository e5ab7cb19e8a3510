import { beforeAll, expect, test } from 'vitest'
import { html, httpStatus, reset, rewriteJson } from '../../chains/faults.ts'
import { applyAll, eventually, getOne, getSigner, SIGNER, seen, signer } from '../../stack/resources.ts'
import { staysFor } from './harness.ts'
import {
  bothKinds,
  deleteRequest,
  holdBlocks,
  pairOf,
  requestsOf,
  untilAccepted,
  untilGone,
  untilPhase,
  untilShows,
  untilWaits,
  useRequestsWorld,
  whileNothingIsAsked,
} from './requests-world.ts'

/** A beacon chain that is away, late or another one: nothing is promised, nothing is signed, and it goes on when it is back. */
const world = useRequestsWorld()

beforeAll(async () => {
  const { cluster } = world()
  await applyAll(cluster, [signer()])
  await eventually(
    'the signer is ready',
    () => getSigner(cluster, SIGNER),
    (value) => seen(value).ready === 'True',
  )
})

const GENESIS = 'GET /eth/v1/beacon/genesis'
test.each([
  { what: 'that is behind', name: 'behind', code: 'behind', strike: () => world().beacon.setBehind(40) },
  { what: 'that is down', name: 'down', code: 'unavailable', strike: () => void world().beaconFaults.when(/./).always(reset) },
  {
    what: 'that answers with errors',
    name: 'errors',
    code: 'unavailable',
    strike: () => void world().beaconFaults.when(/./).always(httpStatus(500)),
  },
  {
    what: 'behind a proxy that answers for it',
    name: 'proxy',
    code: 'unavailable',
    strike: () => void world().beaconFaults.when(/./).always(html(200)),
  },
  {
    what: 'of another network',
    name: 'elsewhere',
    code: 'wrong-network',
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
])('a beacon chain $what: nothing is asked for until it is as it should be', async ({ name, code, strike }) => {
  const { stack, cluster, beacon, beaconFaults } = world()
  const { objects } = pairOf(world(), name)
  const met = () => stack.logs().split(`"code":"${code}"`).length
  const before = met()
  strike()
  await whileNothingIsAsked(world(), async () => {
    await applyAll(cluster, objects)
    for (const plural of bothKinds)
      await untilWaits(world(), plural, name, 'ServiceUnavailable', /cannot see the chain now; it is asked again/)
  })
  await eventually(
    `the service met what is ${code}`,
    async () => met(),
    (count) => count > before,
  )
  beacon.setBehind(0)
  beaconFaults.clear()
  for (const plural of bothKinds) await untilAccepted(world(), plural, name)
})

test('a beacon chain that goes away once a request is in the chain: its outcome is waited for, deleted or not', async () => {
  const { cluster, beaconFaults } = world()
  const { objects, pubkeys } = pairOf(world(), 'outcome')
  const goOn = await holdBlocks(world())
  await applyAll(cluster, objects)
  for (const plural of bothKinds) await untilPhase(world(), plural, 'outcome', 'Confirming')
  beaconFaults.when(/./).always(reset)
  await goOn()
  for (const plural of bothKinds)
    await untilWaits(world(), plural, 'outcome', 'AwaitingConsensus', /in final block \d+\. The consensus layer has not decided on it yet/)
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

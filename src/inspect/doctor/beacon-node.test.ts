import { expect, test } from 'vitest'
import { createBeaconGet } from '../../chains/ethereum/beacon-http.ts'
import { knownGenesisValidatorsRoots } from '../../chains/ethereum/beacon-nodes.ts'
import { ethereumNetworkConfig } from '../../chains/ethereum/networks.ts'
import { hoodiSpec } from '../../chains/ethereum/testing.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { lookAtBeaconNode } from './beacon-node.ts'

const never = new AbortController().signal
const canary = 'canary-7f3a'
const hoodi = ethereumNetworkConfig.parse({ name: 'hoodi', chain: 'Ethereum', rpcUrls: ['http://unused.test'] })
const genesis = { genesis_time: '1000000', genesis_validators_root: knownGenesisValidatorsRoots.hoodi, genesis_fork_version: '0x10000910' }
const SLOT = 320
const root = `0x${'ab'.repeat(32)}`
const ofState = (endpoint: string) => `/eth/v1/beacon/states/${SLOT}/${endpoint}`
const syncing = (more: object = {}) => ({ head_slot: String(SLOT), sync_distance: '0', is_syncing: false, ...more })
const finalized = (epoch: string) => ({ current_justified: { epoch, root }, finalized: { epoch, root } })
const answers: Readonly<Record<string, unknown>> = {
  '/eth/v1/beacon/genesis': genesis,
  '/eth/v1/config/spec': hoodiSpec,
  '/eth/v1/config/deposit_contract': { chain_id: '560048', address: '0x00000000219ab540356cbb839cbe05303d7705fa' },
  '/eth/v1/node/syncing': syncing(),
  [ofState('validators')]: [],
  [ofState('pending_deposits')]: [],
  [ofState('pending_partial_withdrawals')]: [],
  [ofState('finality_checkpoints')]: finalized('8'),
  [`/eth/v1/beacon/headers/${SLOT}`]: { root, canonical: true, header: { message: { slot: String(SLOT) } } },
}
const clockAt = (slot: number): Clock => ({ ...systemClock, now: () => new Date((1_000_000 + slot * 12) * 1000) })

/** `other`: answers in place of those of a node that serves all; a number is a status, a text is a page. */
async function look(other: Readonly<Record<string, unknown>> = {}, clock = clockAt(SLOT)): Promise<readonly string[]> {
  const fetch: typeof globalThis.fetch = async (input) => {
    const path = new URL(String(input)).pathname.replace(`/${canary}`, '')
    const answer = { ...answers, ...other }[path]
    if (typeof answer === 'number') return Response.json({ code: answer, message: canary }, { status: answer })
    if (typeof answer === 'string') return new Response(answer)
    return Response.json({ execution_optimistic: false, data: answer })
  }
  const get = createBeaconGet({ url: `https://n1.test/${canary}/`, clock: systemClock, timeoutMs: 5_000, maxBytes: 100_000, fetch })
  const found = await lookAtBeaconNode(hoodi, 2, get, clock, never)
  expect(JSON.stringify(found)).not.toContain(canary)
  expect(found.every(({ about }) => about === 'hoodi, beacon node 2')).toBe(true)
  return found.map(({ state, message }) => `${state}: ${message}`)
}

test('a beacon node that serves all is told with its slot', async () => {
  expect(await look()).toEqual(['ok: it serves hoodi, slot 320, epoch 10'])
})

test.each<[string, Record<string, unknown>, RegExp]>([
  [
    'of another network',
    { '/eth/v1/beacon/genesis': { ...genesis, genesis_validators_root: knownGenesisValidatorsRoots.sepolia } },
    /^failed: beacon node 2 of hoodi serves another network: its genesis validators root is .* Check its URL in beaconApiUrls of hoodi/,
  ],
  ['of another chain', { '/eth/v1/config/spec': { ...hoodiSpec, DEPOSIT_CHAIN_ID: '1' } }, /^failed: .*its chain id is 1, expected 560048/],
  ['that is a page', Object.fromEntries(Object.keys(answers).map((path) => [path, `<html>${canary}`])), /^failed: .* is not JSON\. Check/],
  ['that lets nobody in', Object.fromEntries(Object.keys(answers).map((path) => [path, 401])), /^failed: .*401/],
  ['that syncs', { '/eth/v1/node/syncing': syncing({ is_syncing: true }) }, /^warning: the beacon node is at slot 320, 0 slots behind/],
  ['whose head nobody has verified', { '/eth/v1/node/syncing': syncing({ is_optimistic: true }) }, /^warning: .* is not verified/],
])('a beacon node %s is told, and asked nothing else', async (_what, other, says) => {
  expect(await look(other)).toEqual([expect.stringMatching(says)])
})

test('a clock that is off is told as that, too', async () => {
  expect(await look({}, clockAt(SLOT + 300))).toEqual([
    expect.stringMatching(/^warning: .* 300 slots behind the time of day: it syncs, it stands still, or this clock is wrong/),
  ])
})

test.each<[string, unknown, RegExp]>([
  ['validators', 404, /^failed: it does not serve validators/],
  ['pending_deposits', 501, /^failed: it does not serve pending_deposits/],
  ['pending_partial_withdrawals', 404, /^failed: it does not serve pending_partial_withdrawals/],
  ['finality_checkpoints', 404, /^failed: it does not serve finality_checkpoints/],
  ['finality_checkpoints', finalized('3'), /^warning: its finalized epoch 3 is 7 behind its head: the chain does not finalize/],
])('a beacon node whose %s is %j is told', async (endpoint, answer, says) => {
  expect(await look({ [ofState(endpoint)]: answer })).toEqual([expect.stringMatching(/^ok/), expect.stringMatching(says)])
})

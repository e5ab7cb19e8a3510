import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { BeaconError } from './beacon.ts'
import { createBeaconChain } from './beacon-chain.ts'
import type { Hex } from './chain.ts'
import { ethereumNetworkConfig } from './networks.ts'
import { hoodiSpec } from './testing.ts'

const never = new AbortController().signal
const canary = 'canary-7c1d'
const key = (byte: string): Hex => `0x${byte.repeat(48)}`
const farFuture = '18446744073709551615'
const hoodiRoot = '0x212f13fc4df078b6cb7db228f1c8307566dcecf900867401a92023d7ba99cb5f'

type Reply = { data: unknown } | { status: number; headers?: Record<string, string> } | { text: string } | 'hang' | 'refuse' | 'flood'
type Script = Record<string, Reply | ((query: URLSearchParams) => Reply)>

const entry = (pubkey: Hex, more: object = {}) => ({
  index: '7',
  balance: '40000000001',
  status: 'active_ongoing',
  new_field: 'of a later version',
  validator: {
    pubkey,
    withdrawal_credentials: `0x02${'00'.repeat(11)}${'11'.repeat(20)}`,
    effective_balance: '40000000000',
    slashed: false,
    activation_eligibility_epoch: '1',
    activation_epoch: '5',
    exit_epoch: farFuture,
    withdrawable_epoch: farFuture,
    ...more,
  },
})
const spec = { ...hoodiSpec, BLOB_SCHEDULE: [{ EPOCH: '1', MAX_BLOBS_PER_BLOCK: '9' }], CONFIG_NAME: 'hoodi' }
const genesis = { genesis_time: '1000000', genesis_validators_root: hoodiRoot, genesis_fork_version: '0x10000910' }
const state = (slot: number, endpoint: string) => `/eth/v1/beacon/states/${slot}/${endpoint}`
const syncing = (head_slot: number, more: object = {}) => ({
  data: { head_slot: String(head_slot), sync_distance: '0', is_syncing: false, ...more },
})
const rootAt = (slot: number): Hex => `0x${slot.toString(16).padStart(64, '0')}`
const headerPath = (slot: number) => `/eth/v1/beacon/headers/${slot}`
const header = (slot: number, root = rootAt(slot), canonical = true) => ({
  data: { root, canonical, header: { message: { slot: String(slot) } } },
})
const blocks = (...slots: number[]): Script => Object.fromEntries(slots.map((slot) => [headerPath(slot), header(slot) as Reply]))
const good = (more: Script = {}): Script => ({
  ...blocks(5, 32, 64, 67, 68, 100, 500),
  '/eth/v1/beacon/genesis': { data: genesis },
  '/eth/v1/config/spec': { data: spec },
  '/eth/v1/config/deposit_contract': { data: { chain_id: '560048', address: '0x00000000219ab540356cbb839cbe05303d7705fa' } },
  '/eth/v1/node/syncing': syncing(100),
  [state(100, 'finality_checkpoints')]: { data: { current_justified: { epoch: '2', root: '0x' }, finalized: { epoch: '1', root: '0x' } } },
  [state(100, 'validators')]: (query) => ({ data: query.getAll('id').map((id) => entry(id as Hex)) }),
  [state(100, 'pending_partial_withdrawals')]: { data: [{ validator_index: '7', amount: '5', withdrawable_epoch: '300' }] },
  [state(100, 'pending_consolidations')]: { data: [{ source_index: '7', target_index: '9' }] },
  ...more,
})

/** A beacon chain over nodes that answer by script. Slot 100 is now. */
function chainOver(scripts: Script[], more: { clock?: Clock; timeoutMs?: number; network?: object; urls?: string[] } = {}) {
  const seen: string[] = []
  const urls: string[] = []
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const url = new URL(String(input))
    urls.push(url.href)
    const node = Number(url.hostname.slice(1, 2))
    const path = url.pathname.slice(`/${canary}`.length)
    seen.push(`${node}:${path}`)
    const script = scripts[node - 1]?.[path] ?? { status: 404 }
    const reply = typeof script === 'function' ? script(url.searchParams) : script
    if (reply === 'refuse') throw new TypeError(`fetch failed ${canary}`, { cause: new Error(url.href) })
    if (reply === 'hang') return new Promise((_, reject) => init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)))
    if (reply === 'flood') return new Response(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(1000)) }))
    if ('text' in reply) return new Response(reply.text)
    if ('status' in reply) {
      return Response.json({ code: reply.status, message: canary }, { status: reply.status, headers: reply.headers ?? {} })
    }
    return Response.json({ execution_optimistic: false, finalized: false, ...reply })
  }
  const log: string[] = []
  const note = (fields: object, message: string) => log.push(`${JSON.stringify(fields)} ${message}`)
  const beacon = createBeaconChain({
    network: ethereumNetworkConfig.parse({ name: 'hoodi', chain: 'Ethereum', rpcUrls: ['http://unused.test'], ...more.network }),
    urls: more.urls ?? scripts.map((_, index) => `https://n${index + 1}.test/${canary}/?key=${canary}`),
    clock: more.clock ?? { ...systemClock, now: () => new Date((1_000_000 + 1_205) * 1000) },
    fetch,
    timeoutMs: more.timeoutMs ?? 1_000,
    maxResponseBytes: 20_000,
    log: { info: note, warn: note },
  })
  return { beacon, seen, urls, log }
}

const failure = async (promise: Promise<unknown>): Promise<BeaconError> => {
  const error = await promise.then(
    () => undefined,
    (caught: unknown) => caught,
  )
  expect(error).toBeInstanceOf(BeaconError)
  expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(canary)
  return error as BeaconError
}

describe('a view', () => {
  test('is of one state: that of the head', async () => {
    const { beacon, urls } = chainOver([good()])
    expect(await beacon.withdrawalView(key('AB'), 'head', never)).toEqual({
      slot: 100,
      epoch: 3,
      block: { slot: 100, root: rootAt(100) },
      validator: {
        index: 7,
        pubkey: key('ab'),
        status: 'active_ongoing',
        balanceGwei: 40_000_000_001n,
        effectiveBalanceGwei: 40_000_000_000n,
        withdrawalCredentials: `0x02${'00'.repeat(11)}${'11'.repeat(20)}`,
        slashed: false,
        activationEligibilityEpoch: 1,
        activationEpoch: 5,
        exitEpoch: undefined,
        withdrawableEpoch: undefined,
      },
      pendingPartialWithdrawals: [{ validatorIndex: 7, amountGwei: 5n, withdrawableEpoch: 300 }],
      pendingConsolidations: [{ sourceIndex: 7, targetIndex: 9 }],
    })
    // A path and a query of the URL's own stay.
    expect(urls.at(-1)).toMatch(/^https:\/\/n1\.test\/canary-7c1d\/eth\/v1\/.*key=canary-7c1d/)
  })

  test('of an unknown key has no validator', async () => {
    const { beacon } = chainOver([good({ [state(100, 'validators')]: { data: [] } })])
    expect((await beacon.withdrawalView(key('ab'), 'head', never)).validator).toBeUndefined()
  })

  test('may be of the finalized state or of a slot', async () => {
    const validators: Reply = { data: [entry(key('ab'))] }
    const { beacon } = chainOver([good({ [state(32, 'validators')]: validators, [state(64, 'validators')]: validators })])
    expect(await beacon.validators([key('ab')], 'finalized', never)).toMatchObject({ slot: 32, epoch: 1 })
    expect(await beacon.validators([key('ab')], 64, never)).toMatchObject({ slot: 64, epoch: 2 })
  })

  test('of a slot ahead of the head is to be waited for', async () => {
    const { beacon } = chainOver([good()])
    expect(await failure(beacon.validators([key('ab')], 101, never))).toMatchObject({ code: 'behind' })
  })

  test('of a state that no node keeps says so, and never that the key is unknown', async () => {
    const { beacon, seen } = chainOver([good(), good()])
    expect(await failure(beacon.withdrawalView(key('ab'), 5, never))).toMatchObject({ code: 'state-not-kept' })
    expect(seen).toContain(`2:${state(5, 'validators')}`)
  })

  test('does without consolidations where they are not served, and not without withdrawals', async () => {
    const without = chainOver([good({ [state(100, 'pending_consolidations')]: { status: 404 } })])
    expect((await without.beacon.withdrawalView(key('ab'), 'head', never)).pendingConsolidations).toEqual([])
    const missing = chainOver([good({ [state(100, 'pending_partial_withdrawals')]: { status: 404 } })])
    expect(await failure(missing.beacon.withdrawalView(key('ab'), 'head', never))).toMatchObject({ code: 'state-not-kept' })
  })

  test.each([400, 403, 405, 500, 501])('does without consolidations that a node refuses with status %i', async (status) => {
    const { beacon } = chainOver([good({ [state(100, 'pending_consolidations')]: { status } })])
    expect((await beacon.withdrawalView(key('ab'), 'head', never)).pendingConsolidations).toEqual([])
  })
  test('does without consolidations where a node answers with another list', async () => {
    const deposits = { data: [{ pubkey: key('ab'), amount: '5', slot: '9' }] }
    const { beacon } = chainOver([good({ [state(100, 'pending_consolidations')]: deposits })])
    expect(await beacon.withdrawalView(key('ab'), 'head', never)).toMatchObject({ validator: { index: 7 }, pendingConsolidations: [] })
  })
  test.each([
    { word: 'pending_balance', epochs: { activation_epoch: farFuture }, status: 'pending_queued' },
    { word: 'pending_lookahead', epochs: { activation_epoch: '9' }, status: 'pending_queued' },
    { word: 'active_something', epochs: { activation_epoch: '1' }, status: 'active_ongoing' },
    { word: 'active_leaving', epochs: { activation_epoch: '1', exit_epoch: '9' }, status: 'active_exiting' },
    { word: 'gone', epochs: { activation_epoch: '1', exit_epoch: '2', withdrawable_epoch: '3' }, status: 'withdrawal_possible' },
  ])('with a status of a later version ($word) hides no key: the epochs tell it', async ({ word, epochs, status }) => {
    const reply = { data: [{ ...entry(key('ab'), epochs), status: word }, entry(key('cd'))] }
    const { beacon } = chainOver([good({ [state(100, 'validators')]: reply })])
    const { validators } = await beacon.validators([key('ab'), key('cd')], 'head', never)
    expect([...validators.values()].map((one) => one.status)).toEqual([status, 'active_ongoing'])
  })
  test('that is optimistic is no answer, and another node is asked', async () => {
    const optimistic = { data: [], execution_optimistic: true } as Reply
    const alone = chainOver([good({ [state(100, 'validators')]: optimistic })])
    expect(await failure(alone.beacon.validators([key('ab')], 'head', never))).toMatchObject({
      code: 'behind',
      message: expect.stringContaining('optimistic'),
    })
    const both = chainOver([good({ [state(100, 'validators')]: optimistic }), good()])
    expect((await both.beacon.validators([key('ab')], 'head', never)).validators.size).toBe(1)
  })
  test.each([
    { what: 'a block', reply: header(90) as Reply, has: true },
    { what: 'none', reply: { status: 404 } as Reply, has: false },
    { what: 'one of another branch', reply: header(90, rootAt(90), false) as Reply, has: false },
  ])('tells that a slot has $what', async ({ reply, has }) => {
    const { beacon } = chainOver([good({ [headerPath(90)]: reply })])
    expect(await beacon.blockAt(90, never)).toEqual(has ? { slot: 90, root: rootAt(90) } : undefined)
    expect((await failure(beacon.blockAt(101, never))).code).toBe('behind')
  })

  test.each([
    { what: 'every node has it', others: [header(90), header(90)], standing: 'stands' },
    { what: 'one has another', others: [header(90), header(90, rootAt(9))], standing: 'disputed' },
    { what: 'one has none there', others: [header(90), { status: 404 }], standing: 'disputed' },
    { what: 'every node has another, or none', others: [header(90, rootAt(9)), { status: 404 }], standing: 'left' },
    {
      what: 'every node has it on another branch',
      others: [header(90, rootAt(90), false), header(90, rootAt(90), false)],
      standing: 'left',
    },
    { what: 'one does not answer, and the other has it', others: [{ status: 500 }, header(90)], standing: 'stands' },
    { what: 'none answers', others: [{ status: 500 }, { status: 503 }], standing: 'unknown' },
  ] satisfies { what: string; others: Reply[]; standing: string }[])('tells where a block stands: $what', async ({ others, standing }) => {
    const { beacon } = chainOver(others.map((reply) => good({ [headerPath(90)]: reply })))
    expect(await beacon.standing({ slot: 90, root: rootAt(90) }, never)).toBe(standing)
  })
  test('tells where a block stands by the nodes that have come so far', async () => {
    const behind = good({ '/eth/v1/node/syncing': syncing(80, { is_syncing: true }) })
    const { beacon } = chainOver([behind, good({ [headerPath(90)]: header(90) })])
    expect(await beacon.standing({ slot: 90, root: rootAt(90) }, never)).toBe('stands')
    expect(await beacon.standing({ slot: 101, root: rootAt(101) }, never)).toBe('unknown')
  })

  test('of many keys asks for 30 at a time', async () => {
    const { beacon, seen } = chainOver([good()])
    const keys = Array.from({ length: 61 }, (_, index) => key(index.toString(16).padStart(2, '0')))
    expect((await beacon.validators(keys, 'head', never)).validators.size).toBe(61)
    expect(seen.filter((call) => call.endsWith('/validators'))).toHaveLength(3)
  })

  test('of a head that was reorganised while it was read is no answer', async () => {
    let reads = 0
    const { beacon } = chainOver([good({ [headerPath(100)]: () => header(100, rootAt(reads++)) })])
    expect(await failure(beacon.withdrawalView(key('ab'), 'head', never))).toMatchObject({
      code: 'behind',
      message: 'the beacon chain was reorganised at slot 100 while its state was read',
    })
  })

  test('of a slot without a block is read: it is known by the last block before it', async () => {
    const empty = { [headerPath(67)]: { status: 404 } as Reply, [state(67, 'validators')]: { data: [entry(key('ab'))] } }
    const { beacon, seen } = chainOver([good(empty), good({ ...empty, [headerPath(65)]: header(65) as Reply }), good(blocks(66))])
    expect(await failure(beacon.validators([key('ab')], 67, never))).toMatchObject({ code: 'disagreement' })
    const agreed = chainOver([good(empty), good(empty)])
    expect((await agreed.beacon.validators([key('ab')], 67, never)).validators.size).toBe(1)
    expect(seen).toContain(`1:${headerPath(64)}`)
  })

  test('of a slot with no block in the two epochs before it is not kept', async () => {
    const { beacon, seen } = chainOver([good({ [headerPath(5)]: { status: 404 } })])
    expect(await failure(beacon.validators([key('ab')], 30, never))).toMatchObject({ code: 'state-not-kept' })
    expect(seen.filter((call) => call.includes('/headers/'))).toHaveLength(31)
  })

  test.each([
    {
      what: 'says nothing of a slot that it does not have yet',
      other: { '/eth/v1/node/syncing': syncing(63, { is_syncing: true }) },
      code: undefined,
    },
    { what: 'says nothing where it does not answer', other: { [headerPath(64)]: { status: 500 } }, code: undefined },
    { what: 'agrees', other: {}, code: undefined },
    { what: 'has another block there', other: { [headerPath(64)]: header(64, rootAt(9)) }, code: 'disagreement' },
    { what: 'has none there', other: { [headerPath(64)]: { status: 404 } }, code: 'disagreement' },
  ] satisfies { what: string; other: Script; code: string | undefined }[])(
    'of a slot is concluded from when another node $what: $code',
    async ({ other, code }) => {
      const first = good({ [state(64, 'validators')]: { data: [entry(key('ab'))] } })
      const { beacon } = chainOver([first, good(other)])
      const asked = beacon.validators([key('ab')], 64, never)
      if (code === undefined) expect((await asked).validators.size).toBe(1)
      else expect(await failure(asked)).toMatchObject({ code, message: expect.stringContaining('beacon nodes 1 and 2 of hoodi') })
      // What people are shown is not held up by a node on a fork.
      expect((await beacon.validators([key('ab')], 'head', never)).validators.size).toBe(1)
    },
  )

  test('of deposits asks for those that are queued only when a key is not in the registry', async () => {
    const queued = { [state(100, 'pending_deposits')]: { data: [] } as Reply }
    const known = chainOver([good(queued)])
    expect(await known.beacon.depositView([key('ab')], 'head', never)).toMatchObject({ slot: 100, pendingDeposits: [] })
    expect(known.seen).not.toContain(`1:${state(100, 'pending_deposits')}`)
    const unknown = chainOver([good({ ...queued, [state(100, 'validators')]: { data: [] } })])
    expect((await unknown.beacon.depositView([key('ab')], 'head', never)).validators.size).toBe(0)
    expect(unknown.seen).toContain(`1:${state(100, 'pending_deposits')}`)
  })

  test('with validators that were not asked for is not believed', async () => {
    const { beacon } = chainOver([good({ [state(100, 'validators')]: { data: [entry(key('cd'))] } })])
    expect(await failure(beacon.validators([key('ab')], 'head', never))).toMatchObject({ code: 'unavailable' })
  })
})

describe('the execution block that a block names', () => {
  const root = rootAt(67)
  const blinded = `/eth/v1/beacon/blinded_blocks/${root}`
  const whole = `/eth/v2/beacon/blocks/${root}`
  const [own, parent]: [Hex, Hex] = [`0x${'0A'.repeat(32)}`, `0x${'0b'.repeat(32)}`]
  const block = (body: object): Reply => ({ data: { message: { slot: '67', body }, signature: '0x' } })
  const payload = { block_hash: own, parent_hash: parent, gas_limit: '1' }
  const named = { carries: own.toLowerCase(), confirms: parent }
  const none = { carries: undefined, confirms: undefined }
  const ask = (...scripts: Script[]) => {
    const { beacon, seen } = chainOver(scripts.map((script) => good(script)))
    return { beacon, seen, answer: beacon.executionOf({ slot: 67, root }, never) }
  }

  test.each<{ what: string; script: Script; expected: object | undefined }>([
    { what: 'by the blinded block', script: { [blinded]: block({ execution_payload_header: payload }) }, expected: named },
    { what: 'by the whole block', script: { [whole]: block({ execution_payload: payload }) }, expected: named },
    ...[400, 401, 403, 405, 500, 501].map((status) => ({
      what: `by the whole block where the blinded one is not served (${status})`,
      script: { [blinded]: { status }, [whole]: block({ execution_payload: payload }) },
      expected: named,
    })),
    {
      what: 'from Gloas on, by the bid',
      script: { [blinded]: block({ signed_execution_payload_bid: { message: { parent_block_hash: parent, block_hash: own } } }) },
      expected: { carries: undefined, confirms: parent },
    },
    {
      what: 'not at all, of a fork that is not known',
      script: { [blinded]: block({ execution_payload_header: 7, other: payload }) },
      expected: none,
    },
    { what: 'not at all, where no node serves blocks', script: {}, expected: undefined },
    { what: 'not at all, where they are refused', script: { [blinded]: { status: 405 }, [whole]: { status: 403 } }, expected: undefined },
  ])('is told $what', async ({ script, expected }) => {
    expect(await ask(script).answer).toEqual(expected)
  })

  test('is told by whoever shows the block, and asked once', async () => {
    const { beacon, seen, answer } = ask({}, { [whole]: block({ execution_payload: payload }) })
    expect(await answer).toEqual(named)
    const before = seen.length
    expect(await beacon.executionOf({ slot: 67, root }, never)).toEqual(named)
    expect(seen).toHaveLength(before)
    const other = ask({ [whole]: block({ execution_payload: payload }) })
    expect(await Promise.all([other.answer, other.beacon.executionOf({ slot: 67, root }, never)])).toEqual([named, named])
    expect(other.seen.filter((call) => call.includes('/blocks/'))).toHaveLength(1)
  })

  test.each<{ what: string; reply: Reply }>([
    { what: 'fails', reply: { status: 500 } },
    { what: 'answers what is no block', reply: { data: 'no block' } },
  ])('is not known where a node $what: it is asked again, and nothing is concluded', async ({ reply }) => {
    expect((await failure(ask({ [blinded]: reply, [whole]: reply }, {}).answer)).code).toBe('unavailable')
  })
})

test('the head names its epoch and the finalized one', async () => {
  const { beacon } = chainOver([good()])
  expect(await beacon.head(never)).toEqual({ slot: 100, epoch: 3, justifiedEpoch: 2, finalizedEpoch: 1 })
})

test('pending deposits keep their order', async () => {
  const deposit = (byte: string) => ({
    pubkey: key(byte),
    withdrawal_credentials: `0x02${'00'.repeat(31)}`,
    amount: '32000000000',
    signature: `0x${'22'.repeat(96)}`,
    slot: '99',
  })
  const { beacon } = chainOver([good({ [state(100, 'pending_deposits')]: { data: [deposit('ab'), deposit('cd')] } })])
  const [first, second, ...none] = await beacon.pendingDeposits('head', never)
  expect(first).toMatchObject({ pubkey: key('ab'), amountGwei: 32_000_000_000n, slot: 99 })
  expect(second).toMatchObject({ pubkey: key('cd') })
  expect(none).toEqual([])
})

describe('the constants', () => {
  test.each([
    { value: undefined, epoch: undefined },
    { value: farFuture, epoch: undefined },
    { value: '353024', epoch: 353_024 },
  ])('tell the epoch of Gloas, or that it has none: $value', async ({ value, epoch }) => {
    const { beacon } = chainOver([good({ '/eth/v1/config/spec': { data: { ...spec, GLOAS_FORK_EPOCH: value } } })])
    expect((await beacon.spec(never)).gloasForkEpoch).toBe(epoch)
  })

  test.each([
    { node: undefined, file: 500, epoch: 500, what: 'of a fork that the node does not know, by the networks file' },
    { node: farFuture, file: 500, epoch: 500, what: 'of a fork that the node has no date for, by the networks file' },
    { node: '400', file: 500, epoch: 400, what: 'of a fork that the node has a date for, by the node' },
    { node: undefined, file: undefined, epoch: undefined, what: 'of no fork that nobody names' },
  ])('tell the epoch $what', async ({ node, file, epoch }) => {
    const script = good({ '/eth/v1/config/spec': { data: { ...spec, GLOAS_FORK_EPOCH: node } } })
    const { beacon } = chainOver([script], { network: file === undefined ? {} : { forks: { gloasEpoch: file } } })
    expect((await beacon.spec(never)).gloasForkEpoch).toBe(epoch)
  })

  test('are the network’s own', async () => {
    const { beacon } = chainOver([good()])
    expect(await beacon.spec(never)).toMatchObject({ slotDurationMs: 12_000, slotsPerEpoch: 32, shardCommitteePeriod: 256 })
    expect(await beacon.genesis(never)).toEqual({
      genesisTime: 1_000_000,
      genesisValidatorsRoot: hoodiRoot,
      genesisForkVersion: '0x10000910',
    })
  })
  test.each([
    { name: 'milliseconds only', change: { SECONDS_PER_SLOT: undefined, SLOT_DURATION_MS: '2500' }, expected: 2_500 },
    { name: 'both', change: { SLOT_DURATION_MS: '12000' }, expected: 12_000 },
  ])('may give a slot in $name', async ({ change, expected }) => {
    const { beacon } = chainOver([good({ '/eth/v1/config/spec': { data: { ...spec, ...change } } })])
    expect((await beacon.spec(never)).slotDurationMs).toBe(expected)
  })
  test.each(Object.keys(spec).filter((name) => !['BLOB_SCHEDULE', 'CONFIG_NAME'].includes(name)))(
    'without %s are not believed',
    async (name) => {
      const { beacon } = chainOver([good({ '/eth/v1/config/spec': { data: { ...spec, [name]: undefined } } })])
      expect(await failure(beacon.spec(never))).toMatchObject({ code: 'unavailable', message: expect.stringContaining(name) })
    },
  )
  test('are asked for once', async () => {
    const { beacon, seen } = chainOver([good()])
    await Promise.all([beacon.spec(never), beacon.genesis(never), beacon.head(never)])
    await beacon.spec(never)
    expect(seen.filter((call) => call.endsWith('/config/spec'))).toHaveLength(1)
  })
})

describe('a node of another network is not used:', () => {
  test.each<{ name: string; script: Script; says: RegExp }>([
    {
      name: 'chain id',
      script: { '/eth/v1/config/spec': { data: { ...spec, DEPOSIT_CHAIN_ID: '1' } } },
      says: /chain id is 1, expected 560048/,
    },
    {
      name: 'deposit contract',
      script: { '/eth/v1/config/spec': { data: { ...spec, DEPOSIT_CONTRACT_ADDRESS: `0x${'11'.repeat(20)}` } } },
      says: /deposit contract is 0x1111/,
    },
    {
      name: 'deposit contract where the endpoint of its own says so',
      script: { '/eth/v1/config/deposit_contract': { data: { chain_id: '560048', address: `0x${'11'.repeat(20)}` } } },
      says: /deposit contract is 0x1111/,
    },
    {
      name: 'genesis fork version',
      script: { '/eth/v1/beacon/genesis': { data: { ...genesis, genesis_fork_version: '0x00000000' } } },
      says: /genesis fork version is 0x00000000/,
    },
    {
      name: 'genesis validators root',
      script: { '/eth/v1/beacon/genesis': { data: { ...genesis, genesis_validators_root: `0x${'11'.repeat(32)}` } } },
      says: /genesis validators root is 0x1111/,
    },
  ])('$name', async ({ script, says }) => {
    const alone = chainOver([good(script)])
    const error = await failure(alone.beacon.head(never))
    expect(error).toMatchObject({ code: 'wrong-network', message: expect.stringMatching(says) })
    const beside = chainOver([good(script), good()])
    expect((await beside.beacon.head(never)).slot).toBe(100)
    expect(beside.seen).not.toContain('1:/eth/v1/node/syncing')
    expect(beside.log.join()).toMatch(says)
  })

  test('where the root is not built in, the nodes must agree', async () => {
    const network = {
      name: 'local',
      chainId: 560048,
      depositContractAddress: '0x00000000219ab540356cBB839Cbe05303d7705Fa',
      genesisForkVersion: '0x10000910',
    }
    let down = false
    const first = good({ '/eth/v1/node/syncing': () => (down ? 'refuse' : syncing(100)) })
    const other = good({ '/eth/v1/beacon/genesis': { data: { ...genesis, genesis_validators_root: `0x${'11'.repeat(32)}` } } })
    const { beacon } = chainOver([first, other], { network })
    await beacon.head(never)
    down = true
    expect(await failure(beacon.head(never))).toMatchObject({ code: 'wrong-network' })
  })
})

describe('a node that is behind', () => {
  test.each<{ name: string; syncing: Reply; code: string | undefined }>([
    { name: 'at the time of day', syncing: syncing(100), code: undefined },
    { name: 'an epoch behind', syncing: syncing(68), code: undefined },
    { name: 'more than an epoch behind', syncing: syncing(67), code: 'behind' },
    { name: 'ahead of our clock', syncing: syncing(500), code: undefined },
    { name: 'saying that it syncs', syncing: syncing(100, { is_syncing: true }), code: 'behind' },
    { name: 'with a head that it has not verified', syncing: syncing(100, { is_optimistic: true }), code: 'behind' },
    { name: 'without its execution client', syncing: syncing(100, { el_offline: true }), code: 'behind' },
  ])('($name): $code', async ({ syncing: reply, code }) => {
    const states = Object.fromEntries([67, 68, 500].map((slot) => [state(slot, 'validators'), { data: [] } as Reply]))
    const { beacon } = chainOver([good({ '/eth/v1/node/syncing': reply, ...states })])
    const asked = beacon.validators([key('ab')], 'head', never)
    if (code === undefined) await asked
    else expect(await failure(asked)).toMatchObject({ code })
  })

  test('makes way for one that is not', async () => {
    const { beacon } = chainOver([good({ '/eth/v1/node/syncing': syncing(3) }), good()])
    expect((await beacon.head(never)).slot).toBe(100)
  })
})

describe('a node that fails', () => {
  test.each<{ name: string; reply: Reply }>([
    { name: 'refuses', reply: 'refuse' },
    { name: 'hangs', reply: 'hang' },
    { name: 'never ends', reply: 'flood' },
    { name: 'answers HTML', reply: { text: `<html>${canary}</html>` } },
    { name: 'answers 500', reply: { status: 500 } },
    { name: 'has another shape', reply: { data: { head_slot: 100, is_syncing: canary } } },
    { name: 'answers a number that is none', reply: { data: { head_slot: `1e3 ${canary}`, is_syncing: false } } },
    { name: 'answers nothing', reply: { text: '' } },
  ])('($name) is passed over, and its answer never shown', async ({ reply }) => {
    const bad = good({ '/eth/v1/node/syncing': reply })
    expect(await failure(chainOver([bad], { timeoutMs: 30 }).beacon.head(never))).toMatchObject({ code: 'unavailable' })
    const { beacon, log } = chainOver([bad, good()], { timeoutMs: 30 })
    expect((await beacon.head(never)).slot).toBe(100)
    expect(log.join()).not.toContain(canary)
  })

  test('rests for a while', async () => {
    let now = 0
    const clock: Clock = { ...systemClock, now: () => new Date((1_000_000 + 1_200) * 1000), monotonicMs: () => now }
    const { beacon, seen } = chainOver([good({ '/eth/v1/node/syncing': { status: 503 } }), good()], { clock })
    await beacon.head(never)
    seen.length = 0
    await beacon.head(never)
    expect(seen.every((call) => call.startsWith('2:'))).toBe(true)
    now = 10_001
    seen.length = 0
    await beacon.head(never)
    expect(seen[0]).toMatch(/^1:/)
  })

  test('tells when to come again', async () => {
    const { beacon } = chainOver([good({ '/eth/v1/node/syncing': { status: 429, headers: { 'retry-after': '7' } } })])
    expect(await failure(beacon.head(never))).toMatchObject({ code: 'unavailable', retryAfterMs: 7_000 })
  })
})

test('without a URL nothing is known', async () => {
  expect(await failure(chainOver([]).beacon.head(never))).toMatchObject({
    code: 'unavailable',
    message: 'no beacon node is configured for hoodi',
  })
})

test('the caller leaves with the reason of its signal', async () => {
  const { beacon } = chainOver([good({ '/eth/v1/node/syncing': 'hang' }), good()])
  const reason = new Error('lease lost')
  const controller = new AbortController()
  setTimeout(() => controller.abort(reason), 5)
  await expect(beacon.head(controller.signal)).rejects.toBe(reason)
  await expect(beacon.head(AbortSignal.abort(reason))).rejects.toBe(reason)
})

test('a check that failed after its caller had left does not strike the next one', async () => {
  let answers = false
  const spec: Script = { '/eth/v1/beacon/genesis': () => (answers ? { data: genesis } : 'hang') }
  const { beacon } = chainOver([good(spec)], { timeoutMs: 30 })
  const controller = new AbortController()
  setTimeout(() => controller.abort(new Error('lease lost')), 5)
  await expect(beacon.head(controller.signal)).rejects.toThrow('lease lost')
  await new Promise((resolve) => setTimeout(resolve, 60))
  answers = true
  expect((await beacon.head(never)).slot).toBe(100)
})

describe('a node that lets us in for nothing', () => {
  const shut = (status: number): Record<string, Reply> => ({
    '/eth/v1/beacon/genesis': { status },
    '/eth/v1/config/spec': { status },
    '/eth/v1/config/deposit_contract': { status },
  })
  test.each([401, 402, 403])('is said for what it is, by its number (%i)', async (status) => {
    expect(await failure(chainOver([good(shut(status))]).beacon.pendingDeposits('head', never))).toMatchObject({
      code: 'access-denied',
      message: expect.stringMatching(new RegExp(`beacon node 1 of \\w+ answers ${status} even to (genesis|spec|deposit_contract):`)),
    })
  })
  test.each([
    {
      what: 'the other is down',
      other: 'refuse' as Reply,
      says: /^beacon node 1 of hoodi answers 403 .*; beacon node 2 of hoodi gives no usable answer now$/,
    },
    {
      what: 'the other too',
      other: { status: 401 } as Reply,
      says: /^beacon node 1 of hoodi answers 403 .*; beacon node 2 of hoodi answers 401 /,
    },
    {
      what: 'the other is under a wrong path',
      other: { status: 404 } as Reply,
      says: /beacon node 2 of hoodi answers 404 to every request: check the URL's path$/,
    },
  ])('is told beside the other, each for what it is: $what', async ({ other, says }) => {
    const second = Object.fromEntries(Object.keys(shut(0)).map((path) => [path, other]))
    expect(await failure(chainOver([good(shut(403)), good(second)]).beacon.pendingDeposits('head', never))).toMatchObject({
      code: 'access-denied',
      message: expect.stringMatching(says),
    })
  })
  test('because nothing is served under its path is told so, and one whose genesis is still to come is not', async () => {
    expect(await failure(chainOver([good(shut(404))]).beacon.head(never))).toMatchObject({
      code: 'access-denied',
      message: "beacon node 1 of hoodi answers 404 to every request: check the URL's path",
    })
    const early = good({ '/eth/v1/beacon/genesis': { status: 404 } })
    expect(await failure(chainOver([early]).beacon.head(never))).toMatchObject({ code: 'unavailable' })
  })
  test('is passed over where another serves', async () => {
    const { beacon } = chainOver([good(shut(401)), good({ [state(100, 'pending_deposits')]: { data: [] } })])
    expect(await beacon.pendingDeposits('head', never)).toEqual([])
  })
})

describe('an endpoint that the first node refuses', () => {
  test.each([401, 402, 403, 405, 501])('is asked of the next, and of that one first from then on (%i)', async (status) => {
    const refusing = good({ [state(100, 'pending_deposits')]: { status } })
    const { beacon, seen } = chainOver([refusing, good({ [state(100, 'pending_deposits')]: { data: [] } })])
    expect(await beacon.pendingDeposits('head', never)).toEqual([])
    seen.length = 0
    expect(await beacon.pendingDeposits('head', never)).toEqual([])
    expect(seen).not.toContain(`1:${state(100, 'pending_deposits')}`)
    // All else is asked of the first.
    await beacon.validators([key('ab')], 'head', never)
    expect(seen).toContain(`1:${state(100, 'validators')}`)
    expect(await failure(chainOver([refusing]).beacon.pendingDeposits('head', never))).toMatchObject({
      message: expect.stringContaining('pending_deposits'),
    })
  })
})

test('a first node that stands still while the second goes on is out before the time of day condemns it, and comes back', async () => {
  let now = 0
  const clock: Clock = { ...systemClock, now: () => new Date((1_000_000 + 1_200) * 1000 + now), monotonicMs: () => now }
  const slots = [100, 100] as [number, number]
  const states = Object.fromEntries(
    Array.from({ length: 20 }, (_, n) => [
      state(100 + n, 'finality_checkpoints'),
      { data: { current_justified: { epoch: '2', root: key('00') }, finalized: { epoch: '1', root: key('00') } } },
    ]),
  ) as Script
  const { beacon } = chainOver(
    ([0, 1] as const).map((index) => good({ ...states, '/eth/v1/node/syncing': () => syncing(slots[index]) })),
    { clock },
  )
  expect((await beacon.head(never)).slot).toBe(100)
  for (let slot = 101; slot <= 106; slot++) {
    now += 12_000
    slots[1] = slot
    await beacon.head(never)
  }
  expect((await beacon.head(never)).slot).toBe(106)
  now += 12_000
  slots[0] = 108
  slots[1] = 107
  expect((await beacon.head(never)).slot).toBe(108)
})

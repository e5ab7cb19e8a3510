import { describe, expect, test } from 'vitest'
import { ethereumStake } from '../../resources/ethereum-stake.ts'
import type { KindDefinition } from '../../resources/meta.ts'
import { signerNonce } from '../../resources/signer-nonce.ts'
import { solanaStake } from '../../resources/solana-stake.ts'
import { stakingSigner } from '../../resources/staking-signer.ts'
import { stakingTransaction } from '../../resources/staking-transaction.ts'
import { validatorExit } from '../../resources/validator-exit.ts'
import { validatorWithdrawal } from '../../resources/validator-withdrawal.ts'
import { createCaches } from '../caches.ts'
import type { CacheOptions, Collection } from '../kube/collections.ts'
import type { OnChange } from '../kube/delivery.ts'
import { cacheKey, type KubeObject } from '../kube/objects.ts'
import { createFakeKube } from '../testing/fake-kube.ts'
import { createTestClock } from '../testing/test-clock.ts'
import { PAGE_SIZE } from './fleet-index.ts'
import { fleetPage } from './fleet-page.ts'
import type { Instance } from './layout.ts'
import { rememberEvents } from './remembered-events.ts'
import { createViews } from './views.ts'

const ADDRESS = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const NOW = Date.parse('2030-01-01T12:00:00Z')
const hash = (digit: string): string => `0x${digit.repeat(64)}`

const leader: Instance = { version: '0.1.0', name: 'pod-a', leads: true, leader: 'pod-a', unsynced: [], suspended: false, silentMs: 5_000 }

/** Caches over an API server in memory, of whose clients the views must not use any. */
function world(instance: Partial<Instance> = {}) {
  const clock = createTestClock(NOW)
  const kube = createFakeKube(clock)
  const untouchable = (plural: string) =>
    new Proxy({} as never, {
      get: (_target, field) => {
        throw new Error(`a view uses the client of ${plural}: ${String(field)}`)
      },
    })
  const caches = createCaches(<R extends KubeObject>(definition: KindDefinition, options?: CacheOptions<R>): Collection<R> => {
    const { cache, onChange } = kube.follow<R>(definition, options)
    return { client: untouchable(definition.plural), cache, onChange }
  })
  const events = rememberEvents({ event: () => {} }, clock)
  const views = createViews({
    caches,
    events,
    clock,
    instance: () => ({ ...leader, ...instance }),
  })
  const create = (kind: KindDefinition, name: string, spec: object, status?: object, metadata: object = {}) =>
    kube.collection<KubeObject>(kind).create({
      // Twelve hours ago, where it matters.
      metadata: {
        name,
        creationTimestamp: '2030-01-01T00:00:00Z',
        ...(kind.scope === 'Cluster' ? {} : { namespace: 'team-a' }),
        ...metadata,
      },
      spec,
      status,
    })
  const fleet = (query = '') => views.fleet(new URLSearchParams(query))
  return { clock, kube, views, events, create, fleet }
}

/** A collection of which only what a view may use is there. */
function bare() {
  const objects = new Map<string, KubeObject>()
  let tell: OnChange<KubeObject> = () => {}
  let reads = 0
  return {
    reads: () => reads,
    put(object: object) {
      const added = object as KubeObject
      const key = cacheKey(added.metadata)
      objects.set(key, added)
      tell(key, { type: 'added', new: added, own: false })
    },
    cache: {
      get: (key: string) => {
        reads++
        return objects.get(key)
      },
      list: () => objects.values(),
      byIndex: () => [...objects.values()],
    },
    onChange: (listener: OnChange<KubeObject>) => {
      tell = listener
    },
  }
}

/** Views over such collections, for fleets that would take an API server in memory too long. */
function large() {
  const clock = createTestClock(NOW)
  const caches = {
    stakes: bare(),
    exits: bare(),
    withdrawals: bare(),
    solanaStakes: bare(),
    authorizations: bare(),
    signers: bare(),
    records: bare(),
  }
  const views = createViews({ caches: caches as never, events: { of: () => [] }, clock, instance: () => leader })
  return { clock, caches, views, fleet: (query = '') => views.fleet(new URLSearchParams(query)) }
}

const condition = (type: string, status: string, reason: string, message = `${reason}.`, lastTransitionTime = '2030-01-01T11:00:00Z') => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime,
})
const ready = [condition('Ready', 'True', 'Succeeded')]
const stalled = (message: string) => [
  condition('Ready', 'False', 'KeyMissing', message),
  condition('Stalled', 'True', 'KeyMissing', message),
]
const stakeSpec = { network: 'hoodi', amountEth: '32', signer: 'treasury', withdrawalAddress: ADDRESS, credentialsType: 'Compounding' }
const policy = { allowedNamespaces: { names: ['team-a'] }, maxPerTransaction: '64' }
const signerSpec = { chain: 'Ethereum', keyName: 'treasury', address: ADDRESS, policy }
const owner = (name: string) => ({ kind: 'EthereumStake', namespace: 'team-a', name, originUid: 'uid' })
const recordSpec = (name: string, more: object = {}) => ({
  chain: 'Ethereum',
  network: 'hoodi',
  chainId: 560_048,
  purpose: 'Deposit',
  subject: `0x${'ab'.repeat(48)}`,
  amount: '32 ETH',
  owner: owner(name),
  generation: 0,
  signer: 'treasury',
  from: ADDRESS,
  call: { to: ADDRESS, data: '0x' },
  ...more,
})
const attempt = (digit: string, nonce: number, at: string, gwei: number, kind = 'Call') => ({
  hash: hash(digit),
  kind,
  nonce,
  gas: '72000',
  maxFeePerGasWei: `${gwei}000000000`,
  maxPriorityFeePerGasWei: '1000000000',
  at,
})

/** The texts of a page, without its tags. */
const textOf = (page: string): string => page.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')
/** The rows of its first table. */
const rowsOf = (page: string): readonly string[] =>
  (/<tbody[^>]*>(.*?)<\/tbody>/s.exec(page)?.[1] ?? '')
    .split('</tr>')
    .map((row) => textOf(row).trim())
    .filter((row) => row !== '')

/** One of each kind. */
function fill({ create }: ReturnType<typeof world>): void {
  create(ethereumStake, 'paid', stakeSpec, { phase: 'Active', conditions: ready })
  create(ethereumStake, 'stuck', stakeSpec, { phase: 'Created', conditions: stalled('Mount the key.') }, { namespace: 'team-b' })
  create(ethereumStake, 'new', stakeSpec)
  create(
    validatorExit,
    'leave',
    { validator: { stakeRef: { name: 'paid' } }, signer: 'treasury' },
    { conditions: [condition('Ready', 'False', 'InProgress')] },
  )
  create(
    validatorWithdrawal,
    'take',
    { validator: { stakeRef: { name: 'paid' } }, amountGwei: '1500000000', signer: 'treasury' },
    { conditions: [condition('Ready', 'False', 'RequestFeeTooHigh')] },
  )
  create(
    solanaStake,
    'sol',
    {
      network: 'devnet',
      amountLamports: '5000000000',
      desiredState: 'Active',
      stakeAuthority: { signer: 's' },
      withdrawAuthority: { signer: 'w' },
    },
    { conditions: ready },
  )
  create(stakingSigner, 'treasury', signerSpec, { balance: '64 ETH on hoodi', conditions: ready })
}

describe('the fleet', () => {
  test('is one table of all kinds, what needs somebody first', () => {
    const all = world()
    fill(all)
    const rows = rowsOf(all.fleet())
    expect(rows.map((row) => row.split(' ')[0])).toEqual(['stuck', 'take', 'leave', 'new', 'treasury', 'paid', 'sol'])
    expect(rows[0]).toMatch(/^stuck team-b EthereumStake Stalled Created hoodi 32 ETH KeyMissing Mount the key\. 12 h$/)
    expect(rows[1]).toContain('1.5 ETH')
    expect(rows[6]).toContain('5 SOL')
  })

  test.each([
    ['namespace=team-b', ['stuck']],
    ['kind=EthereumStake', ['stuck', 'new', 'paid']],
    ['state=Ready', ['treasury', 'paid', 'sol']],
    ['kind=EthereumStake&state=Ready&namespace=team-a', ['paid']],
    ['name=ta', ['take']],
    ['state=Nonsense', []],
    ['kind=__proto__', []],
  ])('can be filtered by %s', (query, names) => {
    const all = world()
    fill(all)
    expect(rowsOf(all.fleet(query)).map((row) => row.split(' ')[0])).toEqual(names)
  })

  test('counts states by what the other filters admit, and keeps the filters in its links', () => {
    const all = world()
    fill(all)
    const page = all.fleet('kind=EthereumStake&state=Stalled')
    expect(textOf(page)).toMatch(/All 3 Stalled 1 Not seen yet 1 Ready 1/)
    expect(page).toContain('href="./?kind=EthereumStake&amp;state=Ready"')
  })

  test('follows what changes and what goes', () => {
    const { kube, clock, create, fleet } = world()
    create(ethereumStake, 'one', stakeSpec)
    expect(rowsOf(fleet())).toHaveLength(1)
    kube.collection<KubeObject>(ethereumStake).edit('team-a/one', (object) => ({ ...object, status: { conditions: ready } }))
    clock.advance(1_000)
    expect(rowsOf(fleet())[0]).toContain('Ready')
    kube.collection<KubeObject>(ethereumStake).vanish('team-a/one')
    clock.advance(1_000)
    expect(textOf(fleet())).toContain('Nothing matches')
  })

  test('of ten thousand takes out of the caches what it shows and no more, and pages lead through all of it', () => {
    const { clock, caches, fleet } = large()
    const put = (name: string, namespace: string, conditions: readonly object[]) =>
      caches.stakes.put({ kind: 'EthereumStake', metadata: { name, namespace }, spec: stakeSpec, status: { conditions } })
    for (let at = 0; at < 10_000; at++) put(`stake-${String(at).padStart(5, '0')}`, `team-${at % 300}`, ready)
    put('stuck', 'team-a', stalled('Mount the key.'))
    clock.advance(1_000)
    const page = fleet()
    expect(caches.stakes.reads()).toBe(PAGE_SIZE)
    expect(rowsOf(page)).toHaveLength(PAGE_SIZE)
    expect(rowsOf(page)[0]).toMatch(/^stuck /)
    expect(page.length).toBeLessThan(100_000)
    expect(textOf(page)).toContain('Resources 1 to 50 of 10001')
    expect(page).toContain('href="./?page=2" rel="next"')
    expect(rowsOf(fleet('page=201'))).toHaveLength(1)
    expect(rowsOf(fleet('page=999999')), 'beyond the last is the last').toHaveLength(1)
    expect(rowsOf(fleet('page=-1'))).toHaveLength(PAGE_SIZE)
    expect(page, 'of so many namespaces there is no list').not.toContain('team-7</option>')
  })
})

describe("a resource's page", () => {
  const target = { kind: 'EthereumStake', namespace: 'team-a', name: 'paid' }

  test('is its timeline: conditions, every version that was signed, events', () => {
    const { clock, kube, create, events, views } = world()
    const conditions = [
      condition('Created', 'True', 'Succeeded', 'The stake is there.', '2030-01-01T10:01:00Z'),
      condition('Ready', 'False', 'AwaitingFinality', 'It waits.'),
    ]
    const object = create(
      ethereumStake,
      'paid',
      stakeSpec,
      { phase: 'Broadcast', conditions },
      { creationTimestamp: '2030-01-01T10:00:00Z' },
    )
    create(
      stakingTransaction,
      'deposit-1',
      recordSpec('paid'),
      { state: 'Open', place: 7, attempts: [attempt('1', 7, '2030-01-01T10:02:00Z', 30), attempt('2', 7, '2030-01-01T10:05:00Z', 45)] },
      { creationTimestamp: '2030-01-01T10:01:30Z' },
    )
    events.event(object, { type: 'Warning', reason: 'FeeTooHigh', action: 'Reconcile', note: 'Gas costs too much.' })
    events.event(object, { type: 'Warning', reason: 'FeeTooHigh', action: 'Reconcile', note: 'Gas costs too much.' })
    clock.advance(60_000)
    const page = views.resource(target) ?? ''
    const titles = [...page.matchAll(/<li class="[a-z]+"><h3>(.*?)<\/h3>/g)].map(([, title]) => title)
    expect(titles).toEqual([
      'Resource created',
      'Created: Succeeded',
      'Deposit: recorded',
      'Deposit: version 1 written down and signed',
      'Deposit: version 2 written down and signed',
      'Event FeeTooHigh (2 times)',
    ])
    const text = textOf(page)
    for (const part of [
      'In progress',
      'It waits.',
      'Nonce in use 7',
      'at most 45 gwei, tip 1',
      hash('1'),
      hash('2'),
      '2030-01-01 10:02:00 UTC (1 h 59 min ago)',
      '32 ETH',
    ])
      expect(text).toContain(part)
    expect(page).toContain('href="../../../signers/treasury"')
    expect(kube.collection(signerNonce).list()).toEqual([])
  })

  test('has the outcome, and how earlier places were closed', () => {
    const { create, views } = world()
    create(ethereumStake, 'paid', stakeSpec, { conditions: ready })
    create(stakingTransaction, 'deposit-1', recordSpec('paid'), {
      state: 'Landed',
      place: 8,
      attempts: [
        attempt('1', 7, '2030-01-01T10:02:00Z', 30),
        attempt('2', 7, '2030-01-01T10:03:00Z', 60, 'Cancel'),
        attempt('3', 8, '2030-01-01T10:05:00Z', 45),
      ],
      closed: [{ nonce: 7, by: 'Cancel', hash: hash('2'), blockNumber: 99 }],
      outcome: { is: 'Landed', nonce: 8, hash: hash('3'), blockNumber: 101 },
    })
    const text = textOf(views.resource(target) ?? '')
    expect(text).toContain('Outcome Landed in block 101')
    expect(text).toMatch(/7 its own cancel 0x2+ 99/)
    expect(text).toContain('2 (cancel)')
    expect(text).toMatch(/0x3+ landed/)
  })

  test('shows the last versions of what was signed again and again', () => {
    const { create, views } = world()
    create(ethereumStake, 'paid', stakeSpec, { conditions: ready })
    const attempts = Array.from({ length: 96 }, (_, at) => attempt('a', at, '2030-01-01T10:02:00Z', at + 1))
    create(stakingTransaction, 'deposit-1', recordSpec('paid'), { state: 'Open', place: 95, attempts })
    const page = views.resource(target) ?? ''
    expect(textOf(page)).toContain('the 76 before these are not shown')
    expect(page.length).toBeLessThan(60_000)
  })

  test.each(['EthereumStake', 'ValidatorExit', 'ValidatorWithdrawal', 'SolanaStake'])('is there for a %s', (kind) => {
    const all = world()
    fill(all)
    const name = { EthereumStake: 'paid', ValidatorExit: 'leave', ValidatorWithdrawal: 'take', SolanaStake: 'sol' }[kind] ?? ''
    expect(all.views.resource({ kind, namespace: 'team-a', name })).toContain(`<h1>${kind} ${name}</h1>`)
  })

  test.each([
    { kind: 'EthereumStake', namespace: 'team-a', name: 'gone' },
    { kind: 'EthereumStake', namespace: '', name: 'paid' },
    { kind: 'Secret', namespace: 'team-a', name: 'paid' },
    { kind: 'StakingTransaction', namespace: 'team-a', name: 'deposit-1' },
    { kind: 'constructor', namespace: 'team-a', name: 'paid' },
  ])('is not there for $kind $namespace/$name', (asked) => {
    const all = world()
    fill(all)
    expect(all.views.resource(asked)).toBeUndefined()
    expect(all.views.missing(3)).toContain('There is no such page')
  })
})

describe("a signer's page", () => {
  const records = ({ create }: ReturnType<typeof world>) => {
    create(stakingSigner, 'treasury', signerSpec, {
      balance: '64 ETH on hoodi',
      lanes: [
        { network: 'hoodi', nextNonce: 12, open: 2, waiting: 1, balanceWei: '64000000000000000000', neededWei: '32000000000000000000' },
      ],
      conditions: ready,
    })
    create(stakingTransaction, 'b', recordSpec('second'), { place: 11, attempts: [attempt('2', 11, '2030-01-01T11:30:00Z', 20)] })
    create(stakingTransaction, 'a', recordSpec('first'), {
      place: 10,
      attempts: [attempt('1', 10, '2030-01-01T11:00:00Z', 30), attempt('3', 10, '2030-01-01T11:10:00Z', 60, 'Cancel')],
    })
    create(stakingTransaction, 'c', recordSpec('third'), {}, { creationTimestamp: '2030-01-01T11:40:00Z' })
    create(stakingTransaction, 'd', recordSpec('done'), { outcome: { is: 'Landed', hash: hash('4'), blockNumber: 1 } })
  }

  test('has its lanes: what may land by nonce, with the price of the last version and its age, and what waits', () => {
    const all = world()
    records(all)
    const page = all.views.signer('treasury') ?? ''
    const rows = rowsOf(page)
    expect(rows[0]).toMatch(/^10 Deposit cancelling first in team-a 32 ETH 2 60 gwei, tip 1 0x3+ 1 h$/)
    expect(rows[1]).toMatch(/^11 Deposit open second in team-a 32 ETH 1 20 gwei, tip 1 0x2+ 30 min$/)
    const text = textOf(page)
    for (const part of [
      'Balance 64 ETH',
      'Needed by what waits 32 ETH',
      'Next nonce 12',
      'Open 2',
      'Waiting 1',
      'Oldest open for 1 h',
      'third in team-a',
    ])
      expect(text).toContain(part)
    expect(text).not.toContain('done in team-a')
  })

  test('of ten thousand that wait shows the first, and counts all', () => {
    const all = large()
    all.caches.signers.put({ kind: 'StakingSigner', metadata: { name: 'treasury' }, spec: signerSpec, status: { conditions: ready } })
    for (let at = 0; at < 10_000; at++) all.caches.records.put({ metadata: { name: `t-${at}` }, spec: recordSpec(`stake-${at}`) })
    const page = all.views.signer('treasury') ?? ''
    expect(textOf(page)).toContain('the first 50 of 10000')
    expect(page.length).toBeLessThan(60_000)
  })

  test('is linked from the list of signers, which sums its lanes up', () => {
    const all = world()
    records(all)
    const page = all.views.signers(new URLSearchParams())
    expect(rowsOf(page)).toEqual([`treasury Ready Ethereum ${ADDRESS} 64 ETH on hoodi hoodi: 2 open, 1 waiting; the oldest for 1 h`])
    expect(page).toContain('href="signers/treasury"')
    expect(all.views.signer('none')).toBeUndefined()
    expect(textOf(world().views.signers(new URLSearchParams()))).toContain('There is no StakingSigner')
  })
})

test('a resource whose spec nobody can read is a row that says so, and keeps no other from being seen', () => {
  const row = { kind: 'EthereumStake', namespace: 'team-a', state: 'Ready' as const }
  const rows = [
    { ...row, name: 'odd', object: { metadata: {} } as never },
    { ...row, name: 'gone', object: undefined },
    { ...row, name: 'fine', object: { metadata: {}, spec: stakeSpec } as never },
  ]
  const view = { entries: rows, total: 3, page: 1, pages: 1, counts: new Map(), namespaces: [] }
  const query = { namespace: '', kind: '', state: '', name: '', page: 1 }
  const shown = rowsOf(fleetPage({ instance: leader, now: new Date(NOW), root: '' }, query, view, rows))
  expect(shown).toEqual([
    expect.stringMatching(/^odd /),
    expect.stringMatching(/^gone /),
    expect.stringMatching(/^fine team-a EthereumStake Ready hoodi 32 ETH/),
  ])
})

describe('who serves it', () => {
  test.each([
    { is: 'the leader', instance: {}, says: 'Leads (pod-a)' },
    { is: 'a standby', instance: { leads: false, leader: 'pod-b' }, says: 'Standby (pod-a); pod-b leads' },
    { is: 'a standby while nobody leads', instance: { leads: false, leader: undefined }, says: 'nobody leads, as far as it knows' },
    { is: 'one that fills its caches', instance: { unsynced: ['ethereumstakes'] }, says: 'The caches are being filled (ethereumstakes)' },
    { is: 'one that is suspended', instance: { suspended: true }, says: 'nothing is signed and nothing is sent' },
    { is: 'one that hears nothing', instance: { silentMs: 600_000 }, says: 'The API server has given no sign of life for 10 min' },
  ])('says so: $is', ({ instance, says }) => {
    const all = world(instance)
    fill(all)
    for (const page of [all.fleet(), all.views.signers(new URLSearchParams()), all.views.signer('treasury'), all.views.missing(0)])
      expect(textOf(page ?? '')).toContain(says)
  })
})

describe('texts that somebody has made up', () => {
  /** Of names, which lead somewhere. */
  const evilName = '"><script>alert(1)</script>'
  const evil =
    '"><script>alert(1)</script><img src=x onerror=alert(2)>\u202e https://user:pass@rpc.example/v3/canary-key Bearer canary-token'
  /** All pages of a world whose every text is hostile: what the definitions would refuse, too. */
  function pages(): readonly string[] {
    const { create, events, views } = world({ name: evil, leader: evil, unsynced: [evil], leads: false, version: evil })
    const conditions = ['Ready', 'Stalled'].map((type) => condition(type, type === 'Ready' ? 'False' : 'True', evil, evil, evil))
    const status = {
      phase: evil,
      conditions,
      stakeId: evil,
      depositData: { pubkey: evil },
      validator: { pubkey: evil, index: evil, status: evil },
      consensus: { status: evil },
      balance: evil,
      balanceReadAt: evil,
      protocol: { status: evil },
      lanes: [{ network: evil, open: 0, waiting: 0 }],
    }
    const spec = { ...stakeSpec, network: evil, amountEth: evil, signer: evilName, withdrawalAddress: evil, credentialsType: evil }
    const stake = create(ethereumStake, evilName, spec, status, { creationTimestamp: evil })
    create(validatorExit, evilName, { validator: { stakeRef: { name: evilName } }, signer: evilName }, status)
    create(solanaStake, evilName, { network: evil, amountLamports: evil }, status)
    create(stakingSigner, evilName, { ...signerSpec, address: evil, chain: evil }, status)
    create(validatorWithdrawal, evilName, { validator: { pubkey: evil, network: evil }, signer: evilName, amountGwei: evil }, status)
    const record = recordSpec(evilName, {
      signer: evilName,
      network: evil,
      amount: evil,
      purpose: evil,
      from: evil,
      owner: owner(evilName),
    })
    create(stakingTransaction, evilName, record, {
      state: evil,
      place: 1,
      attempts: [{ ...attempt('1', 1, evil, 1), hash: evil }],
      closed: [{ nonce: 0, by: 'Cancel', hash: evil, blockNumber: 1, failure: evil }],
      held: evil,
    })
    events.event(stake, { type: 'Warning', reason: evil, action: evil, note: evil })
    const resource = (kind: string) => views.resource({ kind, namespace: 'team-a', name: evilName }) ?? ''
    const query = new URLSearchParams({ namespace: evilName, kind: evilName, state: evilName, name: evilName })
    return [
      views.fleet(new URLSearchParams()),
      views.fleet(query),
      ...['EthereumStake', 'ValidatorExit', 'ValidatorWithdrawal', 'SolanaStake'].map(resource),
      views.signers(new URLSearchParams()),
      views.signer(evilName) ?? '',
      views.missing(0),
    ]
  }

  test('stay texts on every page: no tag, no attribute, no script comes of them, and none is lost', () => {
    for (const page of pages()) {
      expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt;')
      expect(page).not.toMatch(/<script|<img|<style|<iframe|<object|<meta http-equiv|<base/i)
      const tags = page.match(/<[a-z][^>]*>/g) ?? []
      expect(tags.filter((tag) => /\son[a-z]+\s*=|javascript:/i.test(tag.replace(/"[^"]*"/g, '""')))).toEqual([])
    }
  })

  test('show no URL, no key and no token', () => {
    for (const page of pages()) {
      expect(page).not.toMatch(/canary|user:pass|\u202e/)
      const links = [...page.matchAll(/(?:href|src|action)="([^"]*)"/g)].map(([, link = '']) => link)
      expect(links.length).toBeGreaterThan(3)
      for (const link of links)
        expect(link, 'leads nowhere else').toMatch(/^(\.\.\/)*(\.\/|signers|resources\/|style\.css\?v=|icon\.svg|#)/)
    }
  })
})

import { cpSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { operatorMetrics } from '../../../scripts/metrics/files.ts'
import { ethereumStakeConditions } from '../../../src/resources/ethereum-stake.ts'
import { CONFIRM_DELETE_ANNOTATION, FINALIZER, ORIGIN_ANNOTATION, RECONCILE_ANNOTATION } from '../../../src/resources/meta.ts'
import { httpStatus } from '../../chains/faults.ts'
import { findOnPath } from '../../cluster/process.ts'
import { runToEnd } from '../../cluster/run.ts'
import {
  applyAll,
  eventsOf,
  eventually,
  getSigner,
  getStake,
  namespace,
  PAYER,
  SIGNER,
  seen,
  signer,
  stake,
  untilHolds,
} from '../../stack/resources.ts'
import {
  comesToRest,
  conditionOf,
  deleteStake,
  expectPaidOnce,
  metric,
  metricsOf,
  moneyOf,
  patchStake,
  patchStatus,
  recordOf,
  serviceStakes,
  staysFor,
  untilGone,
  untilPaidOnce,
  untilShows,
  untilStalls,
  useStack,
  whileNoMoneyMoves,
} from './harness.ts'

/** The last one may be half written. */
const wholeLinesOf = (text: string): readonly string[] => text.split('\n').slice(0, -1)

const stack = useStack({ operatorArgs: ['--log-level', 'debug', '--observe-activating', '2s'] })

describe('from a manifest to a confirmed deposit', () => {
  const names = ['one', 'two', 'three', 'four', 'five'] as const

  test('stakes are paid once each, and written down with few writes', async () => {
    const { cluster } = stack()
    await applyAll(cluster, [signer({ policy: { maxPerTransaction: '2048' } })])
    await eventually(
      'the signer is ready',
      () => getSigner(cluster),
      (value) => seen(value).ready === 'True',
    )
    const writesBefore = await metric(stack(), 'staking_operator_status_writes_total', { kind: 'StakingSigner' })
    const begun = performance.now()
    await applyAll(cluster, [
      stake('one'),
      stake('two', { credentialsType: 'Execution' }),
      stake('three', { amountEth: '2048' }),
      stake('four', { amountEth: '32.000000001' }),
      stake('five', { withdrawalAddress: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8' }),
    ])
    const stakes = []
    for (const name of names) stakes.push(await untilPaidOnce(stack(), name))

    expect(stakes.map(({ status }) => status?.transaction?.nonce).toSorted()).toEqual([0, 1, 2, 3, 4])
    for (const { metadata, status } of stakes) {
      expect(status).toMatchObject({ phase: 'Confirmed', observedGeneration: metadata.generation })
      expect(status?.transaction?.reportedHash).toBe(status?.transaction?.minedHash)
      expect(metadata.finalizers).toContain(FINALIZER)
      expect(metadata.annotations?.[ORIGIN_ANNOTATION]).toBe(`${metadata.uid}/default/${metadata.name}`)
    }
    // A write for each phase, and none for each poll; what the signer shows of its lane at most once for each stake, or every five seconds.
    const fiveSeconds = (performance.now() - begun) / 5_000
    expect(await metric(stack(), 'staking_operator_status_writes_total', { kind: 'EthereumStake' })).toBeLessThanOrEqual(8 * names.length)
    expect((await metric(stack(), 'staking_operator_status_writes_total', { kind: 'StakingSigner' })) - writesBefore).toBeLessThanOrEqual(
      Math.max(names.length, 2 + fiveSeconds),
    )
  })

  test('all conditions are there, each with a reason and a message', async () => {
    // What the validator shows is written at the first look at it.
    const one = await untilHolds(
      'all conditions are there',
      () => getStake(stack().cluster, 'one'),
      (shown) =>
        expect(shown?.status?.conditions?.map(({ type }) => type).toSorted()).toEqual([...ethereumStakeConditions, 'Observed'].toSorted()),
    )
    for (const { reason, message, lastTransitionTime, observedGeneration } of one?.status?.conditions ?? []) {
      expect(reason).toMatch(/^[A-Z][A-Za-z]+$/)
      expect(message).toMatch(/\.$/)
      expect(Date.parse(lastTransitionTime)).toBeGreaterThan(0)
      expect(observedGeneration).toBe(1)
    }
  })

  test('the staking API knows each transaction, and sees it confirmed', async () => {
    const [known] = await eventually(
      'the service sees the deposit',
      () => serviceStakes(stack(), 'one'),
      ([first]) => first?.transaction.status === 'confirmed',
    )
    expect(known?.transaction.hash).toBe((await getStake(stack().cluster, 'one'))?.status?.transaction?.minedHash)
  })

  test('one event tells of the phase that people wait for, and none of those on the way', async () => {
    const events = await eventually(
      'the events of stake one',
      () => eventsOf(stack().cluster, 'one'),
      (all) => all.some(({ reason }) => reason === 'Confirmed'),
    )
    expect(events.map(({ type, reason }) => `${type} ${reason}`).toSorted()).toEqual(['Normal Confirmed'])
    const described = await stack().cluster.kubectlOk(['describe', 'ethereumstake', 'one'])
    expect(described).toMatch(/Normal +Confirmed .*staking\.dev\/operator +32 ETH are deposited for validator 0x/)
  })

  test('kubectl shows, explains, selects and waits', async () => {
    const { kubectlOk } = stack().cluster
    const columns = (text: string) => text.split('\n')[0]?.split(/\s{2,}/)
    expect(columns(await kubectlOk(['get', 'ethstake']))).toEqual(['NAME', 'NETWORK', 'ETH', 'PHASE', 'READY', 'REASON', 'AGE'])
    const wide = await kubectlOk(['get', 'ethstake', 'one', '-o', 'wide'])
    expect(wide).toContain((await getStake(stack().cluster, 'one'))?.status?.transaction?.hash)
    expect(wide).toContain((await getStake(stack().cluster, 'one'))?.status?.depositData?.pubkey)

    const all = await kubectlOk(['get', 'staking', '-A'])
    expect(all).toMatch(/ethereumstake\.staking\.dev\/one +local +32 +Confirmed +True/)
    expect(all).toMatch(/stakingsigner\.staking\.dev\/treasury +Ethereum +0x\w+ +[0-9.]+ ETH on local +True +True/)

    expect(columns(await kubectlOk(['get', 'stx']))).toEqual([
      'NAME',
      'PURPOSE',
      'AMOUNT',
      'NAMESPACE',
      'RESOURCE',
      'SIGNER',
      'NONCE',
      'STATE',
      'AGE',
    ])
    const log = await kubectlOk(['get', 'stx', '--field-selector', 'spec.owner.namespace=default,spec.owner.name=one', '-o', 'wide'])
    expect(log).toMatch(new RegExp(`deposit-\\S+ +Deposit +32 ETH +default +one +treasury +\\d +Landed +0x\\w{64} +\\d+ +${PAYER}`))
    // A signer is looked at after its transactions, and its figures alone are written every few seconds at most.
    const lanes = await eventually(
      'the lane of the signer is at rest',
      async () =>
        JSON.parse(await kubectlOk(['get', 'signer', SIGNER, '-o', 'jsonpath={.status.lanes}'])) as { open: number; nextNonce?: number }[],
      ([lane]) => lane?.open === 0 && lane.nextNonce === 5,
    )
    expect(lanes).toMatchObject([{ network: 'local', nextNonce: 5, open: 0, waiting: 0 }])

    const resources = ['ethstake', 'signer', 'stx', 'nonce']
    for (const resource of resources) {
      const text = await kubectlOk(['explain', resource, '--recursive'])
      expect(text, resource).not.toContain('<no description>')
    }
    const explained = async (field: string) => (await kubectlOk(['explain', field])).replace(/\s+/g, ' ')
    expect(await explained('ethstake.spec.withdrawalAddress')).toContain('can never be changed')
    expect(await explained('signer.spec.policy.allowedNamespaces')).toContain('Empty admits none')

    const selected = (selector: string) => kubectlOk(['get', 'ethstake', '-o', 'name', '--field-selector', selector])
    expect((await selected('spec.signer=treasury,spec.network=local')).trim().split('\n')).toHaveLength(names.length)
    expect(await selected('spec.network=mainnet')).toBe('')
    await kubectlOk(['wait', '--for=condition=Ready', 'ethstake', '--all', '--timeout=60s'])
  })

  test('once settled, nothing is written, however often it is looked at', async () => {
    const { cluster, apiFaults } = stack()
    const asked = apiFaults.calls(/^GET /)
    const writes = async () => ({
      writes: await metric(stack(), 'staking_operator_status_writes_total'),
      transactions: await metric(stack(), 'staking_operator_transactions_total'),
      versions: await cluster.kubectlOk([
        'get',
        'ethstake,signer,stx,nonce',
        '-A',
        '-o',
        'jsonpath={range .items[*]}{.metadata.name}={.metadata.resourceVersion} {end}',
      ]),
    })
    // The first look at a validator may still say something new.
    await eventually(
      'all validators were looked at',
      async () => cluster.kubectlOk(['get', 'ethstake', '-o', 'jsonpath={.items[*].status.validator.status}']),
      (text) => text.split(' ').length === names.length,
    )
    await comesToRest(7_000, writes, 60_000)
    expect(apiFaults.calls(/^GET /) - asked, 'looks at the service meanwhile').toBeGreaterThan(names.length)
  })
})

describe('what shows how it goes', () => {
  const get = async (path: string) => {
    const response = await fetch(new URL(path, stack().operatorMetrics))
    return { status: response.status, type: response.headers.get('content-type') ?? '', body: await response.text() }
  }

  test('health and readiness answer ok', async () => {
    expect(await get('/healthz')).toMatchObject({ status: 200, body: 'ok' })
    expect(await get('/readyz')).toMatchObject({ status: 200, body: 'ok' })
    expect((await get('/nothing')).status).toBe(404)
  })

  test('each metric has its help and type, a prefix and a base unit', async () => {
    const { type, body } = await get('/metrics')
    expect(type).toContain('text/plain')
    const types = new Map([...body.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', kind = '']) => [name, kind]))
    const helps = new Map([...body.matchAll(/^# HELP (\S+) (.+)$/gm)].map(([, name = '', text = '']) => [name, text]))
    expect([...helps.keys()].toSorted()).toEqual([...types.keys()].toSorted())
    const samples = body.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    const series = samples.map((line) => line.slice(0, line.lastIndexOf(' ')))
    expect(new Set(series).size, 'no series twice').toBe(series.length)
    for (const line of samples) {
      const [name = ''] = /^[a-z_:][a-z0-9_:]*/.exec(line) ?? []
      expect(types.has(name) || types.has(name.replace(/_(bucket|sum|count)$/, '')), line).toBe(true)
      expect(Number(line.slice(line.lastIndexOf(' ') + 1)), line).not.toBeNaN()
    }
    const own = [...types].filter(([name]) => !/^(nodejs|process)_/.test(name))
    for (const [name, kind] of own) {
      expect(name).toMatch(/^staking_operator_/)
      if (kind === 'counter') expect(name).toMatch(/_total$/)
      if (kind === 'histogram') expect(name).toMatch(/_seconds$/)
      expect(name).not.toMatch(/_(ms|millis|milliseconds|wei|lamports)(_|$)/)
      // A price of gas is in gwei as its cap in a resource is; no amount is.
      if (/_gwei(_|$)/.test(name)) expect(name).toMatch(/_fee(_cap)?_gwei$/)
      expect(helps.get(name), name).toMatch(/[.]$/)
    }
    // All that the reference names, whether or not there is something to show.
    expect(own.map(([name]) => name).toSorted()).toEqual(
      operatorMetrics()
        .map(({ name }) => name)
        .toSorted(),
    )
  })

  const promtool = findOnPath('promtool', process.env.PATH ?? '')
  test.skipIf(promtool === undefined)(
    'Prometheus’s own linter has nothing to say of them (promtool, of the package prometheus)',
    async () => {
      const { body } = await get('/metrics')
      // Of Node.js's own metrics the names are the client library's.
      const own = body.split('\n').filter((line) => /^(# (HELP|TYPE) )?staking_operator_/.test(line))
      const linted = await runToEnd({
        command: promtool ?? '',
        args: ['check', 'metrics'],
        input: `${own.join('\n')}\n`,
        signal: AbortSignal.timeout(60_000),
      })
      expect(linted.stdout + linted.stderr).toBe('')
      expect(linted.code).toBe(0)
    },
  )

  test('metrics say who leads, what there is, and what the signer has', async () => {
    await untilHolds('all is counted', () => metricsOf(stack()), counted)
    const balance = await eventually(
      'the balance after five deposits',
      () => metric(stack(), 'staking_operator_signer_balance_eth', { signer: SIGNER, network: 'local' }),
      (value) => value < 97_824,
    )
    expect(balance).toBeGreaterThan(97_823)
    expect(await metric(stack(), 'staking_operator_stalled_resources')).toBe(0)
  })
  function counted(text: string): void {
    expect(text).toContain('staking_operator_leader 1')
    expect(text).toContain('staking_operator_resources{kind="EthereumStake",phase="Confirmed"} 5')
    expect(text).toContain('staking_operator_amount_eth{kind="EthereumStake",network="local",phase="Confirmed"} 2176.000000001')
    for (const condition of ['Created', 'Verified', 'Broadcast', 'Confirmed', 'Ready'])
      expect(text).toContain(`staking_operator_time_to_condition_seconds_count{kind="EthereumStake",condition="${condition}"} 5`)
    expect(text).not.toContain('staking_operator_transactions_open{')
    expect(text).toMatch(new RegExp(`staking_operator_signer_balance_read_timestamp_seconds{signer="${SIGNER}",network="local"} [0-9.]+`))
    expect(text).toContain(`staking_operator_signer_needed_eth{signer="${SIGNER}",network="local"} `)
    expect(text).toContain('staking_operator_lease_transitions_total ')
    expect(text).toContain('staking_operator_informer_objects{resource="ethereumstakes"} 5')
    expect(text).toContain('staking_operator_informer_objects{resource="stakingtransactions"} 5')
    expect(text).toContain('staking_operator_informer_objects{resource="signernonces"} 5')
    expect(text).toContain(`staking_operator_signer_next_nonce{signer="${SIGNER}",network="local"} 5`)
    expect(text).toContain(`staking_operator_signer_in_flight{signer="${SIGNER}",network="local"} 0`)
    for (const event of ['attempt', 'sent', 'Landed'])
      expect(text).toContain(`staking_operator_transactions_total{network="local",purpose="Deposit",event="${event}"} 5`)
  }

  test('each log line is JSON with fixed keys', () => {
    const lines = wholeLinesOf(readFileSync(join(stack().dir, 'operator.log'), 'utf8'))
    const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(entries.length).toBeGreaterThan(20)
    for (const entry of entries) {
      expect(entry).toMatchObject({ level: expect.any(String), time: expect.any(String), program: 'operator', msg: expect.any(String) })
    }
    const ofOne = entries.filter(({ name }) => name === 'one')
    // What happens to money is written down line by line: it can be followed without the cluster.
    const audit = ofOne.filter((entry) => 'transaction' in entry)
    expect(audit.map(({ is }) => is)).toEqual(['attempt', 'sent', 'outcome'])
    for (const entry of audit)
      expect(entry).toMatchObject({
        kind: 'EthereumStake',
        namespace: 'default',
        uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
        transaction: expect.stringMatching(/^deposit-/),
        purpose: 'Deposit',
        amount: '32 ETH',
        signer: SIGNER,
        from: PAYER,
        network: 'local',
        hash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
        nonce: expect.any(Number),
      })
    const one = ofOne.filter((entry) => !('transaction' in entry))
    for (const entry of one) {
      expect(entry).toMatchObject({ kind: 'EthereumStake', namespace: 'default', name: 'one' })
      // The line about a visit that failed comes from the runtime, which knows the resource by its name only.
      if ('failures' in entry) continue
      expect(entry).toMatchObject({
        uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
        reconcileId: expect.stringMatching(/^[0-9a-f]{8}$/),
      })
    }
    expect(one.flatMap(({ step }) => (step === undefined ? [] : [step]))).toEqual(
      expect.arrayContaining(['CreateStake', 'VerifyDeposit', 'Transaction']),
    )
    const phases = one.flatMap(({ phase }) => (phase === undefined || phase === 'Prepared' ? [] : [phase]))
    // Phases that pass within moments are not each written.
    expect(['Pending', 'Created', 'Confirming', 'Confirmed'].filter((phase) => phases.includes(phase))).toEqual(phases)
    expect(phases.at(-1)).toBe('Confirmed')
  })
})

describe('while somebody intervenes', () => {
  test('a suspended stake does nothing until it is resumed', async () => {
    const { cluster, apiFaults } = stack()
    await whileNoMoneyMoves(stack(), async () => {
      const posts = apiFaults.calls('POST /v1/ethereum/stakes')
      await applyAll(cluster, [stake('suspended', { suspend: true })])
      const shown = await untilShows(cluster, 'suspended', 'Suspended', /spec\.suspend is true/)
      expect(shown.status?.phase).toBe('Suspended')
      expect(shown.status?.conditions).toHaveLength(ethereumStakeConditions.length)
      await staysFor(2_000, async () => apiFaults.calls('POST /v1/ethereum/stakes') - posts)
      expect(apiFaults.calls('POST /v1/ethereum/stakes')).toBe(posts)
      expect(await serviceStakes(stack(), 'suspended')).toEqual([])
    })
    await patchStake(cluster, 'suspended', { spec: { suspend: null } })
    await untilPaidOnce(stack(), 'suspended')
  })

  test('a confirmed stake stays ready when it is suspended', async () => {
    const { cluster } = stack()
    await patchStake(cluster, 'suspended', { spec: { suspend: true } })
    const now = await eventually(
      'the new generation is observed',
      () => getStake(cluster, 'suspended'),
      (value) => value?.status?.observedGeneration === value?.metadata.generation,
    )
    expect(seen(now)).toMatchObject({ ready: 'True', phase: 'Confirmed' })
  })

  test('the poke annotation asks for a look now, also at what waits for a person', async () => {
    const { cluster } = stack()
    const visits = () => metric(stack(), 'staking_operator_step_duration_seconds_count', { step: 'CreateStake', outcome: 'InvalidSpec' })
    await applyAll(cluster, [stake('mistyped', { withdrawalAddress: '0x70997970c51812dc3A010C7d01b50e0d17dc79C8' })])
    await untilStalls(cluster, 'mistyped', 'InvalidSpec', /EIP-55 checksum/)
    // What was written last leads to one more look.
    const before = await comesToRest(2_500, visits)
    await patchStake(cluster, 'mistyped', { metadata: { annotations: { [RECONCILE_ANNOTATION]: 'now' } } })
    await eventually('another look', visits, (value) => value > before)
    await deleteStake(cluster, 'mistyped')
    await untilGone(cluster, 'mistyped')
  })
})

describe('deletion', () => {
  test('before anything was sent, a stake goes at once', async () => {
    const { cluster } = stack()
    await whileNoMoneyMoves(stack(), async () => {
      await applyAll(cluster, [stake('early', { suspend: true })])
      await untilShows(cluster, 'early', 'Suspended', /./)
      await deleteStake(cluster, 'early')
      await untilGone(cluster, 'early')
    })
    const events = await eventually(
      'the event of the release',
      () => eventsOf(cluster, 'early'),
      (all) => all.some(({ reason }) => reason === 'Released'),
    )
    expect(events.find(({ reason }) => reason === 'Released')?.note).toContain('no transaction was ever made')
  })

  test('a stake that holds money waits, says how to let it go, and goes when that is confirmed', async () => {
    const { cluster } = stack()
    await whileNoMoneyMoves(stack(), async () => {
      await deleteStake(cluster, 'two')
      const waiting = await untilShows(cluster, 'two', 'Deleting', /32 ETH are staked with validator 0x/)
      expect(waiting.status?.phase).toBe('Deleting')
      const { message } = conditionOf(waiting, 'Ready')
      const command = /confirm: kubectl (annotate .+)$/.exec(message)?.[1]
      expect(command).toBeDefined()
      await staysFor(1_500, async () => (await getStake(cluster, 'two'))?.metadata.uid)
      // A wrong name confirms nothing.
      await patchStake(cluster, 'two', { metadata: { annotations: { [CONFIRM_DELETE_ANNOTATION]: 'one' } } })
      await staysFor(1_500, async () => (await getStake(cluster, 'two'))?.metadata.uid)
      await cluster.kubectlOk([...(command ?? '').split(' '), '--overwrite'])
      await untilGone(cluster, 'two')
    })
  })

  test('a prepared transaction that no node took is not sent any more: it is cancelled once somebody waits behind it', async () => {
    const { cluster, rpcFaults, anvil } = stack()
    const down = rpcFaults.when('eth_sendRawTransaction').always(httpStatus(500))
    await applyAll(cluster, [stake('unsent')])
    const prepared = await eventually(
      'a transaction is prepared',
      () => getStake(cluster, 'unsent'),
      (value) => value?.status?.transaction !== undefined && seen(value).reason === 'ChainUnavailable',
    )
    const { nonce = -1, hash } = prepared?.status?.transaction ?? {}
    await deleteStake(cluster, 'unsent')
    await untilShows(cluster, 'unsent', 'Deleting', /may still land; nothing more of it is signed/)
    down.remove()
    // A node that answered 500 may have taken it: nobody else needs the nonce, so nothing is signed.
    const calls = rpcFaults.calls('eth_sendRawTransaction')
    await staysFor(2_000, async () => rpcFaults.calls('eth_sendRawTransaction'))
    expect(rpcFaults.calls('eth_sendRawTransaction')).toBe(calls)

    const before = await moneyOf(stack())
    const nonces = await anvil.transactionCount(PAYER, 'latest')
    await applyAll(cluster, [stake('next')])
    const next = await untilPaidOnce(stack(), 'next')
    expect(next.status?.transaction?.nonce).toBe(nonce + 1)
    expect(next.status?.depositData?.pubkey).not.toBe(prepared?.status?.depositData?.pubkey)
    // Its cancel has used its nonce at finality: now nothing of it can ever land.
    await untilGone(cluster, 'unsent')
    // Two nonces were used: one by its cancel, one by the deposit of the next. That bytes were sent again is no third.
    expect(await anvil.depositCount()).toBe(before.deposits + 1)
    expect(await anvil.transactionCount(PAYER, 'latest')).toBe(nonces + 2)
    expect((await anvil.deposits()).map(({ pubkey }) => pubkey)).not.toContain(prepared?.status?.depositData?.pubkey)
    const { status } = await recordOf(cluster, 'unsent')
    // Nothing of it can land; and the lane soon sees that its resource is gone.
    expect(status).toMatchObject({ state: expect.stringMatching(/^(Waiting|Unclaimed)$/), closed: [{ nonce, by: 'Cancel' }] })
    expect(status?.attempts?.map((attempt) => attempt.kind)).toEqual(['Call', 'Cancel'])
    expect(status?.attempts?.[0]?.hash).toBe(hash)
  })
})

describe('a stake that comes back is not bought again', () => {
  /** Takes a resource out of the cluster as a lost etcd would: with its finalizer, past the operator. */
  async function lose(name: string) {
    const { cluster } = stack()
    const lost = await getStake(cluster, name)
    if (lost === undefined) throw new Error(`there is no stake ${name}`)
    await cluster.kubectlOk(['delete', 'ethereumstake', name, '--wait=false'])
    await patchStake(cluster, name, { metadata: { finalizers: null } }).catch((error: unknown) => {
      if (!String(error).includes('404')) throw error
    })
    await untilGone(cluster, name)
    return lost
  }

  test('restored from a backup without its status, it finds its deposit', async () => {
    const { cluster } = stack()
    await whileNoMoneyMoves(stack(), async () => {
      const lost = await lose('one')
      await applyAll(cluster, [stake('one', {}, { annotations: { [ORIGIN_ANNOTATION]: lost.metadata.annotations?.[ORIGIN_ANNOTATION] } })])
      const restored = await untilPaidOnce(stack(), 'one')
      expect(restored.metadata.uid).not.toBe(lost.metadata.uid)
      expect(restored.status?.stakeId).toBe(lost.status?.stakeId)
      expect(restored.status?.transaction?.minedHash).toBe(lost.status?.transaction?.minedHash)
    })
  })

  test('restored from a backup with its status, it goes on from there', async () => {
    const { cluster } = stack()
    await whileNoMoneyMoves(stack(), async () => {
      const lost = await lose('three')
      await applyAll(cluster, [
        stake(
          'three',
          { amountEth: '2048', suspend: true },
          { annotations: { [ORIGIN_ANNOTATION]: lost.metadata.annotations?.[ORIGIN_ANNOTATION] } },
        ),
      ])
      await eventually(
        'it is seen to be suspended',
        () => getStake(cluster, 'three'),
        (one) => one?.status?.conditions?.some(({ type, reason }) => type === 'Reconciling' && reason === 'Suspended') === true,
      )
      await patchStatus(cluster, 'three', lost.status)
      await patchStake(cluster, 'three', { spec: { suspend: null } })
      // The status that was restored says Ready of another resource: this one has been looked at when it says so of its generation.
      const restored = await untilHolds(
        'it is ready, and not suspended',
        () => getStake(cluster, 'three'),
        (shown) => {
          expect(shown?.status?.observedGeneration).toBe(shown?.metadata.generation)
          expect(seen(shown).ready).toBe('True')
        },
      )
      expect(restored?.status?.transaction).toEqual(lost.status?.transaction)
      await untilPaidOnce(stack(), 'three')
    })
  })

  test('restored in the middle, when its transaction was out and not mined, it sends no other', async () => {
    const { cluster, rpcFaults } = stack()
    // The node takes it and its answer is lost; what came to the status is lost too.
    const lostAnswer = rpcFaults.when('eth_sendRawTransaction').once({ kind: 'drop', afterPassing: true })
    const before = await moneyOf(stack())
    await applyAll(cluster, [stake('midway')])
    await eventually(
      'the transaction was sent',
      async () => lostAnswer.hits(),
      (hits) => hits === 1,
    )
    const hash = (
      await eventually(
        'it is written down',
        () => recordOf(cluster, 'midway'),
        ({ status }) => status?.attempts !== undefined,
      )
    ).status?.attempts?.[0]?.hash
    const lost = await lose('midway')
    await applyAll(cluster, [stake('midway', {}, { annotations: { [ORIGIN_ANNOTATION]: lost.metadata.annotations?.[ORIGIN_ANNOTATION] } })])
    const restored = await untilPaidOnce(stack(), 'midway')
    expect(hash).toMatch(/^0x/)
    expect(restored.status?.transaction?.minedHash).toBe(hash)
    expect((await moneyOf(stack())).deposits).toBe(before.deposits + 1)
  })

  test('deleted for good and applied again, it stalls and names the stake to adopt; adopting it makes it ready', async () => {
    const { cluster } = stack()
    await whileNoMoneyMoves(stack(), async () => {
      const lost = await lose('five')
      await applyAll(cluster, [stake('five', { withdrawalAddress: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8' })])
      const stalled = await untilStalls(cluster, 'five', 'AlreadyStaked', /set spec\.adopt\.stakeId to \S+;/)
      const stakeId = /set spec\.adopt\.stakeId to (\S+);/.exec(conditionOf(stalled, 'Stalled').message)?.[1]
      expect(stakeId).toBe(lost.status?.stakeId)
      await patchStake(cluster, 'five', { spec: { adopt: { stakeId } } })
      const adopted = await untilPaidOnce(stack(), 'five')
      expect(adopted.status?.transaction?.minedHash).toBe(lost.status?.transaction?.minedHash)
    })
  })

  test('a stake that another resource has cannot be adopted, nor one that does not match', async () => {
    const { cluster } = stack()
    await whileNoMoneyMoves(stack(), async () => {
      const stakeId = (await getStake(cluster, 'four'))?.status?.stakeId
      await applyAll(cluster, [
        stake('thief', { amountEth: '32.000000001', adopt: { stakeId } }),
        stake('misfit', { amountEth: '33', adopt: { stakeId } }),
      ])
      await untilStalls(
        cluster,
        'thief',
        'AdoptionMismatch',
        /does this for EthereumStake default\/four\. It is done once, so nothing is signed for this resource/,
      )
      await untilStalls(cluster, 'misfit', 'AdoptionMismatch', /does not match this resource's spec: .*amount.* is not 33 ETH/)
      for (const name of ['thief', 'misfit']) {
        await deleteStake(cluster, name)
        await untilGone(cluster, name)
      }
    })
  })

  test('a copy stalls by itself, and starts afresh once its origin is dropped', async () => {
    const { cluster } = stack()
    const original = await getStake(cluster, 'four')
    const origin = original?.metadata.annotations?.[ORIGIN_ANNOTATION]
    await whileNoMoneyMoves(stack(), async () => {
      await applyAll(cluster, [namespace('elsewhere'), stake('copy', {}, { annotations: { [ORIGIN_ANNOTATION]: origin } })])
      await applyAll(cluster, [stake('four', {}, { namespace: 'elsewhere', annotations: { [ORIGIN_ANNOTATION]: origin } })])
      await untilStalls(cluster, 'copy', 'CopiedResource', /is a copy of default\/four\. To start afresh, remove it: kubectl annotate/)
      await untilStalls(cluster, 'four', 'CopiedResource', /is a copy of default\/four/, { space: 'elsewhere' })
      expect(seen(await getStake(cluster, 'four')).ready, 'the original').toBe('True')
      expect(await serviceStakes(stack(), 'copy')).toEqual([])
    })
    const { message } = conditionOf((await getStake(cluster, 'copy')) ?? raise(), 'Stalled')
    const command = /remove it: kubectl (annotate \S+ \S+ -n \S+ \S+-)/.exec(message)?.[1]
    await cluster.kubectlOk((command ?? '').split(' '))
    const fresh = await untilPaidOnce(stack(), 'copy')
    expect(fresh.status?.depositData?.pubkey).not.toBe(original?.status?.depositData?.pubkey)
    await expectPaidOnce(stack(), original ?? raise())
  })

  test('what the staking API has lost with its database is known to it again, and stays as it was paid', async () => {
    const { cluster, service, dir } = stack()
    const [data, copy] = ['service-data', 'service-copy'].map((name) => join(dir, name)) as [string, string]
    await service.stop()
    cpSync(data, copy, { recursive: true })
    await service.start()
    await applyAll(cluster, [stake('after-the-copy')])
    const paid = await untilPaidOnce(stack(), 'after-the-copy')

    await service.stop()
    rmSync(data, { recursive: true })
    renameSync(copy, data)
    await service.start()
    expect(await serviceStakes(stack(), 'after-the-copy')).toEqual([])
    const again = await untilHolds(
      'it is known under another id, and looked at',
      async () => (await getStake(cluster, 'after-the-copy')) ?? raise(),
      (value) => {
        expect(value.status?.stakeId).not.toBe(paid.status?.stakeId)
        expect(conditionOf(value, 'Observed').status).toBe('True')
      },
    )
    expect(again.status).toMatchObject({
      depositData: paid.status?.depositData,
      transaction: { minedHash: paid.status?.transaction?.minedHash },
    })
    expect(seen(again).ready).toBe('True')
    expect((await recordOf(cluster, 'after-the-copy')).spec.apiId).toBe(again.status?.stakeId)
    await expectPaidOnce(stack(), again)
    expect((await serviceStakes(stack(), 'after-the-copy')).map(({ stakeId }) => stakeId)).toEqual([again.status?.stakeId])
  })
})

function raise(): never {
  throw new Error('it is not there')
}

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Progress } from '../../../src/operator/engine/progress.ts'
import { ethereumStakeStatus } from '../../../src/operator/kinds/ethereum-stake/status.ts'
import { stakingSignerStatus } from '../../../src/operator/kinds/staking-signer/status.ts'
import type { EthereumStake, EthereumStakeStatus } from '../../../src/resources/ethereum-stake.ts'
import { RECONCILE_ANNOTATION } from '../../../src/resources/meta.ts'
import type { StakingSigner } from '../../../src/resources/staking-signer.ts'
import { runAsArgoCd } from '../../cluster/argolua.ts'
import { phases } from './phases.ts'

/**
 * The scripts that Argo CD is given, run as it runs them (by the interpreter that it embeds, with the libraries that it opens, which are few) on what the
 * operator itself says in each phase.
 */
interface Health {
  readonly status: string
  readonly message: string
}
const folder = join(import.meta.dirname, '../../../examples/argocd')
const stopping = new AbortController()
beforeAll(async () => {
  // The first one builds the interpreter.
  await runAsArgoCd([], stopping.signal)
}, 300_000)
afterAll(() => stopping.abort())

/** What a script makes of objects. @throws with what the interpreter says */
async function runAll<T>(script: string, objects: readonly object[]): Promise<readonly T[]> {
  const text = readFileSync(join(folder, `${script}.lua`), 'utf8')
  const outcomes = await runAsArgoCd(
    objects.map((object) => ({ script: text, object })),
    AbortSignal.any([stopping.signal, AbortSignal.timeout(60_000)]),
  )
  return outcomes.map((outcome) => {
    if ('error' in outcome) throw new Error(`${script}.lua: ${outcome.error}`)
    return outcome.result as T
  })
}
async function run<T>(script: string, object: object): Promise<T> {
  const [result] = await runAll<T>(script, [object])
  if (result === undefined) throw new Error(`${script}.lua said nothing`)
  return result
}

const now = new Date(Date.UTC(2030, 0, 1))
const hash = `0x${'aa'.repeat(32)}` as const
const stake = (spec: object = {}, metadata: object = {}): EthereumStake =>
  ({
    apiVersion: 'staking.dev/v1alpha1',
    kind: 'EthereumStake',
    metadata: { name: 'one', namespace: 'team-a', uid: 'u', resourceVersion: '1', generation: 2, ...metadata },
    spec: {
      network: 'hoodi',
      amountEth: '32',
      withdrawalAddress: `0x${'11'.repeat(20)}`,
      credentialsType: 'Compounding',
      signer: 'main',
      ...spec,
    },
  }) as EthereumStake
const transaction = (change: object) =>
  ({
    chainId: 1,
    from: hash,
    to: hash,
    valueWei: '1',
    dataHash: hash,
    hash,
    nonce: 0,
    gas: '1',
    maxFeePerGasWei: '1',
    maxPriorityFeePerGasWei: '1',
    preparedAt: '',
    state: 'Prepared',
    ...change,
  }) as never
const verified: EthereumStakeStatus = {
  stakeId: 's',
  depositData: {
    pubkey: `0x${'22'.repeat(48)}` as const,
    withdrawalCredentials: hash,
    amountGwei: '32000000000',
    signature: hash,
    depositDataRoot: hash,
  },
  verifiedRoot: hash,
}
const mined = { broadcastHash: hash, minedHash: hash, blockNumber: 7 }
const confirmed: EthereumStakeStatus = { ...verified, transaction: transaction({ ...mined, state: 'Confirmed' }) }
const seen = (state: string): EthereumStakeStatus => ({
  ...confirmed,
  validator: { pubkey: `0x${'22'.repeat(48)}` as const, status: state },
})
const step: Progress = { at: 'step', step: 'Transaction' }
const settled: Progress = { at: 'settled' }
const halted = (kind: 'wait' | 'stall'): Progress =>
  ({
    at: 'halted',
    step: 'Transaction',
    verdict: { kind, reason: kind === 'wait' ? 'FeeTooHigh' : 'NamespaceNotAllowed', message: 'It says why.', recheck: true, afterMs: 1 },
  }) as Progress
const said = (resource: EthereumStake, status: EthereumStakeStatus, progress: Progress): EthereumStake => ({
  ...resource,
  status: ethereumStakeStatus(resource, { ...status, conditions: [] }, progress, now),
})

describe('by the interpreter of Argo CD', () => {
  test.each<{ what: string; object: object; health: string; message: RegExp }>([
    {
      what: 'that nobody has seen',
      object: { ...stake(), status: { observedGeneration: -1 } },
      health: 'Progressing',
      message: /not seen it yet/,
    },
    { what: 'without a status', object: stake(), health: 'Progressing', message: /not seen it yet/ },
    {
      what: 'whose spec has changed since',
      object: { ...said(stake(), confirmed, settled), metadata: { ...stake().metadata, generation: 3 } },
      health: 'Progressing',
      message: /newest spec/,
    },
    { what: 'that is being made', object: said(stake(), verified, step), health: 'Progressing', message: /Making the deposit transaction/ },
    { what: 'that waits', object: said(stake(), verified, halted('wait')), health: 'Progressing', message: /It says why/ },
    { what: 'that needs a person', object: said(stake(), verified, halted('stall')), health: 'Degraded', message: /It says why/ },
    {
      what: 'that is sent',
      object: said(stake(), { ...verified, transaction: transaction({ broadcastHash: hash, state: 'Broadcast' }) }, halted('wait')),
      health: 'Progressing',
      message: /It says why/,
    },
    { what: 'that is confirmed', object: said(stake(), confirmed, settled), health: 'Healthy', message: /32 ETH are deposited/ },
    { what: 'whose validator is active', object: said(stake(), seen('active_ongoing'), settled), health: 'Healthy', message: /32 ETH/ },
    {
      what: 'whose validator was slashed',
      object: said(stake(), seen('active_slashed'), settled),
      health: 'Degraded',
      message: /was slashed/,
    },
    {
      what: 'whose slashed validator has exited',
      object: said(stake(), seen('exited_slashed'), settled),
      health: 'Degraded',
      message: /was slashed/,
    },
    {
      what: 'whose transaction was reverted',
      object: said(stake(), { ...verified, transaction: transaction({ ...mined, state: 'Failed' }) }, settled),
      health: 'Degraded',
      message: /was reverted/,
    },
    {
      what: 'that somebody else came before',
      object: said(stake(), { ...verified, transaction: transaction({ ...mined, state: 'FrontRun' }) }, settled),
      health: 'Degraded',
      message: /came first/,
    },
    {
      what: 'that is suspended before it is paid',
      object: said(stake({ suspend: true }), verified, { at: 'suspended' }),
      health: 'Suspended',
      message: /suspend/,
    },
    {
      what: 'that is suspended and paid',
      object: said(stake({ suspend: true }), confirmed, { at: 'suspended' }),
      health: 'Healthy',
      message: /32 ETH/,
    },
    {
      what: 'that is being deleted and holds money',
      object: said(stake({}, { deletionTimestamp: '2030-01-01T00:00:00Z' }), confirmed, { at: 'deleting', message: 'It holds 32 ETH.' }),
      health: 'Progressing',
      message: /It holds 32 ETH/,
    },
  ])('a stake $what is $health', async ({ object, health, message }) => {
    const found = await run<Health>('health', object)
    expect(found.status).toBe(health)
    expect(found.message).toMatch(message)
  })

  const signer = (change: object = {}): StakingSigner =>
    ({
      apiVersion: 'staking.dev/v1alpha1',
      kind: 'StakingSigner',
      metadata: { name: 'main', uid: 'u', resourceVersion: '1', generation: 1 },
      spec: {
        chain: 'Ethereum',
        keyName: 'main',
        address: `0x${'11'.repeat(20)}`,
        policy: { allowedNamespaces: { names: [] }, maxPerTransaction: '32' },
        ...change,
      },
    }) as unknown as StakingSigner
  const need = { controls: new Map(), hasUsers: false }
  const facts = {
    ...{ key: { address: `0x${'11'.repeat(20)}` }, matches: true, duplicateOf: undefined, unreadable: undefined, networks: [] },
    ...{ need, isInFlight: false },
  }
  test.each<{ what: string; facts: Parameters<typeof stakingSignerStatus>[1]; health: string }>([
    { what: 'that can be used', facts, health: 'Healthy' },
    { what: 'whose key is another', facts: { ...facts, matches: false }, health: 'Degraded' },
    {
      what: 'whose key somebody else uses',
      facts: {
        ...facts,
        networks: [{ name: 'hoodi', funds: { balance: 1n, needed: 0n, at: new Date(0), isStale: false }, foreign: { nonce: 3, hash } }],
      },
      health: 'Degraded',
    },
  ])('a signer $what is $health', async ({ facts: found, health }) => {
    expect((await run<Health>('health', { ...signer(), status: stakingSignerStatus(signer(), found, now) })).status).toBe(health)
  })

  /** By what kstatus has words for. */
  const healthOf = { Current: /^Healthy$/, Failed: /^Degraded$/, InProgress: /^(Progressing|Suspended)$/, Terminating: /^Progressing$/ }
  test('each kind in each phase is as healthy as kstatus takes it for, and says why', async () => {
    const found = await runAll<Health>(
      'health',
      phases.map(({ seen }) => seen),
    )
    phases.forEach(({ what, is }, at) => {
      const { status = '', message = '' } = found[at] ?? {}
      expect(status, what).toMatch(healthOf[is as keyof typeof healthOf])
      if (status !== 'Healthy') expect(message, what).not.toBe('')
    })
  })

  test('the actions are those that the resource has now, and change what they say and nothing else', async () => {
    const suspended = stake({ suspend: true })
    type Actions = Readonly<Record<'reconcile' | 'suspend' | 'resume', { readonly disabled: boolean }>>
    const offered = (suspend: boolean): Actions => ({
      reconcile: { disabled: false },
      suspend: { disabled: suspend },
      resume: { disabled: !suspend },
    })
    expect(await run<Actions>('discovery', suspended)).toEqual(offered(true))
    expect(await run<Actions>('discovery', stake())).toEqual(offered(false))
    expect(await run('suspend', stake())).toEqual(suspended)
    expect(await run('resume', suspended)).toEqual(stake())
    const asked = await run<EthereumStake>('reconcile', stake())
    const at = asked.metadata.annotations?.[RECONCILE_ANNOTATION] ?? ''
    expect(at).toMatch(/^20\d\d-\d\d-\d\dT[\d:]{8}Z$/)
    expect(asked).toEqual(stake({}, { annotations: { [RECONCILE_ANNOTATION]: at } }))
  })

  test('a script that asks for more than Argo CD gives it fails here as it would there', async () => {
    const says = async (script: string) => await runAsArgoCd([{ script, object: stake() }], stopping.signal)
    for (const script of [
      'return { at = os.date() }',
      'return { s = string.upper("a") }',
      'return { f = io.open("/etc/passwd") }',
      'while true do end',
    ])
      expect(await says(script), script).toEqual([{ error: expect.any(String) }])
    expect(await says('local os = require("os") return { ended = os.exit == nil }')).toEqual([{ result: { ended: true } }])
  })
})

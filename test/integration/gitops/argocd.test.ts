import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Progress } from '../../../src/operator/engine/progress.ts'
import { ethereumStakeStatus } from '../../../src/operator/kinds/ethereum-stake/status.ts'
import { stakingSignerStatus } from '../../../src/operator/kinds/staking-signer/status.ts'
import type { EthereumStake, EthereumStakeStatus } from '../../../src/resources/ethereum-stake.ts'
import { RECONCILE_ANNOTATION } from '../../../src/resources/meta.ts'
import type { StakingSigner } from '../../../src/resources/staking-signer.ts'
import { type Asked, findArgoCd } from '../../cluster/argocd.ts'
import { phases } from './phases.ts'

/**
 * Argo CD's own code, given the ConfigMap of the examples, on what the operator itself says in each phase: it finds the script of a kind, runs it with the
 * libraries that it opens, which are few, and takes what it returns. Where that was not built (`node scripts/argocd.ts`, which `.ci/run` does), the interpreter that
 * it embeds runs the same scripts.
 */
interface Health {
  readonly status: string
  readonly message: string
}
interface Action {
  readonly name: string
  readonly disabled?: boolean
}
interface Impact {
  readonly resource: EthereumStake
  readonly operation: string
}
const stopping = new AbortController()
const argoCd = findArgoCd()
beforeAll(async () => {
  // Where it is the interpreter, the first one builds it.
  await argoCd.ask([], stopping.signal)
}, 300_000)
afterAll(() => stopping.abort())

/** What Argo CD answers. @throws with what it says is wrong */
async function ask<T>(...runs: readonly Asked[]): Promise<readonly T[]> {
  const answers = await argoCd.ask(runs, AbortSignal.any([stopping.signal, AbortSignal.timeout(60_000)]))
  return answers.map((answer) => {
    if ('error' in answer) throw new Error(answer.error)
    return answer.result as T
  })
}
async function one<T>(run: Asked): Promise<T> {
  const [result] = await ask<T>(run)
  if (result === undefined || result === null) throw new Error(`Argo CD knows nothing of ${run.ask}`)
  return result
}
const healthIn = async (object: object): Promise<Health> => one<Health>({ ask: 'health', object })
/** What an action makes of an object: it is to be patched, and nothing else. */
async function afterwards(action: string, object: object): Promise<EthereumStake> {
  const impacts = await one<readonly Impact[]>({ ask: 'action', action, object })
  expect(impacts.map(({ operation }) => operation)).toEqual(['patch'])
  return impacts[0]?.resource as EthereumStake
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

describe(argoCd.isOwn ? 'by the code of Argo CD' : 'by the interpreter of Argo CD', () => {
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
    const found = await healthIn(object)
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
  const need = { controls: new Map(), awaits: new Set<string>(), hasUsers: false }
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
    expect((await healthIn({ ...signer(), status: stakingSignerStatus(signer(), found, now) })).status).toBe(health)
  })

  /** By what kstatus has words for. */
  const healthOf = { Current: /^Healthy$/, Failed: /^Degraded$/, InProgress: /^(Progressing|Suspended)$/, Terminating: /^Progressing$/ }
  test('each kind in each phase is as healthy as kstatus takes it for, and says why', async () => {
    const found = await ask<Health | null>(...phases.map(({ seen }): Asked => ({ ask: 'health', object: seen })))
    phases.forEach(({ what, is, health }, at) => {
      // Without a script of its own, a kind has no health.
      const { status = '', message = '' } = found[at] ?? {}
      expect(status, what).toMatch(healthOf[is as keyof typeof healthOf])
      // What is Ready is healthy, whatever is asked of it besides.
      if (health !== undefined && is !== 'Current') expect(status, what).toBe(health)
      if (status !== 'Healthy') expect(message, what).not.toBe('')
    })
  })

  test('the actions are those that the resource has now, and change what they say and nothing else', async () => {
    const suspended = stake({ suspend: true })
    const offered = async (object: object) =>
      (await one<readonly Action[]>({ ask: 'actions', object })).map(({ name, disabled = false }) => `${name} ${!disabled}`).toSorted()
    expect(await offered(suspended)).toEqual(['reconcile true', 'resume true', 'suspend false'])
    expect(await offered(stake())).toEqual(['reconcile true', 'resume false', 'suspend true'])
    expect(await afterwards('suspend', stake())).toEqual(suspended)
    expect(await afterwards('resume', suspended)).toEqual(stake())
    const asked = await afterwards('reconcile', stake())
    const at = asked.metadata.annotations?.[RECONCILE_ANNOTATION] ?? ''
    expect(at).toMatch(/^20\d\d-\d\d-\d\dT[\d:]{8}Z$/)
    expect(asked).toEqual(stake({}, { annotations: { [RECONCILE_ANNOTATION]: at } }))
  })

  test('every kind that people apply has the actions, and the signer has none', async () => {
    const people = ['EthereumStake', 'ValidatorExit', 'ValidatorWithdrawal', 'SolanaStake']
    for (const kind of people) {
      const object = { ...stake({}, { labels: { a: 'b' } }), kind }
      const shown = await one<readonly Action[]>({ ask: 'actions', object })
      expect(shown.map(({ name }) => name).toSorted(), kind).toEqual(['reconcile', 'resume', 'suspend'])
      const made = await afterwards('suspend', object)
      expect(made, kind).toEqual({ ...object, spec: { ...object.spec, suspend: true } })
    }
    const [answer] = await argoCd.ask([{ ask: 'actions', object: { ...stake(), kind: 'StakingSigner' } }], stopping.signal)
    expect(answer).toEqual({ error: expect.stringContaining('no action discovery script') })
  })

  const why = argoCd.isOwn ? '' : ' (skipped: only the code of Argo CD does that; node scripts/argocd.ts builds it)'
  test.skipIf(!argoCd.isOwn)(
    `what is empty stays what it is, and a kind that the ConfigMap does not name has no health${why}`,
    async () => {
      const object = stake({}, { annotations: {}, finalizers: [] })
      expect(await afterwards('suspend', object)).toEqual({ ...object, spec: { ...object.spec, suspend: true } })
      const unknown = { ask: 'health', object: { ...stake(), kind: 'StakingTransaction' } } as const
      expect(await ask<Health | null>(unknown)).toEqual([null])
    },
  )

  test('a script that asks for more than Argo CD gives it fails here as it would there', async () => {
    const says = async (script: string) => await argoCd.ask([{ ask: 'script', script, object: stake() }], stopping.signal)
    for (const script of [
      'obj.at = os.date() return obj',
      'obj.s = string.upper("a") return obj',
      'obj.f = io.open("/etc/passwd") return obj',
      'while true do end',
      'return 1',
    ])
      expect(await says(script), script).toEqual([{ error: expect.any(String) }])
    const [safe] = await ask<readonly Impact[]>({
      ask: 'script',
      script: 'local os = require("os") obj.metadata.name = tostring(os.exit == nil) return obj',
      object: stake(),
    })
    expect(safe?.[0]?.resource.metadata.name).toBe('true')
  })
})

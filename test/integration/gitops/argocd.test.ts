import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Progress } from '../../../src/operator/engine/progress.ts'
import { ethereumStakeStatus } from '../../../src/operator/kinds/ethereum-stake/status.ts'
import { stakingSignerStatus } from '../../../src/operator/kinds/staking-signer/status.ts'
import type { EthereumStake, EthereumStakeStatus } from '../../../src/resources/ethereum-stake.ts'
import { RECONCILE_ANNOTATION } from '../../../src/resources/meta.ts'
import type { StakingSigner } from '../../../src/resources/staking-signer.ts'
import { findOnPath } from '../../cluster/process.ts'
import { runToEnd } from '../../cluster/run.ts'
import { phases } from './phases.ts'

/**
 * The scripts that Argo CD is given, run by Lua 5.1, whose language its interpreter speaks, on what the operator itself says in each phase. `.ci/run` installs it
 * (Debian's package `lua5.1`).
 */
const lua = findOnPath('lua5.1', process.env.PATH ?? '')
const folder = join(import.meta.dirname, '../../../examples/argocd')
let dir: string
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'argocd-'))
})
afterAll(() => rmSync(dir, { recursive: true, force: true }))

/** A value as a Lua expression. */
function luaOf(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map(luaOf).join(', ')}}`
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .filter(([, one]) => one !== undefined)
      .map(([name, one]) => `[${luaOf(name)}] = ${luaOf(one)}`)
      .join(', ')}}`
  return typeof value === 'string'
    ? `"${[...Buffer.from(value)].map((byte) => `\\${String(byte).padStart(3, '0')}`).join('')}"`
    : String(value)
}

/** What a script makes of an object: `expression` of its result, as text. */
async function run(script: string, object: object, expression: string): Promise<string> {
  const file = join(dir, 'run.lua')
  writeFileSync(
    file,
    `obj = ${luaOf(object)}\nlocal result = dofile(${luaOf(join(folder, `${script}.lua`))})\nio.write(tostring(${expression}))\n`,
  )
  const { code, stdout, stderr } = await runToEnd({ command: lua ?? '', args: [file], signal: AbortSignal.timeout(20_000) })
  expect(code, stderr).toBe(0)
  return stdout
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

describe.skipIf(lua === undefined)(`by Lua 5.1${lua === undefined ? ' (skipped: install lua5.1)' : ''}`, () => {
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
    expect(await run('health', object, 'result.status')).toBe(health)
    expect(await run('health', object, 'result.message')).toMatch(message)
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
  const facts = { key: { address: `0x${'11'.repeat(20)}` }, matches: true, duplicateOf: undefined, unreadable: undefined, networks: [] }
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
    expect(await run('health', { ...signer(), status: stakingSignerStatus(signer(), found, now) }, 'result.status')).toBe(health)
  })

  /** By what kstatus has words for. */
  const healthOf = { Current: /^Healthy$/, Failed: /^Degraded$/, InProgress: /^(Progressing|Suspended)$/, Terminating: /^Progressing$/ }
  test('each kind in each phase is as healthy as kstatus takes it for, and says why', { timeout: 240_000 }, async () => {
    for (const { what, seen, is } of phases) {
      const health = await run('health', seen, 'result.status .. " " .. result.message')
      const [, status = '', message = ''] = /^(\w+) (.*)$/s.exec(health) ?? []
      expect(status, what).toMatch(healthOf[is as keyof typeof healthOf])
      if (status !== 'Healthy') expect(message, what).not.toBe('')
    }
  })

  test('the actions are those that the resource has now, and change what they say and nothing else', async () => {
    const suspended = stake({ suspend: true })
    expect(await run('discovery', suspended, 'result.suspend.disabled')).toBe('true')
    expect(await run('discovery', suspended, 'result.resume.disabled')).toBe('false')
    expect(await run('discovery', stake(), 'result.suspend.disabled')).toBe('false')
    expect(await run('suspend', stake(), 'result.spec.suspend')).toBe('true')
    expect(await run('resume', suspended, 'result.spec.suspend')).toBe('nil')
    expect(await run('resume', suspended, 'result.spec.amountEth')).toBe('32')
    expect(await run('reconcile', stake(), `result.metadata.annotations["${RECONCILE_ANNOTATION}"]`)).toMatch(
      /^20\d\d-\d\d-\d\dT[\d:]{8}Z$/,
    )
  })
})

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openCluster } from '../../../src/inspect/cluster.ts'
import { makePlan, type PlanOptions } from '../../../src/inspect/plan/plan.ts'
import type { Plan } from '../../../src/inspect/plan/planned.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { type Anvil, startAnvil } from '../../chains/anvil.ts'
import { untilEstablished } from '../../cluster/apply.ts'
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts'
import { pageCommands } from '../../cluster/page-commands.ts'
import { runToEnd } from '../../cluster/run.ts'
import { COMPILE_CACHE } from '../../stack/compile-cache.ts'
import {
  namespace,
  OTHER_ADDRESS,
  PAYER,
  signer,
  solanaSigners,
  solanaStake,
  stake,
  validatorExit,
  validatorWithdrawal,
  WITHDRAWAL_ADDRESS,
} from '../../stack/resources.ts'
import { kubectlEntry, mainEntry, NETWORK } from '../../stack/stack.ts'

/** A plan against a real API server that writes down every request, and a real chain. */
let cluster: ControlPlane
let anvil: Anvil
let dir: string
const never = new AbortController().signal

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'plan-'))
  const policy = join(dir, 'audit-policy.yaml')
  writeFileSync(
    policy,
    JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages: ['RequestReceived'], rules: [{ level: 'Metadata' }] }),
  )
  const [plane, chain] = await Promise.all([
    startControlPlane({ apiServerArgs: [`--audit-policy-file=${policy}`, `--audit-log-path=${join(dir, 'audit.log')}`] }),
    startAnvil({ mining: 'manual', accounts: 2 }),
  ])
  cluster = plane
  anvil = chain
  await cluster.kubectlOk(['apply', '-f', new URL('../../../crds', import.meta.url).pathname])
  await untilEstablished(cluster)
  const networks = [
    {
      name: NETWORK,
      chain: 'Ethereum',
      rpcUrls: [anvil.url],
      chainId: anvil.chainId,
      depositContractAddress: anvil.depositContract,
      genesisForkVersion: '0x00000000',
    },
  ]
  // The staking API is asked nothing: there is none, nor a key.
  writeFileSync(join(dir, 'networks.yaml'), JSON.stringify({ stakingApi: { url: 'http://127.0.0.1:1', apiKeyFile: '/nowhere' }, networks }))
  await anvil.mine(3)
})
afterAll(async () => {
  await Promise.all([cluster?.stop(), anvil?.stop()])
  rmSync(dir, { recursive: true, force: true })
})

interface AuditEvent {
  readonly verb: string
  readonly requestURI: string
  readonly userAgent?: string
  readonly objectRef?: { readonly resource?: string; readonly apiGroup?: string }
}
/** What the plan has asked of the API server, by the API server's own log. */
const audited = (who: string): readonly AuditEvent[] =>
  readFileSync(join(dir, 'audit.log'), 'utf8')
    .split('\n')
    // The last line may be half written.
    .slice(0, -1)
    .map((line) => JSON.parse(line) as AuditEvent)
    .filter(({ userAgent = '' }) => userAgent.startsWith(`kubectl-staking/${who}`))

let files = 0
const manifests = (objects: readonly unknown[]): string => {
  const file = join(dir, `manifests-${files++}.json`)
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
  return file
}
const planWith = (objects: readonly unknown[], more: Partial<PlanOptions> = {}): Promise<Plan> =>
  makePlan(
    {
      paths: [manifests(objects)],
      recursive: false,
      namespace: undefined,
      networksFile: undefined,
      server: undefined,
      clock: systemClock,
      ...more,
    },
    never,
  )
async function onServer(
  objects: readonly unknown[],
  kubeconfig = cluster.adminKubeconfigPath,
  more: Partial<PlanOptions> = {},
  who = 'test',
): Promise<Plan> {
  const opened = openCluster({ kubeconfig }, { clock: systemClock, userAgent: `kubectl-staking/${who}` })
  try {
    const lease = { namespace: 'staking-system', name: 'staking-operator' }
    return await planWith(objects, { server: { cluster: opened, fieldManager: 'kubectl', lease }, ...more })
  } finally {
    await opened.close()
  }
}
const cli = (...args: readonly string[]) =>
  runToEnd({
    command: process.execPath,
    args: [kubectlEntry, 'plan', ...args],
    env: { ...COMPILE_CACHE, KUBECONFIG: cluster.adminKubeconfigPath },
    signal: AbortSignal.timeout(60_000),
  })
const actions = ({ resources }: Plan) => resources.map(({ action, name }) => `${action} ${name}`)

const pubkey = `0x${'ab'.repeat(48)}`
const byKey = { network: NETWORK, pubkey }
const bad: readonly (readonly [string, unknown])[] = [
  ['too little', stake('bad', { amountEth: '31.9' })],
  ['wei', stake('bad', { amountEth: '32000000000000000000' })],
  ['a number', stake('bad', { amountEth: 32 })],
  ['an exponent', stake('bad', { amountEth: '3.2e1' })],
  ['more than Execution takes', stake('bad', { amountEth: '33', credentialsType: 'Execution' })],
  ['an enum', stake('bad', { credentialsType: '0x01' })],
  ['the zero address', stake('bad', { withdrawalAddress: `0x${'0'.repeat(40)}` })],
  ['a precompile', stake('bad', { withdrawalAddress: `0x${'0'.repeat(38)}0B` })],
  ['a system contract in lower case', stake('bad', { withdrawalAddress: '0x00000961ef480eb55e80d19ad83579a64c007002' })],
  ['an unknown field', stake('bad', { amount: '32' })],
  ['a null field', stake('bad', { maxFeePerGasGwei: null })],
  ['an approver with a line break', signer({ policy: { approval: { by: [{ group: 'a\nb' }] } } }, 'bad')],
  ['an approver who is everybody', signer({ policy: { approval: { by: [{ group: 'system:authenticated' }] } } }, 'bad')],
  ['a field that lacks', stake('bad', { network: undefined })],
  ['a long network', stake('bad', { network: 'a'.repeat(64) })],
  ['a name with capitals', stake('Bad')],
  ['a label that is none', stake('bad', {}, { labels: { team: 'a b' } })],
  ['both amounts', validatorWithdrawal('bad', byKey, '2000000000', { amountEth: '2' })],
  ['a small amount', validatorWithdrawal('bad', byKey, '1000')],
  ['more than a uint64', validatorWithdrawal('bad', byKey, '18446744073709551616')],
  ['a full exit by withdrawal', validatorWithdrawal('bad', byKey, '0')],
  ['a validator in no way', validatorExit('bad', {} as never)],
  ['a key that is cut short', validatorExit('bad', { network: NETWORK, pubkey: pubkey.slice(0, 20) })],
  ['lamports with decimals', solanaStake('bad', { amountLamports: '1.5' })],
  ['a destination that is a program', solanaStake('bad', { destination: 'Vote111111111111111111111111111111111111111' })],
  ['a signer of the wrong form', signer({ chain: 'Solana' }, 'bad')],
  ['a window over a year', signer({ policy: { limits: [{ window: '366d', maxCount: 1 }] } }, 'bad')],
  ['a limit of nothing', signer({ policy: { limits: [{ window: '1d' }] } }, 'bad')],
  ['a limit of 0', signer({ policy: { limits: [{ window: '1d', maxTotalEth: '0.0' }] } }, 'bad')],
  ['a limit in another coin', signer({ policy: { limits: [{ window: '1d', maxTotalSol: '1' }] } }, 'bad')],
  [
    'two limits of one window',
    signer(
      {
        policy: {
          limits: [
            { window: '1d', maxCount: 1 },
            { window: '1d', maxCount: 2 },
          ],
        },
      },
      'bad',
    ),
  ],
  [
    'two limits of windows of one length',
    signer(
      {
        policy: {
          limits: [
            { window: '24h', maxCount: 1 },
            { window: '1d', maxCount: 2 },
          ],
        },
      },
      'bad',
    ),
  ],
  ['an approver in two spellings', signer({ policy: { approval: { by: [{ user: 'carol' }, { user: 'Carol' }] } } }, 'bad')],
  ['a namespace twice', signer({ policy: { allowedNamespaces: { names: ['a', 'a'] } } }, 'bad')],
]
const good: readonly (readonly [string, unknown])[] = [
  ['a stake', stake('good')],
  ['9 decimals', stake('good', { amountEth: '32.000000001', maxFeePerGasGwei: '2.5' })],
  ['an adoption', stake('good', { adopt: { stakeId: '0123456789abcdef' }, suspend: true })],
  ['a null field with a default', stake('good', { credentialsType: null })],
  ['an exit', validatorExit('good', { stakeRef: { name: 'a' } })],
  ['a withdrawal', validatorWithdrawal('good', byKey, '18446744073709551615')],
  ['a small withdrawal that is meant', validatorWithdrawal('good', byKey, '1', { allowSmallAmount: true })],
  ['a Solana stake', solanaStake('good')],
  [
    'a signer with limits',
    signer({ policy: { limits: [{ window: '365d', maxCount: 1, maxTotalEth: '320.5', per: 'Namespace' }] } }, 'good'),
  ],
  ['Solana signers', solanaSigners()[0]],
  ['a signer that asks for approvals', signer({ policy: { approval: { aboveEth: '32', by: [{ group: 'prüfer' }], count: 2 } } }, 'good')],
]

describe('the rules that a plan tries by itself are those of the API server', () => {
  test('what it refuses is refused there too, and the other way round', async () => {
    const verdicts = async (name: string, object: unknown) => {
      const refusals = ({ resources }: Plan) =>
        resources[0]?.refusals.filter(({ by }) => by !== 'operator').map(({ message }) => message) ?? []
      const [alone, asked] = [refusals(await planWith([object])), refusals(await onServer([object]))]
      return { name, alone, asked }
    }
    const found = []
    for (const [name, object] of [...bad, ...good]) found.push(await verdicts(name, object))
    expect(found.filter(({ alone, asked }) => alone.length > 0 !== asked.length > 0)).toEqual([])
    expect(found.filter(({ alone }) => alone.length > 0).map(({ name }) => name)).toEqual(bad.map(([name]) => name))
    // The words of a CEL rule are the same, whoever tries it. Those of types and bounds are the API server's own.
    const ofBounds = /: (must (be of type|have at|be a lowercase|be texts)|is an unknown|is required|is there twice|.* is not supported)/
    for (const { alone, asked } of found)
      for (const message of alone.filter((text) => !ofBounds.test(text))) expect(asked.join()).toContain(message.replace(/^[^:]*: /, ''))
  })
})

describe('against a real API server', () => {
  test('fees, balances and all signers are told, each request was a read or a try, and nothing is there afterwards', async () => {
    await cluster.apply(JSON.stringify(namespace('team-a', { stakes: 'yes' })))
    const objects = [
      signer({ policy: { allowedNamespaces: { names: ['default'] }, limits: [{ window: '24h', maxTotalEth: '64' }] } }),
      stake('a'),
      stake('b'),
      stake('c'),
      stake('d', { withdrawalAddress: OTHER_ADDRESS }, { namespace: 'team-a' }),
      stake('e', {}, { namespace: 'not-yet' }),
      validatorExit('out', { stakeRef: { name: 'a' } }),
    ]
    const plan = await onServer(objects, undefined, { networksFile: join(dir, 'networks.yaml') }, 'audited')
    expect(actions(plan)).toEqual(['create treasury', 'create a', 'create b', 'create c', 'refused d', 'refused e', 'refused out'])
    const [, first, , third, fourth, fifth, exit] = plan.resources
    expect(first).toMatchObject({
      moves: { amount: '32 ETH', from: PAYER, to: anvil.depositContract, returnsTo: WITHDRAWAL_ADDRESS },
      fees: { now: expect.stringMatching(/^0\.\d+ ETH$/), atMost: expect.stringMatching(/^0\.\d+ ETH$/), cap: '100 gwei per gas' },
      waits: [],
      unknown: [],
    })
    expect(third?.waits.map(({ reason }) => reason)).toEqual(['LimitReached'])
    expect(fourth?.refusals.map(({ reason }) => reason)).toEqual(['NamespaceNotAllowed'])
    expect(fifth?.refusals).toEqual([
      { by: 'API server', message: 'namespaces "not-yet" not found: create it, or add it to these manifests' },
    ])
    expect(exit?.refusals.map(({ reason }) => reason)).toEqual(['SignerNotWithdrawalAddress'])
    // A request is written down after it was answered.
    const writes = () => audited('audited').filter(({ verb }) => !['get', 'list'].includes(verb))
    await expect.poll(() => writes().length, { timeout: 30_000 }).toBeGreaterThanOrEqual(objects.length)
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(writes()).toHaveLength(objects.length)
    for (const { verb, requestURI } of writes()) {
      expect(verb).toBe('patch')
      expect(new URL(requestURI, cluster.url).searchParams.getAll('dryRun')).toEqual(['All'])
    }
    for (const kind of ['stakingsigners', 'ethereumstakes', 'validatorexits', 'stakingtransactions', 'signernonces'])
      expect(await cluster.kubectlOk(['get', kind, '-A', '-o', 'name'])).toBe('')
    expect(await anvil.rpc('eth_getTransactionCount', [PAYER, 'pending'])).toBe('0x0')
  })

  test('what is there changes by field, and an immutable change is refused in the words of the API server', async () => {
    await cluster.apply(JSON.stringify(namespace('there')))
    const at = { namespace: 'there' }
    for (const one of [stake('same', {}, at), stake('other', {}, at)])
      await cluster.kubectlOk(['apply', '--server-side', '-f', '-'], { input: JSON.stringify(one) })
    const payer = signer({ policy: { allowedNamespaces: { names: ['there'] } } })
    const plan = await onServer([payer, stake('same', {}, at), stake('other', { amountEth: '64', suspend: true }, at)])
    expect(actions(plan)).toEqual(['create treasury', 'unchanged same', 'refused other'])
    expect(plan.resources[2]?.refusals[0]).toMatchObject({
      by: 'API server',
      message: expect.stringContaining('amountEth cannot be changed'),
    })
    const changed = await onServer([payer, stake('other', { suspend: true, maxFeePerGasGwei: '9' }, at)])
    expect(changed.resources[1]).toMatchObject({
      action: 'change',
      changes: [
        { field: 'spec.maxFeePerGasGwei', to: '9' },
        { field: 'spec.suspend', to: true },
      ],
    })
    await cluster.kubectlOk(['delete', 'ethereumstakes', '--all', '-n', 'there'])
  })

  test('who may only read is told what could not be tried, and gets a plan by the rules all the same', async () => {
    const account = { namespace: 'default', name: 'reader' }
    await cluster.kubectlOk(['create', 'serviceaccount', account.name])
    await cluster.kubectlOk([
      'create',
      'clusterrole',
      'reader',
      '--verb=get,list',
      '--resource=ethereumstakes.staking.dev,stakingsigners.staking.dev,namespaces',
    ])
    await cluster.kubectlOk(['create', 'clusterrolebinding', 'reader', '--clusterrole=reader', '--serviceaccount=default:reader'])
    // The API server hears of the rights a moment after they were given.
    const may = async (resource: string) =>
      (await cluster.kubectl(['auth', 'can-i', 'list', resource, '--as=system:serviceaccount:default:reader'])).stdout
    for (const resource of ['ethereumstakes.staking.dev', 'stakingsigners.staking.dev', 'namespaces'])
      await expect.poll(() => may(resource), { timeout: 60_000 }).toContain('yes')
    const kubeconfig = join(dir, 'reader.kubeconfig')
    writeFileSync(kubeconfig, await cluster.kubeconfigFor(account))
    await cluster.apply(JSON.stringify(signer({ policy: { limits: [{ window: '24h', maxCount: 1 }] } })))
    const plan = await onServer([stake('a'), stake('b', { amountEth: '1' })], kubeconfig)
    expect(actions(plan)).toEqual(['create a', 'refused b'])
    expect(plan.resources[0]?.unknown.join('\n')).toMatch(/you may not apply it \(.*cannot patch resource/)
    expect(plan.resources[0]?.unknown.join('\n')).toMatch(/what of the limits of StakingSigner treasury is used already/)
    expect(plan.operatorSuspended).toBeNull()
    await cluster.kubectlOk(['delete', 'stakingsigner', 'treasury'])
  })
})

test('a resource can be set to Plan until something of it was signed, and back at any time', async () => {
  await cluster.apply(JSON.stringify(namespace('modes')))
  const at = { namespace: 'modes' }
  await cluster.apply(JSON.stringify(stake('planned', { mode: 'Plan' }, at)))
  const set = (mode: string) =>
    cluster.kubectl(['patch', 'ethereumstake', 'planned', '-n', 'modes', '--type=merge', '-p', JSON.stringify({ spec: { mode } })])
  for (const mode of ['Apply', 'Plan', 'Apply']) expect(await set(mode)).toMatchObject({ code: 0 })
  const transaction = {
    chainId: 1,
    from: PAYER,
    to: OTHER_ADDRESS,
    valueWei: '0',
    dataHash: `0x${'cd'.repeat(32)}`,
    hash: `0x${'ab'.repeat(32)}`,
    nonce: 0,
    gas: '1',
    maxFeePerGasWei: '1',
    maxPriorityFeePerGasWei: '1',
    preparedAt: '2030-01-01T00:00:00Z',
    state: 'Broadcast',
  }
  const status = JSON.stringify({ status: { transaction } })
  const patched = await cluster.kubectl([
    'patch',
    'ethereumstake',
    'planned',
    '-n',
    'modes',
    '--subresource=status',
    '--type=merge',
    '-p',
    status,
  ])
  expect(patched).toMatchObject({ code: 0, stderr: '' })
  expect(await set('Plan')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('mode can be set to Plan only while nothing was signed that may land'),
  })
  expect(await set('Later')).toMatchObject({ code: 1, stderr: expect.stringContaining('supported values: "Apply", "Plan"') })
})

describe('the command', () => {
  test('exits with 0, 2 and 1, as pull requests need it, and needs no kubeconfig by itself', async () => {
    const folder = join(dir, 'manifests')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'a.json'), JSON.stringify(signer()))
    writeFileSync(join(folder, 'b.json'), JSON.stringify(stake('validator-1')))
    const alone = await runToEnd({
      command: process.execPath,
      args: [mainEntry, 'plan', '-f', folder],
      env: { ...COMPILE_CACHE, KUBECONFIG: '/nowhere', HOME: dir },
      signal: AbortSignal.timeout(60_000),
    })
    expect([alone.code, alone.stderr]).toEqual([0, ''])
    expect(alone.stdout).toMatch(/^\+ create {4}EthereumStake default\/validator-1 {2}\(.*b\.json\)$/m)
    expect(alone.stdout).toMatch(/Pays 32 ETH on .*\.\n$/)
    const asked = await cli('-f', folder, '--server', '--networks', join(dir, 'networks.yaml'), '-o', 'json')
    expect([asked.code, asked.stderr]).toEqual([0, ''])
    expect((JSON.parse(asked.stdout) as Plan).summary).toMatchObject({ create: 2, refused: 0, pays: [`32 ETH on ${NETWORK}`] })
    const page = await pageCommands(cluster, { page: 'docs/how-to/plan.md' }, AbortSignal.timeout(60_000))
    try {
      for (const name of ['a.json', 'b.json']) page.file(`manifests/team/${name}`, readFileSync(join(folder, name), 'utf8'))
      page.file('networks.yaml', readFileSync(join(dir, 'networks.yaml'), 'utf8'))
      const told = await page.run('See what manifests would do before they are applied')
      // Line by line as the page shows it, with other names and numbers.
      for (const line of [
        /^Asked 127\.0\.0\.1:\d+, which has tried each object \(dry run\)\. Nothing was written\.$/m,
        /^\+ create {4}EthereumStake default\/validator-1 {2}\(manifests\/team\/b\.json\)$/m,
        /^ {4}does {6}deposits 32 ETH for a new validator on local, once, with Compounding \(0x02\) credentials: the stake and its rewards return to 0x\w+ alone$/m,
        /^ {4}pays {6}32 ETH on local from StakingSigner treasury \(0x\w+\) to 0x\w+; it returns to 0x\w+$/m,
        /^ {4}fees {6}about 0\.\d+ ETH now, at most 0\.\d+ ETH \(100 gwei per gas\)$/m,
        /^ {4}policy {4}StakingSigner treasury: it admits namespace default.* and 32 ETH \(at most 64 ETH a transaction\)$/m,
        /^Plan: 2 to create, 0 to change, 0 unchanged, 0 refused \(of 1 not all is known\)\. Pays 32 ETH on local\.$/m,
      ])
        expect(told).toMatch(line)
    } finally {
      page.stop()
    }
    writeFileSync(join(folder, 'c.json'), JSON.stringify(stake('bad', { amountEth: '3200' })))
    expect((await cli('-f', folder, '--server')).code).toBe(2)
    const away = await cli('-f', folder, '--server', '--context', 'nowhere')
    expect([away.code, away.stdout]).toEqual([1, ''])
    expect(away.stderr).toMatch(/^error: the kubeconfig has no context nowhere/)
    expect(await cli('-f', join(dir, 'none'))).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^error: .*none is not there/),
    })
  })
})

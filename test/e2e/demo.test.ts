import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { encodeDeposit } from '../chains/deposit-contract.ts'
import { callRpc } from '../chains/json-rpc.ts'
import { findAssets } from '../cluster/assets.ts'
import { type Commands, pageCommands } from '../cluster/page-commands.ts'
import { type RunningProcess, startProcess } from '../cluster/process.ts'
import { descendantsOf, stillRunning } from './descendants.ts'

/** The demo as a person runs it from a fresh checkout, without a terminal. */
const repository = new URL('../..', import.meta.url).pathname
const TIMEOUT_MS = 400_000

interface Endpoints {
  readonly kubeconfig: string
  readonly ethereumRpc: `http://${string}`
  readonly stakingApi: string
  readonly apiKeyFile: string
  readonly operatorMetrics: string
  readonly operatorPage: string
  readonly serviceMetrics: string
  readonly operatorPid: number
  readonly servicePid: number
  readonly operatorCommand: readonly [string, ...string[]]
  readonly serviceCommand: readonly [string, ...string[]]
}

describe('npm run demo', { timeout: TIMEOUT_MS + 60_000 }, () => {
  let dir: string
  const started: RunningProcess[] = []
  const opened: Commands[] = []
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'staking-demo-'))
  })
  afterEach(async () => {
    if (started.some((one) => one.alive())) await demo('--stop').then(({ exited }) => exited)
    for (const one of started.splice(0)) await one.stop()
    for (const one of opened.splice(0)) one.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  async function demo(...flags: string[]): Promise<RunningProcess> {
    const run = await startProcess({
      name: `demo ${flags.join(' ')}`,
      command: 'npm',
      args: ['run', 'demo', ...(flags.length === 0 ? [] : ['--', ...flags])],
      cwd: repository,
      // From its source, as people run it.
      env: { STAKING_DEMO_DIR: dir, STAKING_TEST_PROGRAMS: undefined },
    })
    started.push(run)
    return run
  }

  /** As soon as everything runs; the manifests are applied right after. */
  async function endpoints(run: RunningProcess): Promise<Endpoints> {
    const file = join(dir, 'endpoints.json')
    for (const deadline = Date.now() + 120_000; Date.now() < deadline && run.alive(); await delay(50))
      if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Endpoints
    throw new Error(`the demo gave no endpoints: ${run.output()}`)
  }

  /** A page's commands for whoever has started this demo in a clone of the repository. */
  async function open(page: string, placeholders: Readonly<Record<string, string>> = {}): Promise<Commands> {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const assets = await findAssets({ env: process.env, log: () => undefined, signal })
    const commands = await pageCommands(
      { assets, adminKubeconfigPath: join(dir, 'kubeconfig') },
      { page, placeholders, env: { STAKING_DEMO_DIR: dir, STAKING_TEST_PROGRAMS: '' } },
      signal,
    )
    opened.push(commands)
    symlinkSync(dir, join(commands.dir, '.demo'))
    return commands
  }

  const ended = async (run: RunningProcess): Promise<number | null> =>
    (await Promise.race([run.exited, delay(TIMEOUT_MS, undefined, { ref: false })]))?.code ?? null

  test('makes deposits, exits, withdrawals and Solana stakes, and refuses what must be; kept, its parts can be ended and started by hand', async () => {
    const run = await demo('--keep')
    const given = await endpoints(run)
    // In whichever order: they are listed by their pids, which begin again from below.
    const commands = descendantsOf(run.pid)
      .map(({ command }) => command)
      .join('\n')
    expect(commands).toMatch(/\/kube-apiserver /)
    expect(commands).toMatch(/src\/main\.ts operator/)
    expect(Object.keys(given).sort()).toEqual(
      [
        'kubeconfig',
        'ethereumRpc',
        'beaconApi',
        'solanaRpc',
        'stakingApi',
        'apiKeyFile',
        'operatorMetrics',
        'operatorPage',
        'serviceMetrics',
        'operatorPid',
        'servicePid',
        'operatorCommand',
        'serviceCommand',
      ].sort(),
    )
    await run.waitForOutput(/It goes on until Ctrl-C|What does not hold/, TIMEOUT_MS)
    expectAllOf(run.output())
    const processes = descendantsOf(run.pid)
    expect(processes.map(({ pid }) => pid)).toEqual(expect.arrayContaining([given.operatorPid, given.servicePid]))
    expect(await (await fetch(given.operatorMetrics)).text()).toContain('staking_operator_')
    expect((await fetch(given.serviceMetrics)).ok).toBe(true)
    const authorization = `Bearer ${readFileSync(given.apiKeyFile, 'utf8').trim()}`
    const list = await fetch(`${given.stakingApi}/v1/ethereum/stakes`, { headers: { authorization } })
    // The one that a limit stopped was taken back.
    const { items } = (await list.json()) as { items: { transaction: { status: string } }[] }
    expect(items.filter(({ transaction }) => transaction.status !== 'cancelled')).toHaveLength(4)
    const page = await fetch(given.operatorPage)
    expect(page.status).toBe(200)
    expect(await page.text()).toContain('validator-1')
    expect(run.output()).toContain(`${given.operatorPage} in a browser`)

    process.kill(given.operatorPid, 'SIGKILL')
    process.kill(given.servicePid, 'SIGKILL')
    const byHand = async (name: string, [command, ...args]: readonly [string, ...string[]], readyUrl: string) => {
      const again = await startProcess({ name, command, args, readyTimeoutMs: 90_000, readyWhen: async () => (await fetch(readyUrl)).ok })
      started.push(again)
    }
    await byHand('service by hand', given.serviceCommand, `${given.stakingApi}/readyz`)
    await byHand('operator by hand', given.operatorCommand, given.operatorMetrics.replace('/metrics', '/readyz'))

    await walkTutorial()
    expect(await ended(run), run.output()).toBe(0)
    expect(stillRunning(processes)).toEqual([])
    expect(existsSync(join(dir, 'endpoints.json'))).toBe(false)
  })

  /** docs/tutorial/first-stake.md from its second terminal to its end, and what the README and the page on the log show of the same cluster. */
  async function walkTutorial(): Promise<void> {
    const tutorial = await open('docs/tutorial/first-stake.md')
    const fleet = await tutorial.run('Start', 2)
    for (const line of [
      'ethereumstake.*/needs-approval .* (Confirmed|Active) +True',
      'ethereumstake.*/validator-1 .* Exited ',
      'ethereumstake.*/validator-2 .* Active ',
      'ethereumstake.*/compounding .* Active ',
      'team-c .*/not-admitted .* Stalled +False +NamespaceNotAllowed',
      'validatorwithdrawal.*/eight .* Accepted ',
      'validatorwithdrawal.*/too-much .* Stalled ',
      'solanastake.*/stays .* Active ',
      'solanastake.*/returns .* Withdrawn ',
    ])
      expect(fleet).toMatch(new RegExp(line))
    await (await open('README.md')).run('A stake')
    await (await open('docs/explanation/exactly-once.md')).run('One record for each thing to be done')
    const own = await tutorial.run('Apply a stake of your own')
    expect(own).toMatch(/mine condition met[\s\S]*Deposit +32 ETH +team-a +mine +treasury +\d+ +Landed/)
    expect(await tutorial.fails('Get it wrong')).toContain('must be at least 32 ETH: a validator needs 32 ETH to become active')
    expect(await tutorial.run('See what would wake you')).toContain('NamespaceNotAllowed')
    const placeholders = { KIND: 'ethstake', NAME: 'not-admitted', NAMESPACE: 'team-c' }
    await (await open('docs/runbooks/StakingResourcesStalled.md', placeholders)).run('First look')
    expect(await tutorial.run('Delete it', 1)).toMatch(/mine .* Deleting /)
    await tutorial.run('Delete it', 2)
    expect(await tutorial.run('End')).toContain('The demo has ended.')
  }

  test('ends by itself, leaves nothing running and no secret, and fails and says why when there is a deposit too many', async () => {
    const run = await demo()
    const { ethereumRpc } = await endpoints(run)
    const processes = descendantsOf(run.pid)
    expect(processes.map(({ command }) => command).join('\n')).toMatch(/src\/main\.ts operator/)
    const [, , , stranger] = await callRpc<readonly string[]>(ethereumRpc, 'eth_accounts', [])
    const data = encodeDeposit({
      pubkey: `0x${'ee'.repeat(48)}`,
      withdrawalCredentials: `0x01${'00'.repeat(11)}${'ee'.repeat(20)}`,
      signature: `0x${'ee'.repeat(96)}`,
      amountGwei: 32_000_000_000n,
    })
    await callRpc(ethereumRpc, 'eth_sendTransaction', [
      { from: stranger, to: '0x00000000219ab540356cBB839Cbe05303d7705Fa', data, value: `0x${(32n * 10n ** 18n).toString(16)}` },
    ])
    expect(await ended(run), run.output()).not.toBe(0)
    expect(run.output()).toMatch(/What does not hold:\n.*counts 4 deposits for 3/)
    expect(stillRunning(processes)).toEqual([])
    for (const secret of ['stack/keys', 'stack/seed', 'stack/api-key', 'endpoints.json', 'demo.pid'])
      expect(existsSync(join(dir, secret)), secret).toBe(false)
  })
})

/** What the demo says when all holds. */
function expectAllOf(output: string): void {
  const hashes = output.match(/transaction 0x[0-9a-f]{64}/g) ?? []
  expect(new Set(hashes).size).toBe(3)
  expect(output.match(/validator {3}0x[0-9a-f]{96}/g)).toHaveLength(3)
  for (const accepted of ['team-a/validator-1  32 ETH', 'team-a/validator-2  32 ETH', 'team-b/compounding  48.5 ETH'])
    expect(output).toContain(accepted)
  expect(output).toMatch(/team-c\/not-admitted {2}NamespaceNotAllowed: .*team-c/)
  expect(output).toContain('The deposit contract counts 3 deposits')
  expect(output).toMatch(
    /Stopped by a limit:\n {2}team-a\/one-too-many {2}LimitReached: StakingSigner treasury may sign 3 transactions in 24h/,
  )
  expect(output).toMatch(/The fleet as a web page, for as long as this runs: http:\/\/127\.0\.0\.1:\d+\/ui\//)
  expect(output).toMatch(/team-b\/eight {2}8 ETH asked, 8 ETH paid to 0x70997970/i)
  expect(output).toMatch(/team-a\/leave {2}validator 0x[0-9a-f]+… has left, 32 ETH paid/)
  expect(output).toContain('team-a/changed-my-mind  deleted before it was sent: cancelled at the staking API')
  expect(output).toMatch(/team-b\/too-much {2}OverAvailable: .*amount-over-available.*8\.5 ETH are available/)
  expect(output).toContain('The contract has 2 requests.')
  expect(output).toMatch(/team-a\/returns\s+3 SOL\s+Withdrawn/)
  expect(output).toMatch(/team-b\/stays\s+0\s+5000000000\n/)
  const [, together, again] = /together\s+(\d+)\s+(\d+)/.exec(output) ?? []
  expect(again).toBe(together)
  expect(output).toMatch(/error: you \(system:serviceaccount:team-a:staking-requester\) have asked for it: somebody else must approve it/)
  expect(output).toMatch(/Approved as system:serviceaccount:team-a:staking-approver\./)
  expect(output).toMatch(/ethstake team-a\/needs-approval\s+32 ETH\s+Confirmed\s+Succeeded/)
  const [, log = ''] = /\$ kubectl get stx\nPURPOSE[^\n]+NONCE[^\n]+\n((?:[^\n]+\n)+)/.exec(output) ?? []
  for (const landed of [
    'Deposit +32 ETH',
    'Deposit +48.5 ETH',
    'Exit',
    'Withdrawal +8 ETH',
    'SolanaStake +5 SOL',
    'SolanaWithdrawal +3 SOL',
  ])
    expect(log).toMatch(new RegExp(`^${landed}.* Landed `, 'm'))
  expect(output).toContain('All holds.')
  // No terminal, no cursor movements.
  expect(output).not.toContain('\u001b[')
}

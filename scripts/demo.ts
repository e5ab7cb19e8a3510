import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Command } from 'commander'
import { installChart } from '../test/cluster/chart.ts'
import { reap } from '../test/cluster/reaper.ts'
import { type Devnet, startDevnet } from '../test/devnet/devnet.ts'
import { FAST_BEACON, type Stack, startStack, writeKey } from '../test/stack/stack.ts'
import { playApproval } from './demo/approval.ts'
import { columnsOf } from './demo/columns.ts'
import { readEthereum } from './demo/ethereum.ts'
import { playLimit } from './demo/limit.ts'
import { isReady, isStalled } from './demo/resources.ts'
import { createScene } from './demo/scene.ts'
import { playSolana, solanaBalances } from './demo/solana.ts'
import { mustBeRefused, printSummary, summarise } from './demo/summary.ts'
import { playValidators } from './demo/validators.ts'

/**
 * The whole system on this machine, from manifests to deposits, exits, withdrawals and Solana stakes: a real API server, a real EVM with the real
 * contracts, the real stake program, the staking service and the operator. The beacon chain and Solana's cluster are simulators; with `--devnet`
 * Ethereum is a real proof-of-stake network. `--keep` leaves it running until Ctrl-C; `--stop` ends what a kept demo left.
 */
const repository = new URL('..', import.meta.url).pathname
/** `STAKING_DEMO_DIR`: elsewhere than .demo, so that a test's demo and a person's don't meet. */
const demoDir = resolve(process.env.STAKING_DEMO_DIR ?? join(repository, '.demo'))
const pidFile = join(demoDir, 'demo.pid')
const flags = new Command('npm run demo --')
  .description('The whole system on this machine: from manifests to deposits, exits, withdrawals and Solana stakes.')
  .option('--devnet', 'Ethereum is a real proof-of-stake network, geth with Prysm (built the first time)')
  .option('--keep', 'leave it running, to look around in, until Ctrl-C')
  .option('--stop', 'end a demo that was kept')
  .allowExcessArguments(false)
  .parse()
  .opts<{ devnet?: boolean; keep?: boolean; stop?: boolean }>()
const say = (line: string) => process.stdout.write(`${line}\n`)
const DEADLINE_MS = 180_000
/** Mounted beside the stack's own: the key of the examples' withdrawal address, the second well-known account. */
const WITHDRAWALS_KEY = 'withdrawals'

if (flags.stop === true) await stopKept()
else process.exitCode = await run()

async function run(): Promise<number> {
  if (otherDemo() !== undefined) {
    say('A demo is running already: npm run demo -- --stop ends it.')
    return 1
  }
  reap()
  for (const old of ['stack', 'devnet', 'kubeconfig', 'endpoints.json']) rmSync(join(demoDir, old), { recursive: true, force: true })
  mkdirSync(demoDir, { recursive: true })
  writeFileSync(pidFile, String(process.pid))
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupted.abort())
  let stack: Stack | undefined
  let devnet: Devnet | undefined
  try {
    if (flags.devnet === true) devnet = await startDevnet({ dir: join(demoDir, 'devnet'), log: say, signal: interrupted.signal })
    stack = await startStack({
      dir: join(demoDir, 'stack'),
      ...(devnet === undefined ? { anvil: { mining: 1 }, beacon: FAST_BEACON } : { ethereum: devnet }),
      solana: {},
      operatorArgs: ['--observe-activating', '1s', '--observe-settled', '2s', '--ui'],
      // One that is kept is a person's own to end and to start.
      restartOperator: flags.keep !== true,
      controllerManager: true,
      install: (cluster, { networks, stakingApi }) =>
        installChart(cluster, { networks, stakingApi: { url: stakingApi.url } }, interrupted.signal),
      log: say,
      signal: interrupted.signal,
    })
    const kubeconfig = join(demoDir, 'kubeconfig')
    writeFileSync(kubeconfig, stack.cluster.adminKubeconfig, { mode: 0o600 })
    writeEndpoints(stack, kubeconfig)
    const withdrawer = stack.ethereum.accounts[1]
    if (withdrawer === undefined) throw new Error('the network has no second account')
    writeKey(stack.keysDir, WITHDRAWALS_KEY, withdrawer.privateKey)
    const scene = createScene(stack, say, interrupted.signal)
    const ethereum = readEthereum(stack, devnet === undefined)
    const before = { withdrawer: await ethereum.open(withdrawer.address), solana: solanaBalances(scene) }

    say(`The fleet as a web page, for as long as this runs: ${pageOf(stack)}`)
    say('applying examples/')
    await applyExamples(stack)
    const deposited = await scene.follow(
      ({ stakes }) => stakes.length > 0 && stakes.every((stake) => (mustBeRefused(stake) ? isStalled(stake) : isReady(stake))),
      undefined,
      DEADLINE_MS,
    )
    const summary = await summarise(ethereum, deposited.stakes)
    printSummary(summary, say)
    const failures = [...summary.failures]
    if (failures.length === 0) failures.push(...(await playLimit(scene, ethereum, summary.depositCount)))
    if (failures.length === 0) failures.push(...(await playValidators(scene, ethereum, before.withdrawer)))
    if (failures.length === 0) failures.push(...(await playSolana(scene, before.solana)))
    const kubeconfigOf = (name: string, content: string): string => {
      const file = join(demoDir, 'stack', `${name}.kubeconfig`)
      writeFileSync(file, content, { mode: 0o600 })
      return file
    }
    if (failures.length === 0) failures.push(...(await playApproval(scene, kubeconfigOf)))
    // The name is long and says little to a reader: the columns are the audit trail.
    say(
      `\n$ kubectl get stx\n${columnsOf(process.stdout.columns, await stack.cluster.kubectlOk(['get', 'stx', '--sort-by=.metadata.creationTimestamp']))}`,
    )
    if (failures.length > 0) say(`\nWhat does not hold:\n${failures.map((failure) => `  ${failure}`).join('\n')}`)
    else
      say(
        `\nAll holds.${flags.keep === true ? '' : '\nTo look around in it, also in a browser (the web page of the operator, --ui): npm run demo -- --keep'}`,
      )
    if (flags.keep === true && !interrupted.signal.aborted) {
      say(
        `\nIt goes on until Ctrl-C (or: npm run demo -- --stop). Look around:\n  export KUBECONFIG=${kubeconfig}\n  ${stack.cluster.assets.kubectl} get staking -A -o wide\n  ${pageOf(stack)} in a browser: each stake, its timeline, and the signers\nEndpoints and commands are in ${join(demoDir, 'endpoints.json')}.`,
      )
      await new Promise<void>((resolve) => {
        if (interrupted.signal.aborted) resolve()
        else interrupted.signal.addEventListener('abort', () => resolve())
        // Nothing else keeps this process alive for certain.
        const alive = setInterval(() => undefined, 60_000)
        interrupted.signal.addEventListener('abort', () => clearInterval(alive))
      })
    }
    return failures.length === 0 ? 0 : 1
  } catch (error) {
    if (interrupted.signal.aborted) say('interrupted')
    else say(`the demo failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    return 1
  } finally {
    say('stopping everything')
    await stack?.stop()
    await devnet?.stop()
    if (flags.keep !== true)
      for (const left of ['stack/keys', 'stack/seed', 'stack/api-key']) rmSync(join(demoDir, left), { recursive: true, force: true })
    rmSync(pidFile, { force: true })
    rmSync(join(demoDir, 'endpoints.json'), { force: true })
  }
}

/** Right after an installation the API server may not know yet what its admission policies are about, and asks to be tried again. */
async function applyExamples({ cluster }: Stack): Promise<void> {
  const args = ['apply', '-f', join(repository, 'examples')]
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await new Promise((resolve) => setTimeout(resolve, 500))) {
    const { code, stderr } = await cluster.kubectl(args)
    if (code === 0) return
    if (!stderr.includes('ServiceUnavailable')) break
  }
  await cluster.kubectlOk(args)
}

function pageOf({ operatorMetrics }: Pick<Stack, 'operatorMetrics'>): string {
  return new URL('/ui/', operatorMetrics).href
}

function writeEndpoints(stack: Stack, kubeconfig: string): void {
  /** As argv; what it needs of the environment is set by env(1). */
  const argv = ({ command, env }: Stack['operator']) =>
    Object.keys(env).length === 0 ? command : ['env', ...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...command]
  // Whoever waits for the file finds it whole.
  const file = join(demoDir, 'endpoints.json')
  writeFileSync(
    `${file}.new`,
    `${JSON.stringify(
      {
        kubeconfig,
        ethereumRpc: stack.ethereum.url,
        beaconApi: stack.ethereum.beaconUrl,
        solanaRpc: stack.solana.url,
        stakingApi: stack.serviceUrl,
        apiKeyFile: stack.apiKeyFile,
        operatorMetrics: stack.operatorMetrics,
        operatorPage: pageOf(stack),
        serviceMetrics: `${stack.serviceUrl}/metrics`,
        operatorPid: stack.operator.process().pid,
        servicePid: stack.service.process().pid,
        operatorCommand: argv(stack.operator),
        serviceCommand: argv(stack.service),
      },
      null,
      2,
    )}\n`,
  )
  renameSync(`${file}.new`, file)
}

function otherDemo(): number | undefined {
  const pid = existsSync(pidFile) ? Number(readFileSync(pidFile, 'utf8')) : Number.NaN
  if (!Number.isInteger(pid) || pid <= 1) return undefined
  try {
    const commandLine = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    return commandLine.includes('demo.ts') ? pid : undefined
  } catch {
    return undefined
  }
}

async function stopKept(): Promise<void> {
  const pid = otherDemo()
  if (pid !== undefined) {
    process.kill(pid, 'SIGINT')
    for (let tries = 0; tries < 300 && otherDemo() === pid; tries++) await new Promise((resolve) => setTimeout(resolve, 100))
    if (otherDemo() === pid) process.kill(pid, 'SIGKILL')
  }
  const ended = reap()
  say(pid === undefined && ended.length === 0 ? 'No demo is running.' : 'The demo has ended.')
}

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { reap } from '../test/cluster/reaper.ts'
import { type Stack, startStack } from '../test/stack/stack.ts'
import { isReady, isStalled, type ListedStake, listStakes } from './demo/stakes.ts'
import { mustBeRefused, printSummary, summarise } from './demo/summary.ts'
import { createTable } from './demo/table.ts'

/**
 * The whole system on this machine, from a manifest to a confirmed deposit: a real API server, a real EVM with the real deposit contract, the
 * staking service and the operator. `--keep` leaves it running until Ctrl-C; `--stop` ends what a kept demo left.
 */
const repository = new URL('..', import.meta.url).pathname
/** `STAKING_DEMO_DIR`: elsewhere than .demo, so that a test's demo and a person's don't meet. */
const demoDir = resolve(process.env.STAKING_DEMO_DIR ?? join(repository, '.demo'))
const pidFile = join(demoDir, 'demo.pid')
const { values: flags } = parseArgs({ options: { keep: { type: 'boolean', default: false }, stop: { type: 'boolean', default: false } } })
const say = (line: string) => process.stdout.write(`${line}\n`)
const DEADLINE_MS = 180_000

if (flags.stop) await stopKept()
else process.exitCode = await run()

async function run(): Promise<number> {
  if (otherDemo() !== undefined) {
    say('A demo is running already: npm run demo -- --stop ends it.')
    return 1
  }
  reap()
  for (const old of ['stack', 'kubeconfig', 'endpoints.json']) rmSync(join(demoDir, old), { recursive: true, force: true })
  mkdirSync(demoDir, { recursive: true })
  writeFileSync(pidFile, String(process.pid))
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupted.abort())
  let stack: Stack | undefined
  try {
    stack = await startStack({
      dir: join(demoDir, 'stack'),
      anvil: { mining: 1 },
      controllerManager: true,
      log: say,
      signal: interrupted.signal,
    })
    const kubeconfig = join(demoDir, 'kubeconfig')
    writeFileSync(kubeconfig, stack.cluster.adminKubeconfig, { mode: 0o600 })
    writeEndpoints(stack, kubeconfig)
    say('applying examples/')
    await stack.cluster.kubectlOk(['apply', '-f', join(repository, 'examples')])
    const stakes = await follow(stack, interrupted.signal)
    const summary = await summarise(stack, stakes)
    printSummary(summary, say)
    if (flags.keep && !interrupted.signal.aborted) {
      say(
        `\nIt goes on until Ctrl-C (or: npm run demo -- --stop). Look around:\n  export KUBECONFIG=${kubeconfig}\n  ${stack.cluster.assets.kubectl} get ethstake -A -o wide\nEndpoints and commands are in ${join(demoDir, 'endpoints.json')}.`,
      )
      await new Promise<void>((resolve) => {
        if (interrupted.signal.aborted) resolve()
        else interrupted.signal.addEventListener('abort', () => resolve())
        // Nothing else keeps this process alive for certain.
        const alive = setInterval(() => undefined, 60_000)
        interrupted.signal.addEventListener('abort', () => clearInterval(alive))
      })
    }
    return summary.failures.length === 0 ? 0 : 1
  } catch (error) {
    if (interrupted.signal.aborted) say('interrupted')
    else say(`the demo failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    return 1
  } finally {
    say('stopping everything')
    await stack?.stop()
    if (!flags.keep)
      for (const left of ['stack/keys', 'stack/seed', 'stack/api-key']) rmSync(join(demoDir, left), { recursive: true, force: true })
    rmSync(pidFile, { force: true })
    rmSync(join(demoDir, 'endpoints.json'), { force: true })
  }
}

/** Shows the stakes as they move, until each is ready or refused. */
async function follow(stack: Stack, signal: AbortSignal): Promise<readonly ListedStake[]> {
  const table = createTable(process.stdout)
  const deadline = Date.now() + DEADLINE_MS
  for (;;) {
    const stakes = await listStakes(stack)
    table.show(stakes)
    if (stakes.length > 0 && stakes.every((stake) => (mustBeRefused(stake) ? isStalled(stake) : isReady(stake)))) {
      table.end()
      return stakes
    }
    if (signal.aborted) throw new Error('interrupted')
    if (Date.now() > deadline) {
      table.end()
      return stakes
    }
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
}

function writeEndpoints(stack: Stack, kubeconfig: string): void {
  /** As argv; what it needs of the environment is set by env(1). */
  const argv = ({ command, env }: Stack['operator']) =>
    Object.keys(env).length === 0 ? command : ['env', ...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...command]
  writeFileSync(
    join(demoDir, 'endpoints.json'),
    `${JSON.stringify(
      {
        kubeconfig,
        ethereumRpc: stack.anvil.url,
        stakingApi: stack.serviceUrl,
        apiKeyFile: stack.apiKeyFile,
        operatorMetrics: stack.operatorMetrics,
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

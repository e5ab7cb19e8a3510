import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { firstPortOf, freePort } from '../../cluster/ports.ts'
import { type ProcessOptions, startProcess } from '../../cluster/process.ts'
import { birthOf } from '../../cluster/reaper.ts'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'staking-process-test-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const sh = (script: string, options: Partial<ProcessOptions> = {}) =>
  startProcess({ name: 'example', command: 'sh', args: ['-c', script], ...options })
const harness = (file: string): string => JSON.stringify(join(import.meta.dirname, '../../cluster', file))

test('its output and exit are told', async () => {
  const logFile = join(dir, 'log')
  const process = await sh('echo out; echo err >&2; exit 3', { logFile })
  expect(await process.exited).toEqual({ code: 3, signal: null })
  expect(process.output()).toMatch(/out/)
  expect(process.output()).toMatch(/err/)
  expect(readFileSync(logFile, 'utf8')).toHaveLength(8)
  expect(process.alive()).toBe(false)
})

test.each([
  { given: 'ends early', script: 'echo because; exit 2', message: /example ended with code 2 before ready:\nbecause/ },
  {
    given: 'is not ready in time',
    script: 'echo because; exec sleep 20',
    message: /not ready within 3000 ms \(last answer: not yet\):\nbecause/,
  },
])('starting one that $given fails, quoting its last lines', async ({ script, message }) => {
  const notYet = () => Promise.reject(new Error('not yet'))
  await expect(sh(script, { readyWhen: notYet, readyTimeoutMs: 3_000 })).rejects.toThrow(message)
})

test('starting a program that is not there fails', async () => {
  await expect(startProcess({ name: 'example', command: 'no-such-program', args: [] })).rejects.toThrow('no-such-program is not there')
})

test('one that ignores SIGTERM is stopped by SIGKILL', async () => {
  const process = await sh("trap '' TERM; echo up; while :; do sleep 0.1; done", { readyWhen: ({ output }) => output().includes('up') })
  expect(await process.stop(200)).toEqual({ code: null, signal: 'SIGKILL' })
})

test('a frozen one can be stopped', async () => {
  const process = await sh('echo up; exec sleep 20', { readyWhen: ({ output }) => output().includes('up') })
  process.kill('SIGSTOP')
  expect(await process.stop(20_000)).toEqual({ code: null, signal: 'SIGTERM' })
})

test('waiting for a line that never comes ends with the process', async () => {
  const process = await sh('echo one; sleep 0.2; exit 4')
  await expect(process.waitForOutput(/two/)).rejects.toThrow(/ended with code 4 before seen to print \/two\/:\none/)
})

/** Runs a script in a Node of its own, with a cache of its own, until it prints a pid. */
const starterOf = async (script: string) => {
  const starter = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env: { ...process.env, XDG_CACHE_HOME: dir, NODE_OPTIONS: '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(starter.stdout, 'data')) as [Buffer]
  return { starter, pid: Number(line.toString().trim()) }
}
const controlplaneStop = (...args: string[]): string =>
  execFileSync(process.execPath, [join(import.meta.dirname, '../../../scripts/controlplane.ts'), '--stop', ...args], {
    env: { ...process.env, XDG_CACHE_HOME: dir, NODE_OPTIONS: '' },
    encoding: 'utf8',
  })

test.runIf(process.platform === 'linux')('it dies with the one who started it, even when that is killed', async () => {
  const { starter, pid } = await starterOf(`
    import { startProcess } from ${harness('process.ts')}
    const { pid } = await startProcess({ name: 'sleep', command: 'sleep', args: ['30'] })
    console.log(pid)
    setInterval(() => {}, 1000)`)
  expect(birthOf(pid)).toBeDefined()
  starter.kill('SIGKILL')
  await expect.poll(() => birthOf(pid), { timeout: 30_000 }).toBeUndefined()
})

test('--stop ends what was left behind, and leaves alone what is in use', async () => {
  const scratch = `${dir}-scratch`
  const { starter, pid } = await starterOf(`
    import { spawn } from 'node:child_process'
    import { mkdirSync } from 'node:fs'
    import { recordProcess } from ${harness('reaper.ts')}
    const child = spawn('sleep', ['30'], { detached: true, stdio: 'ignore' })
    mkdirSync(${JSON.stringify(scratch)})
    recordProcess(child.pid, 'sleep', ${JSON.stringify(scratch)})
    console.log(child.pid)
    setInterval(() => {}, 1000)`)
  try {
    expect(controlplaneStop()).toContain('nothing was left behind')
    expect(birthOf(pid)).toBeDefined()
    expect(existsSync(scratch)).toBe(true)
    starter.kill('SIGKILL')
    await once(starter, 'exit')
    expect(controlplaneStop()).toContain(`ended sleep (${pid})`)
    await expect.poll(() => birthOf(pid), { timeout: 30_000 }).toBeUndefined()
    expect(existsSync(scratch)).toBe(false)
    expect(controlplaneStop()).toContain('nothing was left behind')
  } finally {
    starter.kill('SIGKILL')
    rmSync(scratch, { recursive: true, force: true })
    if (birthOf(pid) !== undefined) process.kill(pid, 'SIGKILL')
  }
})

test('free ports differ and lie below those of outgoing connections', async () => {
  const ports = await Promise.all(Array.from({ length: 200 }, freePort))
  expect(new Set(ports).size).toBe(200)
  for (const port of ports) expect(port).toBeLessThan(32_768)
  const workers = ['1', '2', '3', undefined].map(firstPortOf)
  expect(new Set(workers).size).toBe(workers.length)
  for (const port of ports) expect(port - firstPortOf(process.env.VITEST_POOL_ID)).toBeLessThan(2_500)
})

import { appendFileSync, readFileSync, rmSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { Command } from 'commander'
import { operatorCommand } from '../../src/cli/operator-command.ts'
import type { Target } from './points.ts'

/**
 * The operator, ended with SIGKILL by itself at a point that a test names: not a moment later, as nothing else runs in between. Every point that
 * it passes is written to STAKING_POINTS_FILE; the one to die at stands in STAKING_TARGET_FILE, which is read at each point and removed first.
 */
const pointsFile = env('STAKING_POINTS_FILE')
const targetFile = env('STAKING_TARGET_FILE')
let counting = ''
let passed = 0

function onPoint(point: string, key: string): void {
  appendFileSync(pointsFile, `${point}\t${key}\n`)
  const target = readTarget()
  if (target === undefined) return
  if (counting !== JSON.stringify(target)) {
    // The signer's writes from before the stake are others'.
    if (target.fromFirstSight && key !== target.key) return
    counting = JSON.stringify(target)
    passed = 0
  }
  if (point !== target.point || (key !== target.key && key !== target.signer)) return
  passed += 1
  if (passed < target.occurrence) return
  rmSync(targetFile)
  process.kill(process.pid, 'SIGKILL')
}

function readTarget(): Target | undefined {
  try {
    return JSON.parse(readFileSync(targetFile, 'utf8')) as Target
  } catch {
    return undefined
  }
}

function env(name: string): string {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} is not set`)
  return value
}

// A killed process leaves no compile cache behind: it is written once everything is loaded.
setTimeout(flushCompileCache, 1_000).unref()
await new Command().addCommand(operatorCommand('0.0.0-crash', { onPoint })).parseAsync()

import { readFileSync } from 'node:fs'

/**
 * Loaded before a program (`node --import`): its wall clock is off by the milliseconds that stand in a file, and jumps when they change. Timers and `performance.now`
 * go on as they did, as they do when a machine's clock is set.
 */
const file = process.env.STAKING_TEST_CLOCK_FILE ?? ''
const RealDate = Date
let offsetMs = 0

function look(): void {
  try {
    offsetMs = Number(readFileSync(file, 'utf8')) || 0
  } catch {
    offsetMs = 0
  }
}

class ShiftedDate extends RealDate {
  constructor(...given: readonly unknown[]) {
    if (given.length === 0) super(RealDate.now() + offsetMs)
    else super(...(given as [number]))
  }
  static override now(): number {
    return RealDate.now() + offsetMs
  }
}

if (file !== '') {
  look()
  globalThis.Date = ShiftedDate as DateConstructor
  setInterval(look, 100).unref()
}

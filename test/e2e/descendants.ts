import { readdirSync, readFileSync } from 'node:fs'
import { birthOf } from '../cluster/reaper.ts'

/** A process, known by its pid and the time of its birth: pids are used again. */
export interface Process {
  readonly pid: number
  readonly birth: string
  readonly command: string
}

/** Every process that descends from this one now (Linux). */
export function descendantsOf(ancestor: number): readonly Process[] {
  const children = new Map<number, number[]>()
  for (const pid of readdirSync('/proc').map(Number).filter(Number.isInteger)) {
    const parent = parentOf(pid)
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), pid])
  }
  const found: Process[] = []
  const visit = (pid: number): void => {
    for (const child of children.get(pid) ?? []) {
      const birth = birthOf(child)
      if (birth !== undefined) found.push({ pid: child, birth, command: commandOf(child) })
      visit(child)
    }
  }
  visit(ancestor)
  return found
}

/** Those of them that still run. */
export const stillRunning = (processes: readonly Process[]): readonly string[] =>
  processes.filter(({ pid, birth }) => birthOf(pid) === birth).map(({ pid, command }) => `${pid} ${command}`)

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // proc(5): the name may hold blanks and brackets; after it come the state and the parent.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return undefined
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
  } catch {
    return ''
  }
}

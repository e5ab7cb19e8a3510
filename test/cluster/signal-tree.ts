import { readdirSync, readFileSync } from 'node:fs'

/** Sends a signal to a process and its children, each of which answers for itself: PostgreSQL is such a tree. Linux only. */
export function signalTree(pid: number, signal: NodeJS.Signals): void {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return Number(/^\d+ \(.*\) \S (\d+)/s.exec(readFileSync(`/proc/${name}/stat`, 'utf8'))?.[1]) === pid
      } catch {
        return false
      }
    })
  for (const one of [pid, ...children.map(Number)]) {
    try {
      process.kill(one, signal)
    } catch (error) {
      // It has ended by itself.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

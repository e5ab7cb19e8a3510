import { setTimeout as delay } from 'node:timers/promises'
import type { Stack } from '../../test/stack/stack.ts'
import { listResources, type Resources } from './resources.ts'
import { createTable } from './table.ts'

/** What every part of the demo is played with. */
export interface Scene {
  readonly stack: Stack
  readonly say: (line: string) => void
  /**
   * Shows the resources as they move, until what is waited for has come, or two minutes (`deadlineMs`) are over: what then doesn't hold is told by who
   * looks. `meanwhile` lets the chain's time pass, each second.
   */
  follow(
    until: (resources: Resources) => boolean,
    meanwhile?: (resources: Resources) => Promise<void>,
    deadlineMs?: number,
  ): Promise<Resources>
}

export function createScene(stack: Stack, say: (line: string) => void, signal: AbortSignal): Scene {
  const table = createTable(process.stdout)
  return {
    stack,
    say,
    async follow(until, meanwhile, deadlineMs = 120_000) {
      const deadline = Date.now() + deadlineMs
      let passed = Date.now()
      for (;;) {
        const resources = await listResources(stack)
        table.show(resources)
        if (until(resources) || Date.now() > deadline) {
          table.end()
          return resources
        }
        if (signal.aborted) throw new Error('interrupted')
        if (meanwhile !== undefined && Date.now() - passed >= 1_000) {
          await meanwhile(resources)
          passed = Date.now()
        }
        await delay(300)
      }
    },
  }
}

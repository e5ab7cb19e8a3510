import { defineConfig } from 'vitest/config'

/**
 * `unit`: beside the source, pure, offline, no processes. Files of one worker share what they import: loading viem, web3.js and the Kubernetes client for
 * each file anew took a third of the time. So a unit test keeps no state in a module. `npm run check` leaves out those with the tag `whole`.
 * `integration`: the real API server, chains, databases. Files share nothing but the machine (free ports, folders of their own), and wait more
 * than they compute: three at a time fill two cores.
 */
export default defineConfig({
  test: {
    maxWorkers: 3,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'scripts/**/*.test.ts'],
          testTimeout: 30_000,
          expect: { poll: { timeout: 20_000 } },
          isolate: false,
          tags: [
            {
              name: 'whole',
              description:
                'a whole life, ended at every point of it, or a whole world in memory: seconds, so `npm test` runs it and `npm run check` does not',
            },
          ],
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/**/*.test.ts'],
          globalSetup: ['test/stack/prepared.ts'],
          // It costs something where a test fails only, and a machine may be a third as fast as the one it was written on.
          testTimeout: 240_000,
          hookTimeout: 300_000,
          expect: { poll: { timeout: 30_000 } },
          pool: 'forks',
        },
      },
    ],
  },
})

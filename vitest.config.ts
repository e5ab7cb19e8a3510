import { defineConfig } from 'vitest/config'

/**
 * `unit`: beside the source, pure, offline, no processes.
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
          testTimeout: 10_000,
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 180_000,
          pool: 'forks',
        },
      },
    ],
  },
})

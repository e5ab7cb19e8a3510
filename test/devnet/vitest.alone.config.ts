import { defineConfig } from 'vitest/config'

/** What fills the queues of the network, and so would hold up everybody else: on a network of its own, after the others (see vitest.config.ts). */
export default defineConfig({
  test: {
    name: 'devnet, alone',
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/devnet/**/*.alone.ts'],
    globalSetup: ['test/devnet/shared.ts'],
    testTimeout: 400_000,
    hookTimeout: 400_000,
    maxWorkers: 1,
    pool: 'forks',
  },
})

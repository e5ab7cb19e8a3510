import { defineConfig } from 'vitest/config'

/**
 * `npm run test:devnet`: on a real proof-of-stake network, which all files share (see shared.ts) and wait on side by side. Minutes, and a build of ten
 * minutes the first time: not part of the other projects.
 */
export default defineConfig({
  test: {
    name: 'devnet',
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/devnet/**/*.devnet.ts'],
    globalSetup: ['test/devnet/shared.ts'],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    maxWorkers: 4,
    pool: 'forks',
  },
})

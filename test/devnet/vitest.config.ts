import { defineConfig } from 'vitest/config'

/** `npm run test:devnet`: on a real proof-of-stake network. Minutes, and a build of ten minutes the first time: not part of the other projects. */
export default defineConfig({
  test: {
    name: 'devnet',
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/devnet/**/*.devnet.ts'],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    fileParallelism: false,
    pool: 'forks',
  },
})

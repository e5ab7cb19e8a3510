import { defineConfig } from 'vitest/config'

/** `npm run test:image`: builds both container images, which needs buildah and root, and minutes. Not part of the other projects. */
export default defineConfig({
  test: {
    name: 'image',
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/image/**/*.image.ts'],
    testTimeout: 600_000,
    hookTimeout: 600_000,
    maxWorkers: 1,
    pool: 'forks',
  },
})

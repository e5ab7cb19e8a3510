import { defineConfig } from 'vitest/config'

/** `npm test -- --soak-minutes N`: the fault run over everything, by itself. */
export default defineConfig({
  test: { name: 'soak', include: ['test/soak/**/*.soak.ts'], pool: 'forks' },
})

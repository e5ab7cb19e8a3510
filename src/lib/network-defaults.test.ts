import { getDefaultAutoSelectFamilyAttemptTimeout, setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'
import { Agent, EnvHttpProxyAgent } from 'undici'
import { expect, test } from 'vitest'
import { connectAttemptMs, createHttpAgent, setNetworkDefaults } from './network-defaults.ts'

test('an address has two seconds to connect, not a quarter of one', () => {
  const before = getDefaultAutoSelectFamilyAttemptTimeout()
  try {
    setNetworkDefaults()
    expect(getDefaultAutoSelectFamilyAttemptTimeout()).toBe(connectAttemptMs)
    expect(connectAttemptMs).toBeGreaterThan(250)
  } finally {
    setDefaultAutoSelectFamilyAttemptTimeout(before)
  }
})

test.each([
  { env: { NODE_USE_ENV_PROXY: '1' }, kind: EnvHttpProxyAgent },
  { env: { NODE_USE_ENV_PROXY: '0' }, kind: Agent },
  { env: {}, kind: Agent },
])('a client of ours goes by the proxy exactly where Node does: $env', async ({ env, kind }) => {
  const agent = createHttpAgent({ connections: 1, keepAliveTimeout: 1_000 }, env)
  expect(agent).toBeInstanceOf(kind)
  await agent.close()
})

import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'
import { Agent, EnvHttpProxyAgent } from 'undici'

/**
 * Node tries a host's addresses one after another and gives each 250 ms to connect (nodejs/node#54359): a node on another continent, or one whose first address
 * of two is slow, is never reached. Two seconds are still well below every time-out of a call.
 */
export const connectAttemptMs = 2_000

/** To be called once, before anything connects. */
export const setNetworkDefaults = (): void => setDefaultAutoSelectFamilyAttemptTimeout(connectAttemptMs)

/**
 * A pool of connections for a client of its own. With NODE_USE_ENV_PROXY=1 it goes by HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as Node's own fetch does then: a
 * client that passed by the proxy would be the one that fails where everything else works.
 */
export function createHttpAgent(
  options: { readonly connections: number; readonly keepAliveTimeout: number; readonly connect?: { readonly timeout: number } },
  env: Readonly<Record<string, string | undefined>> = process.env,
): Agent | EnvHttpProxyAgent {
  return env.NODE_USE_ENV_PROXY === '1' ? new EnvHttpProxyAgent(options) : new Agent(options)
}

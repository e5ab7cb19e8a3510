import { createStakingClient, type StakingClient } from '../../contract/client.ts'
import { StakingApiError } from '../../contract/client-error.ts'
import type { Clock } from '../../lib/clock.ts'
import { Secret } from '../../lib/secret.ts'
import { readApiKey } from '../../operator/networks/networks.ts'
import type { NetworksFile, StakingApiConfig } from '../../operator/networks/networks-file.ts'
import { type Finding, failed, ok, saying, warning } from './finding.ts'

interface Around {
  readonly clock: Clock
  readonly userAgent: string
}
type Chain = 'Ethereum' | 'Solana'
interface Api {
  readonly api: StakingApiConfig
  readonly networks: { readonly name: string; readonly chain: Chain }[]
}

/** Each staking API once, with the key and for the networks that the file has for it. */
export async function lookAtApis(file: NetworksFile, around: Around, signal: AbortSignal): Promise<readonly Finding[]> {
  const apis = new Map<string, Api>()
  for (const { api, config } of [...file.ethereum, ...file.solana]) {
    const id = JSON.stringify([api.url, api.apiKeyFile])
    const entry = apis.get(id) ?? { api, networks: [] }
    entry.networks.push(config)
    apis.set(id, entry)
  }
  return (await Promise.all([...apis.values()].map((one) => lookAtApi(one, around, signal)))).flat()
}

async function lookAtApi({ api, networks }: Api, around: Around, signal: AbortSignal): Promise<readonly Finding[]> {
  const names = networks.map(({ name }) => name)
  const about = `for ${names.join(', ')}`
  try {
    await readApiKey(api.apiKeyFile)
  } catch (error) {
    return [failed('staking API', about, saying(error))]
  }
  const clientWith = (apiKey: () => Promise<Secret> | Secret) =>
    createStakingClient({ baseUrl: api.url, apiKey, timeoutMs: api.timeoutMs, ...around })
  const client = clientWith(() => readApiKey(api.apiKeyFile))
  try {
    const { body } = await client.listNetworks({}, signal)
    const served = new Set(body.networks.map(({ network }) => network))
    const lacking = names.filter((name) => !served.has(name))
    return [
      lacking.length === 0
        ? ok('staking API', about, 'it takes the API key and serves these networks')
        : failed(
            'staking API',
            about,
            `it takes the API key, and does not serve ${lacking.join(', ')}: it serves ${[...served].join(', ') || 'none'}`,
          ),
      ...clockFinding(about, client.clockAheadMs()),
    ]
  } catch (error) {
    if (!(error instanceof StakingApiError) || error.status !== 404) return [refused(about, api, error)]
    if (error.code !== 'not-found') return [noStakingApi(about, error), ...clockFinding(about, client.clockAheadMs())]
    const stranger = clientWith(() => NO_KEY)
    try {
      const [withNone, withKey] = await Promise.all(
        [stranger, client].map((one) => answerOf(one, networks[0]?.chain ?? 'Ethereum', signal)),
      )
      return [notListed(about, api, withNone, withKey), ...clockFinding(about, client.clockAheadMs())]
    } finally {
      await stranger.close()
    }
  } finally {
    await client.close()
  }
}

function refused(about: string, api: StakingApiConfig, error: unknown): Finding {
  return error instanceof StakingApiError && (error.status === 401 || error.status === 403)
    ? failed('staking API', about, `it refuses the key in ${api.apiKeyFile} (${error.status}): have one made, and put it there`)
    : failed('staking API', about, saying(error))
}

function noStakingApi(about: string, { kind }: StakingApiError): Finding {
  return kind === 'problem'
    ? warning(
        'staking API',
        about,
        'it answers 404 without a code of the staking API, and does not list its networks: whether it is one, and takes the key, is not known. Check stakingApi.url',
      )
    : failed(
        'staking API',
        about,
        "it answers 404 with something else than the staking API's own problem: another host or path answers. Check stakingApi.url",
      )
}

/** Well-formed, and of no stake. */
const ZEROS = '0'.repeat(32)
const NO_KEY = new Secret('not-an-api-key')

/** What the API answers who asks for a stake that can't be there: an error, or undefined where it has one. Never throws. */
async function answerOf(client: StakingClient, chain: Chain, signal: AbortSignal): Promise<unknown> {
  const request = { params: { stakeId: ZEROS } }
  try {
    await (chain === 'Ethereum' ? client.getEthereumStake(request, signal) : client.getSolanaStake(request, signal))
    return undefined
  } catch (error) {
    return error
  }
}

/**
 * To list the networks is an addition to the interface, and who has nothing at a path may say so before looking at any key, as the service does itself where the
 * URL has a wrong path. So a route is asked that every staking API has: to a key that is none it has to answer 401, and to the right one that there is no such stake.
 */
function notListed(about: string, api: StakingApiConfig, withNone: unknown, withKey: unknown): Finding {
  const statusOf = (answer: unknown) => (answer instanceof StakingApiError ? answer.status : undefined)
  const says = (answer: unknown) => (answer === undefined ? 'it has one' : saying(answer))
  const isGone = withKey instanceof StakingApiError && withKey.code === 'not-found'
  if (statusOf(withKey) === 401 || statusOf(withKey) === 403) return refused(about, api, withKey)
  if (!isGone)
    return failed(
      'staking API',
      about,
      `it does not list its networks, and asked for a stake of zeros, it should answer 404 not-found: ${says(withKey)}. Check stakingApi.url, and look again`,
    )
  const status = statusOf(withNone)
  if (status === 401) return ok('staking API', about, 'it takes the API key; it does not list its networks')
  return status === 404
    ? failed(
        'staking API',
        about,
        "asked for a stake with a key that can't be one, it answers 404 and not 401: no key is looked at there. The path of stakingApi.url is wrong, or it is no staking API: check it",
      )
    : warning(
        'staking API',
        about,
        `it does not list its networks, and asked for a stake with a key that can't be one, it should answer 401: ${says(withNone)}. Whether it takes the API key is not known: check stakingApi.url, and look again`,
      )
}

/** Challenges of Solana stakes run out by the API's clock. */
const MOST_AHEAD_MS = 30_000
const clockFinding = (about: string, aheadMs: number | undefined): readonly Finding[] =>
  aheadMs === undefined || Math.abs(aheadMs) < MOST_AHEAD_MS
    ? []
    : [
        warning(
          'staking API',
          about,
          `its clock is ${Math.round(Math.abs(aheadMs) / 1000)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} this one: set both (NTP)`,
        ),
      ]

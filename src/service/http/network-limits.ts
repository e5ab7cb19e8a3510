import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Route, routes } from '../../contract/routes.ts'
import { ProblemError } from '../errors.ts'

export interface ResourceNetworks {
  /** Of a stake, exit or withdrawal of the account, by its id; undefined when it has none with this id. */
  ofResource(account: string, id: string): Promise<string | undefined>
  /** Those that the account's stakes and requests of a validator are on. */
  ofRecords(account: string, pubkey: string): Promise<readonly string[]>
  /** Whether a request has its answer already, under its Idempotency-Key. @throws ProblemError where the key belongs to another request */
  isAnswered(request: FastifyRequest): Promise<boolean>
  /** Where the validator is, as an operation finds it; undefined when nowhere. @throws ProblemError */
  ofValidator(account: string, pubkey: string, signal: AbortSignal): Promise<string | undefined>
}

export type NetworkCheck = (request: FastifyRequest) => Promise<void>

const lookMs = 10_000
/** Their handlers leave out what is on other networks. */
const filtered: ReadonlySet<Route> = new Set<Route>([routes.listEthereumStakes, routes.listSolanaStakes, routes.listNetworks])

/** Their bodies say where. ▸ Of any other route a `network` says nothing: what an account has for all its networks is not changed in the name of one. */
const created: ReadonlySet<Route> = new Set<Route>([routes.createEthereumStake, routes.createSolanaStake])

/**
 * Keeps an API key that is for some networks to them: 403 for anything else, before it takes effect or is read. What isn't known to be on one of its
 * networks is refused.
 */
export function createNetworkCheck(networks: ResourceNetworks): NetworkCheck {
  return async (request) => {
    const route = request.routeOptions.config.contract
    const { caller } = request
    const permitted = caller?.networks
    if (route === undefined || caller === undefined || permitted === undefined) return
    const { account } = caller
    const permit = (network: string | undefined) => {
      if (network !== undefined && !permitted.includes(network)) {
        throw new ProblemError('forbidden', 'this API key may not be used for this network')
      }
    }
    const named = [fieldOf(request.query, 'network'), fieldOf(request.givenBody, 'network')].filter((one) => one !== undefined)
    for (const network of named) permit(network)
    const [stakeId, requestId, pubkey] = ['stakeId', 'requestId', 'pubkey'].map((name) => fieldOf(request.params, name))
    const id = stakeId ?? requestId
    // An id that is none of the account's is 404 to everybody.
    if (id !== undefined) return permit(await networks.ofResource(account, id))
    if (pubkey !== undefined) {
      for (const network of await networks.ofRecords(account, pubkey.toLowerCase())) permit(network)
      // A list shows the account's records, and nothing else; and one of them is what was answered, though its network can't be asked any more.
      if (route === routes.listExitRequests || route === routes.listWithdrawalRequests || (await networks.isAnswered(request))) return
      return permit(await networks.ofValidator(account, pubkey.toLowerCase(), AbortSignal.timeout(lookMs)))
    }
    if (filtered.has(route) || (created.has(route) && named.length > 0)) return
    throw new ProblemError('forbidden', 'an API key for some networks may not do this')
  }
}

export const installNetworkCheck = (app: FastifyInstance, check: NetworkCheck) =>
  app.addHook('preHandler', (request, _reply, done) => {
    if (request.caller?.networks === undefined) return done()
    check(request).then(() => done(), done)
  })

function fieldOf(value: unknown, name: string): string | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
  const field = (value as Record<string, unknown>)[name]
  return typeof field === 'string' ? field : undefined
}

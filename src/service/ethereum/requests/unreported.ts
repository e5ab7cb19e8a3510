import { ChainError, type ChainHead } from '../../../chains/ethereum/chain.ts'
import type { ScannedRequest } from '../../../chains/ethereum/request-logs.ts'
import type { Clock } from '../../../lib/clock.ts'
import type { Logger } from '../../../lib/log.ts'
import type { Store } from '../../store/database.ts'
import {
  awaitedOf,
  awaitedSenders,
  insertRequestMark,
  moveRequestMark,
  takeRequestMark,
  type UnreportedRequest,
} from '../../store/unreported-requests.ts'
import { keyOf, type TurnLimits, takeUnreported } from '../../store/unreported-turns.ts'
import type { EthereumNetwork } from '../networks.ts'
import { createUnreportedJudge } from './unreported-judge.ts'

/** Blocks of one read, and reads of one pass: a service that was away for a month of mainnet has caught up in two passes. */
const blocksAtOnce = 10_000n
const maxReads = 20
/** The logs are read at every so many-th poll: a request that nobody reports is no hurry. */
const pollsBetween = 5
/** Requests that one pass judges, and of those that the chain can't tell apart. */
const turnLimits: TurnLimits = { rows: 10_000, perGroup: 1_000 }

export interface UnreportedRequests {
  /** Goes on through the requests of a network when it is due. What the chain can't tell now is looked for later. */
  pass(network: EthereumNetwork, head: ChainHead, signal: AbortSignal): Promise<void>
}

/**
 * Sees requests in the logs of the EIP-7002 contract that nobody has reported: their hash was lost, another one was reported, or whoever sent them is gone. In a
 * final block one is recorded as if it were reported, and followed as any other. Where several stored requests may have made it, all are told, and none is taken for sent.
 */
export function createUnreportedRequests(deps: { store: Store; clock: Clock; log: Logger; limits?: TurnLimits }): UnreportedRequests {
  const { clock, log, limits = turnLimits } = deps
  const { db } = deps.store
  const judge = createUnreportedJudge({ ...deps, perGroup: limits.perGroup })

  /** @returns whether anything was read */
  async function readOn(network: EthereumNetwork, head: ChainHead, signal: AbortSignal): Promise<boolean> {
    const { config, requests: scan } = network
    if (scan === undefined) return false
    const { name, pollIntervalMs } = config
    const mark = await takeRequestMark(db, name, Math.max(pollIntervalMs * pollsBetween, 1_000))
    if (mark === undefined) return false
    if (mark === 'none') {
      await insertRequestMark(db, name, head.final)
      return false
    }
    let from = mark
    for (let read = 0; read < maxReads && from < head.final; read++) {
      const to = from + blocksAtOnce < head.final ? from + blocksAtOnce : head.final
      const { requests, isWhole } = await scan.requestsBetween(from + 1n, to, signal)
      await moveRequestMark(db, name, { from, to: isWhole ? to : from }, await mayBeOurs(name, requests))
      // A node that can't answer now may show more.
      if (!isWhole) break
      from = to
    }
    return true
  }

  /** Most logs are those of others, whoever they are: nobody can log a request from an address that is not their own. */
  async function mayBeOurs(network: string, logged: readonly ScannedRequest[]): Promise<UnreportedRequest[]> {
    const own = await awaitedSenders(db, network, [...new Set(logged.map(({ source }) => source))])
    const requests = logged.filter(({ source }) => own.has(source))
    const pubkeys = [...new Set(requests.map(({ request }) => request.pubkey))]
    const awaited = new Set((await awaitedOf(db, network, pubkeys)).map(keyOf))
    return requests.flatMap(({ source, request, transactionHash: hash, blockNumber }) => {
      const alike = { network, pubkey: request.pubkey, amount_gwei: request.kind === 'exit' ? 0n : request.amountGwei, sender: source }
      return awaited.has(keyOf(alike)) ? [{ ...alike, hash, block_number: blockNumber, seen_at: clock.now() }] : []
    })
  }

  async function orLater<T>(network: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof ChainError)) throw error
      log.debug({ err: error, network }, 'requests that nobody has reported could not be looked for; it tries again')
      return undefined
    }
  }

  return {
    async pass(network, head, signal) {
      const { name } = network.config
      // What was found before is judged also where no node shows logs now.
      if ((await orLater(name, () => readOn(network, head, signal))) === false) return
      await orLater(name, async () => judge(network, await takeUnreported(db, name, limits), signal))
    },
  }
}

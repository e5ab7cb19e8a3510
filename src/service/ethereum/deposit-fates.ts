import { type BeaconChain, BeaconError } from '../../chains/ethereum/beacon.ts'
import { slotAt } from '../../chains/ethereum/beacon-time.ts'
import { ChainError, type Pubkey } from '../../chains/ethereum/chain.ts'
import { creditedTo, type DepositFate, depositFate } from '../../chains/ethereum/deposit-fate.ts'
import { processingSlot } from '../../chains/ethereum/processing-slot.ts'
import { formatEth, gwei } from '../../lib/amounts.ts'
import type { Logger } from '../../lib/log.ts'
import type { Metrics } from '../metrics.ts'
import type { Store } from '../store/database.ts'
import { recordConsensus, type StakeRow, takeUndecided } from '../store/stakes.ts'
import type { EthereumNetwork, ValidatorAccess } from './networks.ts'
import { expectedPayment } from './observe.ts'

/** Stakes of one pass: their keys are asked for 30 at a time, and the queue of deposits, tens of MB on a busy network, once for all of them. */
const batchSize = 300
/** What the contract of the API allows a reason. */
const maxReason = 1024

export interface DepositFates {
  /** Looks once at the stakes of a network that are due. What can't be told now is looked for later. */
  pass(network: EthereumNetwork, signal: AbortSignal): Promise<void>
}

/**
 * Follows deposits that are final until the consensus layer has made a validator of them, or has dropped them: once an epoch, by the finalized state.
 */
export function createDepositFates(deps: { store: Store; log: Logger; metrics: Metrics }): DepositFates {
  const { log, metrics } = deps
  const { db } = deps.store

  async function fates({ beacon, reads }: ValidatorAccess, rows: readonly StakeRow[], signal: AbortSignal) {
    const [genesis, spec] = await Promise.all([beacon.genesis(signal), beacon.spec(signal)])
    const view = await viewOf(
      beacon,
      rows.map(({ pubkey }) => pubkey),
      signal,
    )
    /** By block: several deposits may be of one. */
    const queuedIn = new Map<bigint, Promise<number | undefined>>()
    const queuedAt = (block: bigint): Promise<number | undefined> => {
      const known = queuedIn.get(block) ?? slotOf(block)
      queuedIn.set(block, known)
      return known
    }
    /** Undefined where no node tells: that is one deposit's, and not the others'. */
    const slotOf = async (block: bigint): Promise<number | undefined> => {
      try {
        return (await processingSlot(beacon, spec, slotAt(genesis, spec, await reads.blockTime(block, signal)), signal))?.slot
      } catch (error) {
        if (error instanceof ChainError || error instanceof BeaconError) return undefined
        throw error
      }
    }

    return Promise.all(
      rows.map(async (row): Promise<{ readonly row: StakeRow; readonly fate: DepositFate }> => {
        const { pubkey, withdrawalCredentials, amountGwei, signature } = expectedPayment(row)
        const validator = view.validators.get(row.pubkey)
        if (validator !== undefined) return { row, fate: creditedTo(validator, { pubkey, withdrawalCredentials }) }
        if ('unread' in view) return { row, fate: { is: 'unknown', reason: `the queue of deposits can't be read: ${view.unread}` } }
        const at = row.block_number === null ? undefined : await queuedAt(row.block_number)
        if (at === undefined) return { row, fate: { is: 'unknown', reason: 'the slot that queued the deposit is not known' } }
        const deposit = { pubkey, withdrawalCredentials, amountGwei: gwei(amountGwei), signature }
        return { row, fate: depositFate({ deposit, view, queuedAt: at, genesisForkVersion: genesis.genesisForkVersion }) }
      }),
    )
  }

  async function record(network: string, row: StakeRow, fate: DepositFate): Promise<void> {
    const columns = columnsOf(fate)
    if (columns.consensus_status === row.consensus_status && columns.consensus_reason === row.consensus_reason) return
    if (!(await recordConsensus(db, row.id, columns)) || fate.is !== 'dropped') return
    metrics.stakeSettled(network, 'dropped')
    log.error(
      { stakeId: row.id, network, pubkey: row.pubkey, hash: row.hash, reason: fate.reason },
      "the consensus layer has dropped a stake's deposit",
    )
  }

  return {
    async pass({ config, validators: access }, signal) {
      if (access === undefined) return
      try {
        const rows = await takeUndecided(db, {
          network: config.name,
          limit: batchSize,
          intervalMs: Math.max(await epochMs(access.beacon, signal), config.pollIntervalMs),
        })
        if (rows.length === 0) return
        for (const { row, fate } of await fates(access, rows, signal)) await record(config.name, row, fate)
      } catch (error) {
        if (!(error instanceof BeaconError) && !(error instanceof ChainError)) throw error
        log.debug({ err: error, network: config.name }, 'what became of deposits could not be looked at; it tries again')
      }
    },
  }
}

/** Who is in the registry needs no queue: a node may not serve it, and then nothing is told of the others. */
async function viewOf(beacon: BeaconChain, pubkeys: readonly Pubkey[], signal: AbortSignal) {
  try {
    return await beacon.depositView(pubkeys, 'finalized', signal)
  } catch (error) {
    if (!(error instanceof BeaconError)) throw error
    return { ...(await beacon.validators(pubkeys, 'finalized', signal)), unread: error.message }
  }
}

async function epochMs(beacon: BeaconChain, signal: AbortSignal): Promise<number> {
  const { slotDurationMs, slotsPerEpoch } = await beacon.spec(signal)
  return slotDurationMs * slotsPerEpoch
}

function columnsOf(fate: DepositFate): Pick<StakeRow, 'consensus_status' | 'consensus_reason'> {
  switch (fate.is) {
    case 'credited':
      return { consensus_status: 'accepted', consensus_reason: null }
    case 'dropped':
      return { consensus_status: 'dropped', consensus_reason: fate.reason.slice(0, maxReason) }
    case 'queued':
      return {
        consensus_status: 'pending',
        consensus_reason: `it is in the queue of deposits, behind ${formatEth(gwei(fate.aheadGwei - (fate.aheadGwei % gwei(1_000_000_000n))))} ETH of others`,
      }
    case 'unknown':
      return { consensus_status: 'pending', consensus_reason: fate.reason.slice(0, maxReason) }
  }
}

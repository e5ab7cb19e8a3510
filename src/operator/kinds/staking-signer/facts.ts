import type { Clock, Instant } from '../../../lib/clock.ts'
import type { LimitUse } from '../../../resources/signer-limits.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { classify } from '../../engine/classify.ts'
import type { KubeObject } from '../../kube/objects.ts'
import type { EthereumKeys, Networks, SolanaKeys } from '../../ports.ts'
import { addressOf } from '../../transactions/ethereum-texts.ts'
import { neededBy } from '../../transactions/funds.ts'
import { limitsOf, longestOf, solanaAccount, usesOf } from '../../transactions/limits.ts'
import { laneKey } from '../../transactions/names.ts'
import { problemOf } from '../../transactions/policy.ts'
import { closedOf, highestPlace, nextPlaces } from '../../transactions/protocol.ts'
import { isOpen } from '../../transactions/solana/holders.ts'
import { type RecordObject, recordOf, type TransactionStore } from '../../transactions/store.ts'
import { duplicateOf, isAddressOf } from './duplicate.ts'
import { limitUses } from './limits.ts'
import type { KeyNeed } from './need.ts'
import type { SignerFacts } from './status.ts'

type Signer = StakingSigner & KubeObject
type NetworkFacts = SignerFacts['networks'][number]

/** A transaction of somebody else that has used a nonce which was given out. */
interface Foreign {
  readonly nonce: number
  readonly hash: string
}

/** The newest of them, in the log and under numbers that no record accounts for, unless a person has looked at it. */
function foreignIn(records: readonly RecordObject[], strangers: readonly Foreign[], acknowledged: number): Foreign | undefined {
  const closed = records.flatMap((record) => closedOf(recordOf(record))).filter(({ by }) => by === 'Foreign')
  return [...closed, ...strangers].filter(({ nonce }) => nonce >= acknowledged).toSorted((a, b) => b.nonce - a.nonce)[0]
}

const countsOf = (records: readonly RecordObject[]): { readonly open: number; readonly waiting: number } => {
  const open = records.filter(isOpen).length
  return { open, waiting: records.length - open }
}

/** A balance that was read before that says nothing of what there is now. */
const STALE_MS = 5 * 60_000

/** What an address holds and what it has to pay yet, in wei or lamports. */
export interface BalanceReading {
  readonly balance: bigint
  readonly needed: bigint
  readonly at: Instant
}

export interface SignerFactsDeps {
  readonly networks: Networks
  readonly clock: Clock
  readonly keys: EthereumKeys
  readonly solanaKeys: Pick<SolanaKeys, 'address' | 'probe'>
  readonly transactions: Pick<TransactionStore, 'liveIn' | 'placesIn' | 'readPlaces' | 'unsettledOf' | 'signedSince'>
  readonly all: () => Iterable<Signer>
  /** Lamports that a record has to pay once it is signed. */
  readonly lamportsOf: (record: RecordObject) => bigint
  /** Whether what a record was made for is still there. */
  readonly isClaimed: (record: RecordObject) => boolean
  readonly need: (signer: Signer) => KeyNeed
  /** Others' transactions under numbers that no record accounts for, by lane; and whether they were looked for since this process began. */
  readonly strangers: { readonly in: (lane: string) => readonly Foreign[]; readonly isLookedThrough: (lane: string) => boolean }
  readonly onBalance: (signer: string, network: string, reading: BalanceReading) => void
}

/** The address of a signer's mounted key, or why there is none. */
async function keyOf(
  { keys, solanaKeys }: Pick<SignerFactsDeps, 'keys' | 'solanaKeys'>,
  signer: StakingSigner,
  signal: AbortSignal,
): Promise<SignerFacts['key']> {
  try {
    const mounted = signer.spec.chain === 'Solana' ? solanaKeys : keys
    await mounted.probe?.(signer.spec.keyName, signal)
    return { address: await mounted.address(signer.spec.keyName, signal) }
  } catch (error) {
    signal.throwIfAborted()
    const verdict = classify(error)
    if (verdict.kind === 'stall') return { reason: verdict.reason, message: verdict.message }
    if (verdict.kind === 'wait') return { reason: verdict.reason, message: verdict.message, passes: true }
    throw error
  }
}

/** Of the log alone: a chain that is away does not matter. */
function limitsOn(
  { networks, transactions, clock }: Pick<SignerFactsDeps, 'networks' | 'transactions' | 'clock'>,
  signer: Signer,
  name: string,
): readonly LimitUse[] {
  const { chain } = signer.spec
  const limits = limitsOf(signer.spec)
  if ('problem' in limits || limits.length === 0) return []
  const [ethereum, solana] = [networks.ethereum(name), networks.solana(name)]
  const account =
    chain === 'Solana'
      ? solana && solanaAccount(solana.config.genesisHash, signer.spec.address)
      : ethereum && laneKey({ chainId: ethereum.config.chainId, address: addressOf(signer) })
  if (account === undefined) return []
  const nowMs = clock.now().getTime()
  const uses = [...transactions.signedSince(account, nowMs - longestOf(limits))].flatMap((record) => usesOf(record, false))
  return limitUses(limits, uses, { network: name, chain, nowMs, at: (ms) => new Date(ms) })
}

/** The places of a lane, and what comes next. The cache may lag behind the log: nobody is alarmed before it was read afresh. */
async function placesNow<Next extends { readonly is: string }>(
  transactions: SignerFactsDeps['transactions'],
  lane: Parameters<SignerFactsDeps['transactions']['placesIn']>[0],
  nextOf: (places: ReturnType<SignerFactsDeps['transactions']['placesIn']>) => Next,
  signal: AbortSignal,
) {
  const cached = transactions.placesIn(lane)
  const next = nextOf(cached)
  if (next.is !== 'unaccounted') return { places: cached, next }
  const places = await transactions.readPlaces(lane, signal)
  return { places, next: nextOf(places) }
}

/** Finds out what there is to say of a signer: its key, its funds, transactions that nobody accounts for. */
export function createSignerFacts(deps: SignerFactsDeps): (signer: Signer, signal: AbortSignal) => Promise<SignerFacts> {
  const { networks, transactions } = deps
  /** What was last known of a signer's funds: a node that is down for a moment is no news. */
  const readings = new Map<string, BalanceReading & { readonly readAtMs: number }>()

  /** A record that waits, and whose resource was deleted, asks for no funds. */
  const isAskedFor = (record: RecordObject): boolean => record.status?.place !== undefined || isOpen(record) || deps.isClaimed(record)

  async function networkFacts(signer: Signer, name: string, signal: AbortSignal): Promise<NetworkFacts> {
    const fundedWith = (balance: bigint, needed: bigint): Pick<NetworkFacts, 'name' | 'funds'> => {
      const reading = { balance, needed, at: deps.clock.now() }
      readings.set(`${signer.metadata.uid}/${name}`, { ...reading, readAtMs: deps.clock.monotonicMs() })
      deps.onBalance(signer.metadata.name, name, reading)
      return { name, funds: { ...reading, isStale: false } }
    }
    if (signer.spec.chain === 'Solana') {
      const cluster = networks.solana(name)
      if (cluster === undefined) return { name }
      const lamports = await cluster.chain.balance(signer.spec.address, 'confirmed', signal)
      const records = transactions.unsettledOf(signer.spec.address).filter((record) => networkName(record) === name && isAskedFor(record))
      const counts = countsOf(records)
      const needed = records
        .filter((record) => record.spec.from === signer.spec.address && !isOpen(record))
        .reduce((sum, record) => sum + deps.lamportsOf(record), 0n)
      return {
        ...fundedWith(lamports, needed),
        lane: { network: name, ...counts, balanceLamports: lamports.toString(), neededLamports: needed.toString() },
      }
    }
    const network = networks.ethereum(name)
    if (network === undefined) return { name }
    const address = addressOf(signer)
    const [counts, balance] = await Promise.all([network.chain.laneCounts(address, signal), network.chain.balance(address, signal)])
    // The log is read after the chain: a nonce that is given out meanwhile must not look like a stranger's.
    const lane = { chainId: network.config.chainId, address }
    const { acknowledgedNonce: acknowledged, policy } = signer.spec
    const use = { acknowledged, shared: policy.sharedKey === true }
    const { places, next } = await placesNow(transactions, lane, (held) => nextPlaces(held, counts, use, 1), signal)
    const unfinished = transactions.liveIn(lane).filter((record) => record.status?.outcome === undefined && isAskedFor(record))
    const open = unfinished.flatMap(({ status }) => status?.place ?? [])
    const needed = neededBy({ counts, records: unfinished })
    return {
      ...fundedWith(balance, needed),
      ...(next.is === 'unaccounted' ? { unaccounted: { first: next.from, count: next.count } } : {}),
      foreign: foreignIn(transactions.liveIn(lane), deps.strangers.in(laneKey(lane)), acknowledged ?? 0),
      isLookedThrough: places.size <= 1 || deps.strangers.isLookedThrough(laneKey(lane)),
      // Fillers among them, which no transaction names.
      mayLand: [...places.keys()].some((nonce) => nonce >= counts.final),
      lane: {
        network: name,
        nextNonce: Math.max(counts.final, (highestPlace(places) ?? -1) + 1),
        open: open.length,
        waiting: unfinished.length - open.length,
        ...(open.length === 0 ? {} : { oldestNonce: Math.min(...open) }),
        balanceWei: balance.toString(),
        neededWei: needed.toString(),
      },
    }
  }

  /** The configured network of a Solana record; its own word where its cluster is not configured any more. */
  const networkName = ({ spec }: RecordObject): string =>
    networks.names('Solana').find((name) => networks.solana(name)?.config.genesisHash === spec.genesisHash) ?? spec.network

  /** What a signer has on chains that are not configured any more: it is held for that all the same. */
  function lanesElsewhere({ spec }: StakingSigner): readonly NetworkFacts[] {
    const names = new Set(networks.names(spec.chain))
    const unsettled = transactions.unsettledOf(spec.address)
    if (spec.chain === 'Solana') {
      const groups = Map.groupBy(
        unsettled.filter((record) => !names.has(networkName(record))),
        networkName,
      )
      return [...groups].map(([name, records]) => ({ name, isElsewhere: true, lane: { network: name, ...countsOf(records) } }))
    }
    const chains = new Set([...names].flatMap((name) => networks.ethereum(name)?.config.chainId ?? []))
    const groups = Map.groupBy(
      unsettled.filter((record) => record.spec.chainId !== undefined && !chains.has(record.spec.chainId)),
      // Its name may be another chain's by now.
      (record) => (names.has(record.spec.network) ? `chain-${record.spec.chainId}` : record.spec.network),
    )
    return [...groups].map(([name, records]) => ({ name, isElsewhere: true, lane: { network: name, open: records.length, waiting: 0 } }))
  }

  async function networkOrLastKnown(signer: Signer, name: string, signal: AbortSignal): Promise<NetworkFacts> {
    try {
      return await networkFacts(signer, name, signal)
    } catch (error) {
      signal.throwIfAborted()
      classify(error)
      const last = readings.get(`${signer.metadata.uid}/${name}`)
      if (last === undefined) return { name }
      const { readAtMs, ...reading } = last
      return { name, funds: { ...reading, isStale: deps.clock.monotonicMs() - readAtMs >= STALE_MS } }
    }
  }

  return async (signer, signal) => {
    const key = await keyOf(deps, signer, signal)
    const known = networks.names(signer.spec.chain).map(async (name) => ({
      ...(await networkOrLastKnown(signer, name, signal)),
      limits: limitsOn(deps, signer, name),
    }))
    const onNetworks = [...(await Promise.all(known)), ...lanesElsewhere(signer)]
    return {
      key,
      matches: 'address' in key && isAddressOf(signer, key.address),
      duplicateOf: duplicateOf(signer, deps.all()),
      unreadable: problemOf(signer),
      networks: onNetworks,
      need: deps.need(signer),
      isInFlight: transactions.unsettledOf(signer.spec.address).length > 0 || onNetworks.some(({ mayLand }) => mayLand === true),
    }
  }
}

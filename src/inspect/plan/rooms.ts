import { formatEth, gwei } from '../../lib/amounts.ts'
import { sameHex } from '../../lib/hex.ts'
import { inWords, overLimitHalt } from '../../operator/transactions/limiter.ts'
import {
  amountOf,
  type Limit,
  limitsOf,
  type Over,
  overLimit,
  type Use,
  type Used,
  usedOf,
  usesOf,
} from '../../operator/transactions/limits.ts'
import type { RecordObject } from '../../operator/transactions/store.ts'
import { timestamp } from '../../resources/conditions.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import { type Draft, note } from './draft.ts'
import type { LimitEffect } from './planned.ts'
import type { World } from './world.ts'

/** What is asked of a signer's limits. */
export interface Request {
  readonly signer: StakingSigner
  readonly network: string
  readonly namespace: string
  /** Gwei or lamports that limits count. */
  readonly amount: bigint
  /** UIDs of the resource's own records: they are what is asked for. */
  readonly own: ReadonlySet<string>
}

/**
 * The room that limits and balances leave, resource after resource in their order: by the log, and by what of the manifests comes before. What waits for
 * room takes none.
 */
export interface Rooms {
  /** Says what of the limits is used and left. @returns whether there is room */
  ask(draft: Draft, request: Request): boolean
  /** Says what the log counts for the limits of a signer itself, on each network: they may be lower than what is used already. */
  stand(draft: Draft, signer: StakingSigner): void
  /** It takes its room. */
  take(request: Request): void
  /** Wei or lamports that those before it have taken of an address' balance, and what the log has to pay from there. */
  bound(request: Pick<Request, 'signer' | 'network' | 'own'>): bigint
  spend(request: Pick<Request, 'signer' | 'network'>, units: bigint): void
}

export function createRooms(world: World): Rooms {
  const taken = new Map<string, Use[]>()
  const spent = new Map<string, bigint>()
  const held = new Map<string, Over>()
  const nowMs = world.clock.now().getTime()
  const now = { clockMs: nowMs, blockMs: undefined }
  const claimed = claimsOf(world)

  const accountOf = ({ signer: { spec }, network }: Pick<Request, 'signer' | 'network'>): string =>
    `${spec.chain}/${network}/${spec.chain === 'Ethereum' ? spec.address.toLowerCase() : spec.address}`

  /** Records of an account: by the chain that the network is, where the file says which; otherwise by its name. */
  function recordsOf({ signer: { spec: signer }, network, own }: Pick<Request, 'signer' | 'network' | 'own'>): readonly RecordObject[] {
    const chainId = world.networks?.ethereum(network)?.config.chainId
    const genesis = world.networks?.solana(network)?.config.genesisHash
    return (world.records ?? []).filter(
      ({ metadata, spec }) =>
        !own.has(metadata.uid) &&
        spec.chain === signer.chain &&
        (spec.chain === 'Ethereum' ? sameHex(spec.from, signer.address) : spec.from === signer.address) &&
        (spec.chain === 'Ethereum'
          ? chainId === undefined
            ? spec.network === network
            : spec.chainId === chainId
          : genesis === undefined
            ? spec.network === network
            : spec.genesisHash === genesis),
    )
  }

  /** What the log counts, and what in it waits to be signed before this. */
  function usesNow(request: Request): { readonly counted: readonly Use[]; readonly ahead: readonly Use[] } {
    const records = recordsOf(request)
    const ahead = records.flatMap((record): readonly Use[] => {
      const amount = amountOf(record)
      const isWaiting =
        record.status?.outcome === undefined && usesOf(record, claimed.has(record.metadata.uid)).every(({ isOpen }) => !isOpen)
      return amount === undefined || !isWaiting ? [] : [{ atMs: nowMs, isOpen: true, amount, namespace: record.spec.owner.namespace }]
    })
    return { counted: records.flatMap((record) => usesOf(record, claimed.has(record.metadata.uid))), ahead }
  }

  return {
    ask(draft, request) {
      const { signer, namespace, amount } = request
      const limits = limitsOf(signer.spec)
      if ('problem' in limits || limits.length === 0) return true
      const { counted, ahead } = usesNow(request)
      const before = [...ahead, ...(taken.get(accountOf(request)) ?? [])]
      const over = overLimit(limits, [...counted, ...before], { amount, namespace }, now)
      const turn = `${accountOf(request)} ${namespace}`
      const behind = over === undefined ? held.get(turn) : undefined
      const isLogKnown = world.records !== undefined
      draft.limits.push(
        ...effects(limits, { request, counted, before, isLogKnown, hasRoom: over === undefined && behind === undefined, nowMs }),
      )
      if (over?.isAlone === true) {
        const { verdict } = overLimitHalt({ amount, namespace }, signer, over, nowMs)
        // Nothing lets it go but another limit: whoever reviews it should know before.
        if (verdict.kind !== 'conflict') draft.refusals.push({ by: 'operator', reason: verdict.reason, message: verdict.message })
        return false
      }
      if (over !== undefined) held.set(turn, over)
      const first = over ?? behind
      if (first !== undefined) {
        // What nobody has signed yet has no time: the same manifests give the same plan.
        if (first.freesAtMs !== undefined && first.freesAtMs < nowMs + first.limit.windowMs)
          return note(draft, overLimitHalt({ amount, namespace }, signer, first, nowMs, behind !== undefined))
        const { limit } = first
        draft.waits.push({
          by: 'operator',
          reason: 'LimitReached',
          message: `StakingSigner ${signer.metadata.name} may sign ${inWords(limit, signer.spec.chain, namespace)} (spec.policy.limits), and there is no room for this one beside what comes before it. It goes on when some of that counts no more, ${limit.window} after it was signed, or when the limit is raised.`,
        })
        return false
      }
      if (!isLogKnown)
        draft.unknown.push(`what of the limits of StakingSigner ${signer.metadata.name} is used already: the log was not read`)
      return true
    },

    stand(draft, signer) {
      const limits = limitsOf(signer.spec)
      if ('problem' in limits) return
      // Each chain once, by the last name that it had.
      const networks = new Map((world.records ?? []).map(({ spec }) => [spec.chainId ?? spec.genesisHash, spec.network]))
      for (const network of [...networks.values()].toSorted()) {
        const { counted } = usesNow({ signer, network, namespace: '', amount: 0n, own: new Set() })
        for (const used of usedOf(limits, counted, now)) {
          // The smallest that there is.
          const over = overLimit([used.limit], counted, { amount: 1n, namespace: used.namespace ?? '' }, now)
          if (used.count > 0) tellUsed(draft, signer, network, used, over)
        }
      }
    },

    take(request) {
      const account = accountOf(request)
      const { amount, namespace } = request
      taken.set(account, [...(taken.get(account) ?? []), { atMs: nowMs, isOpen: true, amount, namespace }])
    },

    bound: (request) => recordsOf(request).reduce((sum, record) => sum + costOf(record), 0n) + (spent.get(accountOf(request)) ?? 0n),

    spend(request, units) {
      const account = accountOf(request)
      spent.set(account, (spent.get(account) ?? 0n) + units)
    },
  }
}

/** UIDs of records for which a place was taken that they do not account for. */
function claimsOf({ records = [], places = [] }: World): ReadonlySet<string> {
  const taken = Map.groupBy(places, ({ spec }) => spec.transaction?.uid ?? '')
  return new Set(
    records.flatMap(({ metadata: { uid }, status }) =>
      status?.outcome === undefined &&
      (taken.get(uid) ?? []).some(
        ({ spec: { nonce } }) => status?.place !== nonce && !(status?.closed ?? []).some((closed) => closed.nonce === nonce),
      )
        ? [uid]
        : [],
    ),
  )
}

/** Wei or lamports that a record may have to pay yet. */
function costOf(record: RecordObject): bigint {
  const { spec, status } = record
  if (status?.outcome !== undefined) return 0n
  if (spec.chain === 'Solana') return spec.purpose === 'SolanaStake' ? (amountOf(record) ?? 0n) : 0n
  const attempts = (status?.attempts ?? []).map(
    ({ valueWei, gas, maxFeePerGasWei }) => BigInt(valueWei ?? '0') + BigInt(gas ?? '0') * BigInt(maxFeePerGasWei ?? '0'),
  )
  return [BigInt(spec.call?.valueWei ?? '0'), ...attempts].reduce((most, cost) => (cost > most ? cost : most), 0n)
}

/** What each limit has left, for people. */
function effects(
  limits: readonly Limit[],
  {
    request: { signer, namespace, amount },
    counted,
    before,
    isLogKnown,
    hasRoom,
    nowMs,
  }: {
    readonly request: Request
    readonly counted: readonly Use[]
    readonly before: readonly Use[]
    readonly isLogKnown: boolean
    readonly hasRoom: boolean
    readonly nowMs: number
  },
): readonly LimitEffect[] {
  const { chain } = signer.spec
  const now = { clockMs: nowMs, blockMs: undefined }
  const usedIn = (limit: Limit, uses: readonly Use[]): Used | undefined => {
    const ofNamespace = limit.per === 'Namespace' ? uses.filter((use) => use.namespace === namespace) : uses
    return usedOf([limit], ofNamespace, now)[0]
  }
  return limits.map((limit) => {
    const is = usedIn(limit, counted)
    const after = usedIn(limit, [...counted, ...before, ...(hasRoom ? [{ atMs: nowMs, isOpen: true, amount, namespace }] : [])])
    const allows = inWords(limit, chain, namespace)
    if (!isLogKnown) return { signer: signer.metadata.name, allows }
    return { signer: signer.metadata.name, allows, ...usageOf(limit, chain, is, after) }
  })
}

type Counted = Pick<Used, 'count' | 'total' | 'freesAtMs'>

/** What is used now, and left after something more, for people. */
function usageOf(
  limit: Limit,
  chain: StakingSigner['spec']['chain'],
  is: Counted = { count: 0, total: 0n, freesAtMs: undefined },
  after: Pick<Used, 'count' | 'total'> = is,
): Pick<LimitEffect, 'used' | 'leftAfter' | 'freesAt'> {
  const { maxCount, maxTotal } = limit
  const words = (count: number, total: bigint): string =>
    [
      ...(maxCount === undefined ? [] : [`${count} transaction${count === 1 ? '' : 's'}`]),
      ...(maxTotal === undefined ? [] : [`${formatEth(gwei(total))} ${chain === 'Solana' ? 'SOL' : 'ETH'}`]),
    ].join(' and ')
  const left = (most: bigint, used: bigint): bigint => (used < most ? most - used : 0n)
  return {
    used: words(is.count, is.total),
    leftAfter: words(Math.max(0, (maxCount ?? 0) - after.count), left(maxTotal ?? 0n, after.total)),
    ...(is.freesAtMs === undefined ? {} : { freesAt: timestamp(new Date(is.freesAtMs)) }),
  }
}

/** What of a limit is used on a network. @param over where nothing more may be signed now, until when */
function tellUsed(draft: Draft, { metadata, spec: { chain } }: StakingSigner, network: string, used: Used, over: Over | undefined): void {
  const { limit, namespace = '', count } = used
  const allows = `${inWords(limit, chain, namespace)} on ${network}`
  const usage = usageOf(limit, chain, used)
  draft.limits.push({ signer: metadata.name, allows, ...usage })
  if (over === undefined) return
  const until = over.freesAtMs === undefined ? 'as long as that may land' : `before ${timestamp(new Date(over.freesAtMs))}`
  draft.waits.push({
    by: 'operator',
    reason: 'LimitReached',
    message: `It may sign ${allows} (spec.policy.limits), and ${usage.used} ${count === 1 ? 'is' : 'are'} used already: nothing more is signed ${until}.`,
  })
}

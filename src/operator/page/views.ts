import type { Clock } from '../../lib/clock.ts'
import { ethereumStake } from '../../resources/ethereum-stake.ts'
import { solanaStake } from '../../resources/solana-stake.ts'
import { solanaStakeAuthorization } from '../../resources/solana-stake-authorization.ts'
import { stakingSigner } from '../../resources/staking-signer.ts'
import { validatorExit } from '../../resources/validator-exit.ts'
import { validatorWithdrawal } from '../../resources/validator-withdrawal.ts'
import type { Caches } from '../caches.ts'
import { cacheKey } from '../kube/objects.ts'
import { ownerKey, type RecordObject } from '../transactions/store.ts'
import type { Shown, Target } from './facts.ts'
import { createFleetIndex } from './fleet-index.ts'
import { fleetPage } from './fleet-page.ts'
import type { Drawing, Instance } from './layout.ts'
import type { RememberedEvent } from './remembered-events.ts'
import { missingPage, resourcePage } from './resource-page.ts'
import { SIGNERS_A_PAGE, signerPage, signersPage } from './signer-pages.ts'

/** The pages, drawn. Undefined where what is asked for is not there. */
export interface Views {
  fleet(query: URLSearchParams): string
  resource(target: Target): string | undefined
  signers(query: URLSearchParams): string
  signer(name: string): string | undefined
  /** @param depth folders between the path and the root of the pages */
  missing(depth: number): string
}

/** A collection without its client: a view can ask the API server for nothing. */
interface Read<
  C extends { readonly cache: { readonly get: unknown; readonly list: unknown; readonly byIndex: unknown }; readonly onChange: unknown },
> {
  readonly cache: Pick<C['cache'], 'get' | 'list' | 'byIndex'>
  readonly onChange: C['onChange']
}

export interface ViewsDeps {
  readonly caches: { readonly [Name in Exclude<keyof Caches, 'places'>]: Read<Caches[Name]> }
  readonly events: { of(uid: string): readonly RememberedEvent[] }
  readonly instance: () => Instance
  readonly clock: Clock
}

/** Transactions of one resource that are shown, the latest. */
const MOST_RECORDS = 20

const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
const byCreation = (a: RecordObject, b: RecordObject): number =>
  compareTexts(a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? '')

/** A number of a page; 1 for what is none. */
const pageOf = (query: URLSearchParams): number => {
  const text = query.get('page') ?? ''
  return /^[1-9][0-9]{0,6}$/.test(text) ? Number(text) : 1
}

/** Reads the pages from the caches. To be made before the caches run: it keeps the names and the states of all resources from then on. */
export function createViews({ caches, events, instance, clock }: ViewsDeps): Views {
  const { stakes, exits, withdrawals, solanaStakes, authorizations, signers, records } = caches
  const index = createFleetIndex(clock)
  index.follow(ethereumStake.kind, stakes)
  index.follow(validatorExit.kind, exits)
  index.follow(validatorWithdrawal.kind, withdrawals)
  index.follow(solanaStake.kind, solanaStakes)
  index.follow(solanaStakeAuthorization.kind, authorizations)
  index.follow(stakingSigner.kind, signers)
  const finders: Readonly<Record<string, (key: string) => unknown>> = {
    [ethereumStake.kind]: stakes.cache.get,
    [validatorExit.kind]: exits.cache.get,
    [validatorWithdrawal.kind]: withdrawals.cache.get,
    [solanaStake.kind]: solanaStakes.cache.get,
    [solanaStakeAuthorization.kind]: authorizations.cache.get,
    [stakingSigner.kind]: signers.cache.get,
  }

  /** From the cache of its kind; undefined for a kind that has no page. */
  const find = ({ kind, namespace, name }: Target): Shown | undefined =>
    Object.hasOwn(finders, kind)
      ? (finders[kind]?.(cacheKey(namespace === '' ? { name } : { namespace, name })) as Shown | undefined)
      : undefined

  const drawing = (depth: number): Drawing => ({ instance: instance(), now: clock.now(), root: '../'.repeat(depth) })
  const signerView = (name: string) => {
    const signer = signers.cache.get(name)
    return signer === undefined
      ? undefined
      : { signer, records: records.cache.byIndex('signer', name), events: events.of(signer.metadata.uid) }
  }

  return {
    fleet(parameters) {
      const of = (field: string): string => (parameters.get(field) ?? '').slice(0, 253)
      const query = { namespace: of('namespace'), kind: of('kind'), state: of('state'), name: of('name').trim(), page: pageOf(parameters) }
      const view = index.view(query)
      const rows = view.entries.map((entry) => ({ ...entry, object: find(entry) }))
      return fleetPage(drawing(0), query, view, rows)
    },
    resource(target) {
      const object = target.namespace === '' ? undefined : find(target)
      if (object === undefined) return undefined
      const found = records.cache.byIndex('owner', ownerKey(target)).sort(byCreation).slice(-MOST_RECORDS)
      return resourcePage(drawing(3), { target, object, records: found, events: events.of(object.metadata.uid) })
    },
    signers(parameters) {
      const names = [...signers.cache.list()].map(({ metadata }) => metadata.name).sort(compareTexts)
      const pages = Math.max(1, Math.ceil(names.length / SIGNERS_A_PAGE))
      const page = Math.min(pageOf(parameters), pages)
      const shown = names.slice((page - 1) * SIGNERS_A_PAGE, page * SIGNERS_A_PAGE)
      return signersPage(
        drawing(0),
        shown.flatMap((name) => signerView(name) ?? []),
        { page, pages },
      )
    },
    signer(name) {
      const view = signerView(name)
      return view === undefined ? undefined : signerPage(drawing(1), view)
    },
    missing: (depth) => missingPage(drawing(depth)),
  }
}

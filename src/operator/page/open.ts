import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/log.ts'
import type { Caches } from '../caches.ts'
import type { KubeCollections } from '../kube/collections.ts'
import type { EventRecorder } from '../kube/events.ts'
import type { LeaderElector } from '../kube/leader-election.ts'
import type { OperatorOptions } from '../options.ts'
import { isSuspended } from '../suspension.ts'
import { createPage, type Page } from './page.ts'
import { rememberEvents } from './remembered-events.ts'
import { createViews } from './views.ts'

/**
 * The web page of an instance, where it is asked for, and the recorder that its events are to go by. To be called before the caches run. Without `ui` nothing is
 * kept for it.
 */
export function openPage(
  { ui, version }: Pick<OperatorOptions, 'ui' | 'version'>,
  deps: {
    readonly caches: Caches
    readonly recorder: Pick<EventRecorder, 'event'>
    readonly elector: Pick<LeaderElector, 'isHeld' | 'leader' | 'annotations'>
    readonly collections: Pick<KubeCollections, 'unsynced' | 'informers'>
    readonly identity: string
    readonly clock: Clock
    readonly log: Logger
  },
): { readonly page: Page | undefined; readonly events: Pick<EventRecorder, 'event'> } {
  const { caches, recorder, elector, collections, identity, clock, log } = deps
  if (!ui) return { page: undefined, events: recorder }
  const events = rememberEvents(recorder, clock)
  function silentMs(): number | undefined {
    const heard = collections.informers.flatMap(([, informer]) => informer.lastEventAt ?? [])
    return heard.length === 0 ? undefined : clock.monotonicMs() - Math.min(...heard)
  }
  const views = createViews({
    caches,
    events,
    clock,
    instance: () => ({
      version,
      name: identity,
      leads: elector.isHeld(),
      leader: elector.leader(),
      unsynced: collections.unsynced(),
      suspended: isSuspended(elector.annotations()),
      silentMs: silentMs(),
    }),
  })
  return { page: createPage({ views, clock, onFailure: (err) => log.error({ err }, 'a view of the web page could not be drawn') }), events }
}

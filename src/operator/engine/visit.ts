/** What one reconcile remembers: it lives as long as the visit and is never written anywhere. */
export type Visit = Map<string, unknown>
/** Set when nothing may be signed: the resource is suspended or being deleted. */
export const WATCH_ONLY = 'watchOnly'

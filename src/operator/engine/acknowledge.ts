import { RECONCILE_ANNOTATION } from '../../resources/meta.ts'
import { LAST_HANDLED_LENGTH } from '../../resources/schema.ts'

interface Poked {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> }
}

/** What somebody who asks for a reconcile has written, as status acknowledges it. */
export const pokeOf = ({ metadata }: Poked): string | undefined =>
  metadata.annotations?.[RECONCILE_ANNOTATION]?.slice(0, LAST_HANDLED_LENGTH)

/** With what was asked for taken up. The very same status where there is nothing new. */
export function acknowledged<S extends { readonly lastHandledReconcileAt?: string | undefined }>(resource: Poked, status: S): S {
  const poke = pokeOf(resource)
  return poke === undefined || poke === status.lastHandledReconcileAt ? status : { ...status, lastHandledReconcileAt: poke }
}

import { REQUESTED_BY_ANNOTATION } from '../../resources/meta.ts'
import { changesIn } from './changes.ts'
import type { LiveObject } from './cluster-view.ts'
import type { ManifestObject } from './manifests.ts'

type Fields = Readonly<Record<string, unknown>>
const fieldsIn = (value: unknown, name: string): Fields => ((value as Fields | undefined)?.[name] ?? {}) as Fields
const isOneUser = (text: string): boolean => /^[^\n]+$/.test(text)

/**
 * Whether somebody else could apply it, where the API server has refused it for what the annotation of who asks says: the admission policy takes a list that names
 * whoever applies it, a user a line, and no other. What nobody could apply is refused to whoever plans as well.
 * @param object with its defaults, where it follows the rules
 */
export function mayBeOfAnother(
  { object, live, isLiveKnown }: { readonly object: ManifestObject; readonly live: LiveObject | undefined; readonly isLiveKnown: boolean },
  fieldManager: string,
): boolean {
  if (!isLiveKnown) return true
  const now = fieldsIn(object.metadata, 'annotations')[REQUESTED_BY_ANNOTATION]
  if (live === undefined) return typeof now === 'string' && isOneUser(now)
  const before = live.metadata.annotations?.[REQUESTED_BY_ANNOTATION] ?? ''
  // Who is on the list already may change the spec, and leaves it as it is.
  if (now === before) return true
  // Whoever changes the spec is one line more; of what changes nothing else, the list does not change either.
  if (changesIn(live.spec, object.spec, '').length === 0) return false
  if (now === undefined) return !appliesRecord(live, fieldManager)
  return typeof now === 'string' && now.startsWith(`${before}\n`) && isOneUser(now.slice(before.length + 1))
}

/** What a manager has applied and leaves out the next time is taken away. */
const appliesRecord = ({ metadata }: LiveObject, fieldManager: string): boolean =>
  (metadata.managedFields ?? []).some((one) => {
    const { manager, operation, fieldsV1 } = one as { readonly manager?: string; readonly operation?: string; readonly fieldsV1?: unknown }
    const annotations = fieldsIn(fieldsIn(fieldsV1, 'f:metadata'), 'f:annotations')
    return manager === fieldManager && operation === 'Apply' && `f:${REQUESTED_BY_ANNOTATION}` in annotations
  })

import { CONFIRM_DELETE_ANNOTATION, FINALIZER, ORIGIN_ANNOTATION, RECONCILE_ANNOTATION } from '../../resources/meta.ts'
import type { Kept } from '../kube/kept-metadata.ts'

/** What the operator reads of a resource's metadata, beside what every object is known by. */
export const KEPT: Kept = { annotations: [ORIGIN_ANNOTATION, CONFIRM_DELETE_ANNOTATION, RECONCILE_ANNOTATION], finalizers: [FINALIZER] }

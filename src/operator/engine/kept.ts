import {
  ALLOW_REMAKES_ANNOTATION,
  CONFIRM_DELETE_ANNOTATION,
  DISREGARD_SUBMISSION_ANNOTATION,
  FINALIZER,
  LANE_FINALIZER,
  ORIGIN_ANNOTATION,
  RECONCILE_ANNOTATION,
  RECORD_FINALIZER,
  REQUESTED_BY_ANNOTATION,
} from '../../resources/meta.ts'
import type { Kept } from '../kube/kept-metadata.ts'

/** What the operator reads of a resource's metadata, beside what every object is known by. */
export const KEPT: Kept = {
  annotations: [
    ORIGIN_ANNOTATION,
    CONFIRM_DELETE_ANNOTATION,
    RECONCILE_ANNOTATION,
    DISREGARD_SUBMISSION_ANNOTATION,
    ALLOW_REMAKES_ANNOTATION,
    REQUESTED_BY_ANNOTATION,
  ],
  // A line for each user who has changed the spec.
  long: [REQUESTED_BY_ANNOTATION],
  finalizers: [FINALIZER, LANE_FINALIZER, RECORD_FINALIZER],
}

import type { z } from 'zod'

export const GROUP = 'staking.dev'
export const VERSION = 'v1alpha1'
export const API_VERSION = `${GROUP}/${VERSION}`

/** Keeps a resource from vanishing while a transaction may land or its stake holds money. */
export const FINALIZER = 'staking.dev/holds-money'
/** Keeps a signer while its lane has open places: what was signed with its key is followed, replaced and cancelled with it. */
export const LANE_FINALIZER = 'staking.dev/open-lane'
/** Keeps a StakingTransaction as long as something of it may land, or a resource that it was made for is there. */
export const RECORD_FINALIZER = 'staking.dev/transaction-record'
/** `<uid at first sight>/<namespace>/<name>`: see operator/engine/origin.ts. */
export const ORIGIN_ANNOTATION = 'staking.dev/origin'
/** Set to the resource's own name, it confirms that a stake that holds money may be forgotten. */
export const CONFIRM_DELETE_ANNOTATION = 'staking.dev/confirm-delete'
/** On the operator's Lease: while it has any value but `false`, nothing is signed or sent by anybody. */
export const SUSPEND_ANNOTATION = 'staking.dev/suspend'
/**
 * Who has asked for what a resource asks for: who created it, then whoever changed its spec, a line each. The admission policies see to it that it says so, and
 * the operator counts the approval of none of them.
 */
export const REQUESTED_BY_ANNOTATION = 'staking.dev/requested-by'
/** Any new value asks for a reconcile now; status.lastHandledReconcileAt acknowledges it. */
export const RECONCILE_ANNOTATION = 'staking.dev/reconcile-at'

/** On a StakingTransaction: a hash that the staking API was told and that a person knows can never land. */
export const DISREGARD_SUBMISSION_ANNOTATION = 'staking.dev/disregard-submission'
/** On a StakingTransaction: how many more times than by itself it may be made again. */
export const ALLOW_REMAKES_ANNOTATION = 'staking.dev/allow-remakes'

export interface ObjectMeta {
  readonly name: string
  readonly namespace?: string
  readonly uid: string
  readonly resourceVersion: string
  readonly generation?: number
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly annotations?: Readonly<Record<string, string>>
  readonly labels?: Readonly<Record<string, string>>
  readonly finalizers?: readonly string[]
}

/** Whether a person has confirmed, by its name, that it may be forgotten when it is deleted. */
export const isDeletionConfirmed = ({ metadata }: { readonly metadata: ObjectMeta }): boolean =>
  metadata.annotations?.[CONFIRM_DELETE_ANNOTATION] === metadata.name

/** An object as the API server returns it. */
export interface Resource<Spec, Status> {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
  readonly spec: Spec
  readonly status?: Status
}

export interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'date'
  readonly jsonPath: string
  readonly description: string
  readonly priority?: number
}

/** A CEL rule at the root of a CustomResourceDefinition. It sees spec and status, and with `oldSelf` what was there before. */
export interface RootRule {
  readonly rule: string
  readonly message: string
  /** CEL that says it with what is there. */
  readonly messageExpression?: string
  readonly fieldPath?: string
}

/** A custom resource, written once: the CRD, the types and the reference come from this. */
export interface KindDefinition {
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly scope: 'Namespaced' | 'Cluster'
  readonly description: string
  readonly spec: z.ZodType
  readonly status: z.ZodType
  /** What status says before anybody has written it. */
  readonly initialStatus?: Readonly<Record<string, string>>
  readonly printerColumns: readonly PrinterColumn[]
  readonly selectableFields: readonly string[]
  /** What to do in place of changing what can't be: by the first of the states (CEL over the object) that it is in, or else `otherwise`. */
  readonly instead?: { readonly states: readonly { readonly when: string; readonly advice: string }[]; readonly otherwise: string }
  /** CEL rules over the whole object. */
  readonly rules?: readonly RootRule[]
}

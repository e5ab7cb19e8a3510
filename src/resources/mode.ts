import { z } from 'zod'
import type { RootRule } from './meta.ts'

/** `spec.mode`. */
export const mode = () =>
  z
    .enum(['Apply', 'Plan'])
    .optional()
    .describe(
      'Apply (the default) does it. Plan does everything up to the signature: it is verified, status.plan says what would be signed, and nothing is written to the log, signed or sent. Set to Apply later, it goes on from there, once. It can be set to Plan as long as nothing was signed that may land.',
    )

export interface Asking {
  readonly suspend?: boolean | undefined
  readonly mode?: 'Apply' | 'Plan' | undefined
}
export const isPlanOnly = ({ mode: is }: Pick<Asking, 'mode'>): boolean => is === 'Plan'
/** Whether a resource asks for a signature: one that is suspended, or only planned, holds up nobody else. */
export const asksForSignature = ({ suspend, mode: is }: Asking): boolean => suspend !== true && is !== 'Plan'

/** What was signed can't be planned any more. `signed`: CEL, whether something was, over a status that is there. */
export const planBeforeSigning = ({ signed }: { readonly signed: string }): RootRule => ({
  rule: `!has(self.spec.mode) || self.spec.mode != 'Plan' || (has(oldSelf.spec.mode) && oldSelf.spec.mode == 'Plan') || !has(self.status) || !(${signed})`,
  message: 'mode can be set to Plan only while nothing was signed that may land: to stop what is under way, set suspend: true',
  fieldPath: '.spec.mode',
})

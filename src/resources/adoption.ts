import { z } from 'zod'
import type { RootRule } from './meta.ts'

/** A stake's or a request's id in the staking API. */
export const stakeIdText = () =>
  z
    .string()
    .min(1)
    .max(64)
    .regex(/^[A-Za-z0-9_-]+$/)

/** `spec.adopt`. */
export const adoption = () =>
  z
    .object({ stakeId: stakeIdText().describe("The stake's id in the staking API.") })
    .optional()
    .describe(
      'Takes over a stake that exists in the staking API instead of creating one. It may be added, changed and removed until a stake was verified for this resource, such as where it is stalled with AlreadyStaked or AdoptionMismatch.',
    )

/** A typo is corrected as long as there is no stake; what is staked is no other stake by a word in its spec. `stake`: CEL, whether there is one, over a status that is there. */
export const adoptUntilThereIsAStake = ({ stake }: { readonly stake: string }): RootRule => ({
  rule: `has(self.spec.adopt) == has(oldSelf.spec.adopt) && (!has(self.spec.adopt) || self.spec.adopt.stakeId == oldSelf.spec.adopt.stakeId) || !has(self.status) || !(${stake})`,
  message: 'adopt can be added, changed or removed only while this resource has no stake',
  messageExpression:
    "'adopt can be added, changed or removed only while this resource has no stake, and it has stake ' + (has(self.status.stakeId) ? self.status.stakeId : '(unknown)') + ' (' + (has(self.status.phase) ? self.status.phase : 'unknown phase') + '). Put it back as it was; to take over another stake, create another resource under another name'",
  fieldPath: '.spec.adopt',
})

import type { SolanaStakeAuthorization } from '../../../resources/solana-stake-authorization.ts'
import type { Origin } from '../../engine/origin.ts'
import type { Perform } from '../../engine/step.ts'
import { wait } from '../../engine/verdict.ts'
import { LOOK_AGAIN_MS, pending } from '../../transactions/owner.ts'
import { forgettingPlan, plannedOnly } from '../../transactions/plan-only.ts'
import { awaitingApproval } from '../../transactions/shown-plan.ts'
import { everybody } from './authorization-making.ts'
import { authorizationName, authorizationPlan, authorizationSpec, ownAuthorization } from './authorization-records.ts'
import type { AuthorizationEffects } from './authorization-steps.ts'
import type { WantedOf } from './authorization-wanted.ts'
import { isBegun, mirrored } from './records.ts'
import type { SolanaStakeDeps } from './request.ts'

export function createAuthorizationEffects(
  { log, assertMayAct }: Pick<SolanaStakeDeps, 'log' | 'assertMayAct'>,
  wantedOf: WantedOf,
): Perform<AuthorizationEffects> {
  const wanted = ({ origin, spec }: { origin: Origin; spec: SolanaStakeAuthorization['spec'] }, signal: AbortSignal) =>
    wantedOf({ metadata: { namespace: origin.namespace, name: origin.name, uid: origin.uid, resourceVersion: '' }, spec }, false, signal)

  return {
    async verifyHandOver(args, _visit, signal) {
      const { parties, network, paid, stake, withdraw } = await wanted(args, signal)
      return {
        network: network.config.name,
        stakeAccount: paid.spec.subject,
        from: {
          ...(stake === undefined ? {} : { stakeAuthority: parties.stakeAuthority }),
          ...(withdraw === undefined ? {} : { withdrawAuthority: parties.withdrawAuthority }),
        },
        to: {
          ...(stake === undefined ? {} : { stakeAuthority: stake.authority.address }),
          ...(withdraw === undefined ? {} : { withdrawAuthority: withdraw.authority.address }),
        },
      }
    },

    followTransaction: (args, _visit, signal) => forgettingPlan({ transaction: args.shown }, () => followed(args, signal)),
  }

  /** Makes the record, or only plans it, and follows it. */
  async function followed(args: Parameters<Perform<AuthorizationEffects>['followTransaction']>[0], signal: AbortSignal) {
    const { origin, mayMake, shown, plannedAs } = args
    let record = ownAuthorization(log, origin)
    if (mayMake && (record === undefined || !isBegun(record))) {
      const handOver = await wanted(args, signal)
      const spec = authorizationSpec(handOver, origin)
      if (plannedAs !== undefined)
        throw plannedOnly(authorizationPlan(spec, handOver, plannedAs), everybody(handOver), { transaction: undefined })
      assertMayAct()
      record = await log.ensure(authorizationName(handOver, origin), spec, signal)
    }
    if (record === undefined) throw wait('Suspended', 'Nothing was ever signed for it.', LOOK_AGAIN_MS).with({ transaction: undefined })
    const evidence = { transaction: mirrored(log, record, shown), ...awaitingApproval(log, record) }
    if (record.status?.outcome === undefined) throw pending(log.standing(record.metadata.name), 'The transaction').with(evidence)
    return evidence
  }
}

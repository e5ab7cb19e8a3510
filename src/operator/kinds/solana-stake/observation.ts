import { inSol } from '../../../lib/amounts.ts'
import { ALLOW_REMAKES_ANNOTATION } from '../../../resources/meta.ts'
import type { Perform } from '../../engine/step.ts'
import { stall, wait } from '../../engine/verdict.ts'
import { visitNote } from '../../engine/visit.ts'
import { expectedOf, handedOver } from '../../transactions/solana/authorities.ts'
import { authorityChanged, lookAt, protocolOf } from './chain.ts'
import { ownSteps, stepName } from './records.ts'
import type { SolanaRequests, SolanaStakeDeps } from './request.ts'
import type { SeenStakes } from './seen.ts'
import type { Awaited, SolanaStakeEffects, StakeTerms } from './steps.ts'

/** Where the stake was looked at in this visit. */
const looked = visitNote<{ readonly awaited: Awaited; readonly slot: bigint }>('observed')

/** Looks at a stake on the chain, and waits until it is as its desired state needs it. */
export function createObservation(
  { log, activatingMs }: Pick<SolanaStakeDeps, 'log' | 'activatingMs'>,
  { networkOn }: Pick<SolanaRequests, 'networkOn'>,
  seenStakes: SeenStakes,
): Perform<SolanaStakeEffects>['observeStake'] {
  return async ({ request, terms, seen, awaited, madeAtSlot, since }, visit, signal) => {
    const network = networkOn(ownSteps(log, request.origin).stake?.spec.genesisHash, request.network)
    if (looked.of(visit)?.awaited !== awaited) {
      const look = await lookAt(network.chain, terms.stakeAccount, signal)
      looked.write(visit, { awaited, slot: look.slot })
      const protocol = protocolOf(look, madeAtSlot, seen)
      seenStakes.note(request.origin.uid, protocol)
      return protocol
    }
    // Looked at in this visit, and not there yet.
    const { slot = 0, open } = handedOver(log.ofSubject(terms.stakeAccount))
    const wrong = seen === undefined || seen.slot < slot ? undefined : changedAuthority(seen, terms, expectedOf(open))
    if (wrong !== undefined) throw authorityChanged(terms, wrong)
    // A node that lags shows what was before.
    const isLater = (looked.of(visit)?.slot ?? 0n) > BigInt(since)
    if (isLater && awaited === 'Inactive' && (seen?.status === 'Active' || seen?.status === 'Activating')) {
      const name = stepName(network.config.genesisHash, terms.stakeAccount, 'deactivation')
      throw stall(
        'DelegationChanged',
        `The stake ${terms.stakeAccount} was deactivated (seen in slot ${since}) and is ${seen.status.toLowerCase()} in epoch ${seen.epoch}: somebody has delegated it again, to ${seen.voteAccount}. Find out who did; then kubectl annotate stx ${name} ${ALLOW_REMAKES_ANNOTATION}=1 has it deactivated again.`,
      )
    }
    const reason = awaited === 'Active' ? 'AwaitingActivation' : awaited === 'Inactive' ? 'AwaitingDeactivation' : 'AwaitingFinality'
    const { slotsInEpoch } = awaited === 'Withdrawn' ? { slotsInEpoch: 0n } : await network.chain.epochInfo('finalized', signal)
    const turn = {
      Active: `It warms up at the end of an epoch, which has ${slotsInEpoch} slots on this cluster.`,
      Inactive: `It cools down at the end of an epoch, which has ${slotsInEpoch} slots on this cluster.`,
      Withdrawn: 'It was withdrawn; a node that lags does not show that yet.',
    }
    throw wait(
      reason,
      `The stake is ${seen?.status.toLowerCase() ?? 'not seen'} in epoch ${seen?.epoch ?? '?'}: ${inSol(seen?.activeLamports)} are active, ${inSol(seen?.inactiveLamports)} are not. ${turn[awaited]}`,
      activatingMs,
    )
  }
}

/** How an authority that was seen is not the one of the terms. */
const changedAuthority = (
  { stakeAuthority, withdrawAuthority }: { readonly stakeAuthority?: string | undefined; readonly withdrawAuthority?: string | undefined },
  terms: StakeTerms,
  expected: ReturnType<typeof expectedOf>,
): string | undefined =>
  stakeAuthority !== undefined && stakeAuthority !== terms.stakeAuthority && stakeAuthority !== expected.stake
    ? `its stake authority is ${stakeAuthority}, not ${terms.stakeAuthority}`
    : withdrawAuthority !== undefined && withdrawAuthority !== terms.withdrawAuthority && withdrawAuthority !== expected.withdraw
      ? `its withdraw authority is ${withdrawAuthority}, not ${terms.withdrawAuthority}`
      : undefined

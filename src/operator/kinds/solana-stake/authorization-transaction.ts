import { SolanaError } from '../../../chains/solana/chain.ts'
import type { SolanaStakeAuthorization } from '../../../resources/solana-stake-authorization.ts'
import { stall, wait } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import { assertOwnerAsks, doneInstead } from '../../transactions/owner.ts'
import type { SolanaTransactionKind } from '../../transactions/solana/kind.ts'
import type { RecordObject } from '../../transactions/store.ts'
import type { AddressesAsked } from './authorization-asked.ts'
import { createAuthorizationMaking, everybody } from './authorization-making.ts'
import { authorizationPlan, PURPOSE } from './authorization-records.ts'
import { verifyHandOver } from './authorization-verification.ts'
import type { AdmittedHandOver, WantedOf } from './authorization-wanted.ts'
import { createAuthorizationWitnesses, isHandedOver } from './authorization-witnesses.ts'
import { metaOf, stakeStateOf } from './chain.ts'
import { messageOf, outOfStep } from './message.ts'
import { isLive } from './records.ts'
import type { SolanaRequests, SolanaStakeDeps } from './request.ts'
import { notOurs, sign } from './signing.ts'

/** How often it is looked whether what was signed before is over, in ms; its end wakes what waits. */
const BEHIND_MS = 10_000

export interface AuthorizationDeps extends SolanaStakeDeps {
  /** The resource as it stands now: from the cache, or read past it. */
  readonly authorization: (
    ref: { readonly namespace: string; readonly name: string },
    fresh: boolean,
    signal: AbortSignal,
  ) => Promise<SolanaStakeAuthorization | undefined>
  /** Whom SolanaStakeAuthorizations of a stake (`namespace/name`) name, by the cache. Nothing is signed by that. */
  readonly successorsOf: (stake: string) => AddressesAsked
}

/** What the log asks of a hand-over before it signs, sends and concludes. The staking API has no part in it: its interface knows none. */
export function createAuthorizationKind(
  deps: AuthorizationDeps,
  requests: Pick<SolanaRequests, 'networkOn' | 'addressOf'>,
  wantedOf: WantedOf,
): SolanaTransactionKind<AdmittedHandOver> {
  const networkOf = ({ spec }: RecordObject): SolanaNetwork => requests.networkOn(spec.genesisHash, spec.network)
  const make = createAuthorizationMaking(deps, requests)

  async function mayBeSigned(record: RecordObject, fresh: boolean, signal: AbortSignal): Promise<AdmittedHandOver> {
    const { namespace, name, kind } = record.spec.owner
    const resource = kind === 'SolanaStakeAuthorization' ? await deps.authorization({ namespace, name }, fresh, signal) : undefined
    assertOwnerAsks(record, resource)
    if (resource === undefined) throw new Error('the owner asks and is not there')
    const before = await doneInstead(deps.log, record, fresh, signal)
    if (before !== undefined)
      throw stall(
        'VerificationFailed',
        `StakingTransaction ${before.metadata.name} is what ${kind} ${namespace}/${name} asks for (account ${before.spec.subject}). It hands over one stake: ${record.metadata.name} is not signed. Create another one.`,
      )
    const handOver = await wantedOf(resource, fresh, signal)
    const to: Partial<NonNullable<RecordObject['spec']['handOver']>['to']> = record.spec.handOver?.to ?? {}
    const { paid, stake, withdraw, network } = handOver
    if (paid.spec.subject !== record.spec.subject || network.config.genesisHash !== record.spec.genesisHash)
      throw stall(
        'VerificationFailed',
        `StakingTransaction ${record.metadata.name} was made for ${record.spec.subject}, and the stake that it names has account ${paid.spec.subject} now. Nothing is signed. Create another one.`,
      )
    if (stake?.authority.address !== to.stakeAuthority?.address || withdraw?.authority.address !== to.withdrawAuthority?.address)
      throw stall(
        'SignerChanged',
        `A signer that the authorities go to has another key than when StakingTransaction ${record.metadata.name} was made for it. Nothing is signed. Bring back the signer with that key, or create another one.`,
      )
    // ▸ What was signed with the present keys ends first: afterwards they may nothing.
    const first = deps.log.ofSubject(record.spec.subject).find((one) => one.metadata.uid !== record.metadata.uid && isLive(one))
    if (first !== undefined && !isLive(record))
      throw wait(
        'WaitingForHandOver',
        `StakingTransaction ${first.metadata.name} (${first.spec.purpose}) of this stake may still land: it ends under the present key before that is replaced.`,
        BEHIND_MS,
      )
    const plan = authorizationPlan(record.spec, handOver, resource.metadata.uid)
    return { ...handOver, approvable: { plan, signers: everybody(handOver), metadata: resource.metadata } }
  }

  return {
    purposes: [PURPOSE],
    what: () => 'The hand-over of the authorities',
    step: () => ({ landedIsDone: true, leavesNoTrace: false, needsEveryNode: true }),
    isDone: ({ spec }, { account }) => isHandedOver(metaOf(stakeStateOf(account)), spec),
    mayBeSigned: (record, fresh, _visit, signal) => mayBeSigned(record, fresh, signal),
    ...createAuthorizationWitnesses(networkOf),
    obtain: (record, handOver, _heights, _visit, signal) => make(record, handOver, signal),

    payerOf: ({ parties }) => parties.payer,
    approvableOf: ({ approvable }) => approvable,
    sign: (_record, handOver, message, signal) => sign(deps, everybody(handOver), message, signal),

    async signAgain(record, handOver, attempt, signal) {
      const message = messageOf(attempt)
      if (message === undefined) throw notOurs(record)
      verifyHandOver(handOver, message, `of StakingTransaction ${record.metadata.name}`)
      const signed = await sign(deps, everybody(handOver), message, signal)
      if (signed.signature !== attempt.hash) throw notOurs(record)
      return signed
    },

    // ▸ Who has the authorities of a stake is known by it.
    keeps({ spec, status }) {
      if (status?.outcome === undefined) return undefined
      const isOut = deps.log
        .ofSubject(spec.subject)
        .some((other) => other.spec.purpose === 'SolanaWithdrawal' && other.status?.outcome !== undefined)
      return isOut
        ? undefined
        : `By this record alone it is known who has the authorities of stake account ${spec.subject}, which holds money.`
    },
    // The interface of the staking API has no hand-over: it is told nothing.
    tell: async () => 'taken',
    explain: (record, error) =>
      error instanceof SolanaError && error.code === 'blockhash-not-found' ? outOfStep(networkOf(record)) : error,
  }
}

import type { SolanaAddress } from '../../../chains/solana/addresses.ts'
import { stakeAccountAddress } from '../../../chains/solana/stake.ts'
import type { SolanaStakeBody } from '../../../contract/schemas/solana.ts'
import type { Refuse, SolanaRequestDeps } from './request.ts'
import type { SolanaStakeRequest } from './steps.ts'

/** Whose a stake is: what the log, the cluster and the staking API say of it. */
export function createOwnership(deps: Pick<SolanaRequestDeps, 'log' | 'exists'>, refuse: Refuse) {
  /**
   * That no other resource has the stake, also where a service gives one stake to two; and of one that is taken over, that it was made in this namespace,
   * and not for a resource that is there still. Whoever may use the same signers could withdraw it to elsewhere.
   */
  function assertUnclaimed(
    { origin, adoptStakeId }: SolanaStakeRequest,
    { stakeId, stakeAccount, externalReference: made = '' }: SolanaStakeBody,
  ) {
    const adopted = adoptStakeId !== undefined
    const reason = adopted ? 'AdoptionMismatch' : 'VerificationFailed'
    for (const { spec, status } of deps.log.ofSubject(stakeAccount)) {
      const { kind, namespace, name, originUid } = spec.owner
      const where = `${namespace}/${name}`
      const isNamesake = kind === origin.kind && namespace === origin.namespace && name === origin.name
      if (isNamesake && originUid === origin.uid) continue
      if (namespace !== origin.namespace)
        refuse(reason, `Stake ${stakeId} belongs to another resource, in another namespace. Nothing was signed.`)
      if (!isNamesake && deps.exists(where))
        refuse(reason, `Stake ${stakeId} belongs to another resource of this cluster already: ${where}. Nothing was signed.`)
      // What was done for a resource that is gone is taken over where that is asked for, and not because a service says so.
      if (!adopted && status?.outcome !== undefined)
        refuse(
          reason,
          `Stake ${stakeId} was made for ${where}, which is gone. Nothing was signed. To take it over, set spec.adopt.stakeId.`,
        )
    }
    const prefix = `${origin.kind}/`
    if (!adopted || !made.startsWith(prefix)) return
    const key = made.slice(prefix.length)
    if (key === `${origin.namespace}/${origin.name}`) return
    if (!key.startsWith(`${origin.namespace}/`))
      refuse('AdoptionMismatch', `Stake ${adoptStakeId} was made in another namespace, where alone it can be adopted.`)
    if (deps.exists(key))
      refuse('AdoptionMismatch', `Stake ${adoptStakeId} was made for another resource of this cluster, which is there still.`)
  }

  /**
   * That a stake which status names is this resource's own, by the staking API's word: made for its name, or named by its spec. What is asked of its
   * terms before anything is signed is more. @throws Halt
   */
  function assertOwn(request: SolanaStakeRequest, body: SolanaStakeBody): void {
    const { adoptStakeId, network, externalReference } = request
    const isOurs = adoptStakeId === undefined ? body.externalReference === externalReference : body.stakeId === adoptStakeId
    if (!isOurs || body.network !== network || body.stakeAccount !== derived(body.feePayer, body.stakeId))
      refuse(
        'VerificationFailed',
        `status.stakeId is ${body.stakeId}, which the staking API has as another resource's stake${isOurs ? ', or on another network' : ''}. Nothing was signed. If somebody changed status, remove status.stakeId and status.transactions: they are read again.`,
      )
    assertUnclaimed(request, body)
  }

  return { assertUnclaimed, assertOwn }
}

/** The stake account that is made of a stake's id and its fee payer; undefined for an id of which none can be. */
export function derived(feePayer: SolanaAddress, stakeId: string): string | undefined {
  try {
    return stakeAccountAddress(feePayer, stakeId)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

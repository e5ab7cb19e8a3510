import { isAddress, isOnCurve } from '../../chains/solana/addresses.ts'
import { inSol } from '../../lib/amounts.ts'
import { duplicateOf } from '../../operator/kinds/staking-signer/duplicate.ts'
import { inWords } from '../../operator/transactions/limiter.ts'
import { limitsOf } from '../../operator/transactions/limits.ts'
import { checkAddress, problemOf } from '../../operator/transactions/policy.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import { type Draft, refuse } from './draft.ts'
import type { PlanContext } from './subject.ts'

/** What a StakingSigner may be used for once it is applied, and what of it can't be used. */
export function planSigner(draft: Draft, signer: StakingSigner, { world, rooms }: Pick<PlanContext, 'world' | 'rooms'>): void {
  const { spec } = signer
  const { policy, chain, address } = spec
  const wrong = (reason: string, message: string): void => refuse(draft, { by: 'operator', reason, message })
  const mistyped = chain === 'Ethereum' ? checkAddress(address) : isAddress(address) ? undefined : `${address} is not base58 of 32 bytes.`
  if (mistyped !== undefined) wrong('InvalidSpec', `spec.address: ${mistyped}`)
  else if (chain === 'Solana' && !isOnCurve(address)) wrong('KeyMalformed', `${address} is an address for which nobody can sign.`)
  const problem = problemOf(signer)
  if (problem !== undefined) wrong('PolicyUnreadable', `spec.${problem}: it would admit nothing.`)
  const twin = duplicateOf(signer, world.signers.values())
  if (twin !== undefined)
    wrong(
      'DuplicateSigner',
      `StakingSigner ${twin} declares the same address. One address has one sequence of nonces, and so one signer: keep one of them.`,
    )
  const { names = [], selector } = policy.allowedNamespaces
  const whom = [
    ...(names.length === 0 ? [] : [`namespace${names.length === 1 ? '' : 's'} ${names.join(', ')}`]),
    ...(selector === undefined ? [] : ['namespaces by their labels']),
  ]
  const most = chain === 'Solana' ? inSol(policy.maxPerTransaction) : `${policy.maxPerTransaction} ETH`
  draft.does.push(
    whom.length === 0
      ? `admits no namespace: nothing can be paid with the key of ${address}`
      : `lets ${whom.join(' and ')} use the key of ${address} (folder ${spec.keyName}), for at most ${most} a transaction`,
  )
  const limits = limitsOf(spec)
  if (!('problem' in limits))
    for (const limit of limits)
      draft.does.push(
        `signs ${inWords({ ...limit, per: 'Signer' }, chain, '')} at most${limit.per === 'Namespace' ? ', for each namespace' : ''}`,
      )
  rooms.stand(draft, signer)
  if (spec.suspend === true)
    draft.waits.push({ by: 'operator', reason: 'SignerSuspended', message: 'spec.suspend is true: nothing is signed with its key.' })
  draft.unknown.push(`whether the key that is mounted as ${spec.keyName} is the key of ${address}: only the operator sees it`)
}

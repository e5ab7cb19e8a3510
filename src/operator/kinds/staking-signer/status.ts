import type { Instant } from '../../../lib/clock.ts'
import { findCondition, type Statement, someOf } from '../../../resources/conditions.ts'
import { CONFIRM_DELETE_ANNOTATION } from '../../../resources/meta.ts'
import type { Reason } from '../../../resources/reasons.ts'
import type { LimitUse } from '../../../resources/signer-limits.ts'
import {
  type SignerLane,
  type StakingSigner,
  type StakingSignerCondition,
  type StakingSignerStatus,
  stakingSignerConditions,
} from '../../../resources/staking-signer.ts'
import { acknowledged } from '../../engine/acknowledge.ts'
import { notStalled, say, stated, waitsForPerson } from '../../engine/progress.ts'
import { balanceOf, type Funds, fundingOf, isShortOf } from './funding.ts'
import { shownLimits } from './limits.ts'
import { controlsMessage, isAlone, type KeyNeed, mayGo, neededStatement } from './need.ts'

/** What was found out about a signer in one visit. */
export interface SignerFacts {
  /** The address of the key, or why there is none. `passes`: a remote signer gives no answer now. */
  readonly key: { readonly address: string } | { readonly reason: Reason; readonly message: string; readonly passes?: true }
  readonly matches: boolean
  readonly duplicateOf: string | undefined
  /** A policy field that can't be read. */
  readonly unreadable: string | undefined
  readonly need: KeyNeed
  /** By the log: something that was signed with it may land, or waits to be signed, on whatever chain. */
  readonly isInFlight: boolean
  readonly networks: readonly {
    readonly name: string
    /** What it holds there, by the last reading, and what waits to be paid, in wei or lamports. Undefined where the chain was never asked with success. */
    readonly funds?: Funds
    /** It isn't configured any more. */
    readonly isElsewhere?: true
    /** Transactions on the chain that the log doesn't know: the number of the first, and of those there are. */
    readonly unaccounted?: { readonly first: number; readonly count: number } | undefined
    readonly lane?: SignerLane
    /** A nonce that was given out is not final. */
    readonly mayLand?: boolean
    /** What of its limits is used there. */
    readonly limits?: readonly LimitUse[]
    /** A transaction of somebody else that used a nonce which was given out. */
    readonly foreign?: { readonly nonce: number; readonly hash: string } | undefined
    /** False as long as it is not known to this process whether there is one. */
    readonly isLookedThrough?: boolean
  }[]
}

/** The signer's status for what was found: pure; nothing changes where nothing is new. */
export function stakingSignerStatus(signer: StakingSigner, facts: SignerFacts, now: Instant): StakingSignerStatus {
  const generation = signer.metadata.generation ?? 0
  const statements = statementsFor(signer, facts)
  const conditions = stated(signer.status?.conditions, stakingSignerConditions, statements, generation, now)
  const { address: _old, lanes: _lanes, limits: _limits, balance: _balance, balanceReadAt: _at, ...rest } = signer.status ?? {}
  const known = new Map((signer.status?.lanes ?? []).map((lane) => [lane.network, lane]))
  const lanes = facts.networks
    .flatMap(({ name, lane }) => lane ?? known.get(name) ?? [])
    .map(({ validators: _before, ...lane }): SignerLane => {
      const validators = signer.spec.chain === 'Ethereum' ? facts.need.controls.get(lane.network) : undefined
      return validators === undefined ? lane : { ...lane, validators }
    })
    .toSorted((a, b) => (a.network < b.network ? -1 : 1))
  const limits = shownLimits(facts.networks.flatMap((network) => network.limits ?? []))
  return acknowledged(signer, {
    ...rest,
    ...balanceOf(signer, facts.networks),
    observedGeneration: generation,
    ...('address' in facts.key ? { address: facts.key.address } : {}),
    ...(lanes.length === 0 ? {} : { lanes }),
    ...(limits.length === 0 ? {} : { limits: [...limits] }),
    conditions,
  })
}

function statementsFor(signer: StakingSigner, facts: SignerFacts): Record<StakingSignerCondition, Statement> {
  const KeyValid =
    'reason' in facts.key
      ? say(facts.key.passes === true ? 'Unknown' : 'False', facts.key.reason, facts.key.message)
      : facts.matches
        ? say('True', 'Succeeded', 'The key belongs to spec.address.')
        : say(
            'False',
            'KeyAddressMismatch',
            `The key belongs to ${facts.key.address}, not to spec.address ${signer.spec.address}. Nothing is signed with it. Mount the right key, or name the right remote signer; or create a signer with that address.`,
          )
  const Funded = fundingOf(signer, facts.networks)
  const KeyUsedElsewhere = elsewhere(signer, facts)
  const KeyNeeded = neededStatement(signer, facts)
  const own = { KeyValid, Funded, KeyUsedElsewhere, KeyNeeded }
  const trouble = troubleOf(signer, facts, KeyValid)
  const isAway = 'reason' in facts.key && facts.key.passes === true && trouble === KeyValid
  if (signer.metadata.deletionTimestamp !== undefined) {
    const message = deletion(signer, facts)
    return {
      ...own,
      Ready: say('False', 'Deleting', message),
      Reconciling: say('True', 'Deleting', message),
      Stalled: say('False', 'Deleting', 'It goes by itself once what its key has signed is settled.'),
    }
  }
  if (trouble === undefined && signer.spec.suspend === true) {
    const suspended = say(
      'False',
      'SignerSuspended',
      'spec.suspend is true: nothing is signed with its key but what cancels. What was sent is followed.',
    )
    return { ...own, Ready: suspended, Reconciling: suspended, Stalled: notStalled }
  }
  if (isAway) {
    const away = say('False', 'SignerUnavailable', KeyValid.message)
    return { ...own, Ready: away, Reconciling: { ...away, status: 'True' }, Stalled: notStalled }
  }
  if (trouble === undefined && isShortOf(facts.networks)) {
    return { ...own, Ready: Funded, Reconciling: { ...Funded, status: 'True' }, Stalled: notStalled }
  }
  if (trouble === undefined) {
    return {
      ...own,
      Ready: say('True', 'Succeeded', 'It can be used by the namespaces that its policy admits.'),
      Reconciling: say('False', 'Settled', 'Nothing is under way.'),
      Stalled: say('False', 'Settled', 'Nothing needs a person.'),
    }
  }
  return {
    ...own,
    Ready: say('False', trouble.reason as Reason, trouble.message),
    Reconciling: waitsForPerson(trouble.reason as Reason),
    Stalled: say('True', trouble.reason as Reason, trouble.message),
  }
}

function troubleOf(signer: StakingSigner, facts: SignerFacts, keyValid: Statement): { reason: string; message: string } | undefined {
  if (facts.unreadable !== undefined)
    return {
      reason: 'PolicyUnreadable',
      message: `spec has fields that cannot be read (${facts.unreadable}): nothing is signed until they are mended.`,
    }
  if (keyValid.status !== 'True') return keyValid
  if (facts.duplicateOf !== undefined)
    return {
      reason: 'DuplicateSigner',
      message: `StakingSigner ${facts.duplicateOf} declares the same address and is older: one address has one sequence of nonces, and so one signer. Delete one of them.`,
    }
  const foreign = facts.networks.find((network) => network.unaccounted !== undefined)
  if (foreign?.unaccounted !== undefined) {
    const { first, count } = foreign.unaccounted
    return {
      reason: 'UnaccountedTransactions',
      message: `The chain shows ${count} ${count === 1 ? 'transaction' : 'transactions'} of ${signer.spec.address} on ${foreign.name}, but the log knows of those below nonce ${first} only. Look at them: one may be a stake that these manifests made before. Then set spec.acknowledgedNonce: ${count} (or policy.sharedKey: true where the key is used elsewhere on purpose).`,
    }
  }
  return undefined
}

function deletion(signer: StakingSigner, { networks, need, isInFlight }: SignerFacts): string {
  if (!isInFlight && isAlone(need) && !mayGo(signer, need)) {
    const { name } = signer.metadata
    return `It was deleted, and nothing new is signed with its key; nothing of it is in flight. It stays all the same: ${controlsMessage(signer, need)} To have the StakingSigner forgotten (the key is still needed): kubectl annotate signer ${name} ${CONFIRM_DELETE_ANNOTATION}=${name}`
  }
  const open = networks.flatMap(({ name, lane }) => (lane === undefined || lane.open === 0 ? [] : `${lane.open} on ${name}`))
  return `It was deleted, and nothing new is signed with its key. It stays until the transactions that are in flight are settled (${someOf(open) || 'they are being looked for'}): kubectl get stx shows them.`
}

function elsewhere({ status }: StakingSigner, { networks }: SignerFacts): Statement {
  const used = networks.find(({ foreign }) => foreign !== undefined)
  const before = findCondition(status?.conditions, 'KeyUsedElsewhere')
  if (used?.foreign === undefined && before?.status === 'True' && networks.some(({ isLookedThrough }) => isLookedThrough === false))
    return say('True', 'KeyUsedElsewhere', before.message)
  if (used?.foreign === undefined) return say('False', 'Settled', 'No transaction of somebody else has used a nonce of this key.')
  const { nonce, hash } = used.foreign
  return say(
    'True',
    'KeyUsedElsewhere',
    `Transaction ${hash} on ${used.name} used nonce ${nonce} of this key, and the log did not make it: the key is used elsewhere, in another cluster or by a thief. Find out who signs with it. Once it is settled, set spec.acknowledgedNonce: ${nonce + 1}.`,
  )
}

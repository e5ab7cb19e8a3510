import type { Instant } from '../../../lib/clock.ts'
import type { Statement } from '../../../resources/conditions.ts'
import type { Reason } from '../../../resources/reasons.ts'
import {
  type StakingSigner,
  type StakingSignerCondition,
  type StakingSignerStatus,
  stakingSignerConditions,
} from '../../../resources/staking-signer.ts'
import { say, stated, waitsForPerson } from '../../engine/progress.ts'

/** What was found out about a signer in one visit. */
export interface SignerFacts {
  /** The address of the mounted key, or why there is none. */
  readonly key: { readonly address: string } | { readonly reason: Reason; readonly message: string }
  readonly matches: boolean
  readonly duplicateOf: string | undefined
  /** A policy field that can't be read. */
  readonly unreadable: string | undefined
  /** By network that it may be used on. `trouble` when the chain could not be asked. */
  readonly networks: readonly {
    readonly name: string
    readonly hasFunds: boolean | undefined
    /** Transactions on the chain that the ledger doesn't know: the number of the first, and of those there are. */
    readonly unaccounted?: { readonly first: number; readonly count: number }
  }[]
}

/** The signer's status for what was found: pure; nothing changes where nothing is new. */
export function stakingSignerStatus(signer: StakingSigner, facts: SignerFacts, now: Instant): StakingSignerStatus {
  const generation = signer.metadata.generation ?? 0
  const statements = statementsFor(signer, facts)
  const conditions = stated(signer.status?.conditions, stakingSignerConditions, statements, generation, now)
  const { address: _old, ...rest } = signer.status ?? {}
  return {
    ...rest,
    observedGeneration: generation,
    ...('address' in facts.key ? { address: facts.key.address } : {}),
    conditions,
  }
}

function statementsFor(signer: StakingSigner, facts: SignerFacts): Record<StakingSignerCondition, Statement> {
  const KeyValid =
    'reason' in facts.key
      ? say('False', facts.key.reason, facts.key.message)
      : facts.matches
        ? say('True', 'Succeeded', 'The mounted key belongs to spec.address.')
        : say(
            'False',
            'KeyAddressMismatch',
            `The mounted key belongs to ${facts.key.address}, not to spec.address ${signer.spec.address}. Nothing is signed with it. Mount the right key, or create a signer with that address.`,
          )
  const Funded = funding(facts)
  const trouble = troubleOf(signer, facts, KeyValid)
  if (trouble === undefined) {
    return {
      KeyValid,
      Funded,
      Ready: say('True', 'Succeeded', 'It can be used by the namespaces that its policy admits.'),
      Reconciling: say('False', 'Settled', 'Nothing is under way.'),
      Stalled: say('False', 'Settled', 'Nothing needs a person.'),
    }
  }
  return {
    KeyValid,
    Funded,
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
      message: `StakingSigner ${facts.duplicateOf} declares the same address and is older: two ledgers over one nonce sequence are not allowed. Delete one of them.`,
    }
  const foreign = facts.networks.find((network) => network.unaccounted !== undefined)
  if (foreign?.unaccounted !== undefined) {
    const { first, count } = foreign.unaccounted
    return {
      reason: 'UnaccountedTransactions',
      message: `The chain shows ${count} transactions of ${signer.spec.address} on ${foreign.name}, but the ledger knows of those below nonce ${first} only. Look at them: one may be a stake that these manifests made before. Then set spec.acknowledgedNonce: ${count} (or policy.sharedKey: true where the key is used elsewhere on purpose).`,
    }
  }
  return undefined
}

function funding({ networks }: SignerFacts): Statement {
  const known = networks.filter((network) => network.hasFunds !== undefined)
  if (known.length === 0) return say('Unknown', 'Pending', 'No network could be asked for the balance yet.')
  const funded = known.filter((network) => network.hasFunds).map((network) => network.name)
  if (funded.length > 0) return say('True', 'Succeeded', `It has funds on ${funded.join(', ')}.`)
  return say(
    'False',
    'InsufficientFunds',
    `Its balance is 0 on ${known.map((network) => network.name).join(', ')}. Fund the address before it is used.`,
  )
}

import type { TransactionEvent } from './moment.ts'
import type { RecordObject } from './store.ts'

/** What the operator's log and metrics say of one thing that happened to money. */
export interface AuditLine {
  /** The resource that it is for, by the names that every line about a resource has. */
  readonly about: { readonly kind: string; readonly namespace: string; readonly name: string; readonly uid: string }
  /** The rest of the line. None of them is also in `about`: a key that stands twice in a line of JSON loses one. */
  readonly fields: Readonly<Record<string, string | number>>
  readonly message: string
  /** The event as `staking_operator_transactions_total` counts it. */
  readonly counted: string
}

const messages = {
  attempt: 'a transaction is written down and signed',
  sent: 'a transaction is sent',
  closed: 'a place is closed without doing what it is for',
  outcome: 'the outcome of a transaction is final',
} as const

/** One line for each thing that happens to money, and a count. */
export function auditOf({ metadata, spec }: Pick<RecordObject, 'metadata' | 'spec'>, event: TransactionEvent): AuditLine {
  const { chain, owner, purpose, amount, signer, from, network } = spec
  const { kind: version, nonce, maxFeePerGasWei: fee, ...rest } = { kind: undefined, maxFeePerGasWei: undefined, ...event }
  return {
    about: { kind: owner.kind, namespace: owner.namespace, name: owner.name, uid: owner.originUid },
    fields: {
      transaction: metadata.name,
      purpose,
      amount,
      signer,
      from,
      network,
      ...rest,
      // Solana has no nonces: there it is the number of the attempt, from 0.
      ...(chain === 'Solana' ? { attempt: nonce } : { nonce }),
      ...(fee === undefined || fee === '' ? {} : { maxFeePerGasWei: fee }),
      ...(version === undefined ? {} : { version }),
    },
    message: messages[event.is],
    counted: countedAs(event),
  }
}

function countedAs(event: TransactionEvent): string {
  switch (event.is) {
    case 'outcome':
      return event.outcome
    case 'closed':
      return `closed:${event.by}`
    case 'attempt':
      return event.replaces === undefined ? 'attempt' : 'replaced'
    case 'sent':
      return 'sent'
  }
}

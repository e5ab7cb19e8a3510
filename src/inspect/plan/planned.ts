/** What a plan says of one object of the manifests. Amounts are texts with their unit; times are RFC 3339. */
export interface PlannedResource {
  /** Where it stands, such as `fleet.yaml, document 2`. */
  readonly source: string
  readonly kind: string
  readonly namespace?: string
  readonly name: string
  /** `skipped`: of no kind that this knows, or nothing that people apply; `unknown`: whether it is there already could not be read. */
  readonly action: 'create' | 'change' | 'unchanged' | 'refused' | 'skipped' | 'unknown'
  /** Fields that applying changes, in the order of their names. */
  readonly changes: readonly FieldChange[]
  /** What comes of it, in sentences. */
  readonly does: readonly string[]
  /** Money that leaves a signer's address, or that is asked for. Left out where none moves by it. */
  readonly moves?: Movement
  readonly fees?: Fees
  /** Each signer that is asked, and what its policy says. */
  readonly policy: readonly PolicyAnswer[]
  readonly limits: readonly LimitEffect[]
  /** Approvals that it waits for before anything is signed. */
  readonly approvals: readonly string[]
  /** Why it would be refused: by the API server, or by the operator. */
  readonly refusals: readonly Said[]
  /** What it would wait for: nothing is wrong with it. */
  readonly waits: readonly Said[]
  /** What could not be looked at from here: never taken for fine. */
  readonly unknown: readonly string[]
}

export interface FieldChange {
  readonly field: string
  /** Left out where it is new. */
  readonly from?: unknown
  /** Left out where it is taken away. */
  readonly to?: unknown
}

export interface Said {
  /** Who says so. */
  readonly by: 'schema' | 'API server' | 'operator'
  /** The reason that a condition would have; of the operator. */
  readonly reason?: string
  readonly message: string
}

export interface Movement {
  readonly network: string
  /** `pays`: from the signer's address; `asks`: the validator's balance goes to its withdrawal address. */
  readonly is: 'pays' | 'asks'
  /** Such as `32 ETH`, or `the whole balance`. */
  readonly amount: string
  /** In gwei or lamports; left out for a whole balance. */
  readonly units?: string
  readonly signer: string
  /** Address that pays, or that asks; left out where the signer is not known. */
  readonly from?: string
  /** Contract or account that is paid; left out where it is not known. */
  readonly to?: string
  /** Address that the money comes to in the end. */
  readonly returnsTo?: string
}

export interface Fees {
  /** At today's price, such as `0.0012 ETH`; left out where no node was asked. */
  readonly now?: string
  /** By the caps; left out where it is not known. */
  readonly atMost?: string
  /** How the caps read, such as `100 gwei per gas`. */
  readonly cap: string
}

export interface PolicyAnswer {
  readonly signer: string
  readonly says: 'admits' | 'refuses' | 'unknown'
  readonly message: string
}

export interface LimitEffect {
  readonly signer: string
  /** What the limit allows, such as `5 transactions and 320 ETH in 24h`. */
  readonly allows: string
  /** Left out where the log could not be read. */
  readonly used?: string
  /** What is left once this is signed, by what is known; left out where that is not. */
  readonly leftAfter?: string
  /** When the first of what is used counts no more. */
  readonly freesAt?: string
}

/** A whole plan. */
export interface Plan {
  /** The API server that was asked; null where none was. */
  readonly server: string | null
  /** Whether people have stopped the operator; null where that could not be looked at. */
  readonly operatorSuspended: boolean | null
  readonly resources: readonly PlannedResource[]
  readonly summary: Summary
}

export interface Summary {
  readonly create: number
  readonly change: number
  readonly unchanged: number
  readonly refused: number
  readonly skipped: number
  /** Of those that are not refused: would wait for something. */
  readonly waiting: number
  /** Of those that are not refused: something of them could not be looked at. */
  readonly notAllKnown: number
  /** What is paid of each network's coin by all that is not refused, such as `64 ETH on hoodi`. */
  readonly pays: readonly string[]
}

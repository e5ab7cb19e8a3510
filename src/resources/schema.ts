import { z } from 'zod'
import type { Address, BlockHash, Blockhash, Hash, Hex, Pubkey, Signature, SolanaAddress } from '../lib/chain-types.ts'

/** A CEL rule of a CustomResourceDefinition (x-kubernetes-validations). */
export interface CelRule {
  readonly rule: string
  readonly message: string
  readonly fieldPath?: string
  readonly reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired'
}

/** Adds CEL rules to a schema; the CRD generator passes them through. */
export function cel<T extends z.ZodType>(schema: T, ...rules: CelRule[]): T {
  const earlier = schema.meta()?.['x-kubernetes-validations']
  return schema.meta({ ...schema.meta(), 'x-kubernetes-validations': [...(Array.isArray(earlier) ? earlier : []), ...rules] }) as T
}

/** Says in words what a pattern wants: the CRD gets a CEL rule with this message in place of a regular expression that nobody can read. */
export const inWords = <T extends z.ZodType>(schema: T, message: string): T =>
  schema.meta({ ...schema.meta(), patternMessage: message }) as T

/**
 * A field that can't change after creation. The CRD gets a rule at its root, whose message goes by the object's own state (`KindDefinition.instead`): a rule of
 * the field itself sees no status.
 */
export const immutable = <T extends z.ZodType>(schema: T, name: string): T => schema.meta({ ...schema.meta(), immutable: name }) as T

/** A field of what only the operator writes, and writes once. */
export const writtenOnce = <T extends z.ZodType>(schema: T, name: string): T =>
  cel(schema, { rule: 'self == oldSelf', message: `${name} cannot be changed: it is written once, by the operator` })

/** The metadata of a list whose entries are known by `keys` (x-kubernetes-list-type: map). */
export const listMap = (...keys: string[]) => ({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys })
export const listSet = { 'x-kubernetes-list-type': 'set' }

/** RFC 1123 label: the names of namespaces, signers, networks and key folders. */
export const dnsLabel = () =>
  z
    .string()
    .min(1)
    .max(63)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
/** The name of a network, as a person writes it. */
export const networkText = () => inWords(dnsLabel(), 'must be the name of a network: at most 63 lower-case letters, digits and hyphens')
/** RFC 1123 subdomain: the names of resources. */
export const dnsSubdomain = () =>
  z
    .string()
    .min(1)
    .max(253)
    .regex(/^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/)

/** Texts of type T, for the compiler. */
type Texts<T extends string> = z.ZodString & { readonly _zod: { readonly output: T; readonly input: T } }
/** A schema whose texts are of type T. It checks nothing more. */
export const texts = <T extends string>(schema: z.ZodString): Texts<T> => schema as Texts<T>
const hexText = <T extends Hex>(bytes: number): Texts<T> =>
  texts(
    z
      .string()
      .max(2 + bytes * 2)
      .regex(new RegExp(`^0x[0-9a-fA-F]{${bytes * 2}}$`)),
  )

/** Bytes of a fixed number in hex. */
export const hexBytes = (bytes: number) => hexText<Hex>(bytes)
/** An Ethereum address. */
export const address = () => hexText<Address>(20)
/** The hash of an Ethereum transaction. */
export const transactionHash = () => hexText<Hash>(32)
/** The hash of an Ethereum block. */
export const blockHash = () => hexText<BlockHash>(32)
/** A validator's BLS public key. */
export const pubkey = () => hexText<Pubkey>(48)

/** Base58 of 32 bytes has 32 to 44 characters; that it is exactly 32 bytes is checked by the operator. */
const base58Text = <T extends string>(): Texts<T> =>
  texts(
    z
      .string()
      .min(32)
      .max(44)
      .regex(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/),
  )
/** A Solana address. */
export const solanaAddress = () => base58Text<SolanaAddress>()
/** A Solana blockhash. */
export const blockhash = () => base58Text<Blockhash>()
/** The signature that a Solana transaction is known by. */
export const signature = () =>
  texts<Signature>(
    z
      .string()
      .max(88)
      .regex(/^[1-9A-HJ-NP-Za-km-z]{64,88}$/),
  )

/**
 * A non-negative whole number as text, for amounts over 2^53 (the Kubernetes API conventions allow no floats and clients read numbers as doubles).
 * 78 digits hold a uint256: private networks prefund accounts with more than all ether there is, and a balance that doesn't fit would stop the ledger.
 */
export const integerText = (maxDigits = 78) =>
  z
    .string()
    .max(maxDigits)
    .regex(/^(0|[1-9][0-9]*)$/)
/** An amount in ETH or SOL as the operator writes it: up to a uint64 of gwei or lamports. */
export const coinText = () =>
  z
    .string()
    .max(21)
    .regex(/^[0-9]{1,11}(\.[0-9]{1,9})?$/)
/** A non-negative whole number that fits a double, as clients read numbers. */
export const wholeNumber = () => z.int().min(0).max(Number.MAX_SAFE_INTEGER).meta({ format: 'int64' })
/** RFC 3339. */
export const time = () => z.string().max(64).meta({ format: 'date-time' })

/** Tools that follow kstatus take an object without status for ready (fluxcd/kustomize-controller#387): what nobody has seen says −1 until it is seen. */
export const UNSEEN_GENERATION = -1
export const observedGeneration = () =>
  z
    .int()
    .min(UNSEEN_GENERATION)
    .max(Number.MAX_SAFE_INTEGER)
    .meta({ format: 'int64' })
    .optional()
    .describe('Generation of the spec that this status speaks of; −1 before the operator has seen it.')
/** The last value of the annotation staking.dev/reconcile-at that was taken up, as Flux tells it of its own. */
export const LAST_HANDLED_LENGTH = 64
export const lastHandledReconcileAt = () =>
  z
    .string()
    .max(LAST_HANDLED_LENGTH)
    .optional()
    .describe('The value of the annotation staking.dev/reconcile-at that was taken up last, cut at 64 characters.')
export const observedAt = () =>
  time()
    .optional()
    .describe(
      'When it was looked at last since it was done: written with every change, and otherwise once a day. The condition Observed says whether it still can be looked at.',
    )
export const phase = () =>
  z.string().max(32).optional().describe('One word for people, derived from the rest. Programs read the conditions.')

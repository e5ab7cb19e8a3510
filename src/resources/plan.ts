import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { z } from 'zod'
import { planHashText } from './plan-hash.ts'
import { dnsLabel, dnsSubdomain, hexBytes, integerText, wholeNumber } from './schema.ts'
import { transactionPurposes } from './staking-transaction.ts'

/** An address of either chain. */
const anyAddress = () => z.string().min(32).max(44)

/** Everything that an approval is of. It holds nothing that changes while the resource, its signers' caps and their keys stay as they are. */
const fields = {
  resource: z
    .strictObject({
      kind: z.string().min(1).max(63).describe('Kind.'),
      namespace: dnsLabel().describe('Namespace.'),
      name: dnsSubdomain().describe('Name.'),
      uid: z.string().min(1).max(64).describe('UID: another resource of the same name has another plan.'),
    })
    .describe('The resource that asks for it.'),
  purpose: z.enum(transactionPurposes).describe('What is to be done, once.'),
  network: dnsLabel().describe('Name of the network.'),
  chainId: wholeNumber().optional().describe('EIP-155 chain id. Ethereum only.'),
  genesisHash: z.string().min(1).max(66).optional().describe('Genesis hash of the cluster. Solana only.'),
  signer: dnsSubdomain().describe('Name of the StakingSigner that signs and pays.'),
  from: anyAddress().describe('Its address.'),
  withdrawSigner: dnsSubdomain().optional().describe('Name of the StakingSigner of the withdraw authority. Solana only.'),
  withdrawAuthority: anyAddress().optional().describe('Its address: who owns the money from then on. Solana only.'),
  newStakeAuthority: anyAddress().optional().describe('Who is to be the stake authority. Of a hand-over of authorities.'),
  newWithdrawAuthority: anyAddress()
    .optional()
    .describe('Who is to be the withdraw authority, and to own the money. Of a hand-over of authorities.'),
  subject: z.string().min(1).max(98).describe("The validator's public key, or the stake account."),
  amount: integerText(20)
    .optional()
    .describe(
      'Amount in gwei, or in lamports. Left out where all that is there moves: exits, deactivations, Solana withdrawals, hand-overs of authorities.',
    ),
  to: anyAddress().optional().describe('The contract that is called. Ethereum only.'),
  valueWei: integerText().optional().describe('Value in wei, where the purpose fixes it. Ethereum only.'),
  dataHash: hexBytes(32).optional().describe('Keccak-256 of the calldata. Ethereum only.'),
  withdrawalAddress: anyAddress().optional().describe('Where the stake and its rewards are paid to. Of a deposit.'),
  credentialsType: z.enum(['Compounding', 'Execution']).optional().describe('Type of the withdrawal credentials. Of a deposit.'),
  voteAccount: anyAddress().optional().describe('The vote account that is delegated to. Solana only.'),
  destination: anyAddress().optional().describe('Where the money goes when it is withdrawn. Solana only.'),
  maxFeePerGasWei: integerText().optional().describe('Highest fee per gas in wei. Ethereum only.'),
  maxRequestFeeWei: integerText().optional().describe('Highest fee in wei for the EIP-7002 contract. Of an exit or withdrawal.'),
  maxPriorityFeeLamports: integerText(20).optional().describe('Highest priority fee of one transaction in lamports. Solana only.'),
}
const plan = z.strictObject(fields)

/** What is to be signed for a resource, as the operator has verified it: facts alone, each of which an approval is bound to. */
export type Plan = z.output<typeof plan>
export const planSchema: z.ZodType<Plan> = plan

/** A plan in the status of a resource: all its fields, so that whoever reads it can compute the hash, and the hash. */
const shown = z.strictObject({
  ...fields,
  hash: planHashText().describe('SHA-256 of all that, in canonical form: what an approval names.'),
})
export type ShownPlan = z.output<typeof shown>
export const shownPlan: z.ZodType<ShownPlan> = shown
/** The status field of every kind whose transactions may need an approval. */
export const planField = () =>
  shown
    .optional()
    .describe(
      'What is about to be signed and has to be approved, or is only planned. For people: the operator computes it anew for itself.',
    )

/** Says which encoding it is, and that it is a plan: no other text of ours begins with it. */
const DOMAIN = 'staking.dev/plan/v1'

/**
 * The one text that a plan has: a line with the encoding's name, then JSON with sorted keys and without white space, of texts alone, hex in lower case.
 * Two plans have the same text only if they are the same.
 */
export const canonicalPlan = (of: Plan): string => `${DOMAIN}\n${JSON.stringify(canonical(planOnly(of)))}`

/** SHA-256 of the canonical text, 64 hex digits. */
export const planHash = (of: Plan): string => bytesToHex(sha256(utf8ToBytes(canonicalPlan(of))))

/** As it is shown in status. */
export const withHash = (of: Plan): ShownPlan => ({ ...planOnly(of), hash: planHash(of) })

/**
 * A plan that somebody shows, once its hash is known to be that of its fields: status can be written by others than the operator.
 * @returns undefined where it is none, or where the hash is another
 */
export function readPlan(given: unknown): ShownPlan | undefined {
  const parsed = shown.safeParse(given)
  return parsed.success && planHash(parsed.data) === parsed.data.hash ? parsed.data : undefined
}

/** Without what is no part of a plan (the hash), whatever the object holds. @throws ZodError where a field has not its form */
function planOnly(of: Plan): Plan {
  return plan.parse(Object.fromEntries(Object.keys(fields).flatMap((key) => pairOf(key, of[key as keyof Plan]))))
}
const pairOf = (key: string, value: unknown): [string, unknown][] => (value === undefined ? [] : [[key, value]])

type Canonical = string | { readonly [key: string]: Canonical }

function canonical(value: unknown): Canonical {
  if (typeof value === 'string') return /^0x[0-9a-fA-F]*$/.test(value) ? value.toLowerCase() : value
  if (typeof value === 'number') return value.toString()
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(`a plan holds texts alone, not ${typeof value}`)
  const entries = Object.entries(value).filter(([, one]) => one !== undefined)
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, one]) => [key, canonical(one)]))
}

import { z } from 'zod'
import { API_VERSION, type KindDefinition, type Resource } from './meta.ts'
import { address, cel, dnsSubdomain, wholeNumber } from './schema.ts'

const spec = z.object({
  chainId: wholeNumber().describe('EIP-155 chain id.'),
  address: address().describe("The signer's address."),
  nonce: wholeNumber().describe('Nonce.'),
  transaction: z
    .object({
      name: dnsSubdomain().describe('Name of the StakingTransaction.'),
      uid: z.string().max(64).describe('UID of the StakingTransaction.'),
      generation: wholeNumber().describe('Generation of the StakingTransaction that took the place.'),
    })
    .optional()
    .describe('The StakingTransaction that the place was taken for. Left out for a filler.'),
  subjects: z
    .array(z.string().max(128))
    .max(9)
    .optional()
    .describe(
      'Validators that a transaction of an earlier version of the operator may pay under this nonce. Nothing else is signed for them before the nonce is final.',
    ),
})

/** A place in a signer's lane. */
export const signerNonce = {
  kind: 'SignerNonce',
  plural: 'signernonces',
  singular: 'signernonce',
  shortNames: ['nonce', 'nonces'],
  scope: 'Cluster',
  description:
    "SignerNonce is a place in a signer's lane: one nonce of one address on one chain, given out once, since its name is made of the three. It never changes. What is sent under it is what the StakingTransaction that names it says; otherwise it is filled with 0 wei to the signer itself. Only the operator writes it: do not edit or delete it.",
  spec: cel(spec, { rule: 'self == oldSelf', message: 'a place in a lane never changes' }),
  status: z.object({}),
  printerColumns: [
    { name: 'Chain', type: 'integer', jsonPath: '.spec.chainId', description: 'Chain id.' },
    { name: 'Address', type: 'string', jsonPath: '.spec.address', description: "The signer's address." },
    { name: 'Nonce', type: 'integer', jsonPath: '.spec.nonce', description: 'Nonce.' },
    { name: 'Transaction', type: 'string', jsonPath: '.spec.transaction.name', description: 'The transaction that it was taken for.' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Time since creation.' },
  ],
  selectableFields: ['.spec.address'],
} as const satisfies KindDefinition

export type SignerNonceSpec = z.output<typeof spec>
export type SignerNonce = Resource<SignerNonceSpec, Record<string, never>>
export const signerNonceSpec: z.ZodType<SignerNonceSpec> = spec
export const SIGNER_NONCE_API = { apiVersion: API_VERSION, kind: signerNonce.kind } as const

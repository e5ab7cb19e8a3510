import { z } from 'zod'
import { cel, dnsSubdomain, immutable, inWords, networkText, pubkey } from './schema.ts'

/** The validator that a request is for: by an EthereumStake of the same namespace, or by network and public key. */
export const validatorRef = () =>
  immutable(
    cel(
      z.object({
        stakeRef: z
          .object({ name: dnsSubdomain().describe('Name of an EthereumStake in the same namespace.') })
          .optional()
          .describe('The validator of an EthereumStake in the same namespace: the request waits until it is active.'),
        network: networkText()
          .optional()
          .describe("With pubkey: name of a network in the operator's configuration, such as mainnet or hoodi."),
        pubkey: inWords(pubkey(), "must be a validator's public key: 0x and 96 hex digits")
          .optional()
          .describe('With network: BLS public key of a validator that is no EthereumStake here, 48 bytes in hex with 0x.'),
      }),
      {
        rule: 'has(self.stakeRef) ? !has(self.network) && !has(self.pubkey) : has(self.network) && has(self.pubkey)',
        message: 'must have either stakeRef (an EthereumStake of this namespace), or both network and pubkey',
      },
    ),
    'validator',
  ).describe('The validator: either stakeRef, or both network and pubkey.')
export type ValidatorRef = z.output<ReturnType<typeof validatorRef>>

import { z } from 'zod'
import { ethereumAddress, hex, network } from './common.ts'

/** The networks that this service serves, with the constants that its deposits are made for. */
export const networks = z
  .object({
    networks: z
      .array(
        z.discriminatedUnion('chain', [
          z.object({
            network,
            chain: z.literal('ethereum'),
            chainId: z.int().positive(),
            depositContractAddress: ethereumAddress,
            genesisForkVersion: hex(4),
          }),
          z.object({ network, chain: z.literal('solana'), genesisHash: z.string().max(64) }),
        ]),
      )
      .max(64),
  })
  .meta({ id: 'Networks' })
export type NetworksBody = z.output<typeof networks>

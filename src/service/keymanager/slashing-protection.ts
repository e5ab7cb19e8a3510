import { z } from 'zod'
import { KeystoreError } from '../keystores.ts'

/** What was signed is handed on as it is. */
const entry = z.looseObject({})
/** The interchange format of EIP-3076, as far as it is read here. */
const interchange = z.looseObject({
  metadata: z.looseObject({ interchange_format_version: z.literal('5'), genesis_validators_root: z.string() }),
  data: z.array(z.looseObject({ pubkey: z.string(), signed_blocks: z.array(entry), signed_attestations: z.array(entry) })),
})

/**
 * Of a history that was given, what is of these keys alone.
 * @param file Names it in messages. @param genesisRoot Of the network; undefined where nobody tells it.
 * @throws KeystoreError when it is none, of another network, or holds nothing of one of the keys
 */
export function historyOf(pubkeys: readonly string[], text: string, file: string, genesisRoot?: string): string {
  const history = interchange.safeParse(jsonOf(text))
  if (!history.success) throw new KeystoreError(`${file} is not slashing protection in the interchange format (EIP-3076)`)
  const of = history.data.metadata.genesis_validators_root
  if (genesisRoot !== undefined && of.toLowerCase() !== genesisRoot.toLowerCase())
    throw new KeystoreError(
      `${file} is of another network: its genesis validators root is ${of.slice(0, 80)}, and this one's ${genesisRoot}`,
    )
  const wanted = new Set(pubkeys)
  const data = history.data.data.filter(({ pubkey }) => wanted.has(pubkey.toLowerCase()))
  const without = pubkeys.find((pubkey) => !data.some((one) => one.pubkey.toLowerCase() === pubkey))
  if (without !== undefined) throw new KeystoreError(`${file} holds no history of ${without}`)
  return JSON.stringify({ ...history.data, data })
}

/** That these keys have signed nothing: true of keys that were made here and never given away, and to be said of no others. */
export const emptyHistory = (pubkeys: readonly string[], genesisValidatorsRoot: string): string =>
  JSON.stringify({
    metadata: { interchange_format_version: '5', genesis_validators_root: genesisValidatorsRoot },
    data: pubkeys.map((pubkey) => ({ pubkey, signed_blocks: [], signed_attestations: [] })),
  })

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

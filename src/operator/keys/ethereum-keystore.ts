import { Wallet } from '@ethereumjs/wallet'
import { z } from 'zod'
import { KeyError } from '../ports.ts'

const lowerHex = (bytes: number) =>
  z
    .string()
    .toLowerCase()
    .regex(new RegExp(`^[0-9a-f]{${bytes * 2}}$`))

/** A Web3 Secret Storage keystore, version 3, within bounds that a person's machine also uses: geth writes n = 262144, r = 8, p = 1. */
const keystore = z.object({
  version: z.literal(3),
  address: z
    .string()
    .toLowerCase()
    .regex(/^(0x)?[0-9a-f]{40}$/)
    .optional(),
  crypto: z.intersection(
    z.object({
      cipher: z.literal('aes-128-ctr'),
      ciphertext: lowerHex(32),
      cipherparams: z.object({ iv: lowerHex(16) }),
      mac: lowerHex(32),
    }),
    z.discriminatedUnion('kdf', [
      z.object({
        kdf: z.literal('scrypt'),
        kdfparams: z
          .object({
            n: z
              .int()
              .min(2)
              .max(1 << 20),
            r: z.int().min(1).max(32),
            p: z.int().min(1).max(16),
            dklen: z.literal(32),
            salt: z
              .string()
              .toLowerCase()
              .regex(/^([0-9a-f]{2}){1,128}$/),
          })
          // scrypt takes 128 * n * r bytes: half a GiB is the most that is given to it.
          .refine(({ n, r }) => 128 * n * r <= 1 << 29),
      }),
      z.object({
        kdf: z.literal('pbkdf2'),
        kdfparams: z.object({
          c: z.int().min(1).max(10_000_000),
          prf: z.literal('hmac-sha256'),
          dklen: z.literal(32),
          salt: z
            .string()
            .toLowerCase()
            .regex(/^([0-9a-f]{2}){1,128}$/),
        }),
      }),
    ]),
  ),
})

/**
 * Decrypts a keystore. @param shown its path, for messages: they name the place that is wrong and never quote anything.
 * @throws KeyError `malformed`, `wrong-password`
 */
export async function decryptKeystore(text: string, password: string, shown: string): Promise<Uint8Array> {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw new KeyError('malformed', `${shown} is not JSON: it must be a Web3 keystore, version 3`)
  }
  const parsed = keystore.safeParse(json)
  if (!parsed.success) {
    const places = [...new Set(parsed.error.issues.map(({ path }) => path.join('.') || 'its top'))].join(', ')
    throw new KeyError('malformed', `${shown} is not a Web3 keystore, version 3, that is supported: look at ${places}`)
  }
  // The keystore's own address is checked below: what fromV3 takes has no use for it.
  const { version, crypto, address } = parsed.data
  let key: Uint8Array
  try {
    key = (await Wallet.fromV3(JSON.stringify({ version, crypto }), password)).getPrivateKey()
  } catch (error) {
    if (error instanceof Error && /wrong passphrase/i.test(error.message)) {
      throw new KeyError('wrong-password', `the file password beside ${shown} does not decrypt it`)
    }
    throw new KeyError('malformed', `${shown} cannot be decrypted, or what it holds is not a key`)
  }
  if (address !== undefined && address.replace('0x', '') !== Wallet.fromPrivateKey(key).getAddressString().slice(2)) {
    throw new KeyError('malformed', `${shown} names another address than that of its key`)
  }
  return key
}

import { readFile } from 'node:fs/promises'
import { isAddress as isEthereumAddress } from 'viem'
import { parse } from 'yaml'
import { z } from 'zod'
import type { Address } from '../../../chains/ethereum/chain.ts'
import { isOnCurve, isAddress as isSolanaAddress, type SolanaAddress } from '../../../chains/solana/addresses.ts'

const loopback = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Who has a key is trusted by its certificate. Plain http is for this machine alone: a sidecar, a test. */
const url = z
  .string()
  .max(2048)
  .transform((text, context) => {
    const parsed = URL.canParse(text) ? new URL(text) : undefined
    if (parsed === undefined || (parsed.protocol !== 'https:' && !(parsed.protocol === 'http:' && loopback.has(parsed.hostname))))
      context.addIssue('must be an https URL (http only to localhost)')
    else if (parsed.username !== '' || parsed.password !== '' || parsed.search !== '' || parsed.hash !== '')
      context.addIssue('must have no user, password, query or fragment')
    return parsed ?? new URL('https://invalid')
  })
const path = z.string().regex(/^\/[^\0]{0,1023}$/, 'must be an absolute path')
const tls = z
  .strictObject({
    caFile: path.optional(),
    certFile: path.optional(),
    keyFile: path.optional(),
    serverName: z
      .string()
      .regex(/^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/, 'must be a host name')
      .optional(),
  })
  .refine(({ certFile, keyFile }) => (certFile === undefined) === (keyFile === undefined), 'certFile and keyFile go together')

const web3signer = z.strictObject({
  url,
  /** Whose key signs: Web3Signer may have many. */
  address: z.string().refine((text) => isEthereumAddress(text), 'must be an Ethereum address') as unknown as z.ZodType<Address>,
  tls: tls.optional(),
})
const awsRegion = z.string().regex(/^[a-z0-9-]{1,64}$/, 'must be a region such as eu-central-1')
const awsKms = z.strictObject({
  keyId: z.string().regex(/^[A-Za-z0-9:/_-]{1,2048}$/, 'must be the ARN, the id or the alias of a key'),
  region: awsRegion.optional(),
  /** Of a VPC endpoint. Default: https://kms.REGION.amazonaws.com. */
  endpoint: url.optional(),
  tls: tls.optional(),
})
const part = z
  .string()
  .regex(/^[A-Za-z0-9_.-]{1,128}(\/[A-Za-z0-9_.-]{1,128}){0,7}$/, 'must be a path of Vault without slashes at its ends')
  .refine((text) => !text.split('/').some((one) => one === '.' || one === '..'), 'must be a path without dots alone')
const transit = z.strictObject({
  url,
  mount: part.default('transit'),
  key: z.string().regex(/^[A-Za-z0-9_-]{1,128}$/, 'must be the name of a key'),
  keyVersion: z.int().min(1).max(1_000_000).default(1),
  namespace: part.optional(),
  address: z
    .string()
    .refine(
      (text) => isSolanaAddress(text) && isOnCurve(text as SolanaAddress),
      'must be a Solana address that a key can have',
    ) as unknown as z.ZodType<SolanaAddress>,
  auth: z.union([
    z.strictObject({ tokenFile: path }),
    z.strictObject({
      kubernetes: z.strictObject({
        role: z.string().regex(/^[A-Za-z0-9_.-]{1,128}$/, 'must be the name of a role'),
        mount: part.default('kubernetes'),
        tokenFile: path.default('/var/run/secrets/staking.dev/vault/token'),
      }),
    }),
  ]),
  tls: tls.optional(),
})

const entry = z
  .strictObject({
    /** What a StakingSigner's keyName says. */
    name: z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, 'must be lower-case letters, digits and hyphens, at most 63'),
    /** For one signature, retries and all, in ms. */
    timeoutMs: z.int().min(100).max(30_000).default(5_000),
    web3signer: web3signer.optional(),
    awsKms: awsKms.optional(),
    transit: transit.optional(),
  })
  .refine(
    (one) => [one.web3signer, one.awsKms, one.transit].filter((kind) => kind !== undefined).length === 1,
    'must have one of web3signer, awsKms and transit',
  )
const file = z.strictObject({ signers: z.array(entry).max(256) })
export type RemoteSignerEntry = z.output<typeof entry>

/** A file of remote signers that can't be used: the message names each place. Values are not quoted. */
export class RemoteSignersFileError extends Error {
  override readonly name = 'RemoteSignersFileError'
}

/** @throws RemoteSignersFileError */
export async function readRemoteSignersFile(at: string): Promise<readonly RemoteSignerEntry[]> {
  let text: string
  try {
    text = await readFile(at, 'utf8')
  } catch (error) {
    throw new RemoteSignersFileError(
      `${at} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'error'}): mount the remote signers file there, or name another with --remote-signers`,
    )
  }
  return parseRemoteSignersFile(text, at)
}

/** @throws RemoteSignersFileError */
export function parseRemoteSignersFile(text: string, at: string): readonly RemoteSignerEntry[] {
  let value: unknown
  try {
    // An address in hex is a text, quoted or not: YAML would make a number of it, and Helm writes it without quotes.
    value = parse(text, {
      prettyErrors: false,
      customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || tag.format !== 'HEX'),
    })
  } catch {
    throw new RemoteSignersFileError(`${at} is not YAML`)
  }
  const result = file.safeParse(value)
  if (!result.success)
    throw new RemoteSignersFileError(
      `${at}: ${result.error.issues.map(({ path: place, message }) => `${place.join('.') || 'the file'}: ${message}`).join('; ')}`,
    )
  const names = result.data.signers.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new RemoteSignersFileError(`${at}: the signer ${twice} is there twice`)
  return result.data.signers
}

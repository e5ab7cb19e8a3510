import { Message, VersionedMessage } from '@solana/web3.js'
import { type Lamports, lamports } from '../../lib/amounts.ts'
import { isAddress, type SolanaAddress, type SolanaSignature } from './addresses.ts'
import { splitTransaction, verifySignature } from './message.ts'

/**
 * The off-chain message envelope, as `solana sign-offchain-message` makes it: 0xff "solana offchain", version 0, format, length (u16 LE), text.
 * Its first byte can't begin a transaction's message: there it would be a version that doesn't exist. Format 0 is restricted ASCII (0x20
 * to 0x7e), which looks the same on every screen and on hardware wallets.
 */
const signingDomain = Buffer.from('\xffsolana offchain', 'latin1')
const headerBytes = signingDomain.length + 4
/** What format 0 allows: one packet with its header. */
export const maxChallengeBytes = 1232 - headerBytes

export class ChallengeError extends Error {
  override readonly name = 'ChallengeError'
}

const restrictedAscii = /^[\x20-\x7e]+$/

/** The bytes that are signed for a text. @throws ChallengeError unless it is 1 to 1212 characters of printable ASCII. */
export function encodeOffchainMessage(text: string): Uint8Array {
  if (!restrictedAscii.test(text)) throw new ChallengeError('the message is not printable ASCII')
  const body = Buffer.from(text, 'latin1')
  if (body.length > maxChallengeBytes) throw new ChallengeError(`the message is longer than ${maxChallengeBytes} bytes`)
  const header = Buffer.from([0, 0, body.length & 0xff, body.length >> 8])
  return new Uint8Array(Buffer.concat([signingDomain, header, body]))
}

/** The text of an envelope. @throws ChallengeError unless it is exactly what `encodeOffchainMessage` makes. */
export function decodeOffchainMessage(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.subarray(headerBytes)).toString('latin1')
  let again: Uint8Array | undefined
  try {
    again = encodeOffchainMessage(text)
  } catch {
    again = undefined
  }
  if (again === undefined || !Buffer.from(again).equals(bytes)) throw new ChallengeError('the bytes are not an off-chain message')
  return text
}

/** Whether the withdraw authority has signed the envelope of this text. */
export const verifyChallengeSignature = (signer: SolanaAddress, text: string, signature: SolanaSignature): boolean => {
  try {
    return verifySignature(signer, encodeOffchainMessage(text), signature)
  } catch {
    return false
  }
}

/** What a challenge names. */
export interface ChallengeContent {
  /** Host name of the staking service. */
  readonly domain: string
  readonly stakeId: string
  readonly challengeId: string
  readonly network: string
  readonly amount: Lamports
  readonly stakeAccount: SolanaAddress
  readonly stakeAuthority: SolanaAddress
  readonly withdrawAuthority: SolanaAddress
  readonly issuedAt: Date
  readonly expiresAt: Date
}

/** The text to sign. @throws ChallengeError for a part that would make it ambiguous. */
export function challengeText(content: ChallengeContent): string {
  const { domain, stakeId, challengeId, network, amount } = content
  if (!host.test(domain)) throw new ChallengeError('the domain is not a host name')
  for (const part of [stakeId, challengeId, network]) if (!word.test(part)) throw new ChallengeError('an id is not a plain word')
  for (const address of [content.stakeAccount, content.stakeAuthority, content.withdrawAuthority])
    if (!isAddress(address)) throw new ChallengeError('an address is not a Solana address')
  if (amount < 0n) throw new ChallengeError('the amount is negative')
  return [
    `${domain} asks the withdraw authority to approve a stake`,
    `Stake: ${stakeId}`,
    `Challenge: ${challengeId}`,
    `Network: ${network}`,
    `Amount: ${amount} lamports`,
    `Stake account: ${content.stakeAccount}`,
    `Stake authority: ${content.stakeAuthority}`,
    `Withdraw authority: ${content.withdrawAuthority}`,
    `Issued: ${content.issuedAt.toISOString()}`,
    `Expires: ${content.expiresAt.toISOString()}`,
  ].join('; ')
}

const host = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(:[0-9]{1,5})?$/
const word = /^[A-Za-z0-9][-A-Za-z0-9]{0,127}$/
const isoTime = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`
const base58 = '[1-9A-HJ-NP-Za-km-z]{32,44}'
const pattern = new RegExp(
  `^(?<domain>[-a-z0-9.:]+) asks the withdraw authority to approve a stake; Stake: (?<stakeId>[-A-Za-z0-9]+); Challenge: (?<challengeId>[-A-Za-z0-9]+); ` +
    `Network: (?<network>[-A-Za-z0-9]+); Amount: (?<amount>0|[1-9][0-9]{0,19}) lamports; Stake account: (?<stakeAccount>${base58}); ` +
    `Stake authority: (?<stakeAuthority>${base58}); Withdraw authority: (?<withdrawAuthority>${base58}); Issued: (?<issuedAt>${isoTime}); Expires: (?<expiresAt>${isoTime})$`,
)

/** What a text names, when it is exactly what `challengeText` would make of that; else undefined. */
export function parseChallenge(text: string): ChallengeContent | undefined {
  const groups = text.length > maxChallengeBytes ? undefined : pattern.exec(text)?.groups
  if (groups === undefined) return undefined
  const part = (name: string): string => groups[name] ?? ''
  const content: ChallengeContent = {
    domain: part('domain'),
    stakeId: part('stakeId'),
    challengeId: part('challengeId'),
    network: part('network'),
    amount: lamports(BigInt(part('amount'))),
    stakeAccount: part('stakeAccount'),
    stakeAuthority: part('stakeAuthority'),
    withdrawAuthority: part('withdrawAuthority'),
    issuedAt: new Date(part('issuedAt')),
    expiresAt: new Date(part('expiresAt')),
  }
  try {
    return challengeText(content) === text ? content : undefined
  } catch {
    // A date that doesn't exist, an address of 31 bytes.
    return undefined
  }
}

export type ChallengeMismatchCode =
  /** It is, or could be taken for, a transaction: signing it might move money. */
  | 'transaction'
  /** Not the one form of text that is signed. */
  | 'malformed'
  | 'wrong-domain'
  | 'wrong-stake'
  | 'wrong-challenge'
  | 'wrong-network'
  | 'wrong-amount'
  | 'wrong-stake-account'
  | 'wrong-stake-authority'
  | 'wrong-withdraw-authority'
  | 'expired'
  /** It is of the future, or lives longer than a challenge should. */
  | 'wrong-lifetime'

export interface ChallengeMismatch {
  readonly code: ChallengeMismatchCode
  readonly message: string
}

/** A challenge lives 5 minutes; our clock and the service's may differ by as much. */
const maxLifetimeMs = 600_000

/** Compares a challenge with what was asked for. An empty list means: its envelope may be signed with the withdraw authority. */
export function verifyChallenge(given: {
  readonly text: string
  readonly expected: Omit<ChallengeContent, 'issuedAt' | 'expiresAt'>
  readonly now: Date
}): readonly ChallengeMismatch[] {
  const { text, expected, now } = given
  if (mayBeTransaction(Buffer.from(text, 'utf8')) || mayBeTransaction(Buffer.from(text, 'base64')))
    return [{ code: 'transaction', message: 'the challenge can be read as a transaction' }]
  const content = parseChallenge(text)
  if (content === undefined) return [{ code: 'malformed', message: 'the challenge is not in the form that this version signs' }]
  if (mayBeTransaction(encodeOffchainMessage(text))) return [{ code: 'transaction', message: 'the challenge can be read as a transaction' }]
  const rules: readonly (readonly [boolean, ChallengeMismatchCode, string])[] = [
    [content.domain === expected.domain, 'wrong-domain', `the challenge is not of ${expected.domain}`],
    [content.stakeId === expected.stakeId, 'wrong-stake', 'the challenge is for another stake'],
    [content.challengeId === expected.challengeId, 'wrong-challenge', 'the text names another challenge than the one it came with'],
    [content.network === expected.network, 'wrong-network', `the challenge is not for ${expected.network}`],
    [content.amount === expected.amount, 'wrong-amount', `the amount is not ${expected.amount} lamports`],
    [content.stakeAccount === expected.stakeAccount, 'wrong-stake-account', `the stake account is not ${expected.stakeAccount}`],
    [content.stakeAuthority === expected.stakeAuthority, 'wrong-stake-authority', `the stake authority is not ${expected.stakeAuthority}`],
    [
      content.withdrawAuthority === expected.withdrawAuthority,
      'wrong-withdraw-authority',
      `the withdraw authority is not ${expected.withdrawAuthority}`,
    ],
    [content.expiresAt.getTime() > now.getTime(), 'expired', 'the challenge has expired: renew it'],
    [
      content.issuedAt.getTime() <= content.expiresAt.getTime() && content.expiresAt.getTime() - now.getTime() <= maxLifetimeMs,
      'wrong-lifetime',
      'the challenge lives longer than ten minutes from now',
    ],
  ]
  return rules.filter(([holds]) => !holds).map(([, code, message]) => ({ code, message }))
}

/** Whether any reader, also a lenient one, could take the bytes for a transaction or for the message of one. */
export function mayBeTransaction(bytes: Uint8Array): boolean {
  if (isMessage(bytes)) return true
  try {
    return isMessage(splitTransaction(bytes).message)
  } catch {
    return false
  }
}

function isMessage(bytes: Uint8Array): boolean {
  const attempts: readonly (() => unknown)[] = [() => VersionedMessage.deserialize(bytes), () => usable(Message.from(bytes))]
  return attempts.some((attempt) => {
    try {
      attempt()
      return true
    } catch {
      return false
    }
  })
}

/** web3.js reads past the end without complaint: a message that lacks its accounts is none. */
function usable(message: Message): void {
  const { numRequiredSignatures } = message.header
  if (numRequiredSignatures === 0 || message.accountKeys.length < numRequiredSignatures || message.instructions.length === 0)
    throw new ChallengeError('not a message')
  if (message.instructions.some(({ programIdIndex }) => programIdIndex >= message.accountKeys.length))
    throw new ChallengeError('not a message')
}

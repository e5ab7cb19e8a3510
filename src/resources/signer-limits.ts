import { z } from 'zod'
import { cel, coinText, dnsLabel, inWords, time, wholeNumber } from './schema.ts'

const WINDOW = /^[1-9][0-9]{0,8}[smhd]$/
const COINS = /^(0|[1-9][0-9]{0,9})(\.[0-9]{1,9})?$/

/** An amount of coins in a policy. There are some 600 million SOL: a billion of them are lamports, and bound nothing. What is too many ETH, each field says. */
export const coins = (unit: 'ETH' | 'SOL') => {
  const text = inWords(z.string().min(1).max(20).regex(COINS), `must be a plain decimal number of ${unit} such as "320" or "0.5"`)
  return unit === 'ETH'
    ? text
    : cel(text, {
        rule: "!self.matches(r'^[1-9][0-9]{9}([.]|$)')",
        message: 'must be under a billion SOL: it is in SOL, not in lamports, and 320 SOL is "320"',
      })
}
const total = (unit: 'ETH' | 'SOL') =>
  cel(coins(unit), { rule: "!self.matches(r'^0([.]0+)?$')", message: 'must be more than 0: to stop a key, set spec.suspend' })
const per = () => z.enum(['Signer', 'Namespace'])

/** One rolling limit of a signer's policy. What a schema can't say (the units of the chain, duplicates) is checked by `limitsOf` as well. */
export const signerLimit = cel(
  z.strictObject({
    window: cel(
      inWords(
        z.string().min(2).max(10).regex(WINDOW),
        'must be a whole number of seconds, minutes, hours or days, more than 0, such as "24h" or "7d"',
      ),
      {
        rule: `!self.matches(r'${WINDOW.source}') || int(self.substring(0, size(self) - 1)) <= (self.endsWith('s') ? 31536000 : self.endsWith('m') ? 525600 : self.endsWith('h') ? 8760 : 365)`,
        message: 'must be at most a year: 365d',
      },
    ).describe('How far back signatures count: a number with s, m, h or d, such as "24h". At most 365d.'),
    maxTotalEth: total('ETH')
      .optional()
      .describe(
        'Most ETH within a window: deposits by their amount, withdrawals by what they ask for, each exit as 32 ETH, whatever the validator holds. Ethereum only.',
      ),
    maxTotalSol: total('SOL').optional().describe('Most SOL within a window: the amounts of Solana stakes. Solana only.'),
    maxCount: z
      .int()
      .min(1)
      .max(1_000_000)
      .optional()
      .describe('Most transactions within a window: deposits, exits and withdrawals together, or Solana stakes.'),
    per: per()
      .default('Signer')
      .describe(
        'Signer: all that the key signs on a network counts together. Namespace: what it signs for each namespace counts by itself.',
      ),
  }),
  {
    rule: 'has(self.maxTotalEth) || has(self.maxTotalSol) || has(self.maxCount)',
    message: 'a limit needs maxCount, maxTotalEth (Ethereum) or maxTotalSol (Solana)',
  },
)
export type SignerLimit = z.output<typeof signerLimit>

/** CEL: how long a window is, in seconds. */
const seconds = (limit: string): string =>
  `int(${limit}.window.substring(0, size(${limit}.window) - 1)) * (${limit}.window.endsWith('s') ? 1 : ${limit}.window.endsWith('m') ? 60 : ${limit}.window.endsWith('h') ? 3600 : 86400)`
export const signerLimits = cel(z.array(signerLimit).max(8), {
  // What is no window is told as that.
  rule: `self.exists(one, !one.window.matches(r'${WINDOW.source}')) || self.all(one, self.exists_one(other, other.per == one.per && ${seconds('other')} == ${seconds('one')}))`,
  message: 'has two limits for windows of the same length, such as "24h" and "1d", and the same per: keep one of them',
})

/** Entries of status: of more namespaces than that, those that have used most. */
export const LIMITS_SHOWN = 64

/** What of a limit is used now, for people. The log decides, not this. */
export const limitUse = z.object({
  network: dnsLabel().describe('Network that is counted.'),
  window: z.string().max(10).describe('The window of the limit.'),
  per: per().describe('Signer or Namespace.'),
  namespace: dnsLabel().optional().describe('The namespace that is counted, where each counts by itself.'),
  count: wholeNumber().describe('Transactions that count now.'),
  countLeft: wholeNumber().optional().describe('Transactions that may be signed yet, where the limit has maxCount.'),
  usedEth: coinText().optional().describe('ETH that counts now, where the limit has maxTotalEth.'),
  leftEth: coinText().optional().describe('ETH that may be signed for yet.'),
  usedSol: coinText().optional().describe('SOL that counts now, where the limit has maxTotalSol.'),
  leftSol: coinText().optional().describe('SOL that may be signed for yet.'),
  freesAt: time()
    .optional()
    .describe('When the first of what counts now counts no more. Left out where nothing counts, or where that may land yet and is older.'),
})
export type LimitUse = z.output<typeof limitUse>

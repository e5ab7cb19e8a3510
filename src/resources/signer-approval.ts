import { z } from 'zod'
import { cel, inWords, listSet } from './schema.ts'
import { coins } from './signer-limits.ts'
import { transactionPurposes } from './staking-transaction.ts'

const VALID_FOR = /^[1-9][0-9]{0,8}[smhd]$/

/** Groups that hold everybody, or every pod of the cluster, and the user that is nobody: no approver is meant by them. */
export const EVERYBODY: readonly string[] = ['system:authenticated', 'system:unauthenticated', 'system:serviceaccounts']
export const NOBODY = 'system:anonymous'

/** The name of a user or a group, as the API server has it. A control character would make one name look like several. */
const principal = () =>
  inWords(
    z
      .string()
      .min(1)
      .max(256)
      .regex(/^[^\p{Cc}]+$/u),
    'must be a name of at most 256 characters without control characters',
  )

const approver = cel(
  z.strictObject({
    group: cel(principal(), {
      rule: `!(self in ['${EVERYBODY.join("', '")}'])`,
      message: 'everybody is in this group, or every pod: name the group of those who may approve',
    })
      .optional()
      .describe('Name of a group: any of its members.'),
    user: cel(principal(), { rule: `self != '${NOBODY}'`, message: 'this is whoever has no credentials: name a user' })
      .optional()
      .describe('Name of a user; a ServiceAccount is system:serviceaccount:NAMESPACE:NAME.'),
  }),
  { rule: 'has(self.group) != has(self.user)', message: 'write either group or user' },
)
export type ApproverRule = z.output<typeof approver>

/** What of a policy has to be approved, and by whom. What a schema can't say is checked by `approvalOf` as well. */
export const signerApproval = cel(
  z.strictObject({
    aboveEth: coins('ETH')
      .optional()
      .describe(
        'Deposits and withdrawals of more than so much ETH; "0" is all of them. Left out, all. Exits always: they take all that is there. Ethereum only.',
      ),
    aboveSol: coins('SOL')
      .optional()
      .describe(
        'Solana stakes of more than so much SOL; "0" is all of them. Left out, all. Deactivations, withdrawals and hand-overs of authorities always: they take all that is there. Solana only.',
      ),
    kinds: z
      .array(z.enum(transactionPurposes))
      .min(1)
      .max(transactionPurposes.length)
      .meta(listSet)
      .optional()
      .describe(
        'What has to be approved. Left out, everything that the key signs but cancels. With SolanaWithdrawal, also a SolanaAuthorization that hands the withdraw authority over; with SolanaDeactivation, one that hands any authority over.',
      ),
    by: z.array(approver).min(1).max(16).describe('Who may approve: any of these. Whoever has asked for it never may.'),
    count: z.int().min(1).max(16).default(1).describe('How many different users have to approve.'),
    validFor: cel(
      inWords(
        z.string().min(2).max(10).regex(VALID_FOR),
        'must be a whole number of seconds, minutes, hours or days, more than 0, such as "24h" or "7d"',
      ),
      {
        rule: `!self.matches(r'${VALID_FOR.source}') || int(self.substring(0, size(self) - 1)) <= (self.endsWith('s') ? 31536000 : self.endsWith('m') ? 525600 : self.endsWith('h') ? 8760 : 365)`,
        message: 'must be at most a year: 365d',
      },
    )
      .default('7d')
      .describe('How long an approval counts after it was made: a number with s, m, h or d. At most 365d.'),
    allowUnrecorded: z
      .boolean()
      .optional()
      .describe(
        'Of a resource that is older than the admission policies nobody can prove who has asked for it. Left out or false, it can not be approved. True: it can, by anybody whom by names, even by whoever made it.',
      ),
  }),
  {
    rule: 'self.by.all(one, self.by.exists_one(other, has(one.user) ? has(other.user) && other.user.lowerAscii() == one.user.lowerAscii() : other == one))',
    message: 'names somebody twice',
    fieldPath: '.by',
  },
  {
    rule: 'self.by.exists(one, has(one.group)) || self.count <= size(self.by)',
    message: 'is more than the users that by names: nobody could ever meet it',
    fieldPath: '.count',
  },
)
export type SignerApproval = z.output<typeof signerApproval>

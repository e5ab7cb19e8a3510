import { expect, test } from 'vitest'
import type { EthereumStake, EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import type { Networks } from '../../ports.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import { ethereumStakeKind } from './kind.ts'

const leaving = `0x${'aa'.repeat(48)}`
const kind = ethereumStakeKind({
  log: {} as TransactionLog,
  networks: {} as Networks,
  intervals: { activatingMs: 1, settledMs: 100 },
  exitAccepted: (pubkey) => pubkey === leaving,
})

test.each<{ validator: string; pubkey?: string; every: number | undefined }>([
  { validator: 'pending_queued', every: 1 },
  { validator: 'active_ongoing', every: 100 },
  { validator: 'active_ongoing', pubkey: leaving, every: 1 },
  { validator: 'active_exiting', every: 1 },
  { validator: 'active_slashed', every: 1 },
  { validator: 'exited_unslashed', every: 1 },
  { validator: 'withdrawal_possible', every: 1 },
  { validator: 'withdrawal_done', pubkey: leaving, every: undefined },
])(
  'a validator that is $validator is looked at every $every ms: often while it moves',
  ({ validator: status, pubkey = `0x${'bb'.repeat(48)}`, every }) => {
    const stake = { transaction: { state: 'Confirmed' }, depositData: { pubkey }, validator: { pubkey, status } } as EthereumStakeStatus
    expect(kind.observeEvery(stake)).toBe(every)
  },
)

/** The log shows nothing for the origin that the resource says; the chain has the deposit of its key. */
test.each<{ owner: { namespace: string; name: string }; what: string; does: 'watch' | 'release' }>([
  { owner: { namespace: 'team', name: 'one' }, what: 'its own, under another origin', does: 'watch' },
  { owner: { namespace: 'team', name: 'two' }, what: 'that of a resource elsewhere', does: 'release' },
])('deleted, where the only record of its validator is $what: $does', async ({ owner, does }) => {
  const [pubkey, withdrawalCredentials] = [`0x${'bb'.repeat(48)}`, `0x02${'00'.repeat(31)}`]
  const record = { metadata: { name: 'stx' }, spec: { owner: { kind: 'EthereumStake', originUid: 'before', ...owner } } }
  const ofPlace = ({ namespace, name }: typeof owner) => (namespace === owner.namespace && name === owner.name ? [record] : [])
  const deleted = ethereumStakeKind({
    log: { ofOwner: ofPlace, ofSubject: () => [record] } as unknown as TransactionLog,
    networks: { ethereum: () => ({ chain: { depositsFor: async () => [{ withdrawalCredentials }] } }) } as unknown as Networks,
    intervals: { activatingMs: 1, settledMs: 100 },
  })
  const resource = { metadata: { namespace: 'team', name: 'one' }, spec: { network: 'local', amountEth: '32' } } as EthereumStake
  const status = { stakeId: 'stake', depositData: { pubkey, withdrawalCredentials } } as EthereumStakeStatus
  const decision = await deleted.decideDeletion(resource, status, { uid: 'forged' } as never, AbortSignal.timeout(1_000))
  expect(decision.do).toBe(does)
})

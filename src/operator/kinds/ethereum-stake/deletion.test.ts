import { expect, test } from 'vitest'
import type { EthereumStake, EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import { CONFIRM_DELETE_ANNOTATION } from '../../../resources/meta.ts'
import { decideDeletion, type LoggedDeposit } from './deletion.ts'

const resource = (annotation?: string): EthereumStake =>
  ({
    metadata: {
      name: 'one',
      namespace: 'team-a',
      uid: 'u',
      resourceVersion: '1',
      ...(annotation && { annotations: { [CONFIRM_DELETE_ANNOTATION]: annotation } }),
    },
    spec: { amountEth: '32' },
  }) as unknown as EthereumStake
const inState = (state: string, validator?: string) =>
  ({ transaction: { state, hash: '0x1', nonce: 3 }, ...(validator && { validator: { status: validator } }) }) as EthereumStakeStatus

const depositData = { pubkey: '0xabc' } as EthereumStakeStatus['depositData'] & object
const open: LoggedDeposit = { is: 'open', hash: '0x1', nonce: 3 }
const landed: LoggedDeposit = { is: 'landed', pubkey: '0xabc' }

test.each<{ given: string; status: EthereumStakeStatus; logged?: LoggedDeposit; annotation?: string; does: 'release' | 'watch' | 'hold' }>([
  { given: 'nothing was made', status: {}, does: 'release' },
  { given: 'a stake that was never paid', status: { stakeId: 's1' }, does: 'release' },
  { given: 'a record of which nothing can land', status: { stakeId: 's1' }, logged: { is: 'idle' }, does: 'release' },
  { given: 'a transaction in the log that status lost', status: {}, logged: open, does: 'watch' },
  { given: 'a prepared transaction', status: inState('Prepared'), logged: open, does: 'watch' },
  { given: 'a transaction on its way', status: inState('Broadcast'), logged: open, does: 'watch' },
  { given: 'a final deposit', status: inState('Confirmed'), logged: landed, does: 'hold' },
  { given: 'a final deposit that status lost', status: {}, logged: landed, does: 'hold' },
  { given: 'a final deposit that status does not show yet', status: { stakeId: 's1', depositData }, logged: landed, does: 'watch' },
  { given: 'an active validator', status: inState('Confirmed', 'active_ongoing'), logged: landed, does: 'hold' },
  { given: 'a validator that is exiting', status: inState('Confirmed', 'active_exiting'), logged: landed, does: 'hold' },
  {
    given: 'a validator that has exited and is not paid out',
    status: inState('Confirmed', 'withdrawal_possible'),
    logged: landed,
    does: 'hold',
  },
  { given: 'a validator that was paid out', status: inState('Confirmed', 'withdrawal_done'), logged: landed, does: 'release' },
  {
    given: 'a status that says so while the transaction is open',
    status: inState('Confirmed', 'withdrawal_done'),
    logged: open,
    does: 'watch',
  },
  { given: 'a reverted transaction', status: inState('Failed'), logged: { is: 'reverted' }, does: 'release' },
  { given: 'a final deposit, confirmed by name', status: inState('Confirmed'), logged: landed, annotation: 'one', does: 'release' },
  { given: 'a transaction on its way, confirmed by name', status: inState('Broadcast'), logged: open, annotation: 'one', does: 'release' },
  { given: 'a final deposit, confirmed for another name', status: inState('Confirmed'), logged: landed, annotation: 'two', does: 'hold' },
  { given: 'a final deposit, confirmed with "true"', status: inState('Confirmed'), logged: landed, annotation: 'true', does: 'hold' },
])('with $given: $does', ({ status, logged = { is: 'none' }, annotation, does }) => {
  const decision = decideDeletion(resource(annotation), status, logged)
  expect(decision.do).toBe(does)
  if (decision.do !== 'release')
    expect(decision.message).toContain(`kubectl annotate ethereumstake one -n team-a ${CONFIRM_DELETE_ANNOTATION}=one`)
})

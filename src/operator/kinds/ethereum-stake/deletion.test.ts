import { expect, test } from 'vitest'
import type { EthereumStake, EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import { CONFIRM_DELETE_ANNOTATION } from '../../../resources/meta.ts'
import { decideDeletion } from './deletion.ts'

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

test.each<{ given: string; status: EthereumStakeStatus; inLedger?: boolean; annotation?: string; does: 'release' | 'watch' | 'hold' }>([
  { given: 'nothing was made', status: {}, does: 'release' },
  { given: 'a stake that was never paid', status: { stakeId: 's1' }, does: 'release' },
  { given: 'a transaction in the ledger that status lost', status: {}, inLedger: true, does: 'hold' },
  { given: 'a prepared transaction', status: inState('Prepared'), inLedger: true, does: 'watch' },
  { given: 'a transaction on its way', status: inState('Broadcast'), inLedger: true, does: 'watch' },
  { given: 'a final deposit', status: inState('Confirmed'), does: 'hold' },
  { given: 'an active validator', status: inState('Confirmed', 'active_ongoing'), does: 'hold' },
  { given: 'a validator that is exiting', status: inState('Confirmed', 'active_exiting'), does: 'hold' },
  { given: 'a validator that has exited and is not paid out', status: inState('Confirmed', 'withdrawal_possible'), does: 'hold' },
  { given: 'a validator that was paid out', status: inState('Confirmed', 'withdrawal_done'), does: 'release' },
  { given: 'a reverted transaction', status: inState('Failed'), does: 'release' },
  { given: 'a final deposit, confirmed by name', status: inState('Confirmed'), annotation: 'one', does: 'release' },
  { given: 'a transaction on its way, confirmed by name', status: inState('Broadcast'), annotation: 'one', does: 'release' },
  { given: 'a final deposit, confirmed for another name', status: inState('Confirmed'), annotation: 'two', does: 'hold' },
  { given: 'a final deposit, confirmed with "true"', status: inState('Confirmed'), annotation: 'true', does: 'hold' },
])('with $given: $does', ({ status, inLedger = false, annotation, does }) => {
  const decision = decideDeletion(resource(annotation), status, inLedger)
  expect(decision.do).toBe(does)
  if (decision.do !== 'release')
    expect(decision.message).toContain(`kubectl annotate ethereumstake one -n team-a ${CONFIRM_DELETE_ANNOTATION}=one`)
})

import { z } from 'zod'
import { routes } from '../../contract/routes.ts'
import { depositData, unsignedTransaction } from '../../contract/schemas/ethereum-stake.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/log.ts'
import { validationFailed } from '../errors.ts'
import type { Handled, Input } from '../http/contract-route.ts'
import { answer } from '../http/contract-route.ts'
import type { Idempotency } from '../idempotency.ts'
import { newId } from '../ids.ts'
import type { Metrics } from '../metrics.ts'
import { keyPath } from '../seed.ts'
import type { Store } from '../store/database.ts'
import { holderOf, insertStake, referenceExists } from '../store/stakes.ts'
import { makeDeposit } from './make-deposit.ts'
import type { EthereumNetworks } from './networks.ts'
import type { TakeNewKey } from './new-key.ts'
import { brokenRules, checksummed } from './rules.ts'
import { stakeBody } from './stake-body.ts'

export interface CreateStakeDeps {
  readonly store: Store
  readonly idempotency: Idempotency
  readonly takeNewKey: TakeNewKey
  readonly networks: EthereumNetworks
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
}

const route = routes.createEthereumStake
type Route = typeof route

/**
 * Creates a stake: the rules, the claim of the Idempotency-Key, a new validator key, its signed deposit data, and then stake, reference and
 * answer in one database transaction. What fails before that transaction leaves nothing behind but a gap in the key indices.
 */
export function createStake(deps: CreateStakeDeps): (input: Input<Route>) => Promise<Handled<Route>> {
  const { store, idempotency, takeNewKey, networks, clock, log, metrics } = deps
  return async ({ caller, body, idempotent, signal }) => {
    const { amountEth: amount, credentialsType, withdrawalAddress, externalReference: reference } = body
    const network = networks.get(body.network)
    const broken = brokenRules({ networkName: body.network, network: network?.config, amount, credentialsType, withdrawalAddress })
    if (network === undefined || broken.length > 0) throw validationFailed(broken)

    const answered = await idempotency.run(idempotent, async (commit) => {
      if (reference !== undefined) {
        const holder = await holderOf(store.db, caller.account, reference)
        if (holder !== undefined) throw referenceExists(reference, holder)
      }
      const { index, pubkey, secretKey } = await takeNewKey(network, signal)
      const deposit = makeDeposit({
        secretKey,
        network: network.config,
        amountGwei: amount,
        credentialsType,
        withdrawalAddress: checksummed(withdrawalAddress),
      })
      if (deposit.depositData.pubkey !== pubkey) throw new Error('the deposit data was made for another key')
      const now = clock.now()
      const id = newId(now)
      const stored = await commit(async (transaction) => {
        const row = await insertStake(transaction, {
          id,
          account: caller.account,
          network: network.config.name,
          amount_gwei: amount,
          withdrawal_address: checksummed(withdrawalAddress),
          credentials_type: credentialsType,
          key_index: index,
          pubkey,
          deposit_data: JSON.stringify(z.encode(depositData, deposit.depositData)),
          unsigned_transaction: JSON.stringify(z.encode(unsignedTransaction, deposit.unsignedTransaction)),
          external_reference: reference ?? null,
          created_at: now,
        })
        return answer(route, 201, stakeBody(row, undefined))
      })
      log.info({ stakeId: id, account: caller.account, network: network.config.name, pubkey, path: keyPath(index) }, 'a stake was created')
      return stored
    })
    if (answered.replayed) metrics.replayed()
    else metrics.stakeCreated(network.config.name)
    return answered
  }
}

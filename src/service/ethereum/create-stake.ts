import { z } from 'zod'
import { routes } from '../../contract/routes.ts'
import { depositData, unsignedTransaction } from '../../contract/schemas/ethereum-stake.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/log.ts'
import { validationFailed } from '../errors.ts'
import type { Handled, Input } from '../http/contract-route.ts'
import { answer } from '../http/contract-route.ts'
import { type Answer, type Commit, type Idempotency, inProgress } from '../idempotency.ts'
import { newId } from '../ids.ts'
import type { Metrics } from '../metrics.ts'
import { keyPath } from '../seed.ts'
import { isUniqueViolation, type Store } from '../store/database.ts'
import { type Claim, createStakeOnce } from '../store/new-stake.ts'
import { addHash, holderOf, insertStake, type NewStake, referenceExists } from '../store/stakes.ts'
import { createTurns } from '../turns.ts'
import type { EthereumNetworks } from './networks.ts'
import type { TakeNewKey } from './new-key.ts'
import { createPaysContract } from './pays-contract.ts'
import { brokenRules, checksummed } from './rules.ts'
import { type ShownStake, stakeBody } from './stake-body.ts'

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
 * Creates a stake: the claim of the Idempotency-Key, the rules, the validator key that belongs to the request, its signed deposit data, and then stake,
 * reference and answer in one database transaction. What fails before that transaction leaves nothing behind.
 */
export function createStake(deps: CreateStakeDeps): (input: Input<Route>) => Promise<Handled<Route>> {
  const { store, idempotency, takeNewKey, networks, clock, log, metrics } = deps
  const inTurn = createTurns()
  const paysContract = createPaysContract()

  async function write(claim: Claim, stake: NewStake, made: Answer): Promise<Answer> {
    const outcome = await createStakeOnce(store.db, claim, stake, made)
    if (outcome === 'created') return made
    const { account, external_reference: reference } = stake
    if (outcome === 'unclaimed' || reference === null) throw inProgress()
    throw referenceExists(reference, (await holderOf(store.db, account, reference)) ?? 'another resource')
  }

  async function make(claim: Claim, commit: Commit, { caller, body, signal }: Input<Route>) {
    const { amountEth: amount, credentialsType, withdrawalAddress, externalReference: reference } = body
    const network = networks.get(body.network)
    const broken = brokenRules({ networkName: body.network, network: network?.config, amount, credentialsType, withdrawalAddress })
    if (network === undefined || broken.length > 0) throw validationFailed(broken)
    if (reference !== undefined) {
      const holder = await holderOf(store.db, caller.account, reference)
      if (holder !== undefined) throw referenceExists(reference, holder)
    }
    const terms = { amountGwei: amount, credentialsType, withdrawalAddress: checksummed(withdrawalAddress) }
    const { index, pubkey, paidBy, ...deposit } = await takeNewKey(
      network,
      { account: caller.account, idempotencyKey: claim.key, ...terms },
      signal,
    )
    const isPaidToContract = await paysContract(network.chain, terms.withdrawalAddress, signal)
    const now = clock.now()
    const id = newId(now)
    const encoded = { data: z.encode(depositData, deposit.depositData), call: z.encode(unsignedTransaction, deposit.unsignedTransaction) }
    const stake: NewStake = {
      id,
      account: caller.account,
      network: network.config.name,
      amount_gwei: amount,
      withdrawal_address: terms.withdrawalAddress,
      credentials_type: credentialsType,
      key_index: index,
      pubkey,
      deposit_data: JSON.stringify(encoded.data),
      unsigned_transaction: JSON.stringify(encoded.call),
      external_reference: reference ?? null,
      withdrawal_is_contract: isPaidToContract ?? null,
      created_at: now,
    }
    const stored = await (paidBy === undefined
      ? write(claim, stake, answer(route, 201, stakeBody(rowOf(stake, encoded), undefined)))
      : commit(async (transaction) => {
          const row = await insertStake(transaction, stake)
          const submitted = await addHash(transaction, row, { hash: paidBy, sentBy: undefined, now })
          return answer(route, 201, stakeBody(submitted, undefined))
        })
    ).catch((error: unknown) => {
      // Two requests that meet at one index, at the same moment: the other one is seen at the next try.
      throw isUniqueViolation(error, 'ethereum_stakes_key_index_key', 'ethereum_stakes_pubkey_key') ? inProgress() : error
    })
    log.info({ stakeId: id, account: caller.account, network: network.config.name, pubkey, path: keyPath(index) }, 'a stake was created')
    return stored
  }

  return async (input) => {
    const { caller, body, idempotent, signal } = input
    if (idempotent === undefined) throw new Error('a stake is created under an Idempotency-Key')
    const { externalReference: reference } = body
    const answered = await idempotency.runClaimed(idempotent, (claim, commit) => {
      const work = () => make(claim, commit, input)
      // Of many that ask for one reference, one makes a key and signs with it; the others then see that the reference is held.
      return reference === undefined ? work() : inTurn(JSON.stringify([caller.account, reference]), work, signal)
    })
    if (answered.replayed) metrics.replayed()
    else metrics.stakeCreated(body.network)
    return answered
  }
}

/** A new stake as the database will have it. */
const rowOf = (stake: NewStake, { data, call }: { readonly data: unknown; readonly call: unknown }): ShownStake => ({
  ...stake,
  deposit_data: data,
  unsigned_transaction: call,
  status: 'awaiting_submission',
  hash: null,
  block_number: null,
  block_hash: null,
  failure_reason: null,
  consensus_status: 'pending',
  consensus_reason: null,
  keys_provisioned_at: null,
})

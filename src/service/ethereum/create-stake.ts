import { routes } from '../../contract/routes.ts'
import type { Clock } from '../../lib/clock.ts'
import { sameHex } from '../../lib/hex.ts'
import type { Logger } from '../../lib/log.ts'
import { validationFailed } from '../errors.ts'
import type { Handled, Input } from '../http/contract-route.ts'
import { answer, encoded } from '../http/contract-route.ts'
import { type Answer, type Commit, type Idempotency, inProgress, type Worked } from '../idempotency.ts'
import { newId } from '../ids.ts'
import { orMadeBefore, refuseReused } from '../made-before.ts'
import type { Metrics } from '../metrics.ts'
import { keyPath } from '../seed.ts'
import type { Store } from '../store/database.ts'
import { type Claim, createStakeOnce } from '../store/new-stake.ts'
import { addHash, findStake, holderOf, insertStake, lockStake, type NewStake, referenceExists, stakeOfRequest } from '../store/stakes.ts'
import { createTurns } from '../turns.ts'
import type { EthereumNetworks } from './networks.ts'
import type { TakeNewKey } from './new-key.ts'
import { createPaysContract } from './pays-contract.ts'
import { brokenRules, checksummed } from './rules.ts'
import { newStakeBody, stakeBody } from './stake-body.ts'
import { lookEveryMs } from './unreported-payments.ts'

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
  const paysContract = createPaysContract(clock)

  async function write(claim: Claim, stake: NewStake, made: Answer, lookInMs: number): Promise<Answer> {
    const outcome = await createStakeOnce(store.db, claim, stake, made, lookInMs)
    if (outcome === 'created') return made
    const { account, external_reference: reference } = stake
    if (outcome === 'unclaimed' || reference === null) throw inProgress()
    throw referenceExists(reference, (await holderOf(store.db, account, reference)) ?? 'another resource')
  }

  /** The stake that this very request has made before. @throws ProblemError `idempotency-key-reused` */
  async function madeBefore({ account, key }: Claim, commit: Commit, { body }: Input<Route>): Promise<Worked | undefined> {
    const there = await stakeOfRequest(store.db, account, key)
    if (there === undefined) return undefined
    refuseReused(
      there.network === body.network &&
        there.amount_gwei === body.amountEth &&
        there.credentials_type === body.credentialsType &&
        sameHex(there.withdrawal_address, body.withdrawalAddress) &&
        there.external_reference === (body.externalReference ?? null),
    )
    const made = await commit(async (transaction) => answer(route, 201, stakeBody(await lockStake(transaction, there.id), undefined)))
    log.warn(
      { stakeId: there.id, account },
      'a stake is there of a request whose record is lost: were some tables restored without others?',
    )
    return { ...made, replayed: true }
  }

  async function make(claim: Claim, commit: Commit, { caller, body, signal }: Input<Route>): Promise<Worked> {
    const { amountEth: amount, credentialsType, withdrawalAddress, externalReference: reference } = body
    const network = networks.get(body.network)
    const broken = brokenRules({ networkName: body.network, network: network?.config, amount, credentialsType, withdrawalAddress })
    if (network === undefined || broken.length > 0) throw validationFailed(broken)
    if (reference !== undefined) {
      const holder = await holderOf(store.db, caller.account, reference)
      if (holder !== undefined) throw referenceExists(reference, holder)
    }
    const terms = { amountGwei: amount, credentialsType, withdrawalAddress: checksummed(withdrawalAddress) }
    const order = { account: caller.account, idempotencyKey: claim.key, ...terms }
    return takeNewKey(network, order, signal, async ({ index, pubkey, paidBy, ...deposit }) => {
      const isPaidToContract = await paysContract(network.chain, terms.withdrawalAddress, signal)
      const now = clock.now()
      const id = newId(now)
      const named = {
        id,
        account: caller.account,
        network: network.config.name,
        amount_gwei: amount,
        withdrawal_address: terms.withdrawalAddress,
        credentials_type: credentialsType,
        key_index: index,
        pubkey,
        external_reference: reference ?? null,
        withdrawal_is_contract: isPaidToContract ?? null,
        created_at: now,
        idempotency_key: claim.key,
      }
      const shown = encoded(route, 201, newStakeBody(named, deposit))
      const stake: NewStake = {
        ...named,
        deposit_data: JSON.stringify(shown.depositData),
        unsigned_transaction: JSON.stringify(shown.unsignedTransaction),
      }
      const stored = await (paidBy === undefined
        ? write(claim, stake, { status: 201, body: JSON.stringify(shown) }, lookEveryMs(network.config))
        : commit(async (transaction) => {
            const row = await insertStake(transaction, stake)
            const submitted = await addHash(transaction, row, { hash: paidBy, sentBy: undefined, now })
            return answer(route, 201, stakeBody(submitted, undefined))
          }))
      log.info({ stakeId: id, account: caller.account, network: network.config.name, pubkey, path: keyPath(index) }, 'a stake was created')
      return stored
    })
  }

  return async (input) => {
    const { caller, body, idempotent, signal } = input
    if (idempotent === undefined) throw new Error('a stake is created under an Idempotency-Key')
    const { externalReference: reference } = body
    const run = () =>
      idempotency.runClaimed(idempotent, (claim, commit) => {
        const work = () =>
          orMadeBefore(
            () => make(claim, commit, input),
            () => madeBefore(claim, commit, input),
          )
        // Of many that ask for one reference, one makes a key and signs with it; the others then see that the reference is held.
        return reference === undefined ? work() : inTurn(JSON.stringify([caller.account, reference]), work, signal)
      })
    let answered = await run()
    const id = answered.replayed ? stakeIdIn(answered.body) : undefined
    if (id !== undefined && (await findStake(store.db, caller.account, id)) === undefined) {
      log.error(
        { stakeId: id, account: caller.account },
        'the answer of a request is stored and its stake is lost, which is made again: was a part of the database restored?',
      )
      await idempotency.forget(idempotent, answered, id)
      answered = await run()
    }
    if (answered.replayed) metrics.replayed()
    else metrics.stakeCreated(body.network)
    return answered
  }
}

const stakeIdIn = (body: string): string | undefined => /^\{"stakeId":"([0-9a-f]{32})"/.exec(body)?.[1]

import type { Transaction } from 'kysely'
import { getAddress } from 'viem'
import { z } from 'zod'
import { BeaconError } from '../../../chains/ethereum/beacon.ts'
import { type Address, ChainError } from '../../../chains/ethereum/chain.ts'
import { queuedDeposits } from '../../../chains/ethereum/queued-deposits.ts'
import {
  encodeRequestCalldata,
  readRequestFee,
  type ValidatorRequest,
  withdrawalRequestContract,
  withFeeHeadroom,
} from '../../../chains/ethereum/requests.ts'
import { exitBroken, withdrawalAddressOf, withdrawalBroken, withdrawalCapacity } from '../../../chains/ethereum/withdrawal-rules.ts'
import type { Gwei } from '../../../lib/amounts.ts'
import type { Clock } from '../../../lib/clock.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { Logger } from '../../../lib/log.ts'
import { beaconUnavailable, chainUnavailable, validationFailed } from '../../errors.ts'
import type { Answer, Commit, Idempotency, Idempotent, Worked } from '../../idempotency.ts'
import { newId } from '../../ids.ts'
import { orMadeBefore, refuseReused } from '../../made-before.ts'
import type { Metrics } from '../../metrics.ts'
import type { Database, Store } from '../../store/database.ts'
import { insertRequest, lockPromised, lockRequest, madeUnder, type RequestRow, type ShownOfValidator } from '../../store/requests.ts'
import { holderOf, referenceExists } from '../../store/stakes.ts'
import { unsignedTransaction } from './body.ts'
import { asDetails } from './broken-rules.ts'
import { checkPubkey, type Locate, type NetworkWithValidators } from './locate.ts'

export interface CreateRequestDeps {
  readonly store: Store
  readonly idempotency: Idempotency
  readonly locate: Locate
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
}

export interface RequestOrder {
  readonly account: string
  readonly request: ValidatorRequest
  readonly externalReference: string | undefined
  readonly idempotent: Idempotent | undefined
  /** Writes the answer of the route. */
  readonly write: (row: RequestRow) => Answer
}

/**
 * Makes an exit or withdrawal request: the validator is looked up and judged by the head of the beacon chain, the fee is asked for, and then request,
 * reference and answer are written in one database transaction. A request that the consensus layer would drop is not made at all.
 * @throws ProblemError
 */
export function createRequest(
  deps: CreateRequestDeps,
): (order: RequestOrder, signal: AbortSignal) => Promise<Answer & { replayed: boolean }> {
  const { store, idempotency, locate, clock, log, metrics } = deps
  /** The request that this very one has made before. @throws ProblemError `idempotency-key-reused` */
  async function madeBefore(order: RequestOrder, commit: Commit): Promise<Worked | undefined> {
    const { account, request, externalReference: reference, idempotent, write } = order
    const there = idempotent === undefined ? undefined : await madeUnder(store.db, account, idempotent.key)
    if (there === undefined) return undefined
    const amount = request.kind === 'exit' ? null : request.amountGwei
    refuseReused(
      there.kind === request.kind &&
        sameHex(there.pubkey, request.pubkey) &&
        there.amount_gwei === amount &&
        there.external_reference === (reference ?? null),
    )
    const made = await commit(async (transaction) => write((await lockRequest(transaction, there)) ?? there))
    log.warn({ requestId: there.id, account }, 'a request is there whose record is lost: were some tables restored without others?')
    return { ...made, replayed: true }
  }

  return async (order, signal) => {
    const { account, request, externalReference: reference, idempotent, write } = order
    const { kind, pubkey } = request
    const make = async (commit: Commit): Promise<Worked> => {
      checkPubkey(pubkey)
      if (reference !== undefined) {
        const holder = await holderOf(store.db, account, reference)
        if (holder !== undefined) throw referenceExists(reference, holder)
      }
      const network = await locate(account, pubkey, signal)
      if (network === undefined) throw validationFailed(asDetails(judged(undefined, request)))
      const { name, chainId } = network.config
      const { sender, available, shown } = await allowedSender(network, request, signal)
      const queued = kind === 'exit' ? await queuedDeposits(network.validators.beacon, pubkey, signal) : undefined
      const fee = await readRequestFee({ head: network.chain.head, call: network.validators.reads.call }, signal).catch(
        (error: unknown) => {
          throw error instanceof ChainError ? chainUnavailable(name, error) : error
        },
      )
      const call = {
        chainId,
        from: sender,
        to: withdrawalRequestContract,
        data: encodeRequestCalldata(request),
        valueWei: withFeeHeadroom(fee.feeWei),
      }
      const now = clock.now()
      const id = newId(now)
      const stored = await commit(async (transaction) => {
        await refuseBesidePromised(transaction, { account, network: name, request, available, shown, now, head: fee.quotedAtBlock })
        return write(
          await insertRequest(transaction, {
            id,
            account,
            network: name,
            kind,
            pubkey,
            amount_gwei: kind === 'exit' ? null : request.amountGwei,
            sender,
            unsigned_transaction: JSON.stringify(z.encode(unsignedTransaction, call)),
            fee_wei: fee.feeWei.toString(),
            quoted_at_block: fee.quotedAtBlock,
            external_reference: reference ?? null,
            queued_deposits_gwei: queued === undefined || queued === 0n ? null : queued,
            created_at: now,
            idempotency_key: idempotent?.key ?? null,
          }),
        )
      })
      log.info({ requestId: id, kind, account, network: name, pubkey }, 'a request to the consensus layer was created')
      return stored
    }
    const answered = await idempotency.run(idempotent, (commit) =>
      orMadeBefore(
        () => make(commit),
        () => madeBefore(order, commit),
      ),
    )
    if (answered.replayed) metrics.replayed()
    return answered
  }
}

/**
 * What the account has asked for of the validator, and the beacon chain can't show yet, counts: each alone might be taken, and not all together. Several withdrawals might
 * ask for more than is available; and the consensus layer drops an exit while a withdrawal is to be paid, and a withdrawal once the validator exits. An exit that was
 * not sent keeps no withdrawal from being made: it is the exit that has to wait then.
 * @throws ProblemError `validation-failed`
 */
async function refuseBesidePromised(
  transaction: Transaction<Database>,
  given: {
    readonly account: string
    readonly network: string
    readonly request: ValidatorRequest
    readonly available: Gwei
    readonly shown: ShownOfValidator
    readonly now: Date
    /** The latest block of the execution layer. */
    readonly head: bigint
  },
): Promise<void> {
  const { account, network, request, available, shown, now, head } = given
  const { kind, pubkey } = request
  const { withdrawals, exitOnItsWay } = await lockPromised(transaction, {
    account,
    network,
    pubkey,
    since: new Date(now.getTime() - promiseMs),
    head,
    shown,
  })
  const unseen = 'that the beacon chain does not show yet'
  if (kind === 'exit') {
    if (withdrawals.first === undefined) return
    const others = withdrawals.count === 1n ? '' : ` and ${withdrawals.count - 1n} more`
    const detail = `${withdrawals.gwei} gwei are promised to withdrawal request ${withdrawals.first}${others} of this validator ${unseen}, and the consensus layer drops an exit while a withdrawal is to be paid: an exit is possible after that, or once requests that were not sent are cancelled`
    throw validationFailed([{ pointer: '/params/pubkey', code: 'pending-withdrawals', detail }])
  }
  if (exitOnItsWay !== undefined) {
    const detail = `exit request ${exitOnItsWay} of this validator is on its way, and the consensus layer drops a withdrawal from a validator that exits`
    throw validationFailed([{ pointer: '/params/pubkey', code: 'already-exiting', detail }])
  }
  const { amountGwei: amount } = request
  if (withdrawals.gwei === 0n || amount + withdrawals.gwei <= available) return
  const detail = `${amount} gwei are asked for, and of ${available} gwei that are available, ${withdrawals.gwei} gwei are promised to withdrawal requests of this validator ${unseen}`
  throw validationFailed([{ pointer: '/body/amountGwei', code: 'amount-over-available', detail }])
}

/** So long a request that no block shows keeps what it asks for, whether its hash was reported or not: it must not keep it for ever. */
const promiseMs = 7 * 24 * 60 * 60_000

/** The address that may send the request now, how much is available, and what the state that says so shows. @throws ProblemError `validation-failed` with every rule that it breaks, `chain-unavailable` */
async function allowedSender(
  network: NetworkWithValidators,
  request: ValidatorRequest,
  signal: AbortSignal,
): Promise<{ readonly sender: Address; readonly available: Gwei; readonly shown: ShownOfValidator }> {
  const { beacon } = network.validators
  try {
    const [view, spec] = await Promise.all([beacon.withdrawalView(request.pubkey, 'head', signal), beacon.spec(signal)])
    const broken = judged({ ...view, spec }, request)
    if (broken.length > 0) throw validationFailed(asDetails(broken))
    const address = withdrawalAddressOf(view.validator?.withdrawalCredentials ?? '0x')
    if (address === undefined) throw new Error('credentials without an address have passed the rules')
    const pending = view.pendingPartialWithdrawals.filter(({ validatorIndex }) => validatorIndex === view.validator?.index)
    const shown = { epoch: view.epoch, pending }
    return { sender: getAddress(address), available: withdrawalCapacity({ ...view, spec }).availableGwei, shown }
  } catch (error) {
    throw error instanceof BeaconError ? beaconUnavailable(network.config.name, error) : error
  }
}

function judged(state: Parameters<typeof exitBroken>[0] | undefined, request: ValidatorRequest) {
  const rules = state ?? unknownEverywhere
  return request.kind === 'exit' ? exitBroken(rules) : withdrawalBroken(rules, request.amountGwei)
}

/** No network's beacon chain knows the key: whatever the constants are, that is the rule. */
const unknownEverywhere: Parameters<typeof exitBroken>[0] = {
  validator: undefined,
  pendingPartialWithdrawals: [],
  epoch: 0,
  spec: { shardCommitteePeriod: 0, minActivationBalanceGwei: 0n as never, pendingPartialWithdrawalsLimit: 0 },
}

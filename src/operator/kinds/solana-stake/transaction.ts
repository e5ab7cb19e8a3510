import { SolanaError } from '../../../chains/solana/chain.ts'
import { isGone } from '../../../contract/client-error.ts'
import { stall, wait } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import { attemptsOf, closedOf } from '../../transactions/protocol.ts'
import type { SolanaTransactionKind } from '../../transactions/solana/kind.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import { type Admission, createStepAdmission } from './admission.ts'
import { alteration, authorityChanged, isReached, lookAt, stakeStateOf } from './chain.ts'
import { createSolanaStakeRules } from './chain-rules.ts'
import { feePayerOf, messageOf, outOfStep, sinceSlotOf } from './message.ts'
import { createOwnTransactions } from './own-transaction.ts'
import { assertPossible } from './possible.ts'
import { actionOf, purposes, stepName } from './records.ts'
import { explainedUnknown, type SolanaRequests, type SolanaStakeDeps } from './request.ts'
import { createServiceTransactions } from './service-transaction.ts'
import { assertStays, notOurs, sign, signersOf } from './signing.ts'
import { simulate } from './simulation.ts'
import type { ActionKind } from './steps.ts'
import { createSolanaVerification } from './verification.ts'
import { createStepWitnesses } from './witnesses.ts'

/** What the log asks of a stake's steps before it signs, sends and concludes. */
export function createSolanaStepKind(deps: SolanaStakeDeps, requests: SolanaRequests): SolanaTransactionKind<Admission> {
  const { verifiedNow } = createSolanaVerification(requests)
  const service = createServiceTransactions(deps, requests)
  const rules = createSolanaStakeRules(requests)
  const own = createOwnTransactions(requests)

  const networkOfRecord = ({ spec }: RecordObject): SolanaNetwork => requests.networkOn(spec.genesisHash, spec.network)
  /** A slot at which the account was there, 0 if it never was: seen at an earlier one, it doesn't count that it isn't. */
  const madeAtSlot = ({ spec }: RecordObject): number =>
    deps.log.find(stepName(spec.genesisHash ?? '', spec.subject, 'stake'))?.status?.outcome?.blockNumber ?? 0

  return {
    purposes: Object.values(purposes),
    what: (record) => `The ${actionOf(record)} transaction`,
    step: (record) => {
      const action = actionOf(record)
      return { landedIsDone: action !== 'withdrawal', leavesNoTrace: action === 'stake', needsEveryNode: action === 'withdrawal' }
    },
    isDone: (record, { account, slot }) => isReached(actionOf(record), { state: stakeStateOf(account), slot }, madeAtSlot(record)),
    ...createStepAdmission(deps, requests),
    ...createStepWitnesses(deps, networkOfRecord),

    async obtain(record, { plan, parties, terms, network }, heights, _visit, signal) {
      const { kind, request } = plan
      assertStays(signersOf(kind, parties))
      // Before a transaction is made whose life is short: a remote signer may be away.
      for (const { spec } of signersOf(kind, parties)) await deps.keys.probe?.(spec.keyName, signal)
      const look = await lookAt(network.chain, terms.stakeAccount, signal)
      const altered = alteration(look.state, terms)
      if (altered !== undefined) throw authorityChanged(terms, altered)
      assertPossible(kind, terms, look, {
        made: madeAtSlot(record),
        poll: network.config.pollIntervalMs,
        activating: deps.activatingMs,
      })
      if (kind !== 'deactivation') await rules.assertCanReceive(plan, network, parties, terms, signal)
      // Before a transaction is made, whose life is short.
      if (kind === 'stake') await rules.assertFunds(network, plan, parties.stakeAuthority, 5_000n, signal)

      const madeHere = () => own({ plan, terms, parties, network, attempt: attemptsOf(recordOf(record)).length + 1 }, signal)
      const made = parties.isHandedOver
        ? await madeHere()
        : await service.obtain({ plan, terms, parties, network, heights, previous: previousOf(record) }, signal).catch((error: unknown) => {
            // Of a stake that the staking API has lost, the money still comes out.
            if (kind === 'stake') throw explainedUnknown(error, plan.request, record)
            if (!isGone(error)) throw error
            return madeHere()
          })
      const message = messageOf({ message: made.messageBase64 })
      if (message === undefined)
        throw stall('VerificationFailed', `The ${kind} transaction that the staking API has made is no message. No transaction was signed.`)
      const source = made.txId === undefined ? 'that was made' : 'that the staking API has made'
      await verifiedNow(plan, terms, parties, network, message, { blockhash: made.recentBlockhash, source }, signal)
      if (kind === 'stake') await rules.assertVotes(network, terms.voteAccount, parties.payer, signal)
      const fee = await network.chain.feeFor(message, signal)
      if (fee === undefined) throw outOfStep(network)
      await rules.assertFunds(network, plan, feePayerOf(kind, terms, message), fee, signal)
      await simulate(requests.refuse, network, kind, { terms, message, atSlot: look.slot }, signal).catch(async (error: unknown) => {
        const isTooLittle = error instanceof SolanaError && error.code === 'insufficient-delegation'
        throw (isTooLittle ? await rules.amountProblem(request, signal) : undefined) ?? explained(error, kind, network)
      })
      return {
        ...(made.txId === undefined ? {} : { apiId: made.txId }),
        message,
        lastValidBlockHeight: made.lastValidBlockHeight,
        sinceSlot: sinceSlotOf(look.slot),
      }
    },

    payerOf: ({ parties }) => parties.payer,
    approvableOf: ({ approvable }) => approvable,
    sign: (_record, { parties }, message, signal) => sign(deps, [parties.payer, parties.withdrawer], message, signal),

    async signAgain(record, { plan, terms, parties, network }, attempt, signal) {
      const message = messageOf(attempt)
      const source = `of StakingTransaction ${record.metadata.name}`
      if (message === undefined && attempt.found === true)
        throw wait(
          'AwaitingFinality',
          `Transaction ${attempt.hash} is only watched: its message is not known here.`,
          network.config.pollIntervalMs,
        )
      if (message === undefined) throw notOurs(record)
      await verifiedNow(plan, terms, parties, network, message, { blockhash: undefined, source }, signal)
      const signed = await sign(deps, [parties.payer, parties.withdrawer], message, signal)
      if (signed.signature !== attempt.hash) throw notOurs(record)
      return signed
    },

    explain: (record, error) => explained(error, actionOf(record), networkOfRecord(record)),
  }
}

/** The last attempt, which is dead. */
function previousOf(record: RecordObject) {
  const attempts = attemptsOf(recordOf(record))
  const last = attempts.at(-1)
  if (last?.message === undefined) return undefined
  const failed = closedOf(recordOf(record)).some(({ nonce, by }) => nonce === attempts.length - 1 && by === 'Revert')
  return { message: last.message, signature: last.hash, failed }
}

/** A failure that a simulation tells, where more can be said of it than the table of errors does. */
function explained(error: unknown, kind: ActionKind, network: SolanaNetwork): unknown {
  if (!(error instanceof SolanaError)) return error
  if (error.code === 'blockhash-not-found') return outOfStep(network)
  if (error.code !== 'account-in-use' || kind !== 'stake') return error
  return wait(
    'AwaitingFinality',
    'The stake’s address holds lamports already: it has just been made, or a stranger has sent some. If so, the transaction is made anew in another form once this one can no longer land.',
    network.config.pollIntervalMs,
  )
}

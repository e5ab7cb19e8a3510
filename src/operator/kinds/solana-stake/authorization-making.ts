import { decodeMessage } from '../../../chains/solana/message.ts'
import { buildAuthorizationMessage, computeUnits } from '../../../chains/solana/stake.ts'
import { lockText, lockupInForce } from '../../../chains/solana/stake-account.ts'
import { formatSol, lamports } from '../../../lib/amounts.ts'
import { ALLOW_REMAKES_ANNOTATION } from '../../../resources/meta.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { stall, wait } from '../../engine/verdict.ts'
import type { SolanaNetwork } from '../../ports.ts'
import { attemptsOf } from '../../transactions/protocol.ts'
import { allowedBy } from '../../transactions/solana/attempt.ts'
import type { Obtained } from '../../transactions/solana/kind.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import { newAuthority, verifyHandOver } from './authorization-verification.ts'
import { type HandOver, successorsOf } from './authorization-wanted.ts'
import { doneBefore, isHandedOver } from './authorization-witnesses.ts'
import { alteration, authorityChanged, lookAt, metaOf, stakeStateOf } from './chain.ts'
import { outOfStep, sinceSlotOf } from './message.ts'
import { createMounted } from './mounted.ts'
import { frameOf } from './own-transaction.ts'
import type { SolanaRequests, SolanaStakeDeps } from './request.ts'
import { assertStays } from './signing.ts'
import { simulated } from './simulation.ts'

/** Makes the transaction of a hand-over from the operator's own reading of the chain, verified and simulated. */
export function createAuthorizationMaking(
  deps: Pick<SolanaStakeDeps, 'keys' | 'clock' | 'log'>,
  { addressOf }: Pick<SolanaRequests, 'addressOf'>,
): (record: RecordObject, handOver: HandOver, signal: AbortSignal) => Promise<Obtained> {
  const isMounted = createMounted(deps)

  /** Everybody who signs: a key that is missing, or whose remote signer is away, is told before anything is written. */
  async function assertKeys(message: Uint8Array, handOver: HandOver, signal: AbortSignal): Promise<void> {
    const { signers } = decodeMessage(message)
    const signing = everybody(handOver).filter(({ spec }) => signers.includes(spec.address))
    assertStays(signing)
    for (const signer of signing) {
      await addressOf(signer, signal)
      await deps.keys.probe?.(signer.spec.keyName, signal)
    }
  }

  return async (record, handOver, signal) => {
    const { network, paid, parties, stake, withdraw } = handOver
    const { chain, config } = network
    const account = paid.spec.subject
    const look = await lookAt(chain, account, signal)
    const meta = metaOf(look.state)
    if (meta === undefined)
      throw wait(
        'ChainUnavailable',
        `The node does not show the stake account ${account}: it lags. It is asked again.`,
        config.pollIntervalMs,
      )
    const terms = { stakeId: '', stakeAccount: account, voteAccount: '', ...parties }
    const altered = alteration(look.state, terms)
    if (altered !== undefined) throw authorityChanged(terms, altered)
    if (look.rewardsActive)
      throw wait(
        'EpochRewards',
        'Rewards are being distributed at the beginning of the epoch: stakes cannot change until that is over.',
        config.pollIntervalMs,
      )
    if (withdraw !== undefined && lockupInForce(meta, look.clock))
      throw stall(
        'LockupInForce',
        `The stake account ${account} is locked until ${lockText(meta, look.clock)}: its withdraw authority can be replaced only together with its custodian ${meta.lockup.custodian}. Nothing was signed.`,
      )
    const before = allowedBy(record) > 0 ? undefined : await doneBefore(network, record, deps.log.ofSubject(account), look.slot, signal)
    if (before !== undefined)
      throw stall(
        'HandedOverBefore',
        `Transaction ${before} handed ${account} over to just these keys before, the log does not know it, and others have the authorities now. If it was this hand-over, from before the log was lost, delete this resource, in Git first. If it is to be done once more: kubectl annotate stx ${record.metadata.name} ${ALLOW_REMAKES_ANNOTATION}=1. Nothing was signed.`,
      )
    // Whoever pays signs. A stake key that isn't mounted, since it is lost or stolen, is replaced by the withdraw authority, which may.
    const isThere = parties.payer.spec.address === parties.stakeAuthority && (await isMounted(parties.payer, signal))
    const feePayer = isThere ? parties.stakeAuthority : parties.withdrawAuthority
    const stakerBy = withdraw === undefined && isThere ? parties.stakeAuthority : parties.withdrawAuthority
    const frame = await frameOf(
      network,
      {
        feePayer,
        writable: [account],
        units: computeUnits.authorization,
        attempt: attemptsOf(recordOf(record)).length + 1,
        cap: handOver.feeCap,
      },
      signal,
    )
    const message = buildAuthorizationMessage({
      ...frame,
      stakeAccount: account,
      stakerBy,
      withdrawAuthority: parties.withdrawAuthority,
      newStaker: newAuthority(stake),
      newWithdrawer: newAuthority(withdraw),
    })
    verifyHandOver(handOver, message, 'that was made', frame.recentBlockhash)
    await assertKeys(message, handOver, signal)
    const fee = await chain.feeFor(message, signal)
    if (fee === undefined) throw outOfStep(network)
    const balance = await chain.balance(feePayer, 'confirmed', signal)
    if (balance < fee)
      throw wait(
        'InsufficientFunds',
        `${feePayer} has ${formatSol(balance)} SOL; the fee is ${formatSol(lamports(fee))}. Fund the address; it goes on by itself.`,
        30_000,
      )
    await assertHandsOver(network, record, message, look.slot, signal)
    return { message, lastValidBlockHeight: frame.lastValidBlockHeight, sinceSlot: sinceSlotOf(look.slot) }
  }
}

/** Runs it on the chain's present state: the account must have the new authorities afterwards, and nothing else may change. @throws SolanaError, Halt */
async function assertHandsOver(network: SolanaNetwork, record: RecordObject, message: Uint8Array, atSlot: bigint, signal: AbortSignal) {
  const { subject } = record.spec
  const before = await network.chain.account(subject, 'confirmed', signal)
  const { after } = await simulated(network, message, subject, atSlot, signal)
  const keepsAll = after !== undefined && before !== undefined && after.lamports >= before.lamports
  if (!keepsAll || !isHandedOver(metaOf(stakeStateOf(after)), record.spec))
    throw stall(
      'VerificationFailed',
      'The transaction was simulated, and the stake account would not be as it should afterwards. Nothing was signed.',
    )
}

/** Everybody whose key may be asked for. */
export const everybody = (handOver: HandOver): readonly StakingSigner[] => [
  handOver.parties.payer,
  handOver.parties.withdrawer,
  ...successorsOf(handOver).flatMap(({ signer }) => signer ?? []),
]

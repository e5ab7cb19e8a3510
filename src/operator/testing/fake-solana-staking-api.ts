import { createHash } from 'node:crypto'
import { stakePosition } from '../../chains/solana/activation.ts'
import type { SolanaChain } from '../../chains/solana/chain.ts'
import { challengeText, verifyChallengeSignature } from '../../chains/solana/challenge.ts'
import { decideLanding } from '../../chains/solana/expiry.ts'
import { decodeMessage, joinTransaction, verifySignature } from '../../chains/solana/message.ts'
import { stakeProgram } from '../../chains/solana/programs.ts'
import {
  buildDeactivationMessage,
  buildStakeMessage,
  buildWithdrawalMessage,
  computeUnits,
  stakeAccountAddress,
} from '../../chains/solana/stake.ts'
import { decodeStakeAccount } from '../../chains/solana/stake-account.ts'
import { StakingApiError } from '../../contract/client-error.ts'
import type { ProblemCode } from '../../contract/problems.ts'
import type { ChallengeBody, SolanaStakeBody, SolanaTransactionBody } from '../../contract/schemas/solana.ts'
import { lamports } from '../../lib/amounts.ts'
import type { Clock, SolanaStakingApi } from '../ports.ts'
import { copyOf, setBack } from './set-back.ts'

type Stake = Omit<SolanaStakeBody, 'protocol' | 'transactions' | 'challenge'> & {
  challenge: ChallengeBody | undefined
  transactions: Transaction[]
  wasThere: boolean
  cancelledAt?: string
}
type Transaction = SolanaTransactionBody & { readonly destination?: string; readonly earlier: string[] }
type Kind = SolanaTransactionBody['kind']

const problem = (code: ProblemCode, status: number, more: { existingId?: string; retryAfterMs?: number; rules?: readonly string[] } = {}) =>
  new StakingApiError(code, { kind: 'problem', code, status, outcomeUnknown: false, ...more })
const signal = new AbortController().signal

/**
 * The staking service in memory, as far as the contract goes for Solana: idempotency by key, references unique, challenges, real messages with a live
 * blockhash, refreshed only once they are dead. It looks at the chain that it is given.
 */
export function createFakeSolanaStakingApi(deps: {
  readonly chain: SolanaChain
  readonly clock: Clock
  readonly domain: string
  readonly voteAccount: string
}) {
  const { chain, clock } = deps
  const stakes = new Map<string, Stake>()
  const byKey = new Map<string, { readonly fingerprint: string; readonly made: string }>()
  const state = {
    /** What of each answer is another than it should be. */
    lie: undefined as ((body: SolanaStakeBody) => SolanaStakeBody) | undefined,
    /** By how much its clock is ahead, in ms. */
    clockOffsetMs: 0,
    /** The same by the Date of its answers; undefined: that of its clock. */
    dateOffsetMs: undefined as number | undefined,
    /** Lamports that a withdrawal leaves behind. */
    leaves: 0n,
    /** Compute units that are asked for, and what is offered for a million of them, in lamports; it takes no notice of any cap. */
    units: undefined as number | undefined,
    price: 1_000n,
    /** It has no such addition. */
    cancelsNone: false,
    /** The caps that it was told, in their order. */
    caps: [] as bigint[],
  }
  let ids = 0
  const newId = (): string => createHash('sha256').update(`solana ${++ids}`).digest('hex').slice(0, 32)

  const find = (stakeId: string): Stake => {
    const stake = stakes.get(stakeId)
    if (stake === undefined) throw problem('not-found', 404)
    return stake
  }
  const transactionIn = (stake: Stake, txId: string): Transaction => {
    const found = stake.transactions.find((one) => one.txId === txId)
    if (found === undefined) throw problem('not-found', 404)
    return found
  }
  const replace = (stake: Stake, txId: string, next: Transaction): Transaction => {
    stake.transactions = stake.transactions.map((one) => (one.txId === txId ? next : one))
    return next
  }

  async function protocolOf(stake: Stake): Promise<SolanaStakeBody['protocol']> {
    const { account, clock: at, history, arithmetic } = await chain.stakeView(stake.stakeAccount, 'finalized', signal)
    const epoch = Number(at.epoch)
    if (account?.owner !== stakeProgram)
      return { status: stake.wasThere ? 'WITHDRAWN' : 'CREATED', activeLamports: lamports(0n), inactiveLamports: lamports(0n), epoch }
    stake.wasThere = true
    const position = stakePosition({ state: decodeStakeAccount(account), lamports: account.lamports, epoch: at.epoch, history, arithmetic })
    return { status: position.phase, activeLamports: lamports(position.effective), inactiveLamports: lamports(position.inactive), epoch }
  }
  /** What the cluster shows of a transaction now; what is final is not asked again. */
  async function upToDate(stake: Stake, given: Transaction): Promise<Transaction> {
    if (given.status === 'confirmed' || given.status === 'failed') return given
    const signatures = [...given.earlier, ...(given.signature === undefined ? [] : [given.signature])]
    const facts =
      signatures.length === 0
        ? [{ finalizedBlockHeight: await chain.blockHeight('finalized', signal), statuses: [] }]
        : await chain.landingFacts(signatures, signal)
    const landing = decideLanding({ lastValidBlockHeight: BigInt(given.lastValidBlockHeight), facts })
    if (landing.kind === 'expired') return replace(stake, given.txId, { ...given, status: 'expired' })
    if (landing.kind !== 'landed') return given
    const failed = landing.status.failure !== undefined
    if (landing.final && !failed && given.kind === 'stake') stake.wasThere = true
    return replace(stake, given.txId, { ...given, status: landing.final ? (failed ? 'failed' : 'confirmed') : 'submitted' })
  }
  async function bodyOf(stake: Stake): Promise<SolanaStakeBody> {
    const { wasThere: _own, challenge, transactions, ...rest } = stake
    const body: SolanaStakeBody = structuredClone({
      ...rest,
      ...(challenge === undefined ? {} : { challenge }),
      protocol: await protocolOf(stake),
      transactions: transactions.map(({ destination: _to, earlier: _before, ...one }) => one),
    })
    return state.lie === undefined ? body : state.lie(body)
  }

  async function refuseIdle(voteAccount: string): Promise<void> {
    const vote = await chain.voteAccount(voteAccount, signal)
    if (vote.kind !== 'vote-account' || vote.account.delinquent)
      throw problem('validation-failed', 422, { rules: ['vote-account-delinquent'] })
  }

  const renew = (stake: Stake): ChallengeBody => {
    const issuedAt = new Date(clock.now().getTime() + state.clockOffsetMs)
    const expiresAt = new Date(issuedAt.getTime() + 300_000)
    const challengeId = newId()
    const message = challengeText({
      domain: deps.domain,
      stakeId: stake.stakeId,
      challengeId,
      network: stake.network,
      amount: stake.amountLamports,
      stakeAccount: stake.stakeAccount,
      stakeAuthority: stake.stakeAuthority,
      withdrawAuthority: stake.withdrawAuthority,
      issuedAt,
      expiresAt,
    })
    stake.challenge = { challengeId, message, issuedAt: issuedAt.toISOString(), expiresAt: expiresAt.toISOString() }
    return stake.challenge
  }

  async function messageFor(stake: Stake, kind: Kind, destination: string | undefined, feePayer = stake.feePayer) {
    const { stakeAccount, stakeAuthority, withdrawAuthority, voteAccount } = stake
    const account = await chain.account(stakeAccount, 'confirmed', signal)
    const { blockhash, lastValidBlockHeight } = await chain.latestBlockhash(signal)
    const frame = {
      feePayer,
      recentBlockhash: blockhash,
      computeUnitLimit: state.units ?? computeUnits[kind],
      computeUnitPriceMicroLamports: state.price,
    }
    const message =
      kind === 'stake'
        ? buildStakeMessage({
            ...frame,
            seed: stake.stakeId,
            stakeAuthority,
            withdrawAuthority,
            voteAccount,
            amount: stake.amountLamports,
            prefunded: account !== undefined,
          })
        : kind === 'deactivation'
          ? buildDeactivationMessage({ ...frame, stakeAccount, stakeAuthority })
          : buildWithdrawalMessage({
              ...frame,
              stakeAccount,
              withdrawAuthority,
              destination: destination ?? withdrawAuthority,
              amount: lamports((account?.lamports ?? 0n) - state.leaves),
            })
    return {
      messageBase64: Buffer.from(message).toString('base64'),
      transactionBase64: Buffer.from(joinTransaction(message)).toString('base64'),
      requiredSigners: [...decodeMessage(message).signers],
      recentBlockhash: blockhash,
      lastValidBlockHeight: Number(lastValidBlockHeight),
    }
  }
  const allowedIn: Readonly<Record<Kind, readonly string[]>> = {
    stake: ['CREATED'],
    deactivation: ['ACTIVATING', 'ACTIVE'],
    withdrawal: ['INACTIVE'],
  }
  async function make(
    stake: Stake,
    kind: Kind,
    idempotencyKey: string,
    destination?: string,
    feePayer = stake.feePayer,
  ): Promise<SolanaTransactionBody> {
    const fingerprint = JSON.stringify([stake.stakeId, kind, destination, feePayer])
    const before = byKey.get(idempotencyKey)
    if (before !== undefined) {
      if (before.fingerprint !== fingerprint) throw problem('idempotency-key-reused', 409)
      return structuredClone(transactionIn(stake, before.made))
    }
    if (kind === 'stake' && stake.cancelledAt !== undefined) throw problem('invalid-state', 409)
    for (const one of stake.transactions) await upToDate(stake, one)
    const isTaken = stake.transactions.some(
      (one) => one.kind === kind && one.status !== 'failed' && (kind === 'stake' || one.status !== 'expired') && one.status !== 'confirmed',
    )
    if (isTaken || !allowedIn[kind].includes((await protocolOf(stake)).status)) throw problem('invalid-state', 409)
    const made: Transaction = {
      txId: newId(),
      kind,
      network: stake.network,
      ...(await messageFor(stake, kind, destination, feePayer)),
      feePayer,
      status: 'awaiting_submission',
      createdAt: clock.now().toISOString(),
      ...(destination === undefined ? {} : { destination }),
      earlier: [],
    }
    stake.transactions.push(made)
    byKey.set(idempotencyKey, { fingerprint, made: made.txId })
    if (kind === 'stake') stake.challenge = undefined
    return structuredClone(made)
  }

  const api: SolanaStakingApi = {
    get clockAheadMs() {
      return state.dateOffsetMs ?? state.clockOffsetMs
    },
    async createSolanaStake(request) {
      const { idempotencyKey, ...rest } = request
      const fingerprint = JSON.stringify({ ...rest, amountLamports: String(rest.amountLamports) })
      // Before the key is looked up: of two that ask at the same time, only one makes a stake.
      if (!byKey.has(idempotencyKey)) await refuseIdle(request.voteAccount ?? deps.voteAccount)
      const before = byKey.get(idempotencyKey)
      if (before !== undefined) {
        if (before.fingerprint !== fingerprint) throw problem('idempotency-key-reused', 409)
        return bodyOf(find(before.made))
      }
      const holder = [...stakes.values()].find(
        ({ externalReference, cancelledAt }) => externalReference === request.externalReference && cancelledAt === undefined,
      )
      if (holder !== undefined) throw problem('reference-exists', 409, { existingId: holder.stakeId })
      const stakeId = newId()
      const stake: Stake = {
        stakeId,
        ...rest,
        voteAccount: request.voteAccount ?? deps.voteAccount,
        stakeAccount: stakeAccountAddress(request.feePayer, stakeId),
        challenge: undefined,
        transactions: [],
        wasThere: false,
        createdAt: clock.now().toISOString(),
      }
      renew(stake)
      stakes.set(stakeId, stake)
      byKey.set(idempotencyKey, { fingerprint, made: stakeId })
      return bodyOf(stake)
    },
    async solanaStake(stakeId) {
      const stake = find(stakeId)
      for (const one of stake.transactions) await upToDate(stake, one)
      return bodyOf(stake)
    },
    solanaStakesNamed: (reference) =>
      Promise.all([...stakes.values()].filter(({ externalReference }) => externalReference === reference).map(bodyOf)),
    async cancelSolanaStake(stakeId) {
      if (state.cancelsNone) throw new StakingApiError('no route', { kind: 'problem', status: 405, outcomeUnknown: false })
      const stake = find(stakeId)
      if (stake.cancelledAt !== undefined) return bodyOf(stake)
      for (const one of stake.transactions) await upToDate(stake, one)
      if ((await protocolOf(stake)).status !== 'CREATED') throw problem('invalid-state', 409)
      const [account, height] = [await chain.account(stake.stakeAccount, 'confirmed', signal), await chain.blockHeight('finalized', signal)]
      const mayLand = stake.transactions.some(
        ({ status, lastValidBlockHeight }) => status !== 'failed' && height <= BigInt(lastValidBlockHeight),
      )
      if (mayLand || account?.owner === stakeProgram) throw problem('invalid-state', 409, { retryAfterMs: 10_000 })
      stake.cancelledAt = clock.now().toISOString()
      stake.challenge = undefined
      return bodyOf(stake)
    },
    async renewChallenge(stakeId) {
      const stake = find(stakeId)
      if (stake.cancelledAt !== undefined) throw problem('invalid-state', 409)
      if (stake.transactions.some(({ kind, status }) => kind === 'stake' && status !== 'failed')) throw problem('invalid-state', 409)
      return structuredClone(renew(stake))
    },
    async createStakeTransaction(stakeId, { idempotencyKey, challengeId, signature, maxPriorityFeeLamports }) {
      state.caps.push(maxPriorityFeeLamports)
      const stake = find(stakeId)
      if (!byKey.has(idempotencyKey)) {
        const { challenge } = stake
        if (challenge?.challengeId !== challengeId || Date.parse(challenge.expiresAt) <= clock.now().getTime())
          throw problem('challenge-expired', 410)
        if (!verifyChallengeSignature(stake.withdrawAuthority, challenge.message, signature)) throw problem('validation-failed', 422)
        await refuseIdle(stake.voteAccount)
      }
      return make(stake, 'stake', idempotencyKey)
    },
    async createDeactivationTransaction(stakeId, { idempotencyKey, maxPriorityFeeLamports }) {
      state.caps.push(maxPriorityFeeLamports)
      return make(find(stakeId), 'deactivation', idempotencyKey)
    },
    async createWithdrawalTransaction(stakeId, { idempotencyKey, destination, feePayer, maxPriorityFeeLamports }) {
      state.caps.push(maxPriorityFeeLamports)
      return make(find(stakeId), 'withdrawal', idempotencyKey, destination, feePayer)
    },
    async refreshTransaction(stakeId, txId, { maxPriorityFeeLamports }) {
      state.caps.push(maxPriorityFeeLamports)
      const stake = find(stakeId)
      const now = await upToDate(stake, transactionIn(stake, txId))
      if (now.kind === 'stake' && stake.cancelledAt !== undefined) throw problem('invalid-state', 409)
      if (now.status !== 'expired' || !allowedIn[now.kind].includes((await protocolOf(stake)).status)) throw problem('invalid-state', 409)
      const { signature, ...rest } = now
      const earlier = [...now.earlier, ...(signature === undefined ? [] : [signature])]
      const made = await messageFor(stake, now.kind, now.destination, now.feePayer)
      return structuredClone(replace(stake, txId, { ...rest, ...made, status: 'awaiting_submission', earlier }))
    },
    async submitTransaction(stakeId, txId, signature) {
      const stake = find(stakeId)
      const found = transactionIn(stake, txId)
      if (!verifySignature(found.feePayer, Buffer.from(found.messageBase64, 'base64'), signature)) throw problem('validation-failed', 422)
      const now = await upToDate(stake, replace(stake, txId, { ...found, signature }))
      if (now.status === 'expired') throw problem('invalid-state', 409)
      if (now.status === 'awaiting_submission') throw problem('transaction-not-visible', 503, { retryAfterMs: 1_000 })
      return structuredClone(now)
    },
  }
  return {
    api,
    state,
    stakes: () => [...stakes.values()],
    /** The service's database is set back to an empty copy: whoever asks again gets another stake, with another account. @returns what brings it back */
    forget: (): (() => void) => setBack(stakes, byKey),
    /** Its database as it is now, as in a backup. @returns what sets it to that */
    copy: (): (() => void) => copyOf(stakes, byKey),
  }
}

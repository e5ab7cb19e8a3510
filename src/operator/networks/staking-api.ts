import type { Pubkey } from '../../chains/ethereum/chain.ts'
import type { Answer, StakingClient } from '../../contract/client.ts'
import { StakingApiError } from '../../contract/client-error.ts'
import type { Clock } from '../../lib/clock.ts'
import { inSpan } from '../../lib/tracing.ts'
import type { SolanaStakingApi, StakingApi, ValidatorRequestsApi } from '../ports.ts'
import { createFollower } from './follow.ts'

interface Wiring {
  readonly clock: Clock
  readonly onApi?: (operation: string, outcome: string, ms: number) => void
}

/** The operator's ports to the staking API over the contract's client, each call measured. */
export function apiOver(
  client: StakingClient,
  wiring: Wiring,
): { readonly ethereum: { api: StakingApi; requests: ValidatorRequestsApi }; readonly solana: { api: SolanaStakingApi } } {
  const timed = createTimed(wiring)
  const bodyOf = async <T>(operation: string, call: () => Promise<{ readonly body: T }>): Promise<T> => (await timed(operation, call)).body

  /** One page holds all of a reference. An API without the list answers 404, or 405. */
  const listed = async <T>(operation: string, call: () => Promise<{ readonly body: { readonly items: readonly T[] } }>) => {
    try {
      return (await bodyOf(operation, call)).items
    } catch (error) {
      if (error instanceof StakingApiError && (error.status === 404 || error.status === 405)) return []
      throw error
    }
  }

  const follower = createFollower(wiring)
  /** Reads a request, and remembers by which name its state is followed. */
  const read = <T>(
    operation: 'getExitRequest' | 'getWithdrawalRequest',
    pubkey: Pubkey,
    requestId: string,
    call: () => Promise<Answer<T>>,
  ) =>
    timed(operation, call).then(({ body, state }) => {
      follower.note(requestId, state, (given, abort) => client.untilChanged(operation, { params: { pubkey, requestId } }, given, abort))
      return body
    })

  const api: StakingApi = {
    createEthereumStake: ({ idempotencyKey, network, amountGwei, withdrawalAddress, credentialsType, externalReference }, signal) =>
      bodyOf('createEthereumStake', () =>
        client.createEthereumStake(
          { idempotencyKey, body: { network, amountEth: amountGwei, withdrawalAddress, credentialsType, externalReference } },
          signal,
        ),
      ),
    ethereumStake: (stakeId, signal) => bodyOf('getEthereumStake', () => client.getEthereumStake({ params: { stakeId } }, signal)),
    ethereumStakesNamed: (externalReference, signal) =>
      listed('listEthereumStakes', () => client.listEthereumStakes({ query: { externalReference } }, signal)),
    cancelEthereumStake: (stakeId, signal) =>
      bodyOf('cancelEthereumStake', () => client.cancelEthereumStake({ params: { stakeId } }, signal)),
    submitEthereumStake: (stakeId, transactionHash, signal, sentBy) =>
      bodyOf('submitEthereumStake', () =>
        client.submitEthereumStake({ params: { stakeId }, body: { transactionHash, ...sentBy } }, signal),
      ),
  }
  const requests: ValidatorRequestsApi = {
    createExitRequest: ({ idempotencyKey, pubkey, externalReference }, signal) =>
      bodyOf('createExitRequest', () =>
        client.createExitRequest({ idempotencyKey, params: { pubkey }, body: { externalReference } }, signal),
      ),
    exitRequest: (pubkey, requestId, signal) =>
      read('getExitRequest', pubkey, requestId, () => client.getExitRequest({ params: { pubkey, requestId } }, signal)),
    exitRequestsNamed: (pubkey, externalReference, signal) =>
      listed('listExitRequests', () => client.listExitRequests({ params: { pubkey }, query: { externalReference } }, signal)),
    withdrawalRequestsNamed: (pubkey, externalReference, signal) =>
      listed('listWithdrawalRequests', () => client.listWithdrawalRequests({ params: { pubkey }, query: { externalReference } }, signal)),
    submitExitRequest: (pubkey, requestId, transactionHash, signal, sentBy) =>
      bodyOf('submitExitRequest', () =>
        client.submitExitRequest({ params: { pubkey, requestId }, body: { transactionHash, ...sentBy } }, signal),
      ),
    cancelExitRequest: (pubkey, requestId, signal) =>
      bodyOf('cancelExitRequest', () => client.cancelExitRequest({ params: { pubkey, requestId } }, signal)),
    createWithdrawalRequest: ({ idempotencyKey, pubkey, amountGwei, externalReference }, signal) =>
      bodyOf('createWithdrawalRequest', () =>
        client.createWithdrawalRequest({ idempotencyKey, params: { pubkey }, body: { amountGwei, externalReference } }, signal),
      ),
    withdrawalRequest: (pubkey, requestId, signal) =>
      read('getWithdrawalRequest', pubkey, requestId, () => client.getWithdrawalRequest({ params: { pubkey, requestId } }, signal)),
    submitWithdrawalRequest: async (pubkey, requestId, transactionHash, signal, sentBy) => {
      const { body, status, retryAfterMs } = await timed('submitWithdrawalRequest', () =>
        client.submitWithdrawalRequest({ params: { pubkey, requestId }, body: { transactionHash, ...sentBy } }, signal),
      )
      return { body, retryAfterMs: status === 202 ? (retryAfterMs ?? 2_000) : undefined }
    },
    cancelWithdrawalRequest: (pubkey, requestId, signal) =>
      bodyOf('cancelWithdrawalRequest', () => client.cancelWithdrawalRequest({ params: { pubkey, requestId } }, signal)),
    withdrawalCapacity: (pubkey, signal) =>
      bodyOf('getWithdrawalCapacity', () => client.getWithdrawalCapacity({ params: { pubkey } }, signal)),
    follow: follower.follow,
  }
  const solana: SolanaStakingApi = {
    get clockAheadMs() {
      return client.clockAheadMs()
    },
    createSolanaStake: ({ idempotencyKey, ...body }, signal) =>
      bodyOf('createSolanaStake', () => client.createSolanaStake({ idempotencyKey, body }, signal)),
    solanaStakesNamed: (externalReference, signal) =>
      listed('listSolanaStakes', () => client.listSolanaStakes({ query: { externalReference } }, signal)),
    solanaStake: (stakeId, signal) => bodyOf('getSolanaStake', () => client.getSolanaStake({ params: { stakeId } }, signal)),
    cancelSolanaStake: (stakeId, signal) => bodyOf('cancelSolanaStake', () => client.cancelSolanaStake({ params: { stakeId } }, signal)),
    renewChallenge: (stakeId, signal) =>
      bodyOf('renewSolanaChallenge', () => client.renewSolanaChallenge({ params: { stakeId }, body: {} }, signal)),
    createStakeTransaction: (stakeId, { idempotencyKey, ...body }, signal) =>
      bodyOf('createStakeTransaction', () => client.createStakeTransaction({ idempotencyKey, params: { stakeId }, body }, signal)),
    createDeactivationTransaction: (stakeId, { idempotencyKey, ...body }, signal) =>
      bodyOf('createDeactivationTransaction', () =>
        client.createDeactivationTransaction({ idempotencyKey, params: { stakeId }, body }, signal),
      ),
    createWithdrawalTransaction: (stakeId, { idempotencyKey, ...body }, signal) =>
      bodyOf('createWithdrawalTransaction', () =>
        client.createWithdrawalTransaction({ idempotencyKey, params: { stakeId }, body }, signal),
      ),
    refreshTransaction: (stakeId, txId, body, signal) =>
      bodyOf('refreshSolanaTransaction', () => client.refreshSolanaTransaction({ params: { stakeId, txId }, body }, signal)),
    submitTransaction: (stakeId, txId, signature, signal) =>
      bodyOf('submitSolanaTransaction', () => client.submitSolanaTransaction({ params: { stakeId, txId }, body: { signature } }, signal)),
  }
  return { ethereum: { api, requests }, solana: { api: solana } }
}

/** Each call is measured, and is a span of what it is part of. */
const createTimed =
  ({ clock, onApi }: Wiring) =>
  async <T>(operation: string, call: () => Promise<T>): Promise<T> => {
    const startedAt = clock.monotonicMs()
    let outcome = 'error'
    try {
      const answer = await inSpan(
        `staking API ${operation}`,
        () => ({ kind: 'client', attributes: { 'staking.operation': operation }, isPart: true }),
        call,
      )
      outcome = 'ok'
      return answer
    } catch (error) {
      if (error instanceof Error && 'kind' in error && typeof error.kind === 'string') outcome = error.kind
      throw error
    } finally {
      onApi?.(operation, outcome, clock.monotonicMs() - startedAt)
    }
  }

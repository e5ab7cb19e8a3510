import { ChainError } from '../../chains/ethereum/chain.ts'
import { NotSwitchedOnError } from '../../chains/ethereum/requests.ts'
import { SolanaError } from '../../chains/solana/chain.ts'
import { StakingApiError } from '../../contract/client-error.ts'
import type { Reason } from '../../resources/reasons.ts'
import { KubeError, KubeTransportError } from '../kube/errors.ts'
import { KeyError } from '../ports.ts'
import { refusalBy } from './api-rules.ts'
import { Halt, type Verdict } from './verdict.ts'

/**
 * The one table from errors to what is done about them: the staking API's problems, the chain's, the key files' and the API server's.
 * Messages are this project's own: nothing that the other side wrote is copied into status or events.
 */
export function classify(error: unknown): Verdict {
  if (error instanceof Halt) return error.verdict
  if (error instanceof StakingApiError) return ofStakingApi(error)
  if (error instanceof ChainError) return ofChain(error)
  if (error instanceof SolanaError) return ofSolana(error)
  if (error instanceof KeyError) return ofKey(error)
  if (error instanceof KubeError)
    return error.status === 409
      ? { kind: 'conflict' }
      : { kind: 'retry', reason: 'Retrying', message: `The API server answered ${error.status}; it is tried again.` }
  if (error instanceof KubeTransportError)
    return { kind: 'retry', reason: 'Retrying', message: 'The API server does not answer; it is tried again.' }
  throw error
}

const SHORT_MS = 2_000

function ofStakingApi(error: StakingApiError): Verdict {
  const after = error.retryAfterMs
  const stalled = (reason: Extract<Verdict, { kind: 'stall' }>['reason'], message: string): Verdict => ({
    kind: 'stall',
    reason,
    message,
    recheck: true,
  })
  if (error.kind === 'timeout')
    return retryService('The staking API did not answer in time. The same request is sent again with the same idempotency key.', after)
  if (error.kind === 'network') return retryService('The staking API cannot be reached; it is tried again.', after)
  if (error.kind === 'invalid-response')
    return retryService(
      'The staking API answered something that is not its contract (is the URL right? is a proxy in between?); it is tried again.',
      after,
    )
  switch (error.code) {
    case 'reference-exists':
      return stalled(
        'AlreadyStaked',
        `The staking API has a stake for this namespace and name already${error.existingId === undefined ? '' : `: ${error.existingId}`}. Nothing was bought again. To take it over as it is (with the amount and the addresses that it was made with), set spec.adopt.stakeId${error.existingId === undefined ? '' : ` to ${error.existingId}`}; for another stake, choose another name.`,
      )
    case 'idempotency-key-in-progress':
      return {
        kind: 'wait',
        reason: 'ServiceUnavailable',
        message: 'The staking API is still working on this very request.',
        afterMs: after ?? SHORT_MS,
      }
    case 'idempotency-key-reused':
      return stalled(
        'RequestRefused',
        'The staking API knows the idempotency key of this resource with another request: the spec or the signer that it was created with was another. Delete this resource, and create one under another name.',
      )
    case 'already-submitted':
      return stalled(
        'RequestRefused',
        'The staking API has another transaction for this resource, and it is final. Compare its transaction with the one in status.',
      )
    case 'rate-limited':
    case 'service-unavailable':
      return {
        kind: 'wait',
        reason: 'ServiceUnavailable',
        message: 'The staking API asked to wait (rate limit or overload).',
        afterMs: after ?? SHORT_MS,
      }
    case 'chain-unavailable':
    case 'transaction-not-visible':
      return {
        kind: 'wait',
        reason: 'ServiceUnavailable',
        message: 'The staking API cannot see the chain now; it is asked again.',
        afterMs: after ?? SHORT_MS,
      }
    case 'validation-failed':
    case 'invalid-request':
      return stalled('RequestRefused', refusalBy(error.rules ?? []))
    default:
  }
  if (error.status === 401 || error.status === 403 || error.code === 'unauthenticated' || error.code === 'forbidden') {
    return stalled(
      'Unauthorized',
      `The staking API refused the operator's API key (${error.status ?? 'it holds none that can be sent'}). Whoever runs the operator must check the key file of this network and the key's expiry and scope.`,
    )
  }
  if (error.status === 404)
    return stalled(
      'RequestRefused',
      "The staking API does not know this (404): its database was set back, the operator's API key is another account's than the one that it was created with, or the URL is not the staking API's. Nothing is signed for it. Whoever runs the staking API must look; it is asked again.",
    )
  if (error.status !== undefined && error.status >= 400 && error.status < 500 && error.status !== 408 && error.status !== 429) {
    return stalled('RequestRefused', `The staking API refused the request (${error.status}).`)
  }
  return retryService(
    `The staking API answered ${error.status ?? 'with an error'}; it is tried again with the same idempotency key.`,
    after,
  )
}

const retryService = (message: string, afterMs: number | undefined): Verdict =>
  afterMs === undefined
    ? { kind: 'retry', reason: 'ServiceUnavailable', message }
    : { kind: 'wait', reason: 'ServiceUnavailable', message, afterMs }

function ofChain(error: ChainError): Verdict {
  switch (error.code) {
    case 'wrong-chain':
      return {
        kind: 'stall',
        reason: 'WrongChain',
        message: `An RPC URL of the network serves another chain: ${error.message}. Nothing was signed. Whoever runs the operator must mend the network's configuration.`,
        recheck: true,
      }
    case 'history-syncing':
      return {
        kind: 'wait',
        reason: 'HistorySyncing',
        message: "The deposit contract's history is being read, to be certain that nobody has deposited for this key before.",
        afterMs: error.retryAfterMs ?? 5_000,
      }
    case 'insufficient-funds':
      return {
        kind: 'wait',
        reason: 'InsufficientFunds',
        message:
          "The signer's balance does not cover the amount and the fee. Fund the address; it goes on by itself with the same transaction.",
        afterMs: 30_000,
      }
    case 'reverted':
      return {
        kind: 'stall',
        reason: 'RequestRefused',
        message: 'The contract would refuse this transaction; nothing was signed.',
        recheck: true,
      }
    case 'underpriced':
    case 'replacement-underpriced':
      return {
        kind: 'wait',
        reason: 'FeeTooHigh',
        message: 'The node asks for a higher fee than the cap allows now; it is tried again.',
        afterMs: 12_000,
      }
    case 'access-denied':
      return denied(error)
    case 'already-known':
    case 'nonce-too-low':
    case 'unavailable':
    case 'rejected':
      return error.isLasting ? notServed(error) : unanswered(error)
  }
}

/** All nodes were asked. A provider's plan or a node's options change without a watch seeing it. */
const notServed = ({ message }: ChainError | SolanaError): Verdict => ({
  kind: 'stall',
  reason: 'MethodNotServed',
  message: `No RPC node of the network answers what must be asked: ${message}. It cannot go on before one does: whoever runs the operator must have it served there, or add the RPC URL of a node that serves it.`,
  recheck: true,
  recheckAfterMs: 60_000,
})

/** The same of a node that lets us in for nothing. */
const denied = ({ message, retryAfterMs }: ChainError | SolanaError): Verdict => ({
  kind: 'stall',
  reason: 'NodeAccessDenied',
  message: `No RPC node of the network can be used: ${message}. Whoever runs the operator must mend that URL in the networks file, or have its key renewed.`,
  recheck: true,
  recheckAfterMs: retryAfterMs ?? 60_000,
})

/** Nobody has to act on it. What each node says is told where they don't fail alike. */
const messageOf = (error: ChainError | SolanaError): string =>
  error.isOfEach
    ? `No RPC node of the network answers usefully: ${error.message}. They are asked again.`
    : error.code === 'rejected'
      ? `The network's RPC node refused the call: ${error.message}. It is tried again.`
      : error instanceof NotSwitchedOnError
        ? `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}. It goes on by itself then.`
        : "The network's RPC node does not answer usefully; it is tried again."

const unanswered = (error: ChainError | SolanaError): Verdict => {
  const message = messageOf(error)
  return error.retryAfterMs === undefined
    ? { kind: 'retry', reason: 'ChainUnavailable', message }
    : { kind: 'wait', reason: 'ChainUnavailable', message, afterMs: error.retryAfterMs }
}

/** Of a simulation too: what the cluster would say, it has said. */
function ofSolana(error: SolanaError): Verdict {
  const wait = (reason: Reason, message: string, afterMs: number): Verdict => ({
    kind: 'wait',
    reason,
    message,
    afterMs: error.retryAfterMs ?? afterMs,
  })
  const stalled = (reason: Reason, message: string): Verdict => ({ kind: 'stall', reason, message, recheck: true })
  switch (error.code) {
    case 'wrong-cluster':
      return stalled(
        'WrongChain',
        `An RPC URL of the network serves another cluster: ${error.message}. No transaction was signed. Whoever runs the operator must mend the network's configuration.`,
      )
    case 'insufficient-funds':
      return wait(
        'InsufficientFunds',
        "The fee payer's balance does not cover amount, rent and fees. Fund the address; it goes on by itself.",
        30_000,
      )
    case 'epoch-rewards':
      return wait(
        'EpochRewards',
        'Rewards are being distributed at the beginning of the epoch: stakes cannot change until that is over.',
        5_000,
      )
    case 'lockup-in-force':
      return stalled(
        'LockupInForce',
        'The stake account has a lockup in force: nothing can be withdrawn before it is over. No transaction was signed.',
      )
    case 'wrong-authority':
      return stalled(
        'AuthorityChanged',
        'The stake account names other authorities on the chain than this resource’s signers. Nothing more is signed. Whoever holds the keys must be asked.',
      )
    case 'insufficient-delegation':
      return stalled(
        'RequestRefused',
        "The amount is under the cluster's minimum delegation. No transaction was signed. Create this resource with a higher amount.",
      )
    case 'failed':
    case 'signature-failure':
      return stalled('RequestRefused', `The cluster would refuse this transaction: ${error.message}. Nothing was paid.`)
    case 'unreadable':
      return stalled(
        'VerificationFailed',
        `${error.message}. No transaction was signed. If the cluster has a newer version of its programs, this operator must be updated; if not, a node lies.`,
      )
    case 'no-history':
      return stalled(
        'HistoryMissing',
        `No RPC node of the network shows the history of transactions, which alone tells whether one has landed${error.isOfEach ? ` (${error.message})` : ''}. No transaction was signed. Start the node with --enable-rpc-transaction-history, or add an RPC URL of one that has it.`,
      )
    case 'blockhash-not-found':
    case 'node-behind':
      return wait(
        'ChainUnavailable',
        error.isOfEach ? messageOf(error) : `The network's RPC node lags behind the cluster; it is asked again.`,
        2_000,
      )
    case 'busy':
    case 'already-processed':
    case 'account-in-use':
    case 'already-deactivated':
    case 'too-soon-to-redelegate':
      return wait('AwaitingFinality', `The cluster does not take this transaction now (${error.message}); it is looked at again.`, 2_000)
    case 'access-denied':
      return denied(error)
    case 'unavailable':
    case 'rejected':
      return error.isLasting ? notServed(error) : unanswered(error)
  }
}

function ofKey({ code, message, retryAfterMs }: KeyError): Verdict {
  if (code === 'unavailable') return { kind: 'wait', reason: 'SignerUnavailable', message, afterMs: retryAfterMs ?? 5_000 }
  const reason = {
    missing: 'KeyMissing',
    malformed: 'KeyMalformed',
    'wrong-password': 'KeyMalformed',
    'address-mismatch': 'KeyAddressMismatch',
    'api-key': 'ApiKeyUnreadable',
    refused: 'SignerRefused',
    misbehaves: 'SignerMisbehaves',
  } as const
  // Who mends a remote signer does so where no watch sees it.
  const recheck = code === 'refused' || code === 'misbehaves' ? { recheckAfterMs: 60_000 } : {}
  return { kind: 'stall', reason: reason[code], message, recheck: true, ...recheck }
}

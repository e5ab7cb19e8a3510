interface Meaning {
  /** A person must act, or nothing goes on. */
  readonly stalled: boolean
  readonly means: string
  /** It often passes by itself. What has waited for so long may need a person: it is warned of, and rarely again. */
  readonly warnAfterMinutes?: number
}

/**
 * Every reason that a condition or an event of this project can carry, with what it means. `docs/reference/reasons.md` is generated from here.
 * `stalled` reasons mean that a person must act.
 */
export const reasons = {
  Pending: { stalled: false, means: 'This has not been reached yet.' },
  InProgress: { stalled: false, means: 'The next step is being worked on.' },
  Succeeded: { stalled: false, means: 'It is done.' },
  Settled: { stalled: false, means: 'There is nothing left to do.' },
  Retrying: {
    stalled: false,
    warnAfterMinutes: 10,
    means: 'The last try failed for a reason that often passes; it is tried again with growing delays.',
  },
  Suspended: {
    stalled: false,
    means: 'spec.suspend is true: nothing is created, signed or sent; a transaction in flight is still watched.',
  },
  Planned: {
    stalled: false,
    means:
      'spec.mode is Plan: it was verified, and status.plan says what would be signed. Nothing is written to the log, signed or sent until the mode is Apply.',
  },
  Deleting: { stalled: false, means: 'The resource was deleted, and waits: a transaction may still land, or its stake holds money.' },
  AwaitingFinality: { stalled: false, means: 'The transaction was sent; its block is not final yet.' },
  AwaitingActivation: { stalled: false, means: 'The deposit is final; the validator is not active yet.' },
  Active: { stalled: false, means: 'The validator is active, or the stake is.' },
  AwaitingDeactivation: { stalled: false, means: 'The stake was deactivated, and cools down until an epoch ends.' },
  EpochRewards: {
    stalled: false,
    means: 'Solana distributes rewards at the beginning of an epoch; until that is over, stakes cannot change.',
  },
  Inactive: { stalled: false, means: 'The stake is inactive: all of it can be withdrawn.' },
  Withdrawn: { stalled: false, means: 'All money of the stake was withdrawn, and its account is closed.' },
  NothingStaked: { stalled: false, means: 'The stake is not wanted any more, and nothing was ever paid for it.' },
  ValidatorDone: { stalled: false, means: 'The validator has left and its balance was withdrawn.' },
  HistorySyncing: {
    stalled: false,
    warnAfterMinutes: 30,
    means: "The deposit contract's history is still being read; nothing is signed before.",
  },
  FeeTooHigh: {
    stalled: false,
    warnAfterMinutes: 30,
    means: 'Gas costs more than the cap allows; it goes on when the price falls or the cap is raised.',
  },
  ApprovalRequired: {
    stalled: false,
    means:
      "The signer's policy (spec.policy.approval) asks for the approval of other users: status.plan shows what would be signed, and the message how to approve it. Nothing is signed before, and nobody waits behind it.",
  },
  InsufficientFunds: {
    stalled: false,
    warnAfterMinutes: 5,
    means: "The signer's balance does not cover the amount and the fee; it goes on when the address is funded.",
  },
  BalanceLow: {
    stalled: false,
    means: "The signer's balance is under its spec.minimumBalance. It is used all the same: fund the address.",
  },
  ChainUnavailable: { stalled: false, warnAfterMinutes: 5, means: 'No RPC URL of the network answered usefully; it is tried again.' },
  ServiceUnavailable: {
    stalled: false,
    warnAfterMinutes: 5,
    means: 'The staking API did not answer usefully; it is tried again with the same idempotency key.',
  },
  SignerUnavailable: {
    stalled: false,
    warnAfterMinutes: 5,
    means:
      'The remote signer that has the key (Web3Signer, AWS KMS, Vault or OpenBao) gave no useful answer. Nothing was signed; it is asked again. What was signed before is followed, and sent again where a node lacks it; on Solana it expires instead, and is made anew.',
  },
  WaitingForStake: {
    stalled: false,
    warnAfterMinutes: 15,
    means: 'The stake that it names is not there, or is not paid yet, for good.',
  },
  WaitingForValidator: {
    stalled: false,
    means: 'Another exit or withdrawal of the same validator comes first; it goes on when the consensus layer has decided on that one.',
  },
  WaitingForHandOver: {
    stalled: false,
    warnAfterMinutes: 30,
    means:
      'What was signed for the stake account before ends first: a step of the stake waits for a hand-over of its authorities, or the hand-over for a step.',
  },
  ValidatorNotActive: { stalled: false, means: 'The validator is not active yet; it goes on when it is.' },
  ValidatorTooYoung: {
    stalled: false,
    means: 'The validator has not been active for long enough to be exited or withdrawn from (256 epochs); it goes on when it has.',
  },
  PendingWithdrawals: {
    stalled: false,
    means: 'Partial withdrawals are still to be paid: a full exit is possible after them, and none more while the queue is full.',
  },
  RequestFeeTooHigh: {
    stalled: false,
    warnAfterMinutes: 30,
    means: 'The EIP-7002 contract asks for a higher fee than the cap allows; it goes on when the fee falls or the cap is raised.',
  },
  AwaitingConsensus: { stalled: false, means: 'The transaction is final; the consensus layer has not decided on its request yet.' },
  WithdrawalAddressIsContract: {
    stalled: false,
    means:
      'A warning: the withdrawal address is a contract that is not known here. The stake is paid all the same; make sure that the contract can pay out.',
  },
  AwaitingPayment: { stalled: false, means: 'The consensus layer has accepted the withdrawal; its turn to be paid has not come.' },
  Paid: { stalled: false, means: 'The withdrawal was paid to the withdrawal address.' },
  PaymentUnknown: {
    stalled: false,
    means: 'The withdrawal has left the queue, and whether it was paid can no longer be told: look at the withdrawal address.',
  },
  Accepted: { stalled: false, means: 'The consensus layer has accepted the request.' },
  Exiting: { stalled: false, means: 'The validator leaves, or has left and its balance is still to be withdrawn.' },
  Importing: {
    stalled: false,
    warnAfterMinutes: 10,
    means: 'What an earlier version of the operator has signed is being taken into the transaction log; nothing is signed before.',
  },
  LedgerImported: { stalled: false, means: 'What an earlier version of the operator has signed is in the transaction log now.' },
  WaitingForNonce: { stalled: false, warnAfterMinutes: 60, means: 'An earlier transaction of the same signer has to be settled first.' },
  NodesDisagree: {
    stalled: false,
    warnAfterMinutes: 5,
    means:
      'RPC nodes of the network show different blocks at one height, or not the same in one: nothing is concluded until they agree, or the wrong one is taken out of the configuration.',
  },
  NoFinality: {
    stalled: false,
    means:
      'The final block of the network has not moved for more than 30 minutes, and a transaction waits for it: look at the chain and at its RPC nodes.',
  },
  NonceUseUnproven: {
    stalled: false,
    warnAfterMinutes: 10,
    means:
      'The nonce was used by a transaction that the log does not know, and not every RPC node has shown yet which. Nothing is made again before.',
  },
  Cancelling: {
    stalled: false,
    means: 'The transaction cannot be sent now and others wait behind it: its nonce is being cancelled; it is made again later.',
  },
  LimitReached: {
    stalled: false,
    means:
      'A limit of the signer’s policy is used up (spec.policy.limits): nothing is wrong with it. It goes on by itself when there is room, at the time that the message names, or when the limit is raised.',
  },
  SignerSuspended: {
    stalled: false,
    means:
      'The StakingSigner is suspended by its owner (spec.suspend): nothing is signed with its key but what cancels. It goes on when that is taken back.',
  },
  OperatorSuspended: {
    stalled: false,
    means:
      'The operator is suspended by an annotation of its Lease (staking.dev/suspend): nothing is signed and nothing is sent. It goes on when the annotation is removed.',
  },
  KeyInUse: {
    stalled: false,
    means: 'A transaction that was signed with the key may still land, or a resource that names the signer has yet to sign: keep the key.',
  },
  ControlsStakes: {
    stalled: false,
    means:
      'Only this key can get at stakes: its address is the withdrawal address of validators, or of deposits that are to be one, which can never be changed, or an authority of stake accounts. Keep the key until their money is out.',
  },
  SignerNotReady: { stalled: false, warnAfterMinutes: 5, means: 'The signer exists but cannot be used now; its own conditions say why.' },

  InvalidSpec: {
    stalled: true,
    means:
      'The spec has a value that no admission rule can see (an address with a wrong checksum, say); create it anew with the right one.',
  },
  UnknownNetwork: { stalled: true, means: "spec.network is not in the operator's configuration." },
  SignerNotFound: { stalled: true, means: 'There is no StakingSigner of that name.' },
  NamespaceNotAllowed: { stalled: true, means: "The signer's policy does not admit this namespace." },
  WithdrawalAddressNotAllowed: { stalled: true, means: "The signer's policy does not admit this withdrawal address or destination." },
  HandedOverBefore: {
    stalled: true,
    means:
      'A transaction that the log does not know has handed the authorities of the stake account over to just these keys before, and they were handed on since. It may be this very hand-over, from before the log was lost: nothing is signed until somebody has looked.',
  },
  SuccessorNotAllowed: {
    stalled: true,
    means:
      'The policy of the signer that has an authority of a stake account does not admit that it is handed over to this address, or that another signer of the same key decides about it.',
  },
  VoteAccountNotAllowed: { stalled: true, means: "The signer's policy does not admit this vote account." },
  OverLimit: { stalled: true, means: "The amount is over the signer's maxPerTransaction." },
  PolicyUnreadable: { stalled: true, means: 'A field of the signer’s policy could not be read: it admits nothing.' },
  WrongChain: { stalled: true, means: 'The signer, or the RPC URL, is for another chain than this resource.' },
  KeyMissing: { stalled: true, means: 'The key file of the signer is not mounted.' },
  KeyMalformed: { stalled: true, means: 'The key file of the signer, which the message names, does not hold a key.' },
  ApiKeyUnreadable: {
    stalled: true,
    means:
      'The file with the API key of the staking API, which the message names, is not mounted or does not hold a key: no signer’s key is meant.',
  },
  KeyAddressMismatch: {
    stalled: true,
    means: 'The key, mounted or of a remote signer, belongs to another address than the signer declares.',
  },
  SignerRefused: {
    stalled: true,
    means:
      'The remote signer that has the key answers that it will not sign: it does not know the key, or does not let the operator use it. It is asked again each minute.',
  },
  SignerMisbehaves: {
    stalled: true,
    means:
      'What the remote signer has signed is not what it was asked to sign, or not signed by the key of the signer’s address. It was thrown away: nothing of it was written down or sent. Look at that signer at once.',
  },
  DuplicateSigner: {
    stalled: true,
    means: 'Another, older StakingSigner declares the same address: one address has one sequence of nonces, and so one signer.',
  },
  UnaccountedTransactions: {
    stalled: true,
    means: "The chain shows transactions of this key that the log doesn't know. Look at them, then set spec.acknowledgedNonce.",
  },
  ApprovalUnproven: {
    stalled: true,
    means:
      "The signer's policy asks for approvals, and it can't be proven who approves, or who has asked: the admission policies of the chart are missing, changed, or younger than the resource. No approval counts, and nothing is signed.",
  },
  OwnerGone: { stalled: true, means: 'The resource that the transaction was made for is gone: nothing more of it is signed.' },
  SignerChanged: {
    stalled: true,
    means:
      'The StakingSigner has another address than when the transaction was made. It is followed to its end; nothing is signed with another key before.',
  },
  UnknownSubmission: {
    stalled: true,
    means: 'The staking API was told of a transaction that no RPC node knows. It may still land: a person must end the wait.',
  },
  DoneElsewhere: {
    stalled: true,
    means: 'What this asks for was done by a transaction of somebody else, or of another key. Nothing is signed.',
  },
  RemadeTooOften: {
    stalled: true,
    means: 'The transaction was closed several times without doing what it is for. It is not made again before a person has looked.',
  },
  FrontRun: {
    stalled: true,
    means:
      "Somebody else's deposit for this public key came first: its withdrawal credentials count, not this resource's. Look at it at once.",
  },
  KeyUsedElsewhere: {
    stalled: true,
    means: "A transaction that is not in the log used a nonce of the signer's key: the key is used elsewhere, or was stolen.",
  },
  CopiedResource: {
    stalled: true,
    means: 'The origin annotation names another resource: this one is a copy. Drop the annotation to start afresh, or set spec.adopt.',
  },
  AlreadyStaked: { stalled: true, means: 'The staking API has a stake for this name from before; set spec.adopt.stakeId to take it over.' },
  AdoptionMismatch: { stalled: true, means: 'The stake named in spec.adopt does not match this spec, or belongs to another resource.' },
  VerificationFailed: {
    stalled: true,
    means: "The service's answer, or this resource's status, does not match the spec. Nothing was signed.",
  },
  PubkeyAlreadyDeposited: { stalled: true, means: 'Someone else has already deposited for this public key. Nothing was signed.' },
  Unauthorized: { stalled: true, means: "The staking API refused the operator's API key." },
  RequestRefused: { stalled: true, means: 'The staking API refused the request for good.' },
  TransactionReverted: {
    stalled: true,
    means: 'The transaction was mined and reverted: nothing was made of it, and the amount stayed with the signer.',
  },
  DepositDropped: {
    stalled: true,
    means: 'The deposit is final, and the consensus layer has dropped it when its turn came: no validator was made, and the money is lost.',
  },
  DepositMissing: { stalled: true, means: 'The transaction is final but the deposit is not in its receipt.' },
  UnknownValidator: { stalled: true, means: 'The beacon chain knows no validator with this public key.' },
  ValidatorNotEligible: {
    stalled: true,
    means:
      "The validator's credentials or effective balance forbid the request: withdrawals need Compounding (0x02) credentials and 32 ETH.",
  },
  AlreadyExiting: { stalled: true, means: 'The validator is leaving or has left: there is nothing more to ask for.' },
  Slashed: {
    stalled: true,
    means:
      'The validator was slashed: it loses a part of its balance and leaves by itself. Its key has signed twice, mostly since it runs in two places: stop the others before they are slashed too.',
  },
  ValidatorSlashed: { stalled: true, means: 'The validator was slashed: it leaves by itself, and no request is accepted.' },
  OverAvailable: { stalled: true, means: 'The amount is over what can be withdrawn from the validator.' },
  SignerNotWithdrawalAddress: {
    stalled: true,
    means: "The signer's address is not the validator's withdrawal address, which alone may ask for an exit or a withdrawal.",
  },
  ValidatorNotOwned: {
    stalled: true,
    means: 'No EthereumStake of the namespace has this validator, and the signer’s policy admits requests for own validators only.',
  },
  AlreadyRequested: {
    stalled: true,
    means: 'The staking API or the log has a request for this name from before. Nothing was asked again.',
  },
  RequestCancelled: { stalled: true, means: 'The request, or the stake, was cancelled at the staking API.' },
  RequestMissing: { stalled: true, means: 'The transaction is final but the request is not in its receipt.' },
  RequestDropped: { stalled: true, means: 'The request was mined and the consensus layer has dropped it: nothing came of it but the fee.' },
  PaymentVoid: {
    stalled: true,
    means:
      'The withdrawal was accepted and pays nothing: the validator was slashed, or began to exit, before its turn. The amount comes with the whole balance.',
  },
  AuthorityChanged: {
    stalled: true,
    means: 'Somebody has changed an authority of the stake account on the chain, with a key that this resource uses. Nothing is signed.',
  },
  AuthorityHandedOver: {
    stalled: true,
    means:
      'An authority of the stake account was handed over to an address that no StakingSigner has: the operator neither deactivates nor withdraws it any more. The stake authority deactivates; only the withdraw authority withdraws, and it can replace both. Where a StakingSigner has the latter, a SolanaStakeAuthorization takes the stake authority back.',
  },
  DelegationChanged: {
    stalled: true,
    means:
      'Somebody has deactivated the stake on the chain, delegated it to another vote account, or made it without delegating it, and this resource did not ask for that. Anyone may deactivate a stake whose vote account is closed, or has long been delinquent.',
  },
  AlreadyWithdrawn: {
    stalled: true,
    means: 'The stake was made and withdrawn before, and not because this resource asked for it. It is not paid again.',
  },
  WithdrawnElsewhere: {
    stalled: true,
    means:
      "The stake's account is closed, and its money was withdrawn by somebody else: to elsewhere than this resource says, or nobody can tell where to. Look at it at once.",
  },
  LockupInForce: { stalled: true, means: 'The stake account has a lockup on the chain: nothing can be withdrawn before it is over.' },
  ClockSkew: {
    stalled: true,
    means:
      'The clocks of the operator and of the staking API are minutes apart, so that what the one makes has expired, or is not valid yet, for the other.',
  },
  ValidatorEarnsNothing: {
    stalled: false,
    means:
      'A warning: the stake is active, and its validator keeps all rewards by now, or names no BLS key where the cluster asks for one: the stake earns nothing.',
  },
  ValidatorDelinquent: {
    stalled: false,
    means:
      'The stake is active, and its validator does not vote, or its vote account is closed: it earns nothing, and anyone may deactivate it after five epochs.',
  },
  NodeAccessDenied: {
    stalled: true,
    means:
      'An RPC node answers 401, 402 or 403 even to the question which chain it serves, or 404 to every request, and no other can be used now: the key in its URL is wrong, expired or used up, it does not allow this client, or the path of the URL is wrong. The message names each node by its number in the networks file, with what is wrong with it. It is asked again each minute, and sooner where another node may answer by then.',
  },
  MethodNotServed: {
    stalled: true,
    means:
      'No RPC node of the network serves a method that is needed, or takes its parameters: the message names it. Have it served, or add an RPC URL of a node that does. It is asked again each minute.',
  },
  HistoryMissing: {
    stalled: true,
    means:
      'No RPC node has the history that tells whether a transaction landed, or what it did: it is neither made anew nor taken for what is asked for. Add one whose history reaches further back.',
  },
  OutdatedCRD: {
    stalled: true,
    means:
      'The installed CustomResourceDefinition lacks fields that the operator relies on, or refuses values that it writes; nothing is signed until it is updated.',
  },
} as const satisfies Record<string, Meaning>

export type Reason = keyof typeof reasons
/** How long something waits for this reason before somebody is warned, in ms; undefined where nobody need act. */
export function warnAfterMs(reason: Reason): number | undefined {
  const { warnAfterMinutes }: Meaning = reasons[reason]
  return warnAfterMinutes === undefined ? undefined : warnAfterMinutes * 60_000
}
export const isStalling = (reason: Reason): boolean => reasons[reason].stalled

import { baseFeePerSignature } from '../../chains/solana/stake.ts'
import { formatSol, inSol, type Lamports, lamports } from '../../lib/amounts.ts'
import { createSolanaStakeRules } from '../../operator/kinds/solana-stake/chain-rules.ts'
import type { Parties } from '../../operator/kinds/solana-stake/parties.ts'
import { createSolanaRequests, type SolanaRequests } from '../../operator/kinds/solana-stake/request.ts'
import { type SolanaStakeRequest, type StakeTerms, solanaRequestOf } from '../../operator/kinds/solana-stake/steps.ts'
import { admitSolanaStake } from '../../operator/transactions/policy.ts'
import type { SolanaStakeSpec } from '../../resources/solana-stake.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import { tellApprovals } from './approvals.ts'
import { attempt, type Draft } from './draft.ts'
import {
  askPolicy,
  isSigned,
  originOf,
  type PlanContext,
  type Subject,
  signerNamed,
  tellIdle,
  tellMadeAnew,
  tellUnknownNetwork,
  uidsOf,
} from './subject.ts'
import { admissionOver } from './world.ts'

/** What applying a SolanaStake would do. */
export async function planSolanaStake(draft: Draft, subject: Subject<SolanaStakeSpec>, context: PlanContext): Promise<void> {
  const { world } = context
  const { spec, own } = subject
  if (tellMadeAnew(draft, subject)) return
  const request = solanaRequestOf({ origin: originOf(subject), spec })
  const paid = own.find((record) => record.spec.purpose === 'SolanaStake' && isSigned(record))
  const payer = signerNamed(draft, world, request.stakeSigner)
  const withdrawer = request.withdrawSigner === request.stakeSigner ? payer : signerNamed(draft, world, request.withdrawSigner)
  const isPaid = paid !== undefined
  const isPaying = !isPaid && request.wanted
  const amount = await attempt(draft, () => requestsOver(context, undefined).amountOf(request))
  if (amount === undefined) return
  tell(draft, { subject, request, amount, paid: paid?.metadata.name, payer, withdrawer })
  if (world.networks === undefined) tellUnknownNetwork(draft, spec.network)
  const assumed = askPolicies(draft, { context, subject, request, amount, isPaying, payer, withdrawer })
  const requests = requestsOver(context, assumed)
  if (world.networks !== undefined) await attempt(draft, () => requests.networkOf(spec.network))
  const parties = await partiesOf(draft, { context, requests, request, isPaying, payer, withdrawer })
  const isIdle = tellIdle(draft, spec)
  if (isPaid && !isIdle) tellApprovalsOfLater(draft, subject, [parties?.payer ?? payer, parties?.withdrawer ?? withdrawer])
  if (!isPaying || isIdle || payer === undefined || draft.refusals.length > 0) return
  await pay(draft, { subject, context, requests, request, amount, parties, payer })
}

type LaterStep = 'SolanaDeactivation' | 'SolanaWithdrawal'
const isStepSigned = (own: Subject<unknown>['own'], step: LaterStep): boolean =>
  own.some((record) => record.spec.purpose === step && isSigned(record))

/** Whose approvals the way out of a stake that is paid needs: the stake authority deactivates, both withdraw. */
function tellApprovalsOfLater(
  draft: Draft,
  subject: Subject<SolanaStakeSpec>,
  [payer, withdrawer]: readonly [payer: StakingSigner | undefined, withdrawer: StakingSigner | undefined],
): void {
  const { own } = subject
  const { desiredState } = subject.spec
  const tell = (purpose: LaterStep, step: string, signers: readonly (StakingSigner | undefined)[]): void => {
    if (isStepSigned(own, purpose)) return
    const byName = new Map(signers.flatMap((signer) => (signer === undefined ? [] : [[signer.metadata.name, signer]])))
    for (const signer of byName.values()) tellApprovals(draft, subject, signer, { purpose, amount: undefined, step })
  }
  if (desiredState !== 'Active') tell('SolanaDeactivation', 'its deactivation', [payer])
  if (desiredState === 'Withdrawn') tell('SolanaWithdrawal', 'its withdrawal', [payer, withdrawer])
}

const requestsOver = ({ world }: PlanContext, assumed: string | undefined): SolanaRequests => {
  const { solanaKeys, ...over } = admissionOver(world, assumed)
  return createSolanaRequests({ ...over, keys: solanaKeys })
}

function tell(
  draft: Draft,
  {
    subject: { spec, live, own },
    request,
    amount,
    paid,
    payer,
    withdrawer,
  }: {
    readonly subject: Subject<SolanaStakeSpec>
    readonly request: SolanaStakeRequest
    readonly amount: Lamports
    readonly paid: string | undefined
    readonly payer: StakingSigner | undefined
    readonly withdrawer: StakingSigner | undefined
  },
): void {
  const destination = request.destination ?? withdrawer?.spec.address
  const where = destination ?? "the withdraw authority's own address"
  const before = (live?.spec as { readonly desiredState?: string } | undefined)?.desiredState
  if (paid !== undefined) {
    draft.does.push(`its stake was paid before (StakingTransaction ${paid}): it is not paid again`)
    if (spec.desiredState !== 'Active' && spec.desiredState !== before) {
      if (!isStepSigned(own, 'SolanaDeactivation')) draft.does.push('deactivates the stake: it cools down until an epoch ends')
      if (spec.desiredState === 'Withdrawn') {
        draft.does.push(`withdraws all of it to ${where}, and closes the stake account`)
        draft.moves = { network: spec.network, is: 'asks', amount: 'the whole balance', signer: request.withdrawSigner, returnsTo: where }
      }
    }
    return
  }
  if (spec.adopt !== undefined) {
    draft.does.push(`takes over stake ${spec.adopt.stakeId} of the staking API in place of making one`)
    draft.unknown.push(`whether stake ${spec.adopt.stakeId} was paid already, and matches: then nothing is paid`)
  }
  if (!request.wanted) {
    draft.does.push(
      `pays nothing: spec.desiredState is ${spec.desiredState}. What was paid for it before, if anything, is ${spec.desiredState === 'Withdrawn' ? `withdrawn to ${where}` : 'deactivated'}`,
    )
    return
  }
  draft.does.push(
    `stakes ${formatSol(amount)} SOL on ${spec.network}, once, with ${request.voteAccount === undefined ? 'a vote account that the staking API chooses' : `vote account ${request.voteAccount}`}: withdrawn, it goes to ${where}`,
  )
  if (request.voteAccount === undefined) draft.unknown.push('which vote account the staking API chooses')
  draft.moves = {
    network: spec.network,
    is: 'pays',
    amount: `${formatSol(amount)} SOL`,
    units: amount.toString(),
    signer: request.stakeSigner,
    ...(payer === undefined ? {} : { from: payer.spec.address }),
    ...(destination === undefined ? {} : { returnsTo: destination }),
  }
}

/** Asks both signers' policies. @returns the namespace, where its labels are not known and one goes by them */
function askPolicies(
  draft: Draft,
  {
    context: { world },
    subject: { namespace },
    request,
    amount,
    isPaying,
    payer,
    withdrawer,
  }: {
    readonly context: PlanContext
    readonly subject: Subject<SolanaStakeSpec>
    readonly request: SolanaStakeRequest
    readonly amount: Lamports
    readonly isPaying: boolean
    readonly payer: StakingSigner | undefined
    readonly withdrawer: StakingSigner | undefined
  },
): string | undefined {
  const { voteAccount } = request
  const asPayer =
    payer &&
    askPolicy(
      draft,
      { world, signer: payer, namespace },
      isPaying
        ? `namespace ${namespace}${voteAccount === undefined ? '' : `, vote account ${voteAccount}`} and ${formatSol(amount)} SOL (at most ${inSol(payer.spec.policy?.maxPerTransaction)} a transaction)`
        : `namespace ${namespace}`,
      (one, facts) =>
        admitSolanaStake(one, {
          namespace: facts,
          ...(isPaying ? { amountLamports: amount } : {}),
          ...(isPaying && voteAccount !== undefined ? { voteAccount } : {}),
        }),
    )
  const asWithdrawer =
    withdrawer &&
    askPolicy(
      draft,
      { world, signer: withdrawer, namespace },
      `namespace ${namespace} and destination ${request.destination ?? withdrawer.spec.address}`,
      (one, facts) => admitSolanaStake(one, { namespace: facts, destination: request.destination ?? one.spec.address }),
    )
  return asPayer?.assumed ?? asWithdrawer?.assumed
}

/** The operator's own checks of both signers and all addresses. */
async function partiesOf(
  draft: Draft,
  {
    context: { world, signal },
    requests,
    request,
    isPaying,
    payer,
    withdrawer,
  }: {
    readonly context: PlanContext
    readonly requests: SolanaRequests
    readonly request: SolanaStakeRequest
    readonly isPaying: boolean
    readonly payer: StakingSigner | undefined
    readonly withdrawer: StakingSigner | undefined
  },
): Promise<Parties | undefined> {
  const areKnown = (payer !== undefined && withdrawer !== undefined) || world.knowsAllSigners
  if (!areKnown || draft.refusals.length > 0 || draft.waits.length > 0) return undefined
  return attempt(draft, () =>
    requests.partiesOf(request, isPaying ? { voteAccount: undefined } : undefined, signal, {
      signing: isPaying ? ['Withdraw', 'Stake'] : [],
    }),
  )
}

async function pay(
  draft: Draft,
  {
    subject,
    context: { world, rooms, signal },
    requests,
    request,
    amount,
    parties,
    payer,
  }: {
    readonly subject: Subject<SolanaStakeSpec>
    readonly context: PlanContext
    readonly requests: SolanaRequests
    readonly request: SolanaStakeRequest
    readonly amount: Lamports
    readonly parties: Parties | undefined
    readonly payer: StakingSigner
  },
): Promise<void> {
  const { spec, namespace, own } = subject
  for (const name of new Set([request.stakeSigner, request.withdrawSigner]))
    tellApprovals(draft, subject, world.signers.get(name) ?? payer, { purpose: 'SolanaStake', amount })
  const asked = { signer: payer, network: spec.network, namespace, amount: amount as bigint, own: uidsOf(own) }
  const hasRoom = rooms.ask(draft, asked)
  if (parties === undefined) return
  const cap = await attempt(draft, () => requests.feeCapOf(request, parties))
  if (cap === undefined) return
  const atMost = baseFeePerSignature + cap
  const sol = (units: bigint): string => `${formatSol(lamports(units))} SOL`
  draft.fees = { atMost: sol(atMost), cap: `${cap} lamports of priority fee, and ${baseFeePerSignature} lamports a signature` }
  if (!hasRoom || draft.refusals.length > 0) return
  rooms.take(asked)
  const network = world.networks?.solana(spec.network)
  if (network === undefined) return
  const rules = createSolanaStakeRules(requests)
  const problem = await attempt(draft, () => rules.amountProblem(request, signal))
  if (problem !== undefined) await attempt(draft, () => Promise.reject(problem))
  const { voteAccount } = request
  if (voteAccount !== undefined) await attempt(draft, () => rules.assertVotes(network, voteAccount, payer, signal))
  await attempt(draft, () => rules.assertCanReceive({ kind: 'stake', request }, network, parties, NO_TERMS, signal))
  await attempt(draft, async () => {
    const balance = await network.chain.balance(payer.spec.address, 'confirmed', signal)
    const bound = rooms.bound({ signer: payer, network: spec.network, own: asked.own })
    if (balance < bound + amount + atMost)
      draft.waits.push({
        by: 'operator',
        reason: 'InsufficientFunds',
        message: `${payer.spec.address} has ${sol(balance)} on ${spec.network}; this needs up to ${sol(amount + atMost)}${bound === 0n ? '' : `, after ${sol(bound)} of what comes before it`}. It goes on by itself when the address is funded.`,
      })
    rooms.spend({ signer: payer, network: spec.network }, amount + atMost)
  })
}

/** Of a stake that the staking API was not asked for: it has no account yet. */
const NO_TERMS: StakeTerms = { stakeId: '', stakeAccount: '', stakeAuthority: '', withdrawAuthority: '', voteAccount: '' }

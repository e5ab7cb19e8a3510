import { requestGasLimit } from '../../chains/ethereum/deposit-gas.ts'
import { encodeRequestCalldata, readRequestFee, withdrawalRequestContract, withFeeHeadroom } from '../../chains/ethereum/requests.ts'
import { formatWeiAsGwei, gwei, type Wei, wei } from '../../lib/amounts.ts'
import type { Hex } from '../../lib/chain-types.ts'
import { sameHex } from '../../lib/hex.ts'
import { type RequestKindName, requestKinds } from '../../operator/kinds/validator-request/request-kind.ts'
import { orderOf, type RequestOrder, type ValidatorRequestSpec } from '../../operator/kinds/validator-request/steps.ts'
import { createRequestTargets, type RequestTargets } from '../../operator/kinds/validator-request/target.ts'
import type { EthereumNetwork } from '../../operator/ports.ts'
import { addressOf } from '../../operator/transactions/ethereum-texts.ts'
import { EXIT_GWEI } from '../../operator/transactions/limits.ts'
import { admitRequest } from '../../operator/transactions/policy.ts'
import type { RecordObject } from '../../operator/transactions/store.ts'
import type { EthereumStake } from '../../resources/ethereum-stake.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import { tellApprovals } from './approvals.ts'
import { attempt, type Draft, refuse } from './draft.ts'
import { priceCall } from './ethereum-fees.ts'
import {
  askPolicy,
  doneBefore,
  isSigned,
  originOf,
  type PlanContext,
  type Subject,
  signerNamed,
  tellIdle,
  tellUnknownNetwork,
  uidsOf,
} from './subject.ts'
import { admissionOver, ethereumAdmission, type World } from './world.ts'

type RequestSubject = Subject<ValidatorRequestSpec> & { readonly kind: RequestKindName }

/** What applying a ValidatorExit or a ValidatorWithdrawal would do. */
export async function planValidatorRequest(draft: Draft, subject: RequestSubject, context: PlanContext): Promise<void> {
  const { world, rooms, signal } = context
  const { spec, own, namespace, kind } = subject
  const signed = own.find(isSigned)
  if (signed !== undefined) {
    draft.does.push(`its request was made before (StakingTransaction ${signed.metadata.name}): nothing is asked again`)
    return
  }
  const before = doneBefore(subject)
  if (before !== undefined) return tellAskedBefore(draft, kind, before)
  const order = orderOf({ origin: originOf(subject), spec })
  const words = requestKinds[kind].words(order)
  const { validator } = order
  const of =
    validator.stakeRef === undefined ? `validator ${validator.pubkey}` : `the validator of EthereumStake ${validator.stakeRef.name}`
  const signer = signerNamed(draft, world, spec.signer)
  const policy =
    signer &&
    askPolicy(draft, { world, signer, namespace }, `requests of namespace ${namespace}`, (one, facts) =>
      admitRequest(one, { namespace: facts, kind }),
    )
  const targets = targetsOver(world, namespace, policy?.assumed)
  if ((signer !== undefined && policy?.isRefused === false) || (signer === undefined && world.knowsAllSigners))
    await attempt(draft, () => targets.admittedSigner(order, signal))
  const found = await targetOf(draft, { order, targets, world, signer, signal })
  const exited = kind === 'ValidatorExit' ? exitBefore(world, subject, found) : undefined
  if (exited !== undefined) return tellAskedBefore(draft, kind, exited)
  draft.does.push(`asks the consensus layer once (EIP-7002) for ${words} of ${of}: it comes to the validator's withdrawal address`)
  if (signer !== undefined)
    draft.moves = {
      network: found.network ?? 'its network',
      is: 'asks',
      amount: requestKinds[kind].amount(order),
      signer: spec.signer,
      from: signer.spec.address,
      to: withdrawalRequestContract,
      ...(found.withdrawalAddress === undefined ? {} : { returnsTo: found.withdrawalAddress }),
    }
  const isIdle = tellIdle(draft, spec)
  if (kind === 'ValidatorExit' && !isIdle && draft.refusals.length === 0) askOnce(draft, subject, found.pubkey, context.exits)
  if (draft.refusals.length > 0 || isIdle || signer === undefined || found.network === undefined) return
  const amount = kind === 'ValidatorExit' ? EXIT_GWEI : BigInt(order.amountGwei ?? '0')
  const isReady = draft.waits.length === 0
  tellApprovals(draft, subject, signer, { purpose: requestKinds[kind].purpose, amount: kind === 'ValidatorExit' ? undefined : amount })
  const asked = { signer, network: found.network, namespace, amount, own: uidsOf(own) }
  const hasRoom = rooms.ask(draft, asked)
  const cap = await attempt(draft, () => targets.capOf(signer, undefined))
  const feeCap = await attempt(draft, () => targets.feeCapOf(signer, spec.maxRequestFeeGwei))
  if (cap === undefined || feeCap === undefined) return
  draft.fees = { cap: `${formatWeiAsGwei(cap)} gwei per gas, and ${formatWeiAsGwei(feeCap)} gwei to the EIP-7002 contract` }
  if (!hasRoom || draft.refusals.length > 0) return
  // What waits for its stake keeps nobody from the room until then.
  if (isReady) rooms.take(asked)
  const network = world.networks?.ethereum(found.network)
  if (network !== undefined)
    await price(draft, { context, signer, network, asked, caps: { cap, feeCap }, order, kind, pubkey: found.pubkey })
}

/** The exit of a validator that another resource has asked for: there is one for each. */
function exitBefore({ records = [] }: World, { own, former }: RequestSubject, { network, pubkey }: Found): RecordObject | undefined {
  if (pubkey === undefined) return undefined
  const others = records.filter(
    (record) =>
      record.spec.purpose === 'Exit' && record.spec.network === network && sameHex(record.spec.subject, pubkey) && !own.includes(record),
  )
  return doneBefore({ former: others.filter((record) => !former.includes(record)) })
}

/** Of several exits of one validator in the same manifests the first is asked for. `asked`: by which resource, by validator. */
function askOnce(draft: Draft, { spec, namespace, name }: RequestSubject, pubkey: Hex | undefined, asked: Map<string, string>): void {
  const validator = pubkey?.toLowerCase() ?? `${namespace}/${spec.validator.stakeRef?.name}`
  const first = asked.get(validator)
  asked.set(validator, first ?? `${namespace}/${name}`)
  if (first !== undefined)
    refuse(draft, {
      by: 'operator',
      reason: 'AlreadyRequested',
      message: `ValidatorExit ${first} of these manifests asks for the exit of this validator, and there is one for each: leave one of them out.`,
    })
}

/** This has been asked for before: by another resource of this name, or of an exit by any. Only what the consensus layer has dropped is asked for once more. */
function tellAskedBefore(draft: Draft, kind: RequestKindName, { metadata, spec, status }: RecordObject): void {
  const { passesWhenDropped, onceMore } = requestKinds[kind]
  const { owner } = spec
  const whose = `${kind} ${owner.namespace}/${owner.name} of UID ${owner.originUid} has asked for this before (StakingTransaction ${metadata.name})`
  if (passesWhenDropped && status?.outcome?.is === 'Landed') {
    draft.does.push(`asks for nothing as long as what was asked before stands: ${whose}`)
    draft.unknown.push(`whether the consensus layer has dropped that: only the staking API knows. ${onceMore}`)
  } else refuse(draft, { by: 'operator', reason: 'AlreadyRequested', message: `${whose}. Nothing is asked again. ${onceMore}` })
}

interface Found {
  readonly network?: string
  readonly pubkey?: Hex
  readonly withdrawalAddress?: string
}

/** The validator, as far as manifests and cluster say; what only the staking API knows is told as unknown. */
async function targetOf(
  draft: Draft,
  {
    order,
    targets,
    world,
    signer,
    signal,
  }: {
    readonly order: RequestOrder
    readonly targets: RequestTargets
    readonly world: World
    readonly signer: StakingSigner | undefined
    readonly signal: AbortSignal
  },
): Promise<Found> {
  const { stakeRef, network, pubkey } = order.validator
  const { known, all } = world.stakes(order.origin.namespace)
  const stake = stakeRef && known.find(({ metadata }) => metadata.name === stakeRef.name)
  if (stakeRef !== undefined && stake === undefined && !all) {
    draft.unknown.push(
      `EthereumStake ${stakeRef.name} of namespace ${order.origin.namespace}: it is not in these manifests, and no cluster tells of it`,
    )
    return {}
  }
  if (world.networks === undefined) tellUnknownNetwork(draft, stake?.spec.network ?? network ?? 'of the validator')
  if (stake !== undefined) {
    const { withdrawalAddress } = stake.spec
    if (signer !== undefined) await attempt(draft, () => targets.assertMaySend(signer, withdrawalAddress))
    if (stake.status?.transaction?.state !== 'Confirmed')
      draft.waits.push({
        by: 'operator',
        reason: 'WaitingForStake',
        message: `The deposit of EthereumStake ${stake.metadata.name} is not final yet. It goes on by itself.`,
      })
    draft.unknown.push(
      'whether the validator is active, and what of its balance may be withdrawn: only the staking API and a beacon node know',
    )
    const shown = stake.status?.depositData?.pubkey
    return { network: stake.spec.network, withdrawalAddress, ...(shown === undefined ? {} : { pubkey: shown }) }
  }
  if (stakeRef !== undefined) {
    draft.waits.push({
      by: 'operator',
      reason: 'WaitingForStake',
      message: `There is no EthereumStake ${stakeRef.name} in namespace ${order.origin.namespace}. It goes on when there is.`,
    })
    return {}
  }
  const target = world.networks === undefined ? undefined : await attempt(draft, () => targets.targetOf(order, new Map(), signal))
  draft.unknown.push(
    "whether the signer's address is the validator's withdrawal address, whether it is active, and what of its balance may be withdrawn: only the staking API and a beacon node know",
  )
  if (target !== undefined && signer !== undefined) {
    if (world.records === undefined && signer.spec.policy?.validators !== 'Any')
      draft.unknown.push(
        `whether an EthereumStake of namespace ${order.origin.namespace} has paid for the validator, as StakingSigner ${signer.metadata.name} demands (validators: Own)`,
      )
    else await attempt(draft, () => targets.assertOwned(order, signer, target, new Map(), signal))
  }
  return { ...(network === undefined ? {} : { network }), ...(pubkey === undefined ? {} : { pubkey }) }
}

function targetsOver(world: World, own: string, assumed: string | undefined): RequestTargets {
  const over = admissionOver(world, assumed)
  const stakesIn = (namespace: string): readonly EthereumStake[] => world.stakes(namespace).known
  return createRequestTargets({
    ...ethereumAdmission(over),
    log: over.log,
    stake: (namespace, name) => stakesIn(namespace).find(({ metadata }) => metadata.name === name),
    // Of other namespaces none counts.
    stakesOn: ({ pubkey }) => stakesIn(own).filter(({ status }) => sameHex(status?.depositData?.pubkey ?? '', pubkey)),
  })
}

async function price(
  draft: Draft,
  {
    context: { rooms, signal },
    signer,
    network,
    asked,
    caps: { cap, feeCap },
    order,
    kind,
    pubkey,
  }: {
    readonly context: PlanContext
    readonly signer: StakingSigner
    readonly network: EthereumNetwork
    readonly asked: { readonly own: ReadonlySet<string> }
    readonly caps: { readonly cap: Wei; readonly feeCap: Wei }
    readonly order: RequestOrder
    readonly kind: RequestKindName
    readonly pubkey: Hex | undefined
  },
): Promise<void> {
  const fee = await attempt(draft, async () => (await readRequestFee(network.chain, signal)).feeWei)
  if (fee === undefined) return
  if (fee > feeCap)
    draft.waits.push({
      by: 'operator',
      reason: 'RequestFeeTooHigh',
      message: `The EIP-7002 contract asks for ${formatWeiAsGwei(fee)} gwei for a request now, and the cap is ${formatWeiAsGwei(feeCap)} gwei. It goes on when the fee falls, or when maxRequestFeeGwei (of this resource or the signer's policy) is raised.`,
    })
  const roomy = withFeeHeadroom(fee)
  const value = wei(roomy < feeCap ? roomy : feeCap)
  const key: Hex = pubkey ?? `0x${'11'.repeat(48)}`
  const data = encodeRequestCalldata(
    kind === 'ValidatorExit'
      ? { kind: 'exit', pubkey: key }
      : { kind: 'withdrawal', pubkey: key, amountGwei: gwei(BigInt(order.amountGwei ?? '0')) },
  )
  const call = { from: addressOf(signer), to: withdrawalRequestContract, data, valueWei: value }
  await priceCall(
    draft,
    {
      chain: network.chain,
      call,
      cap,
      gasLimit: requestGasLimit,
      most: value,
      signer,
      network: network.config.name,
      rooms,
      own: asked.own,
    },
    signal,
  )
}

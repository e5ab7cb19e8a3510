import { depositDataRoot, encodeDepositCalldata, withdrawalCredentials } from '../../chains/ethereum/deposit.ts'
import { depositGasLimit } from '../../chains/ethereum/deposit-gas.ts'
import { isContract, unspendable } from '../../chains/ethereum/unspendable.ts'
import { formatEth, formatWeiAsGwei, type Gwei, gweiToWei } from '../../lib/amounts.ts'
import type { Address, Hex } from '../../lib/chain-types.ts'
import { createDepositRequests, type DepositRequests } from '../../operator/kinds/ethereum-stake/request.ts'
import { type StakeRequest, stakeRequestOf } from '../../operator/kinds/ethereum-stake/steps.ts'
import type { EthereumNetwork } from '../../operator/ports.ts'
import { addressOf } from '../../operator/transactions/ethereum-texts.ts'
import { admitDeposit } from '../../operator/transactions/policy.ts'
import type { EthereumStakeSpec } from '../../resources/ethereum-stake.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import { tellApprovals } from './approvals.ts'
import { attempt, type Draft, refuse } from './draft.ts'
import { priceCall } from './ethereum-fees.ts'
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
import { admissionOver, ethereumAdmission } from './world.ts'

/** What applying an EthereumStake would do. */
export async function planEthereumStake(draft: Draft, subject: Subject<EthereumStakeSpec>, context: PlanContext): Promise<void> {
  const { world, rooms, signal } = context
  const { spec, own, namespace } = subject
  const signed = own.find(isSigned)
  if (signed !== undefined) {
    draft.does.push(
      `its deposit of ${signed.spec.amount} was made before (StakingTransaction ${signed.metadata.name}): nothing is paid again`,
    )
    return
  }
  if (tellMadeAnew(draft, subject)) return
  const request = stakeRequestOf({ origin: originOf(subject), spec })
  // The operator's own checks of spec, signer and network, in its own words.
  const checks = createDepositRequests(ethereumAdmission(admissionOver(world)))
  const amount = await attempt(draft, () => checks.amountOf(request))
  const address = await attempt(draft, () => checks.addressOf(request))
  if (amount === undefined || address === undefined) return
  const network = world.networks === undefined ? undefined : await attempt(draft, () => checks.networkOf(spec.network))
  if (world.networks === undefined) tellUnknownNetwork(draft, spec.network)
  const lost = unspendable(address, network?.config)
  if (lost !== undefined) refuse(draft, { by: 'operator', reason: 'InvalidSpec', message: `spec.withdrawalAddress: ${lost}.` })
  const signer = signerNamed(draft, world, spec.signer)
  tell(draft, { spec, amount, signer, network })
  const requests = await admittedBy(draft, { context, request, signer, amount })
  const isIdle = tellIdle(draft, spec)
  if (draft.refusals.length > 0 || isIdle || signer === undefined) return
  tellApprovals(draft, subject, signer, { purpose: 'Deposit', amount })
  const cap = await attempt(draft, () => requests.capOf(signer, spec.maxFeePerGasGwei))
  const asked = { signer, network: spec.network, namespace, amount: amount as bigint, own: uidsOf(own) }
  const hasRoom = rooms.ask(draft, asked)
  if (cap === undefined) return
  draft.fees = { cap: `${formatWeiAsGwei(cap)} gwei per gas` }
  if (!hasRoom || draft.refusals.length > 0) return
  rooms.take(asked)
  if (network === undefined) return
  const { depositContractAddress } = network.config
  const call = {
    from: addressOf(signer),
    to: depositContractAddress,
    data: exampleCall(request, amount, address),
    valueWei: gweiToWei(amount),
  }
  await priceCall(
    draft,
    {
      chain: network.chain,
      call,
      cap,
      gasLimit: depositGasLimit,
      most: gweiToWei(amount),
      signer,
      network: spec.network,
      rooms,
      own: asked.own,
    },
    signal,
  )
  await attempt(draft, async () => {
    if (isContract(await network.chain.code(address, signal)))
      draft.does.push(
        `${address} is a contract that is not known here: what it can't pay out is lost, and credentials can never be changed`,
      )
  })
}

/** Asks the policy of the signer, and all else that says whether it may be used. @returns the operator's checks, as they were asked */
async function admittedBy(
  draft: Draft,
  {
    context: { world, signal },
    request,
    signer,
    amount,
  }: {
    readonly context: PlanContext
    readonly request: StakeRequest
    readonly signer: StakingSigner | undefined
    readonly amount: Gwei
  },
): Promise<DepositRequests> {
  const { withdrawalAddress, origin } = request
  const { namespace } = origin
  const words = `namespace ${namespace}, withdrawal address ${withdrawalAddress} and ${formatEth(amount)} ETH (at most ${signer?.spec.policy?.maxPerTransaction} ETH a transaction)`
  const policy =
    signer &&
    askPolicy(draft, { world, signer, namespace }, words, (one, facts) =>
      admitDeposit(one, { namespace: facts, withdrawalAddress, amountGwei: amount }),
    )
  const requests = createDepositRequests(ethereumAdmission(admissionOver(world, policy?.assumed)))
  if ((signer !== undefined && policy?.isRefused === false) || (signer === undefined && world.knowsAllSigners))
    await attempt(draft, () => requests.admittedSigner(request, signal))
  return requests
}

function tell(
  draft: Draft,
  {
    spec,
    amount,
    signer,
    network,
  }: {
    readonly spec: EthereumStakeSpec
    readonly amount: Gwei
    readonly signer: StakingSigner | undefined
    readonly network: EthereumNetwork | undefined
  },
): void {
  const to = network?.config.depositContractAddress
  draft.moves = {
    network: spec.network,
    is: 'pays',
    amount: `${formatEth(amount)} ETH`,
    units: amount.toString(),
    signer: spec.signer,
    ...(signer === undefined ? {} : { from: signer.spec.address }),
    ...(to === undefined ? {} : { to }),
    returnsTo: spec.withdrawalAddress,
  }
  const type = spec.credentialsType === 'Execution' ? 'Execution (0x01)' : 'Compounding (0x02)'
  draft.does.push(
    `deposits ${formatEth(amount)} ETH for a new validator on ${spec.network}, once, with ${type} credentials: the stake and its rewards return to ${spec.withdrawalAddress} alone`,
  )
  if (spec.adopt !== undefined) {
    draft.does.push(`takes over stake ${spec.adopt.stakeId} of the staking API in place of making one`)
    draft.unknown.push(`whether stake ${spec.adopt.stakeId} was paid already, and matches: then nothing is paid`)
  }
}

/** A deposit of the same length and amount, for the estimate of its gas: the contract checks its root, and no signature. Nobody signs or sends it. */
function exampleCall(request: StakeRequest, amountGwei: Gwei, address: Address): Hex {
  const filler = (bytes: number): Hex => `0x${'11'.repeat(bytes)}`
  const data = {
    pubkey: filler(48),
    withdrawalCredentials: withdrawalCredentials(request.credentialsType === 'Execution' ? '0x01' : '0x02', address),
    amountGwei,
    signature: filler(96),
  }
  return encodeDepositCalldata({ ...data, depositDataRoot: depositDataRoot(data) })
}

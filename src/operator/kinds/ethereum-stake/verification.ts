import { ChainError } from '../../../chains/ethereum/chain.ts'
import { isContract } from '../../../chains/ethereum/unspendable.ts'
import { type ClaimedDeposit, type ClaimedTransaction, verifyDeposit } from '../../../chains/ethereum/verify-deposit.ts'
import type { EthereumStakeBody } from '../../../contract/schemas/ethereum-stake.ts'
import type { Clock } from '../../../lib/clock.ts'
import { sameHex } from '../../../lib/hex.ts'
import { mayAdopt } from '../../engine/origin.ts'
import type { Perform } from '../../engine/step.ts'
import { stall } from '../../engine/verdict.ts'
import { type DepositEvidence, evidenceOf } from './evidence.ts'
import type { DepositRequests } from './request.ts'
import type { DepositFields, EthereumStakeEffects, StakeRequest } from './steps.ts'

/** Code may come to an address that has none: it is asked for again after this, in ms. */
const LOOK_AGAIN_MS = 60_000
const MOST_LOOKS = 1_000

/** Compares what the staking API gave for a stake with the spec and the network, before anything is made of it. */
export function createVerification(
  {
    networkOf,
    addressOf,
    serviceStake,
    expectedOf,
    isPaid,
  }: DepositRequests & {
    /** Whether the log has begun to pay this very stake for the resource. */
    readonly isPaid: (request: StakeRequest, body: EthereumStakeBody) => boolean
  },
  { refuse, isSigned }: DepositEvidence,
  clock: Pick<Clock, 'monotonicMs'>,
): Perform<EthereumStakeEffects>['verifyDeposit'] {
  /** What was found out, by network and address, with the monotonic ms of when: the stakes of a team pay mostly one address. */
  const looks = new Map<string, { readonly at: number; readonly isContract: boolean }>()

  /** Whether the money goes to a contract in the end: nothing is refused for that, and a person should know. Undefined where no node tells. */
  async function paysContract(request: StakeRequest, signal: AbortSignal): Promise<boolean | undefined> {
    const address = addressOf(request)
    const key = `${request.network} ${address}`
    const known = looks.get(key)
    if (known !== undefined && clock.monotonicMs() - known.at < LOOK_AGAIN_MS) return known.isContract
    try {
      const found = isContract(await networkOf(request.network).chain.code(address, signal))
      looks.delete(key)
      const [oldest] = looks.keys()
      if (oldest !== undefined && looks.size >= MOST_LOOKS) looks.delete(oldest)
      looks.set(key, { at: clock.monotonicMs(), isContract: found })
      return found
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof ChainError) return undefined
      throw error
    }
  }

  return async ({ request, stakeId, depositData, tentative }, visit, signal) => {
    const network = networkOf(request.network)
    const body = await serviceStake(request, visit, signal)
    // Of a service that lied before and now tells the truth, the truth is taken: nothing stands on the lie yet.
    if (!tentative && !isShown(body, stakeId, depositData))
      throw stall(
        'VerificationFailed',
        `status.stakeId or status.depositData is not what the staking API gave for this resource. Nothing was signed. Remove status.stakeId and status.depositData: they are read again.`,
      )
    const adopted = request.adoptStakeId !== undefined
    const mismatches = verifyDeposit(
      {
        expected: expectedOf(request, network),
        depositData: body.depositData as ClaimedDeposit,
        unsignedTransaction: body.unsignedTransaction as ClaimedTransaction,
      },
      isSigned,
    )
    refuse(
      [...mismatches, ...mixedUp(body, request, adopted || isPaid(request, body))],
      adopted ? `Stake ${body.stakeId}` : "The staking API's answer",
      adopted ? 'AdoptionMismatch' : 'VerificationFailed',
    )
    return {
      verifiedRoot: body.depositData.depositDataRoot,
      ...evidenceOf(body),
      withdrawalAddressIsContract: await paysContract(request, signal),
    }
  }
}

/** Whether status shows the stake as the staking API has it. */
const isShown = ({ stakeId, depositData: given }: EthereumStakeBody, shownId: string, shown: DepositFields): boolean =>
  stakeId === shownId &&
  sameHex(given.pubkey, shown.pubkey) &&
  sameHex(given.signature, shown.signature) &&
  sameHex(given.withdrawalCredentials, shown.withdrawalCredentials) &&
  given.amountGwei.toString() === shown.amountGwei &&
  sameHex(given.depositDataRoot, shown.depositDataRoot)

/** That the stake is of another network, or another resource's. `adopted`: it is taken over, or was, whoever made it. */
function mixedUp(
  { network, externalReference }: EthereumStakeBody,
  request: StakeRequest,
  adopted: boolean,
): readonly { readonly code: string; readonly message: string }[] {
  return [
    ...(request.network === network ? [] : [{ code: 'network', message: 'the network is another' }]),
    // A service that mixes stakes up must not have one resource shown as paid by the deposit of another.
    ...(adopted || externalReference === undefined || externalReference === request.externalReference
      ? []
      : [{ code: 'reference', message: 'the stake belongs to another resource: its external reference is another' }]),
    // A stake that another namespace's resource has made is not taken from it.
    ...(!adopted || mayAdopt(request.origin.kind, externalReference, request.origin.namespace)
      ? []
      : [{ code: 'reference', message: `it was made for ${externalReference}, in another namespace` }]),
  ]
}

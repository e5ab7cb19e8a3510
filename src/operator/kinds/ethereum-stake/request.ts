import type { Address } from '../../../chains/ethereum/chain.ts'
import type { ExpectedDeposit } from '../../../chains/ethereum/verify-deposit.ts'
import type { EthereumStakeBody } from '../../../contract/schemas/ethereum-stake.ts'
import { AmountError, type Gwei, parseEth } from '../../../lib/amounts.ts'
import type { EthereumStake } from '../../../resources/ethereum-stake.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { stall } from '../../engine/verdict.ts'
import { type Visit, visitNote } from '../../engine/visit.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { createEthereumSigners, type EthereumDeps, type SignerAdmissionDeps } from '../../transactions/ethereum-signer.ts'
import { admitDeposit, checkAddress } from '../../transactions/policy.ts'
import type { StakeRequest } from './steps.ts'

export interface EthereumStakeDeps extends EthereumDeps {
  /** The resource as it stands now: from the cache, or read past it. */
  readonly stake: (
    ref: { readonly namespace: string; readonly name: string },
    fresh: boolean,
    signal: AbortSignal,
  ) => Promise<EthereumStake | undefined>
}

/** What a stake asks for, checked: its network, amount, address, and the signer that its policy admits, as they all stand now. */
export type DepositRequests = ReturnType<typeof createDepositRequests>

const credentialsTypeOf = ({ credentialsType }: StakeRequest): '0x01' | '0x02' => (credentialsType === 'Execution' ? '0x01' : '0x02')

/** How the stake is asked for: each time the same, so that the staking API gives the same one. */
export const creationOf = (request: StakeRequest, amountGwei: Gwei, withdrawalAddress: Address) => ({
  idempotencyKey: request.idempotencyKey,
  network: request.network,
  amountGwei,
  withdrawalAddress,
  credentialsType: credentialsTypeOf(request),
  externalReference: request.externalReference,
})

/** What the staking API has said of the stake. */
const saidOf = visitNote<EthereumStakeBody>('stake')

export function createDepositRequests(deps: SignerAdmissionDeps) {
  const { networkOf, networkOfRecord, admitted, capOf } = createEthereumSigners(deps)

  function amountOf(request: StakeRequest): Gwei {
    if (request.credentialsType !== 'Compounding' && request.credentialsType !== 'Execution')
      throw stall('InvalidSpec', 'spec.credentialsType is neither Compounding nor Execution.', false)
    try {
      const amount = parseEth(request.amountEth)
      const min = parseEth('32')
      const max = request.credentialsType === 'Execution' ? min : parseEth('2048')
      if (amount < min || amount > max)
        throw new AmountError(
          `${request.amountEth} ETH is not ${request.credentialsType === 'Execution' ? '32 ETH, as Execution credentials need' : 'between 32 and 2048 ETH'}`,
        )
      return amount
    } catch (error) {
      if (error instanceof AmountError) throw stall('InvalidSpec', `spec.amountEth: ${error.message}.`, false)
      throw error
    }
  }

  function addressOf(request: StakeRequest): Address {
    const address = request.withdrawalAddress
    if (!/^0x[0-9a-fA-F]{40}$/.test(address) || /^0x0{40}$/.test(address))
      throw stall('InvalidSpec', 'spec.withdrawalAddress is not an address that can be paid.', false)
    const wrong = checkAddress(address)
    if (wrong !== undefined)
      throw stall('InvalidSpec', `spec.withdrawalAddress: ${wrong} Delete this resource and create it with the right address.`, false)
    return address
  }

  /** The signer, admitted by its policy for this resource as both stand now. */
  const admittedSigner = (
    request: StakeRequest,
    signal: AbortSignal,
    how: { readonly fresh?: boolean; readonly isSigned?: boolean } = {},
  ): Promise<StakingSigner> =>
    admitted(
      { name: request.signer, namespace: request.origin.namespace },
      (signer, namespace) =>
        admitDeposit(signer, { namespace, withdrawalAddress: request.withdrawalAddress, amountGwei: amountOf(request) }),
      signal,
      how,
    )

  /** What the service says of the stake: by the idempotent creation itself, so that it is the one of this resource and no other. */
  async function serviceStake(request: StakeRequest, visit: Visit, signal: AbortSignal): Promise<EthereumStakeBody> {
    const said = saidOf.of(visit)
    if (said !== undefined) return said
    const { api } = networkOf(request.network)
    const body =
      request.adoptStakeId === undefined
        ? await api.createEthereumStake(creationOf(request, amountOf(request), addressOf(request)), signal)
        : await api.ethereumStake(request.adoptStakeId, signal)
    return saidOf.write(visit, body)
  }

  const expectedOf = (request: StakeRequest, network: Pick<EthereumNetwork, 'config'>): ExpectedDeposit => ({
    network: network.config,
    withdrawalAddress: addressOf(request),
    credentialsType: credentialsTypeOf(request),
    amountGwei: amountOf(request),
  })

  return { networkOf, networkOfRecord, amountOf, capOf, addressOf, admittedSigner, serviceStake, expectedOf }
}

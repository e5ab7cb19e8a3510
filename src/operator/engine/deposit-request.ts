import type { Address } from '../../chains/ethereum/chain.ts'
import type { ExpectedDeposit } from '../../chains/ethereum/verify-deposit.ts'
import type { EthereumStakeBody } from '../../contract/schemas/ethereum-stake.ts'
import { AmountError, type Gwei, parseEth, type Wei } from '../../lib/amounts.ts'
import type { Clock } from '../../lib/clock.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import type { EthereumKeys, EthereumNetwork, Networks } from '../ports.ts'
import type { StakeRequest } from '../sagas/ethereum-stake.ts'
import type { Origin } from '../sagas/origin.ts'
import { admitDeposit, checkAddress, feeCap, type NamespaceFacts, sameAddress } from '../sagas/policy.ts'
import { stall } from '../sagas/verdict.ts'
import type { SignerLedger, SignerStore } from './signer-ledger.ts'
import type { Visit } from './visit.ts'

export interface EthereumStakeDeps {
  readonly networks: Networks
  readonly signers: SignerStore
  readonly ledger: SignerLedger
  readonly keys: EthereumKeys
  readonly clock: Clock
  /** The namespace as policy sees it now. */
  readonly namespace: (name: string) => NamespaceFacts
  /** Whether another, older signer declares the same address. */
  readonly duplicateOf: (signer: StakingSigner) => string | undefined
  /** Whether another resource has this stake. Asked for adopted stakes only: what a resource created by its own idempotency key is its own. */
  readonly otherHolder: (stakeId: string, origin: Origin) => boolean
  /** Throws unless this process may act now: it leads, and the installed CRDs are what it was built for. Asked before every signature and broadcast. */
  readonly assertMayAct: () => void
  readonly onRefusal?: (reason: string) => void
}

/** What a stake asks for, checked: its network, amount, address, and the signer that its policy admits, as they all stand now. */
export type DepositRequests = ReturnType<typeof createDepositRequests>

export function createDepositRequests(deps: EthereumStakeDeps) {
  const { keys, signers } = deps

  function networkOf(name: string): EthereumNetwork {
    const network = deps.networks.ethereum(name)
    if (network === undefined) {
      const known = deps.networks.names('Ethereum')
      throw stall(
        'UnknownNetwork',
        `The operator has no Ethereum network "${name}"${known.length === 0 ? '' : `; it has ${known.join(', ')}`}. Add it to the operator's networks file, or create this resource with another network.`,
      )
    }
    return network
  }

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

  function capOf(signer: StakingSigner, ownCapGwei: string | undefined): Wei {
    try {
      return feeCap(signer, ownCapGwei)
    } catch (error) {
      if (error instanceof AmountError) throw stall('InvalidSpec', `maxFeePerGasGwei: ${error.message}.`, false)
      throw error
    }
  }

  function addressOf(request: StakeRequest): Address {
    const address = request.withdrawalAddress as Address
    if (!/^0x[0-9a-fA-F]{40}$/.test(address) || /^0x0{40}$/.test(address))
      throw stall('InvalidSpec', 'spec.withdrawalAddress is not an address that can be paid.', false)
    const wrong = checkAddress(address)
    if (wrong !== undefined)
      throw stall('InvalidSpec', `spec.withdrawalAddress: ${wrong} Delete this resource and create it with the right address.`, false)
    return address
  }

  const credentialsTypeOf = (request: StakeRequest): '0x01' | '0x02' => (request.credentialsType === 'Execution' ? '0x01' : '0x02')

  /** The signer, admitted by its policy for this resource as both stand now. */
  async function admittedSigner(request: StakeRequest, signal: AbortSignal): Promise<StakingSigner> {
    const signer = signers.get(request.signer)
    if (signer === undefined)
      throw stall('SignerNotFound', `There is no StakingSigner ${request.signer}. Create it, or create this resource with another signer.`)
    const refusal = admitDeposit(signer, {
      namespace: deps.namespace(request.origin.namespace),
      withdrawalAddress: request.withdrawalAddress,
      amountGwei: amountOf(request),
    })
    if (refusal !== undefined) {
      deps.onRefusal?.(refusal.reason)
      throw stall(refusal.reason, refusal.message)
    }
    const twin = deps.duplicateOf(signer)
    if (twin !== undefined)
      throw stall(
        'DuplicateSigner',
        `StakingSigner ${twin} declares the same address as ${request.signer} and is older. Two ledgers over one nonce sequence are not allowed: delete one of them.`,
      )
    const address = await keys.address(signer.spec.keyName, signal)
    if (!sameAddress(address, signer.spec.address)) {
      throw stall(
        'KeyAddressMismatch',
        `The key mounted as ${signer.spec.keyName} belongs to ${address}, but StakingSigner ${request.signer} declares ${signer.spec.address}. Nothing was signed. Mount the right key.`,
      )
    }
    return signer
  }

  /** What the service says of the stake: by the idempotent creation itself, so that it is the one of this resource and no other. */
  async function serviceStake(request: StakeRequest, visit: Visit, signal: AbortSignal): Promise<EthereumStakeBody> {
    const said = visit.get('stake')
    if (said !== undefined) return said as EthereumStakeBody
    const { api } = networkOf(request.network)
    const body =
      request.adoptStakeId === undefined
        ? await api.createEthereumStake(
            {
              idempotencyKey: request.idempotencyKey,
              network: request.network,
              amountGwei: amountOf(request),
              withdrawalAddress: addressOf(request),
              credentialsType: credentialsTypeOf(request),
              externalReference: request.externalReference,
            },
            signal,
          )
        : await api.ethereumStake(request.adoptStakeId, signal)
    visit.set('stake', body)
    return body
  }

  const expectedOf = (request: StakeRequest, network: Pick<EthereumNetwork, 'config'>): ExpectedDeposit => ({
    network: network.config,
    withdrawalAddress: addressOf(request),
    credentialsType: credentialsTypeOf(request),
    amountGwei: amountOf(request),
  })

  return { networkOf, amountOf, capOf, addressOf, admittedSigner, serviceStake, expectedOf }
}

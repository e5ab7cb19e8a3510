import { decodeDepositCalldata } from '../../../chains/ethereum/deposit.ts'
import { StakingApiError } from '../../../contract/client-error.ts'
import type { EthereumStakeBody } from '../../../contract/schemas/ethereum-stake.ts'
import { formatWeiAsEth } from '../../../lib/amounts.ts'
import { lowerCase, type Pubkey } from '../../../lib/chain-types.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { EthereumStake } from '../../../resources/ethereum-stake.ts'
import { Halt } from '../../engine/verdict.ts'
import { pubkeyOf } from '../../transactions/ethereum-texts.ts'
import type { LegacyKind } from '../../transactions/legacy/kind.ts'
import { type DepositEvidence, evidenceOf, fieldsOf } from './evidence.ts'
import { depositName, depositSpec } from './records.ts'
import type { DepositRequests } from './request.ts'
import { type StakeRequest, stakeRequestOf } from './steps.ts'

/** Deposits that the version before the log has made. */
export function createLegacyDeposits(
  { networkOf, serviceStake }: Pick<DepositRequests, 'networkOf' | 'serviceStake'>,
  { verifyFields }: Pick<DepositEvidence, 'verifyFields'>,
): LegacyKind {
  const isGone = (error: unknown): boolean =>
    error instanceof StakingApiError &&
    (error.status === 404 || error.code === 'reference-exists' || error.code === 'idempotency-key-reused')

  /** The stake of a resource at the staking API: the one that its status names, if it is its own, or the one that its creation gives. */
  async function stakeOf(request: StakeRequest, named: string | undefined, signal: AbortSignal): Promise<EthereumStakeBody | undefined> {
    try {
      if (named !== undefined) {
        const body = await networkOf(request.network).api.ethereumStake(named, signal)
        if (body.externalReference === request.externalReference || request.adoptStakeId === named) return body
      }
    } catch (error) {
      if (!isGone(error)) throw error
    }
    try {
      return await serviceStake(request, new Map(), signal)
    } catch (error) {
      if (!isGone(error)) throw error
      return undefined
    }
  }

  return {
    kind: 'EthereumStake',
    isNamedByOwner: false,
    networkOf: (resource) => (resource as EthereumStake).spec.network,

    async find(resource, origin, signer, signal) {
      const { spec, status } = resource as EthereumStake
      const request = stakeRequestOf({ origin, spec })
      const network = networkOf(request.network)
      const body = await stakeOf(request, status?.stakeId, signal)
      if (body === undefined) return undefined
      const found = evidenceOf(body)
      try {
        // A signature of BLS is the only one for its key and message: what verifies against the spec is what was paid.
        verifyFields(request, fieldsOf(found), network)
      } catch (error) {
        if (error instanceof Halt && error.verdict.kind === 'stall') return undefined
        throw error
      }
      const made = depositSpec({ request, ...found }, network, signer)
      return { name: depositName(network.config.chainId, pubkeyOf({ spec: made })), spec: made }
    },

    ofCall(owner, { to, data, valueWei }, { config }, signer) {
      if (to === undefined || !sameHex(to, config.depositContractAddress)) return undefined
      let pubkey: Pubkey
      try {
        pubkey = lowerCase(decodeDepositCalldata(data).pubkey)
      } catch {
        return undefined
      }
      const spec = {
        chain: 'Ethereum' as const,
        network: config.name,
        chainId: config.chainId,
        purpose: 'Deposit' as const,
        subject: pubkey,
        amount: `${formatWeiAsEth(valueWei)} ETH`,
        owner,
        generation: 0,
        signer: signer.metadata.name,
        from: signer.spec.address,
        call: { to, data, valueWei: valueWei.toString() },
      }
      return { name: depositName(config.chainId, pubkey), spec }
    },
  }
}

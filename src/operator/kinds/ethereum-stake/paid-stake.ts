import type { EthereumStakeBody } from '../../../contract/schemas/ethereum-stake.ts'
import { sameHex } from '../../../lib/hex.ts'
import { stall } from '../../engine/verdict.ts'
import type { TransactionLog } from '../../transactions/log.ts'
import { isBegun } from '../../transactions/owner.ts'
import type { RecordObject } from '../../transactions/store.ts'
import { ownDeposit } from './records.ts'
import type { DepositRequests } from './request.ts'
import type { StakeRequest } from './steps.ts'

/** What a resource pays, by the log: once that has begun a deposit, its stake is that one, whatever spec.adopt has come to name since status was lost, as by a restore. */
export function createPaidStake(log: Pick<TransactionLog, 'ofOwner'>, { networkOf, serviceStake }: DepositRequests) {
  const begun = ({ origin }: StakeRequest): RecordObject | undefined => {
    const own = ownDeposit(log, origin)
    return own !== undefined && isBegun(own) ? own : undefined
  }
  return {
    /** Whether the log has begun to pay this very validator for the resource. */
    isPaid: (request: StakeRequest, { depositData }: Pick<EthereumStakeBody, 'depositData'>): boolean => {
      const own = begun(request)
      return own !== undefined && sameHex(depositData.pubkey, own.spec.subject)
    },

    /** What the staking API says of the stake that is paid, or is to be. @throws Halt, StakingApiError */
    async paidStake(...[request, visit, signal]: Parameters<DepositRequests['serviceStake']>): Promise<EthereumStakeBody> {
      const body = await serviceStake(request, visit, signal)
      const own = begun(request)
      if (own?.spec.apiId === undefined || sameHex(body.depositData.pubkey, own.spec.subject)) return body
      const paid = await networkOf(request.network).api.ethereumStake(own.spec.apiId, signal)
      if (sameHex(paid.depositData.pubkey, own.spec.subject)) return paid
      throw stall(
        'VerificationFailed',
        `StakingTransaction ${own.metadata.name} is this resource's deposit, and the staking API has another validator as its stake ${own.spec.apiId}. Nothing is signed. Do not work around this: find out why the staking API answers so.`,
      )
    },
  }
}

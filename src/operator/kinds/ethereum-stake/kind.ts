import type { EthereumStake, EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import type { ObservationIntervals, SagaKind } from '../../engine/reconcile.ts'
import type { Networks } from '../../ports.ts'
import { STAKE_STEP } from '../../transactions/ledger.ts'
import type { SignerLedger } from '../../transactions/signer-ledger.ts'
import { decideDeletion } from './deletion.ts'
import { ethereumStakeStatus, isConfirmed, isDone, isEarning } from './status.ts'
import { type EthereumStakeEffects, type EthereumStakeView, ethereumStakeSteps } from './steps.ts'

/** EthereumStake for the engine: the saga with what the engine must know besides. */
export function ethereumStakeKind(deps: {
  readonly ledger: SignerLedger
  readonly networks: Networks
  readonly intervals: ObservationIntervals
  /** Whether an exit of this validator was accepted, by its public key. */
  readonly exitAccepted?: (pubkey: string) => boolean
}): SagaKind<EthereumStake, EthereumStakeStatus, EthereumStakeView, EthereumStakeEffects> {
  const { ledger, networks, intervals } = deps
  return {
    kind: 'EthereumStake',
    steps: () => ethereumStakeSteps,
    statusOf: (resource) => resource.status,
    isSuspended: (resource) => resource.spec.suspend === true,
    view: (resource, origin, status) => ({ origin, spec: resource.spec, status }),
    say: ethereumStakeStatus,
    decideDeletion: (resource, status, origin) =>
      decideDeletion(resource, status, origin !== undefined && ledger.has(resource.spec.signer, resource.spec.network, origin, STAKE_STEP)),
    observeEvery: (status) => {
      if (!isConfirmed(status) || isDone(status)) return undefined
      // What moves is looked at more often: it becomes active, or it leaves.
      const isMoving = !isEarning(status) || deps.exitAccepted?.(status.depositData?.pubkey ?? '') === true
      return isMoving ? intervals.activatingMs : intervals.settledMs
    },
    async observe(resource, status, signal) {
      const network = networks.ethereum(resource.spec.network)
      if (network === undefined || status.stakeId === undefined || status.depositData === undefined) return status
      const { validator } = await network.api.ethereumStake(status.stakeId, signal)
      const { pubkey } = status.depositData
      // What the service says of another validator is no news of this one.
      if (validator.pubkey.toLowerCase() !== pubkey.toLowerCase()) return status
      return {
        ...status,
        validator: { pubkey, status: validator.status, ...(validator.index === undefined ? {} : { index: String(validator.index) }) },
      }
    },
    onStalled: (resource, origin, status) => {
      // Prepared but not sent: the next transaction of this signer may use the nonce, so that nobody waits behind a stalled resource.
      if (status.transaction !== undefined && status.transaction.broadcastHash === undefined)
        ledger.release(resource.spec.signer, resource.spec.network, origin, STAKE_STEP)
    },
  }
}

import { BeaconError } from '../../../chains/ethereum/beacon.ts'
import { ChainError, type Hex, type Pubkey } from '../../../chains/ethereum/chain.ts'
import { readRequestFee } from '../../../chains/ethereum/requests.ts'
import { withdrawalCapacity } from '../../../chains/ethereum/withdrawal-rules.ts'
import type { WithdrawalCapacityBody } from '../../../contract/schemas/ethereum-requests.ts'
import { gwei } from '../../../lib/amounts.ts'
import { beaconUnavailable, chainUnavailable } from '../../errors.ts'
import type { Store } from '../../store/database.ts'
import { stakeOfKey } from '../../store/stakes.ts'
import { checkPubkey, type Locate, noValidator } from './locate.ts'

const maxReason = 256

/** What could be withdrawn from a validator now, and why not. One's own stake that the beacon chain doesn't know yet has nothing. */
export function readCapacity({ store, locate }: { store: Store; locate: Locate }) {
  return async (account: string, pubkey: Pubkey, signal: AbortSignal): Promise<WithdrawalCapacityBody> => {
    checkPubkey(pubkey)
    const network = await locate(account, pubkey, signal)
    if (network === undefined) throw noValidator(pubkey)
    const { chain, config, validators } = network
    try {
      const [view, spec, fee, stake] = await Promise.all([
        validators.beacon.withdrawalView(pubkey, 'head', signal),
        validators.beacon.spec(signal),
        readRequestFee({ head: chain.head, call: validators.reads.call }, signal),
        stakeOfKey(store.db, pubkey),
      ])
      const { validator, epoch } = view
      const { eligible, broken, pendingWithdrawalsGwei, availableGwei, earliestEligibleEpoch } = withdrawalCapacity({ ...view, spec })
      return {
        pubkey,
        asOfEpoch: epoch,
        eligible,
        reasons: broken.map(({ code, message }) => `${code}: ${message}`.slice(0, maxReason)),
        credentialsType: validator === undefined ? (stake?.credentials_type ?? '0x00') : typeOf(validator.withdrawalCredentials),
        validatorStatus: validator?.status ?? 'unknown',
        balanceGwei: validator?.balanceGwei ?? gwei(0n),
        effectiveBalanceGwei: validator?.effectiveBalanceGwei ?? gwei(0n),
        pendingWithdrawalsGwei,
        availableGwei,
        ...(earliestEligibleEpoch === undefined ? {} : { earliestEligibleEpoch }),
        requestFeeWei: fee.feeWei,
      }
    } catch (error) {
      if (error instanceof BeaconError) throw beaconUnavailable(config.name, error)
      throw error instanceof ChainError ? chainUnavailable(config.name, error) : error
    }
  }
}

/** Anything but 0x01 and 0x02 can't be moved by a request, as 0x00 can't. */
const typeOf = (credentials: Hex): WithdrawalCapacityBody['credentialsType'] =>
  credentials.startsWith('0x01') ? '0x01' : credentials.startsWith('0x02') ? '0x02' : '0x00'

import { BeaconError } from '../../../chains/ethereum/beacon.ts'
import type { Pubkey } from '../../../chains/ethereum/chain.ts'
import { isValidPubkey } from '../../../chains/ethereum/deposit.ts'
import { beaconUnavailable, ProblemError, validationFailed } from '../../errors.ts'
import type { Store } from '../../store/database.ts'
import { stakeOfKey } from '../../store/stakes.ts'
import type { EthereumNetwork, EthereumNetworks, ValidatorAccess } from '../networks.ts'

export type NetworkWithValidators = EthereumNetwork & { readonly validators: ValidatorAccess }

/** Until somebody mends the configuration. */
const configurationRetrySeconds = 60

/**
 * Finds the network of a validator, which routes name by its public key alone: that of one's own stake with this key, else the only one whose beacon
 * chain knows it; undefined when none does.
 * @throws ProblemError `not-found` when another account's stake holds the key; `chain-unavailable`; `validation-failed` when several networks know it.
 */
export type Locate = (account: string, pubkey: Pubkey, signal: AbortSignal) => Promise<NetworkWithValidators | undefined>

/** @throws ProblemError `invalid-request` for bytes that are no public key of anybody: not on the curve, or not in its subgroup. */
export function checkPubkey(pubkey: Pubkey): void {
  if (isValidPubkey(pubkey)) return
  const detail = `${pubkey} is not a BLS public key: it is not a point of the curve's subgroup`
  throw new ProblemError('invalid-request', detail, { errors: [{ pointer: '/params/pubkey', code: 'invalid-pubkey', detail }] })
}

/** @throws ProblemError `not-found` when another account's stake holds the key. */
export async function checkOwner(db: Store['db'], account: string, pubkey: Pubkey) {
  const stake = await stakeOfKey(db, pubkey)
  if (stake !== undefined && stake.account !== account) throw noValidator(pubkey)
  return stake
}

export const noValidator = (pubkey: Pubkey): ProblemError => new ProblemError('not-found', `there is no validator ${pubkey}`)

export function createLocate({ store, networks }: { store: Store; networks: EthereumNetworks }): Locate {
  const withValidators = [...networks.values()].filter(hasValidators)

  return async (account, pubkey, signal) => {
    const stake = await checkOwner(store.db, account, pubkey)
    if (stake !== undefined) {
      const network = networks.get(stake.network)
      if (network === undefined) throw notConfigured(`the network ${stake.network} is not configured any more`)
      if (!hasValidators(network)) throw notConfigured(`${stake.network} has no beaconApiUrls in the service's configuration`)
      return network
    }
    if (withValidators.length === 0) throw notConfigured("no network has beaconApiUrls in the service's configuration")
    const looks = await Promise.all(withValidators.map((network) => look(network, pubkey, signal)))
    const [found, ...others] = looks.flatMap((one) => (one.knows === true ? [one.network] : []))
    if (found !== undefined && others.length > 0) {
      const names = [found, ...others].map(({ config }) => config.name)
      const detail = `several networks have a validator with this key: ${names.join(', ')}`
      throw validationFailed([{ pointer: '/params/pubkey', code: 'several-networks', detail }])
    }
    if (found !== undefined) return found
    for (const { knows, network } of looks) if (knows instanceof BeaconError) throw beaconUnavailable(network.config.name, knows)
    return undefined
  }
}

async function look(network: NetworkWithValidators, pubkey: Pubkey, signal: AbortSignal) {
  try {
    const { validators } = await network.validators.beacon.validators([pubkey], 'head', signal)
    return { network, knows: validators.has(pubkey) }
  } catch (error) {
    if (error instanceof BeaconError) return { network, knows: error }
    throw error
  }
}

const hasValidators = (network: EthereumNetwork): network is NetworkWithValidators => network.validators !== undefined

const notConfigured = (why: string) =>
  new ProblemError('chain-unavailable', `${why}: without a Beacon API nothing can be asked of validators`, {
    retryAfterSeconds: configurationRetrySeconds,
  })

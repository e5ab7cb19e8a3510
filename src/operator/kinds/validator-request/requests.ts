import { findCondition } from '../../../resources/conditions.ts'
import type { EthereumStake } from '../../../resources/ethereum-stake.ts'
import type { ValidatorExit } from '../../../resources/validator-exit.ts'
import type { ValidatorWithdrawal } from '../../../resources/validator-withdrawal.ts'
import type { KubeObject } from '../../kube/objects.ts'
import type { SagaCollection } from '../../saga-collection.ts'
import type { ValidatorRequestResource } from './deps.ts'
import { isAccepted, isRequestSettled } from './status.ts'
import type { FoundValidator } from './steps.ts'
import { validatorIn } from './target.ts'

type Request = ValidatorRequestResource & KubeObject
type Stake = EthereumStake & KubeObject

const keyOf = ({ network, pubkey }: FoundValidator): string => `${network}/${pubkey.toLowerCase()}`
const refOf = ({ metadata }: KubeObject): string => `${metadata.namespace ?? ''}/${metadata.name}`

/** Index of EthereumStakes that the look-ups need: their validators. */
export const stakesByValidator = ({ spec, status }: EthereumStake): readonly string[] =>
  status?.depositData === undefined ? [] : [keyOf({ network: spec.network, pubkey: status.depositData.pubkey })]

/** Indexes of ValidatorExits and ValidatorWithdrawals that the look-ups need. */
export const requestIndexers = {
  stake: ({ spec, metadata }: Request): readonly string[] =>
    spec.validator.stakeRef === undefined ? [] : [`${metadata.namespace}/${spec.validator.stakeRef.name}`],
  validator: ({ spec: { validator } }: Request): readonly string[] =>
    validator.network === undefined || validator.pubkey === undefined
      ? []
      : [keyOf({ network: validator.network, pubkey: validator.pubkey })],
  accepted: ({ status }: Request): readonly string[] =>
    isAccepted(status) && status?.validator !== undefined ? [status.validator.pubkey.toLowerCase()] : [],
}

/** Who has to do with one validator: its stakes, exits and withdrawals, by the caches. */
export interface RequestLookups {
  stake(namespace: string, name: string): EthereumStake | undefined
  /** Every exit and withdrawal, of all namespaces, whose validator this is by its spec or its stake. */
  requestsOn(validator: FoundValidator): Iterable<Request>
  /** Every EthereumStake, of all namespaces, whose status names this validator. */
  stakesOn(validator: FoundValidator): Iterable<Stake>
  /** Others on the validator of a request whose outcome is not known yet. */
  peersOf(request: Request): Iterable<Request>
  /** Requests whose outcome is not known yet and that name this stake. */
  waitingFor(stake: Stake): Iterable<Request>
  /** The stakes whose validator a request is about. */
  stakesOf(request: Request): Iterable<Stake>
  /** Whether an exit of this validator was accepted: its stake is looked at soon. */
  exitAccepted(pubkey: string): boolean
}

export function createRequestLookups(caches: {
  readonly stakes: SagaCollection<Stake>
  readonly exits: SagaCollection<ValidatorExit & KubeObject>
  readonly withdrawals: SagaCollection<ValidatorWithdrawal & KubeObject>
}): RequestLookups {
  const { stakes, exits, withdrawals } = caches
  const stake = (namespace: string, name: string) => stakes.cache.get(`${namespace}/${name}`)

  function* requestsOn(validator: FoundValidator): Generator<Request> {
    const refs = stakes.cache.byIndex('validator', keyOf(validator)).map(refOf)
    for (const { cache } of [exits, withdrawals]) {
      yield* cache.byIndex('validator', keyOf(validator))
      for (const ref of refs) yield* cache.byIndex('stake', ref)
    }
  }

  return {
    stake,
    requestsOn,
    stakesOn: (validator) => stakes.cache.byIndex('validator', keyOf(validator)),
    *peersOf({ spec, metadata }) {
      const validator = validatorIn({ spec, namespace: metadata.namespace ?? '' }, stake)
      if (validator === undefined) return
      for (const peer of requestsOn(validator)) if (peer.metadata.uid !== metadata.uid && !isRequestSettled(peer.status)) yield peer
    },
    *waitingFor(of) {
      for (const { cache } of [exits, withdrawals])
        for (const request of cache.byIndex('stake', refOf(of))) if (!isRequestSettled(request.status)) yield request
    },
    stakesOf: ({ status }) => (status?.validator === undefined ? [] : stakes.cache.byIndex('validator', keyOf(status.validator))),
    exitAccepted: (pubkey) => exits.cache.byIndex('accepted', pubkey.toLowerCase()).length > 0,
  }
}

/** What of a request matters to the others on its validator: where it changes, they look again. */
export const standing = (request: ValidatorRequestResource | undefined): string =>
  request === undefined
    ? ''
    : [
        isRequestSettled(request.status),
        findCondition(request.status?.conditions, 'Stalled')?.status,
        request.spec.suspend,
        request.spec.mode,
        request.metadata.deletionTimestamp,
        request.status?.transaction === undefined,
      ].join()

/** What of a stake matters to the requests that name it: where it changes, they look again. */
export const stakeStanding = (stake: EthereumStake | undefined): string =>
  [stake?.metadata.uid, stake?.status?.transaction?.state, stake?.status?.validator?.status, stake?.status?.depositData?.pubkey].join()

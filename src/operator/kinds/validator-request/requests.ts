import { findCondition } from '../../../resources/conditions.ts'
import type { EthereumStake } from '../../../resources/ethereum-stake.ts'
import { type ValidatorExit, validatorExit } from '../../../resources/validator-exit.ts'
import { type ValidatorWithdrawal, validatorWithdrawal } from '../../../resources/validator-withdrawal.ts'
import type { KubeObject } from '../../kube/objects.ts'
import { type AnySagaRuntime, createSagaRuntime, type KindOptions, type RuntimeDeps, type SagaRuntime } from '../../saga-runtime.ts'
import type { Owner } from '../../transactions/ledger.ts'
import { createValidatorRequestEffects } from './effects.ts'
import { validatorRequestKind } from './kind.ts'
import { isAccepted, isRequestSettled } from './status.ts'
import type { FoundValidator } from './steps.ts'
import { type ValidatorRequestDeps, type ValidatorRequestResource, validatorIn } from './target.ts'

type Stakes = SagaRuntime<EthereumStake & KubeObject>
/** Index of EthereumStakes that `createValidatorRequests` needs: their validators. */
export const stakesByValidator = ({ spec, status }: EthereumStake): readonly string[] =>
  status?.depositData === undefined ? [] : [keyOf({ network: spec.network, pubkey: status.depositData.pubkey })]

const keyOf = ({ network, pubkey }: FoundValidator): string => `${network}/${pubkey.toLowerCase()}`
const refOf = ({ metadata }: KubeObject): string => `${metadata.namespace ?? ''}/${metadata.name}`

export interface ValidatorRequests {
  readonly sagas: readonly AnySagaRuntime[]
  /** An EthereumStake has changed: those who wait for it look again. */
  stakeChanged(now: EthereumStake | undefined, before: EthereumStake | undefined): void
  /** Whether an exit of this validator was accepted: its stake is looked at soon. */
  exitAccepted(pubkey: string): boolean
  /** Whether the outcome of a ledger entry's request is known. */
  isSettled(entry: Owner): boolean
  /** Reconciles both kinds until aborted: what only the leader does. */
  lead(
    deps: Omit<ValidatorRequestDeps, 'stake' | 'requestsOn' | 'onRefusal'> & { readonly onRefusal: (kind: string, reason: string) => void },
    leading: AbortSignal,
  ): Promise<void>
}

/** ValidatorExit and ValidatorWithdrawal: their caches and queues, by validator, so that those on one validator follow one another. */
export function createValidatorRequests(runtime: RuntimeDeps, stakes: Stakes): ValidatorRequests {
  const stake = (namespace: string, name: string) => stakes.informer.get(`${namespace}/${name}`)
  const validatorOf = (request: ValidatorRequestResource) =>
    validatorIn({ spec: request.spec, namespace: request.metadata.namespace ?? '' }, stake)

  const options = <R extends ValidatorRequestResource & KubeObject>(definition: KindOptions<R>['definition']): KindOptions<R> => ({
    definition,
    signersOf: ({ spec }) => [spec.signer],
    isSettled: ({ status }) => isRequestSettled(status),
    indexers: {
      stake: ({ spec, metadata }) =>
        spec.validator.stakeRef === undefined ? [] : [`${metadata.namespace}/${spec.validator.stakeRef.name}`],
      validator: ({ spec: { validator } }) =>
        validator.network === undefined || validator.pubkey === undefined
          ? []
          : [keyOf({ network: validator.network, pubkey: validator.pubkey })],
      accepted: ({ status }) => (isAccepted(status) && status?.validator !== undefined ? [status.validator.pubkey.toLowerCase()] : []),
    },
    onChange: (now, before) => {
      if (standing(now) !== standing(before)) wakePeers(now ?? before)
      if (definition === validatorExit && isAccepted(now?.status) && !isAccepted(before?.status)) wakeStakes(now)
    },
  })
  const exits: SagaRuntime<ValidatorExit & KubeObject> = createSagaRuntime(runtime, options<ValidatorExit & KubeObject>(validatorExit))
  const withdrawals: SagaRuntime<ValidatorWithdrawal & KubeObject> = createSagaRuntime(
    runtime,
    options<ValidatorWithdrawal & KubeObject>(validatorWithdrawal),
  )

  function* requestsOn(validator: FoundValidator): Generator<ValidatorRequestResource & KubeObject> {
    const refs = stakes.informer.byIndex('validator', keyOf(validator)).map(refOf)
    for (const { informer } of [exits, withdrawals]) {
      yield* informer.byIndex('validator', keyOf(validator))
      for (const ref of refs) yield* informer.byIndex('stake', ref)
    }
  }
  const wake = (request: ValidatorRequestResource) =>
    (request.kind === validatorExit.kind ? exits : withdrawals).wake(refOf(request as KubeObject))
  function wakePeers(of: ValidatorRequestResource | undefined): void {
    const validator = of === undefined ? undefined : validatorOf(of)
    if (validator === undefined) return
    for (const peer of requestsOn(validator)) if (peer.metadata.uid !== of?.metadata.uid && !isRequestSettled(peer.status)) wake(peer)
  }
  function wakeStakes(of: ValidatorRequestResource | undefined): void {
    if (of?.status?.validator === undefined) return
    for (const one of stakes.informer.byIndex('validator', keyOf(of.status.validator))) stakes.wake(refOf(one))
  }

  return {
    sagas: [exits, withdrawals],
    stakeChanged(now, before) {
      const subject = now ?? before
      if (subject === undefined) return
      const seen = (one: EthereumStake | undefined) =>
        [one?.metadata.uid, one?.status?.transaction?.state, one?.status?.validator?.status, one?.status?.depositData?.pubkey].join()
      if (seen(now) === seen(before)) return
      for (const { informer, wake: wakeOne } of [exits, withdrawals])
        for (const request of informer.byIndex('stake', refOf(subject as KubeObject)))
          if (!isRequestSettled(request.status)) wakeOne(refOf(request))
    },
    exitAccepted: (pubkey) => exits.informer.byIndex('accepted', pubkey.toLowerCase()).length > 0,
    isSettled(entry) {
      const saga = entry.kind === exits.kind ? exits : entry.kind === withdrawals.kind ? withdrawals : undefined
      return saga?.owns(entry) === true && isRequestSettled(saga.informer.get(`${entry.namespace}/${entry.name}`)?.status)
    },
    async lead({ onRefusal, ...deps }, leading) {
      const effects = (kind: string) =>
        createValidatorRequestEffects({ ...deps, stake, requestsOn, onRefusal: (reason) => onRefusal(kind, reason) })
      await Promise.all([
        exits.lead(validatorRequestKind('ValidatorExit', deps), effects(exits.kind), leading),
        withdrawals.lead(validatorRequestKind('ValidatorWithdrawal', deps), effects(withdrawals.kind), leading),
      ])
    },
  }
}

/** What of a request matters to the others on its validator. */
const standing = (request: ValidatorRequestResource | undefined): string =>
  request === undefined
    ? ''
    : [
        isRequestSettled(request.status),
        findCondition(request.status?.conditions, 'Stalled')?.status,
        request.spec.suspend,
        request.metadata.deletionTimestamp,
        request.status?.transaction === undefined,
      ].join()

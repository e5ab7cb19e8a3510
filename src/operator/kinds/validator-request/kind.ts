import type { ValidatorRequestStatus } from '../../../resources/validator-request.ts'
import type { SagaKind } from '../../engine/reconcile.ts'
import type { KubeObject } from '../../kube/objects.ts'
import type { Networks } from '../../ports.ts'
import type { SignerLedger } from '../../transactions/signer-ledger.ts'
import { decideRequestDeletion } from './deletion.ts'
import { validatorRequestStatus } from './status.ts'
import {
  type RequestKindName,
  requestStep,
  undoRequest,
  type ValidatorRequestEffects,
  type ValidatorRequestView,
  validatorRequestSteps,
} from './steps.ts'
import type { ValidatorRequestResource } from './target.ts'

/** ValidatorExit or ValidatorWithdrawal for the engine: the one saga with what the engine must know besides. */
export function validatorRequestKind<R extends ValidatorRequestResource & KubeObject>(
  kind: RequestKindName,
  deps: { readonly ledger: SignerLedger; readonly networks: Networks },
): SagaKind<R, ValidatorRequestStatus, ValidatorRequestView, ValidatorRequestEffects> {
  const { ledger, networks } = deps
  const step = requestStep(kind)
  return {
    kind,
    steps: () => validatorRequestSteps,
    undo: undoRequest,
    statusOf: (resource) => resource.status,
    isSuspended: (resource) => resource.spec.suspend === true,
    view: (resource, origin, status) => ({ origin: { ...origin, kind }, spec: resource.spec, status }),
    say: ({ metadata, spec }, status, progress, now) => validatorRequestStatus({ kind, metadata, spec }, status, progress, now),
    decideDeletion: ({ metadata, spec }, status, origin) =>
      decideRequestDeletion(
        { kind, metadata },
        status,
        // Of whichever network: status may have lost it, and the stake may be gone.
        origin !== undefined && networks.names('Ethereum').some((network) => ledger.has(spec.signer, network, origin, step)),
      ),
    // A decided request stays what it is.
    observeEvery: () => undefined,
    observe: async (_resource, status) => status,
    onStalled: ({ spec }, origin, { transaction }) => {
      // Prepared but not sent: the next transaction of this signer may use the nonce, so that nobody waits behind a stalled resource.
      if (transaction !== undefined && transaction.broadcastHash === undefined)
        for (const network of networks.names('Ethereum')) ledger.release(spec.signer, network, origin, step)
    },
  }
}

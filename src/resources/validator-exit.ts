import { z } from 'zod'
import { API_VERSION, type KindDefinition, type Resource } from './meta.ts'
import {
  requestColumns,
  requestInstead,
  requestRules,
  requestSelectableFields,
  requestSpecFields,
  requestStatus,
  type ValidatorRequestStatus,
} from './validator-request.ts'

const spec = z.object(requestSpecFields)

export const validatorExit = {
  kind: 'ValidatorExit',
  plural: 'validatorexits',
  singular: 'validatorexit',
  shortNames: ['vexit', 'vexits'],
  scope: 'Namespaced',
  description:
    'ValidatorExit asks the consensus layer once (EIP-7002) to exit a validator in full: its whole balance goes to its withdrawal address. Ready means that the consensus layer has accepted it. Deleted before it is sent, it is cancelled; afterwards it cannot be taken back.',
  spec,
  status: requestStatus,
  rules: requestRules,
  instead: requestInstead,
  printerColumns: requestColumns([]),
  selectableFields: requestSelectableFields,
} as const satisfies KindDefinition

export type ValidatorExitSpec = z.output<typeof spec>
export type ValidatorExit = Resource<ValidatorExitSpec, ValidatorRequestStatus>
export const VALIDATOR_EXIT_API = { apiVersion: API_VERSION, kind: validatorExit.kind } as const

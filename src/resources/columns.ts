import type { PrinterColumn } from './meta.ts'

const ofReady = (field: 'status' | 'reason' | 'message'): string => `.status.conditions[?(@.type=="Ready")].${field}`

/** Where a resource stands. `means`: what Ready says of this kind. */
export const readyColumns = (means: string): readonly PrinterColumn[] => [
  { name: 'Phase', type: 'string', jsonPath: '.status.phase', description: 'Where it stands.' },
  { name: 'Ready', type: 'string', jsonPath: ofReady('status'), description: means },
  { name: 'Reason', type: 'string', jsonPath: ofReady('reason'), description: 'Why it is not ready.' },
]

/** The last columns of every kind. */
export const lastColumns: readonly PrinterColumn[] = [
  { name: 'Message', type: 'string', jsonPath: ofReady('message'), description: 'What happened and what to do.', priority: 1 },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Time since creation.' },
]

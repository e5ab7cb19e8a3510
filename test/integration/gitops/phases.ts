import type { Progress } from '../../../src/operator/engine/progress.ts'
import { ethereumStakeStatus } from '../../../src/operator/kinds/ethereum-stake/status.ts'
import { solanaStakeAuthorizationStatus } from '../../../src/operator/kinds/solana-stake/authorization-status.ts'
import { solanaStakeStatus } from '../../../src/operator/kinds/solana-stake/status.ts'
import { stakingSignerStatus } from '../../../src/operator/kinds/staking-signer/status.ts'
import { validatorRequestStatus } from '../../../src/operator/kinds/validator-request/status.ts'
import { tellsGeneration } from '../../../src/resources/crd.ts'
import { kinds } from '../../../src/resources/kinds.ts'
import type { Computed } from '../../cluster/kstatus.ts'

/** Each kind in each phase, as the operator itself writes its status, and what kstatus is to make of it. */
const now = new Date(Date.UTC(2030, 0, 1))
const hash = `0x${'aa'.repeat(32)}`
const pubkey = `0x${'22'.repeat(48)}`
const metadata = { name: 'one', namespace: 'team-a', uid: 'u', resourceVersion: '1', generation: 2 }
const object = (kind: string, spec: object, change: object = {}) => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind,
  metadata: { ...metadata, ...change },
  spec,
})

const step: Progress = { at: 'step', step: 'Transaction' }
const settled: Progress = { at: 'settled' }
const suspended: Progress = { at: 'suspended' }
const deleting: Progress = { at: 'deleting', message: 'It holds money.' }
const halted = (kind: 'wait' | 'stall'): Progress =>
  ({
    at: 'halted',
    step: 'Transaction',
    verdict: { kind, reason: kind === 'wait' ? 'FeeTooHigh' : 'NamespaceNotAllowed', message: 'It says why.', recheck: true, afterMs: 1 },
  }) as Progress
/** Verified up to the signature, and nothing more is asked for: spec.mode is Plan. */
const planned: Progress = {
  at: 'halted',
  step: 'Transaction',
  verdict: { kind: 'wait', reason: 'Planned', message: 'spec.mode is Plan, and nothing is signed.', afterMs: 1 },
}
const approval = (kind: 'wait' | 'stall'): Progress =>
  ({
    at: 'halted',
    step: 'Transaction',
    verdict: {
      kind,
      reason: kind === 'wait' ? 'ApprovalRequired' : 'ApprovalUnproven',
      message: 'kubectl staking approve says yes.',
      recheck: true,
      afterMs: 1,
    },
  }) as Progress
const gone = { deletionTimestamp: '2030-01-01T00:00:00Z', finalizers: ['staking.dev/holds-money'] }

export interface Row {
  readonly what: string
  readonly seen: object
  readonly is: Computed['status']
  /** What Argo CD makes of it, where kstatus has no word for that. */
  readonly health?: 'Suspended'
}
const asMode = (mode: 'Plan' | undefined) => (mode === undefined ? {} : { mode })
const healthOf = (progress: Progress): Pick<Row, 'health'> => (progress === planned ? { health: 'Suspended' } : {})
const rows: Row[] = []
export const phases: readonly Row[] = rows
type Status = Parameters<typeof ethereumStakeStatus>[1]
type RequestStatus = Parameters<typeof validatorRequestStatus>[1]
type SolanaStatus = Parameters<typeof solanaStakeStatus>[1]

const stakeSpec = { network: 'hoodi', amountEth: '32', withdrawalAddress: `0x${'11'.repeat(20)}`, signer: 'main' }
type Change = { readonly mode?: 'Plan' } & object
function stake(what: string, status: object, progress: Progress, is: Row['is'], { mode, ...change }: Change = {}): void {
  const resource = object('EthereumStake', { ...stakeSpec, ...asMode(mode) }, change)
  rows.push({
    what: `EthereumStake: ${what}`,
    seen: { ...resource, status: ethereumStakeStatus(resource as never, { conditions: [], ...status } as Status, progress, now) },
    is,
    ...healthOf(progress),
  })
}
const verified = { stakeId: 's', depositData: { pubkey, withdrawalCredentials: hash, amountGwei: '32000000000' }, verifiedRoot: hash }
const sent = { hash, nonce: 0, state: 'Broadcast', broadcastHash: hash }
const mined = { ...sent, minedHash: hash, blockNumber: 7 }
const confirmed = { ...verified, transaction: { ...mined, state: 'Confirmed' } }
const validator = (status: string) => ({ ...confirmed, validator: { pubkey, status } })
stake('pending', {}, { at: 'step', step: 'CreateStake' }, 'InProgress')
stake('created', verified, step, 'InProgress')
stake('waiting', verified, halted('wait'), 'InProgress')
stake('stalled', verified, halted('stall'), 'Failed')
stake('suspended before it is paid', verified, suspended, 'InProgress')
stake('planned', verified, planned, 'InProgress', { mode: 'Plan' })
stake('in mode Plan once it is paid', confirmed, planned, 'Current', { mode: 'Plan' })
stake('waiting for an approval', verified, approval('wait'), 'InProgress')
stake('with an approval that nothing proves', verified, approval('stall'), 'Failed')
stake('prepared', { ...verified, transaction: { hash, nonce: 0, state: 'Prepared' } }, step, 'InProgress')
stake('confirming', { ...verified, transaction: sent }, halted('wait'), 'InProgress')
stake('confirmed', confirmed, settled, 'Current')
stake('suspended once it is paid', confirmed, suspended, 'Current')
stake('active', validator('active_ongoing'), settled, 'Current')
stake('exiting', validator('active_exiting'), settled, 'Current')
stake('exited', validator('withdrawal_done'), settled, 'Current')
stake('slashed', validator('active_slashed'), settled, 'Failed')
stake('failed', { ...verified, transaction: { ...mined, state: 'Failed' } }, settled, 'Failed')
stake('front-run', { ...verified, transaction: { ...mined, state: 'FrontRun' } }, settled, 'Failed')
stake('deleting', confirmed, deleting, 'Terminating', gone)

for (const kind of ['ValidatorExit', 'ValidatorWithdrawal'] as const) {
  const spec = { validator: { stakeRef: { name: 's' } }, signer: 'main', ...(kind === 'ValidatorExit' ? {} : { amountGwei: '1500000000' }) }
  const request = (what: string, status: object, progress: Progress, is: Row['is'], { mode, ...change }: Change = {}): void => {
    const resource = object(kind, { ...spec, ...asMode(mode) }, change)
    rows.push({
      what: `${kind}: ${what}`,
      seen: {
        ...resource,
        status: validatorRequestStatus(resource as never, { conditions: [], ...status } as RequestStatus, progress, now),
      },
      is,
      ...healthOf(progress),
    })
  }
  const made = { validator: { network: 'hoodi', pubkey }, requestId: 'r', verifiedCalldata: hash }
  const final = { ...made, transaction: { ...mined, state: 'Confirmed' } }
  request('pending', {}, { at: 'step', step: 'CreateRequest' }, 'InProgress')
  request('waiting', made, halted('wait'), 'InProgress')
  request('stalled', made, halted('stall'), 'Failed')
  request('suspended', made, suspended, 'InProgress')
  request('planned', {}, planned, 'InProgress', { mode: 'Plan' })
  request('waiting for an approval', made, approval('wait'), 'InProgress')
  request('confirming', { ...made, transaction: sent }, halted('wait'), 'InProgress')
  request('mined, not accepted yet', final, { at: 'step', step: 'AwaitConsensus' }, 'InProgress')
  request('accepted', { ...final, consensus: { status: 'Accepted', at: now.toISOString() } }, settled, 'Current')
  request('dropped', { ...final, consensus: { status: 'Dropped', reason: 'over-available' } }, settled, 'Failed')
  request('reverted', { ...made, transaction: { ...mined, state: 'Failed' } }, settled, 'Failed')
  request('deleting', final, deleting, 'Terminating', gone)
}

const solanaSpec = {
  network: 'devnet',
  amountLamports: '5000000000',
  stakeAuthority: { signer: 'staker' },
  withdrawAuthority: { signer: 'withdrawer' },
  desiredState: 'Active',
}
function solana(
  what: string,
  status: object,
  progress: Progress,
  is: Row['is'],
  { desiredState = 'Active', mode, ...change }: { desiredState?: string } & Change = {},
): void {
  const resource = object('SolanaStake', { ...solanaSpec, desiredState, ...asMode(mode) }, change)
  rows.push({
    what: `SolanaStake: ${what}`,
    seen: { ...resource, status: solanaStakeStatus(resource as never, { conditions: [], ...status } as SolanaStatus, progress, now) },
    is,
    ...healthOf(progress),
  })
}
const account = { stakeId: 's', verifiedStakeId: 's', stakeAccount: 'A', voteAccount: 'V', stakeAuthority: 'S', withdrawAuthority: 'W' }
const signed = (state: string) => ({ txId: 't', signature: 'S1', broadcastSignature: 'S1', state, signatures: ['S1'], slot: 7 })
const funded = (status: string, more: object = {}) => ({
  ...account,
  transactions: { stake: signed('Confirmed'), ...more },
  protocol: {
    status,
    activeLamports: '5000000000',
    inactiveLamports: '0',
    epoch: 3,
    slot: 9,
    stakeAuthority: 'S',
    withdrawAuthority: 'W',
    voteAccount: 'V',
  },
})
solana('pending', {}, { at: 'step', step: 'CreateStake' }, 'InProgress')
solana('waiting', account, halted('wait'), 'InProgress')
solana('stalled', account, halted('stall'), 'Failed')
solana('suspended', account, suspended, 'InProgress')
solana('planned', account, planned, 'InProgress', { mode: 'Plan' })
solana('waiting for an approval', account, approval('wait'), 'InProgress')
solana('to be withdrawn, in mode Plan', funded('Inactive', { deactivation: signed('Confirmed') }), planned, 'InProgress', {
  desiredState: 'Withdrawn',
  mode: 'Plan',
})
solana('confirming', { ...account, transactions: { stake: signed('Broadcast') } }, halted('wait'), 'InProgress')
solana('activating', funded('Activating'), { at: 'step', step: 'AwaitActive' }, 'InProgress')
solana('active', funded('Active'), settled, 'Current')
solana('deactivating', funded('Deactivating', { deactivation: signed('Confirmed') }), { at: 'step', step: 'AwaitInactive' }, 'InProgress', {
  desiredState: 'Inactive',
})
solana('inactive', funded('Inactive', { deactivation: signed('Confirmed') }), settled, 'Current', { desiredState: 'Inactive' })
solana('deleting', funded('Active'), deleting, 'Terminating', gone)

for (const [what, status, progress, is, change] of [
  ['pending', {}, { at: 'step', step: 'VerifyHandOver' }, 'InProgress', {}],
  ['waiting for its stake', {}, halted('wait'), 'InProgress', {}],
  ['stalled', { stakeAccount: 'A', to: { stakeAuthority: 'S2' } }, halted('stall'), 'Failed', {}],
  ['suspended', { stakeAccount: 'A', to: { stakeAuthority: 'S2' } }, suspended, 'InProgress', {}],
  ['confirming', { stakeAccount: 'A', to: { stakeAuthority: 'S2' }, transaction: signed('Broadcast') }, halted('wait'), 'InProgress', {}],
  ['handed over', { stakeAccount: 'A', to: { stakeAuthority: 'S2' }, transaction: signed('Confirmed') }, settled, 'Current', {}],
  ['deleting', { stakeAccount: 'A', transaction: signed('Broadcast') }, deleting, 'Terminating', gone],
] as const) {
  const resource = object('SolanaStakeAuthorization', { stakeRef: { name: 's' }, stakeAuthority: { signer: 'next' } }, change)
  rows.push({
    what: `SolanaStakeAuthorization: ${what}`,
    seen: {
      ...resource,
      status: solanaStakeAuthorizationStatus(resource as never, { conditions: [], ...status } as never, progress as Progress, now),
    },
    is,
  })
}

const signerSpec = {
  chain: 'Ethereum',
  keyName: 'main',
  address: `0x${'11'.repeat(20)}`,
  policy: { allowedNamespaces: {}, maxPerTransaction: '32' },
}
type Facts = Parameters<typeof stakingSignerStatus>[1]
const facts = {
  key: { address: signerSpec.address },
  matches: true,
  duplicateOf: undefined,
  unreadable: undefined,
  networks: [],
  need: { controls: new Map(), awaits: new Set(), hasUsers: false },
  isInFlight: false,
} as unknown as Facts
const holding = (balance: bigint, needed: bigint) =>
  ({ ...facts, networks: [{ name: 'hoodi', funds: { balance, needed, at: now, isStale: false } }] }) as unknown as Facts
for (const [what, seen, is] of [
  ['ready', facts, 'Current'],
  ['short of what waits', holding(1n, 32n * 10n ** 18n), 'InProgress'],
  ['with another key than its address says', { ...facts, matches: false }, 'Failed'],
] as const) {
  const resource = object('StakingSigner', signerSpec)
  rows.push({ what: `StakingSigner: ${what}`, seen: { ...resource, status: stakingSignerStatus(resource as never, seen, now) }, is })
}

for (const { kind } of kinds.filter(tellsGeneration)) {
  rows.push({ what: `${kind}: not seen yet`, seen: { ...object(kind, {}), status: { observedGeneration: -1 } }, is: 'InProgress' })
  const ready = { type: 'Ready', status: 'True', reason: 'Succeeded', message: '' }
  rows.push({
    what: `${kind}: whose spec has changed since`,
    seen: { ...object(kind, {}), status: { observedGeneration: 1, conditions: [ready] } },
    is: 'InProgress',
  })
}

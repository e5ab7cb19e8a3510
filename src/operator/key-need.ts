import { sameHex } from '../lib/hex.ts'
import type { EthereumStake } from '../resources/ethereum-stake.ts'
import type { StakingSigner } from '../resources/staking-signer.ts'
import { type Caches, sagasOf } from './caches.ts'
import { twinOf } from './kinds/staking-signer/duplicate.ts'
import type { KeyNeed } from './kinds/staking-signer/need.ts'
import type { KubeObject } from './kube/objects.ts'
import { isOwner } from './owners.ts'
import type { Networks } from './ports.ts'
import { isClaimed } from './transactions/owner.ts'
import { type NamespaceFacts, rulesOutDeposit } from './transactions/policy.ts'
import { isOpen } from './transactions/protocol.ts'
import { ownerKey, type RecordObject, recordOf } from './transactions/store.ts'

export interface KeyNeedDeps {
  readonly caches: Caches
  readonly networks: Pick<Networks, 'names'>
  /** A namespace as policy sees it now. */
  readonly namespace: (name: string) => NamespaceFacts
}

type Stake = EthereumStake & KubeObject

/** Who needs a signer's key yet. */
export function createKeyNeed(deps: KeyNeedDeps): (signer: StakingSigner) => KeyNeed {
  const { stakes, solanaStakes, signers } = deps.caches
  const sagas = sagasOf(deps.caches)
  return (signer) => ({
    controls: (signer.spec.chain === 'Solana' ? solanaStakes : stakes).controlledBy(signer.spec.address),
    awaits: signer.spec.chain === 'Solana' ? new Set() : awaitedBy(signer.spec.address, deps),
    hasUsers: sagas.some((saga) => saga.hasUnsettled(signer.metadata.name)),
    hasTwin: twinOf(signer, signers.cache.list()) !== undefined,
  })
}

/**
 * Networks on which a deposit with this withdrawal address may become final yet. ▸ Whoever pays it: without the key of the withdrawal address it is lost. That it
 * never will is the log's word and not that of status, which others can write. What only somebody asks for counts where it is admitted: anybody may write a resource.
 */
function awaitedBy(address: string, deps: KeyNeedDeps): ReadonlySet<string> {
  const { stakes, signers, records } = deps.caches
  const found = new Set<string>()
  const mayBePaid = createMayBePaid(address, deps)
  const isAwaited = (stake: Stake): boolean => {
    const { metadata, spec, status } = stake
    // What this very key has to pay yet says that itself (KeyInUse); what it has signed is in the log.
    if (sameHex(signers.cache.get(spec.signer)?.spec.address ?? '', address)) return false
    const owner = ownerKey({ kind: stakes.kind, namespace: metadata.namespace ?? '', name: metadata.name })
    const deposits = records.cache.byIndex('owner', owner).filter(({ spec: { purpose } }) => purpose === 'Deposit')
    if (deposits.some(hasLandedOrMay)) return true
    const { state } = status?.transaction ?? {}
    if (state === undefined) return mayBePaid(stake)
    return (state !== 'Failed' && state !== 'FrontRun') || !deposits.some((record) => isVoid(record, metadata))
  }
  for (const stake of stakes.cache.byIndex('unconfirmed', address.toLowerCase()))
    if (!found.has(stake.spec.network) && isAwaited(stake)) found.add(stake.spec.network)
  const credentials = `${'0'.repeat(22)}${address.slice(2).toLowerCase()}`
  for (const record of records.cache.unsettled())
    if (!found.has(record.spec.network) && isDepositFor(credentials, record)) found.add(record.spec.network)
  return found
}

/** Whether a deposit of which nothing is signed may be yet, by the caches: on a network that there is, by a signer that there is and whose policy doesn't rule it out. */
function createMayBePaid(withdrawalAddress: string, { caches: { signers }, networks, namespace }: KeyNeedDeps): (stake: Stake) => boolean {
  const configured = new Set(networks.names('Ethereum'))
  /** By signer and namespace: many stakes of a namespace name one signer. */
  const known = new Map<string, boolean>()
  return ({ metadata, spec }) => {
    const signer = signers.cache.get(spec.signer)
    if (signer === undefined || !configured.has(spec.network)) return false
    const key = `${spec.signer}/${metadata.namespace}`
    const may = known.get(key) ?? !rulesOutDeposit(signer, { namespace: namespace(metadata.namespace ?? ''), withdrawalAddress })
    known.set(key, may)
    return may
  }
}

const hasLandedOrMay = (record: RecordObject): boolean =>
  record.status?.outcome?.is === 'Landed' || isOpen(recordOf(record)) || isClaimed(record)

const isDepositFor = (credentials: string, record: RecordObject): boolean =>
  record.spec.purpose === 'Deposit' && record.spec.call?.data.includes(credentials) === true && isOpen(recordOf(record))

/** It was made for this very resource, and came to nothing: it was reverted, or is part of somebody else's validator. */
const isVoid = ({ spec, status }: RecordObject, metadata: KubeObject['metadata']): boolean =>
  (status?.outcome?.is === 'Reverted' || status?.outcome?.is === 'FrontRun') && isOwner({ metadata } as KubeObject, spec.owner)

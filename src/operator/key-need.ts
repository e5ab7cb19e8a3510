import { sameHex } from '../lib/hex.ts'
import type { EthereumStake } from '../resources/ethereum-stake.ts'
import type { StakingSigner } from '../resources/staking-signer.ts'
import { type Caches, sagasOf } from './caches.ts'
import { twinOf } from './kinds/staking-signer/duplicate.ts'
import type { KeyNeed } from './kinds/staking-signer/need.ts'
import type { KubeObject } from './kube/objects.ts'
import { isOwner } from './owners.ts'
import { isOpen } from './transactions/protocol.ts'
import { ownerKey, type RecordObject, recordOf } from './transactions/store.ts'

/** Who needs a signer's key yet. */
export function createKeyNeed(caches: Caches): (signer: StakingSigner) => KeyNeed {
  const { stakes, solanaStakes, signers } = caches
  const sagas = sagasOf(caches)
  return (signer) => ({
    controls: (signer.spec.chain === 'Solana' ? solanaStakes : stakes).controlledBy(signer.spec.address),
    awaits: signer.spec.chain === 'Solana' ? new Set() : awaitedBy(signer.spec.address, caches),
    hasUsers: sagas.some((saga) => saga.hasUnsettled(signer.metadata.name)),
    hasTwin: twinOf(signer, signers.cache.list()) !== undefined,
  })
}

/**
 * Networks on which a deposit with this withdrawal address may become final yet. ▸ Whoever pays it: without the key of the withdrawal address it is lost. That it
 * never will is the log's word and not that of status, which others can write.
 */
function awaitedBy(address: string, { stakes, signers, records }: Caches): ReadonlySet<string> {
  const found = new Set<string>()
  const isAwaited = ({ metadata, spec, status }: EthereumStake & KubeObject): boolean => {
    // What this very key has to pay yet says that itself (KeyInUse); what it has signed is in the log.
    if (sameHex(signers.cache.get(spec.signer)?.spec.address ?? '', address)) return false
    const { state } = status?.transaction ?? {}
    if (state !== 'Failed' && state !== 'FrontRun') return true
    const owner = ownerKey({ kind: stakes.kind, namespace: metadata.namespace ?? '', name: metadata.name })
    const deposits = records.cache.byIndex('owner', owner).filter(({ spec: { purpose } }) => purpose === 'Deposit')
    return deposits.some((record) => record.status?.outcome?.is === 'Landed') || !deposits.some((record) => isVoid(record, metadata))
  }
  for (const stake of stakes.cache.byIndex('unconfirmed', address.toLowerCase()))
    if (!found.has(stake.spec.network) && isAwaited(stake)) found.add(stake.spec.network)
  const credentials = `${'0'.repeat(22)}${address.slice(2).toLowerCase()}`
  for (const record of records.cache.unsettled())
    if (!found.has(record.spec.network) && isDepositFor(credentials, record)) found.add(record.spec.network)
  return found
}

const isDepositFor = (credentials: string, record: RecordObject): boolean =>
  record.spec.purpose === 'Deposit' && record.spec.call?.data.includes(credentials) === true && isOpen(recordOf(record))

/** It was made for this very resource, and came to nothing: it was reverted, or is part of somebody else's validator. */
const isVoid = ({ spec, status }: RecordObject, metadata: KubeObject['metadata']): boolean =>
  (status?.outcome?.is === 'Reverted' || status?.outcome?.is === 'FrontRun') && isOwner({ metadata } as KubeObject, spec.owner)

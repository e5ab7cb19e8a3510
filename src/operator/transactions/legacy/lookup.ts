import type { ChainTransaction, EthereumChain, Hash } from '../../../chains/ethereum/chain.ts'
import { sameHex } from '../../../lib/hex.ts'
import type { InFlight } from '../../../resources/staking-signer.ts'
import type { TransactionOwner } from '../../../resources/staking-transaction.ts'
import { readOrigin } from '../../engine/origin.ts'
import type { EthereumNetwork } from '../../ports.ts'
import type { LegacySource } from './import.ts'
import type { LegacyRecord, LegacySigner } from './kind.ts'

/** Those of the hashes that a node shows. */
export async function shown(chain: Pick<EthereumChain, 'transaction'>, hashes: readonly Hash[], signal: AbortSignal) {
  const found: ChainTransaction[] = []
  for (const hash of hashes) {
    const transaction = await chain.transaction(hash, signal)
    if (transaction !== undefined) found.push(transaction)
  }
  return found
}

export type Lookup = ReturnType<typeof createLookup>

/** Finds out what a transaction of an earlier version was for. */
export function createLookup(sources: readonly LegacySource[]) {
  const sourceOf = (kind: string): LegacySource | undefined => sources.find((one) => one.kind === kind)

  /** The resource of an entry, if it is the very one. */
  async function resourceOf({ kind, namespace, name, originUid }: TransactionOwner, signal: AbortSignal) {
    const resource = await sourceOf(kind)?.read({ namespace, name }, signal)
    const origin = resource === undefined ? undefined : readOrigin(kind, resource.metadata)
    return resource !== undefined && origin?.is === 'own' && origin.origin.uid === originUid
      ? { resource, origin: origin.origin }
      : undefined
  }

  /** What a transaction that the ledger has was for; undefined where nobody can say any more. */
  async function recordFor(
    entry: Pick<InFlight, 'pubkey'> & { readonly hashes: readonly Hash[] },
    owner: TransactionOwner,
    network: EthereumNetwork,
    signer: LegacySigner,
    signal: AbortSignal,
  ): Promise<(LegacyRecord & { readonly isWhole: boolean }) | undefined> {
    const source = sourceOf(owner.kind)
    const isIts = (one: LegacyRecord | undefined): one is LegacyRecord =>
      one !== undefined && (entry.pubkey === undefined || sameHex(one.spec.subject, entry.pubkey))
    const asking = await resourceOf(owner, signal)
    const found = asking && (await source?.find(asking.resource, asking.origin, signer, signal))
    if (isIts(found)) return { ...found, isWhole: true }
    for (const call of await shown(network.chain, entry.hashes, signal)) {
      const made = sameHex(call.from, signer.spec.address) ? source?.ofCall(owner, call, network, signer) : undefined
      if (isIts(made)) return { ...made, isWhole: false }
    }
    return undefined
  }

  return { sourceOf, recordFor }
}

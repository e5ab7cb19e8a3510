import { LANE_FINALIZER } from '../../../resources/meta.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { stall } from '../../engine/verdict.ts'
import type { Cache } from '../../kube/collections.ts'
import { changeMetadata } from '../../kube/finalizers.ts'
import type { KubeObject } from '../../kube/objects.ts'
import type { ResourceClient } from '../../kube/resource-client.ts'
import { isOpen } from '../../transactions/solana/holders.ts'
import type { TransactionStore } from '../../transactions/store.ts'
import { isAlone, type KeyNeed, mayGo } from './need.ts'

type Signer = StakingSigner & KubeObject

export interface SignerHoldDeps {
  readonly client: ResourceClient<Signer>
  readonly cache: Pick<Cache<Signer>, 'get' | 'put'>
  readonly fieldManager: string
  readonly assertHeld: () => void
  readonly transactions: Pick<TransactionStore, 'unsettledOf'>
  readonly need: (signer: Signer) => KeyNeed
}

/** Whether something that its key has signed may land, on whatever chain: one that isn't configured any more counts too. */
const isInUse = ({ spec }: Pick<StakingSigner, 'spec'>, transactions: Pick<TransactionStore, 'unsettledOf'>): boolean =>
  transactions.unsettledOf(spec.address).some((record) => spec.chain === 'Ethereum' || isOpen(record))

export type SignerHold = ReturnType<typeof createSignerHold>

/**
 * The finalizer by which a signer stays, whoever deletes it, until what its key has signed is settled: the key is what cancels or replaces it. One whose key
 * alone can get at stakes stays until they are out or somebody confirms, so that nobody throws away such a key believing that it was rotated.
 */
export function createSignerHold(deps: SignerHoldDeps) {
  async function change(signer: Signer, given: Parameters<typeof changeMetadata>[2], signal: AbortSignal): Promise<Signer | undefined> {
    deps.assertHeld()
    const changed = await changeMetadata(deps.client, signer, given, signal, { fieldManager: deps.fieldManager })
    if (changed !== undefined) deps.cache.put(changed)
    return changed
  }
  const has = ({ metadata }: Signer): boolean => metadata.finalizers?.includes(LANE_FINALIZER) === true

  return {
    /** Before the first place is taken in its name, or the first signature made. @throws Halt where it is gone, or is being deleted */
    async take({ metadata: { name } }: Pick<StakingSigner, 'metadata'>, signal: AbortSignal): Promise<void> {
      const gone = () => stall('SignerNotFound', `StakingSigner ${name} is gone, or is being deleted: nothing new is signed with its key.`)
      const signer = deps.cache.get(name)
      if (signer === undefined || signer.metadata.deletionTimestamp !== undefined) throw gone()
      if (!has(signer) && (await change(signer, { addFinalizer: LANE_FINALIZER }, signal)) === undefined) throw gone()
    },

    /** At each look: one in use has it, and a deleted one that is settled goes. @returns undefined when it is gone */
    async settle(signer: Signer, signal: AbortSignal): Promise<Signer | undefined> {
      const isDeleted = signer.metadata.deletionTimestamp !== undefined
      const need = deps.need(signer)
      const inUse = isInUse(signer, deps.transactions) || (isAlone(need) && !mayGo(signer, need))
      if (inUse && !has(signer) && !isDeleted) return change(signer, { addFinalizer: LANE_FINALIZER }, signal)
      if (!inUse && has(signer) && isDeleted) return change(signer, { removeFinalizer: LANE_FINALIZER }, signal)
      return signer
    },
  }
}

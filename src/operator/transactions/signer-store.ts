import type { StakingSigner, StakingSignerStatus } from '../../resources/staking-signer.ts'

/** Signers as the log needs them. `writeStatus` is fenced by the given object's resourceVersion and throws the `conflict` verdict on 409. */
export interface SignerStore {
  get(name: string): StakingSigner | undefined
  list(): Iterable<StakingSigner>
  /** Past the cache. */
  read(name: string, signal: AbortSignal): Promise<StakingSigner | undefined>
  writeStatus(signer: StakingSigner, status: StakingSignerStatus, signal: AbortSignal): Promise<StakingSigner>
}

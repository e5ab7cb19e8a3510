import { BeaconError } from '../../chains/ethereum/beacon.ts'
import { ChainError } from '../../chains/ethereum/chain.ts'

/** Runs all, so many at a time; afterwards throws the first error, if any. */
export async function inParallel<T>(limit: number, items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const [first] = await failuresOf(limit, items, work)
  if (first !== undefined) throw first
}

/**
 * The same, where one that no node tells of is no trouble of the others': what a node fails by is thrown only where it fails for all. @returns the errors that are
 * not thrown
 */
export async function inParallelOrLater<T>(
  limit: number,
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<readonly (ChainError | BeaconError)[]> {
  const errors = await failuresOf(limit, items, work)
  const ofNodes = errors.filter((error) => error instanceof ChainError || error instanceof BeaconError)
  const [other] = errors.filter((error) => !(error instanceof ChainError) && !(error instanceof BeaconError))
  if (other !== undefined) throw other
  if (errors.length > 0 && errors.length === items.length) throw errors[0]
  return ofNodes
}

async function failuresOf<T>(limit: number, items: readonly T[], work: (item: T) => Promise<void>): Promise<readonly unknown[]> {
  const queue = [...items]
  const errors: unknown[] = []
  const worker = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
      await work(item).catch((error: unknown) => errors.push(error))
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker))
  return errors
}

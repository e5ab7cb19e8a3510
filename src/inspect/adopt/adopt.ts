import { existsSync, globSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/log.ts'
import { createNetworks } from '../../operator/networks/networks.ts'
import type { Networks } from '../../operator/ports.ts'
import { InspectError } from '../error.ts'
import { type ManifestFile, readManifests, type StakeManifest } from './manifests.ts'

/** What comes of one manifest. */
export interface Adoption {
  readonly resource: string
  readonly is: 'adopts' | 'adopted already' | 'new' | 'unclear'
  readonly says: string
}

/** Stakes of the staking API under a reference: of those that were cancelled none. Undefined for a network that is not configured. */
export type StakesNamed = (stake: StakeManifest, signal: AbortSignal) => Promise<readonly { readonly stakeId: string }[] | undefined>

/**
 * Has every stake of the manifests take over the stake that a resource of its place has made before. Nothing is sent; the operator verifies what is adopted
 * against the spec and the chain all the same. @throws StakingApiError
 */
export async function adoptAll(files: readonly ManifestFile[], named: StakesNamed, signal: AbortSignal): Promise<readonly Adoption[]> {
  const adoptions: Adoption[] = []
  for (const { path, stakes } of files)
    for (const stake of stakes)
      adoptions.push({ resource: `${path}: ${stake.kind} ${stake.namespace}/${stake.name}`, ...(await adoptionOf(stake, named, signal)) })
  return adoptions
}

async function adoptionOf(stake: StakeManifest, named: StakesNamed, signal: AbortSignal): Promise<Omit<Adoption, 'resource'>> {
  if (stake.adopts !== undefined) return { is: 'adopted already', says: `it adopts ${stake.adopts}` }
  const found = await named(stake, signal)
  if (found === undefined) return { is: 'unclear', says: `the networks file has no network ${stake.network} of its chain` }
  const [one, other] = found
  if (one === undefined) return { is: 'new', says: `the staking API knows no stake of ${stake.reference}` }
  if (other !== undefined)
    return {
      is: 'unclear',
      says: `the staking API has several: ${found.map(({ stakeId }) => stakeId).join(', ')}. Set spec.adopt.stakeId to the right one by hand`,
    }
  stake.adopt(one.stakeId)
  return { is: 'adopts', says: `it takes over ${one.stakeId}` }
}

/** By the staking API of each network. */
export const stakesNamed =
  (networks: Networks): StakesNamed =>
  async ({ kind, network, reference }, signal) => {
    if (kind === 'EthereumStake') {
      const api = networks.ethereum(network)?.api
      if (api === undefined) return undefined
      const all = (await api.ethereumStakesNamed?.(reference, signal)) ?? []
      return all.filter((one) => one.network === network && one.transaction.status !== 'cancelled')
    }
    const api = networks.solana(network)?.api
    if (api === undefined) return undefined
    return ((await api.solanaStakesNamed?.(reference, signal)) ?? []).filter(
      (one) => one.network === network && one.cancelledAt === undefined,
    )
  }

/** Files of manifests: those that are named, and all YAML below the folders that are. @throws InspectError */
export function readFiles(paths: readonly string[], namespace: string): readonly ManifestFile[] {
  const files = paths.flatMap((path) => {
    if (!existsSync(path)) throw new InspectError(`${path} is not there: name a file of manifests, or a folder, with -f`)
    return statSync(path).isDirectory()
      ? globSync('**/*.{yaml,yml}', { cwd: path })
          .toSorted()
          .map((file) => join(path, file))
      : [path]
  })
  if (files.length === 0) throw new InspectError(`there are no *.yaml files in ${paths.join(', ')}`)
  return [...new Set(files)].map((file) => readManifests(readFileSync(file, 'utf8'), file, namespace))
}

/** Writes a file whole, or leaves it as it was. */
export function write({ path, text }: ManifestFile): void {
  const beside = `${path}.adopting`
  writeFileSync(beside, text())
  renameSync(beside, path)
}

/** @throws InspectError, NetworksFileError, StakingApiError */
export async function adoptFiles(
  options: {
    readonly paths: readonly string[]
    readonly namespace: string
    readonly networksFile: string
    readonly log: Logger
    readonly userAgent: string
  },
  signal: AbortSignal,
): Promise<{ readonly files: readonly ManifestFile[]; readonly adoptions: readonly Adoption[] }> {
  const files = readFiles(options.paths, options.namespace)
  const networks = await createNetworks(options.networksFile, { clock: systemClock, log: options.log, userAgent: options.userAgent })
  try {
    return { files, adoptions: await adoptAll(files, stakesNamed(networks), signal) }
  } finally {
    await networks.close()
  }
}

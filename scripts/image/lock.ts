/** A part of a package-lock.json (version 3): what some packages need, at the versions, places and hashes of the whole. */

export interface LockedPackage {
  readonly version?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
  readonly [field: string]: unknown
}
export interface Lock {
  readonly name: string
  readonly version: string
  readonly lockfileVersion: number
  readonly packages: Readonly<Record<string, LockedPackage>>
}
export interface Manifest {
  readonly name: string
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
  readonly [field: string]: unknown
}

/** The lock of a package that depends on the manifest's dependencies and nothing else. @throws Error when the whole lacks one */
export function partOfLock(whole: Lock, manifest: Manifest): Lock {
  const { name, version, dependencies } = manifest
  const reached = new Map<string, LockedPackage>()
  const open: { readonly from: string; readonly name: string; readonly mustBeThere: boolean }[] = Object.keys(dependencies).map((one) => ({
    from: '',
    name: one,
    mustBeThere: true,
  }))
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const place = placeOf(whole, next.from, next.name)
    if (place === undefined) {
      if (next.mustBeThere) throw new Error(`package-lock.json has no ${next.name}, which ${next.from || 'the image'} needs`)
      continue
    }
    if (reached.has(place)) continue
    const found = whole.packages[place] ?? {}
    const { dev: _dev, devOptional: _devOptional, ...kept } = found
    reached.set(place, kept)
    open.push(...needsOf(found).map((need) => ({ from: place, ...need })))
  }
  const packages = [...reached].toSorted(([a], [b]) => (a < b ? -1 : 1))
  return {
    name,
    version,
    lockfileVersion: whole.lockfileVersion,
    packages: { '': { name, version, dependencies }, ...Object.fromEntries(packages) },
  }
}

/** What npm installs for a package. An optional peer is left to whoever depends on it by itself. */
function needsOf(one: LockedPackage): { readonly name: string; readonly mustBeThere: boolean }[] {
  const optional = Object.keys(one.optionalDependencies ?? {})
  const peers = Object.keys(one.peerDependencies ?? {}).filter((peer) => one.peerDependenciesMeta?.[peer]?.optional !== true)
  return [
    ...[...Object.keys(one.dependencies ?? {}), ...peers].map((name) => ({ name, mustBeThere: !optional.includes(name) })),
    ...optional.map((name) => ({ name, mustBeThere: false })),
  ]
}

/** Where Node finds a package that one at `from` imports: beside it, or in a folder above. */
function placeOf({ packages }: Lock, from: string, name: string): string | undefined {
  for (let folder = from; ; folder = above(folder)) {
    const place = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`
    if (place in packages) return place
    if (folder === '') return undefined
  }
}

const above = (place: string): string => place.slice(0, Math.max(0, place.lastIndexOf('node_modules/') - 1))

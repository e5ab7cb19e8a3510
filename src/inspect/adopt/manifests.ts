import { type Document, isMap, parseAllDocuments } from 'yaml'
import { externalReference, type Place } from '../../operator/engine/origin.ts'
import { API_VERSION } from '../../resources/meta.ts'
import { InspectError } from '../error.ts'

/** A stake in a file of manifests. */
export interface StakeManifest extends Place {
  readonly kind: 'EthereumStake' | 'SolanaStake'
  readonly network: string
  /** spec.adopt.stakeId, where it is there already. */
  readonly adopts: string | undefined
  /** What the staking API knows the stake by, which a resource of this place has made. */
  readonly reference: string
  /** Writes spec.adopt; comments and order stay. */
  adopt(stakeId: string): void
}

/** A file of manifests, as it stands. */
export interface ManifestFile {
  readonly path: string
  readonly stakes: readonly StakeManifest[]
  /** The file's text with what was changed. */
  text(): string
}

/** @param namespace of manifests that name none. @throws InspectError that names file and line */
export function readManifests(text: string, path: string, namespace: string): ManifestFile {
  const documents = parseAllDocuments(text)
  if (!Array.isArray(documents)) return { path, stakes: [], text: () => text }
  for (const { errors } of documents) {
    const [error] = errors
    if (error !== undefined)
      throw new InspectError(`${path} is not YAML${error.linePos === undefined ? '' : ` (line ${error.linePos[0].line})`}`)
  }
  return {
    path,
    stakes: documents.flatMap((one) => stakeOf(one as Document, namespace)),
    // As the file has it, so that a diff shows what was adopted and nothing else.
    text: () => documents.map((one) => one.toString({ lineWidth: 0, flowCollectionPadding: !/[[{][^\s\]}]/.test(text) })).join(''),
  }
}

function stakeOf(document: Document, namespace: string): readonly StakeManifest[] {
  const { contents } = document
  if (!isMap(contents) || document.get('apiVersion') !== API_VERSION) return []
  const kind = document.get('kind')
  if (kind !== 'EthereumStake' && kind !== 'SolanaStake') return []
  const text = (...path: readonly string[]): string | undefined => {
    const value: unknown = document.getIn(path)
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const name = text('metadata', 'name')
  const network = text('spec', 'network')
  if (name === undefined || network === undefined) return []
  const place = { kind, namespace: text('metadata', 'namespace') ?? namespace, name } as const
  return [
    {
      ...place,
      network,
      adopts: text('spec', 'adopt', 'stakeId'),
      reference: externalReference(place),
      adopt: (stakeId) => document.setIn(['spec', 'adopt', 'stakeId'], stakeId),
    },
  ]
}

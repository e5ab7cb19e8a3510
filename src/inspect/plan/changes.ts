import type { FieldChange } from './planned.ts'

type Fields = Readonly<Record<string, unknown>>
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)
/** The same JSON, in whatever order its fields stand. */
const sorted = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(sorted)
    : isFields(value)
      ? Object.fromEntries(
          Object.keys(value)
            .toSorted()
            .map((name) => [name, sorted(value[name])]),
        )
      : value
const same = (a: unknown, b: unknown): boolean => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b))

/** What differs from one value to another, field by field; lists are compared whole. */
export function changesIn(before: unknown, after: unknown, path: string): readonly FieldChange[] {
  if (same(before, after)) return []
  if (!isFields(before) || !isFields(after))
    return [{ field: path, ...(before === undefined ? {} : { from: before }), ...(after === undefined ? {} : { to: after }) }]
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted()
  return names.flatMap((name) => changesIn(before[name], after[name], path === '' ? name : `${path}.${name}`))
}

/** What applying changes of an object: its spec, labels and annotations. The rest is the API server's. */
export function changesOf(before: { readonly spec?: unknown; readonly metadata?: unknown }, after: typeof before): readonly FieldChange[] {
  const metadata = ({ metadata }: typeof before): Fields => {
    const { labels = {}, annotations = {} } = isFields(metadata) ? metadata : {}
    // kubectl's own note of what was applied says nothing.
    const { 'kubectl.kubernetes.io/last-applied-configuration': _applied, ...told } = isFields(annotations) ? annotations : {}
    return { labels, annotations: told }
  }
  return [...changesIn(metadata(before), metadata(after), 'metadata'), ...changesIn(before.spec, after.spec, 'spec')]
}

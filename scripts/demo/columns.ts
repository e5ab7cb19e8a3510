/** Left out where a terminal can't hold all, the first of them first: what a reader of the demo misses least. */
const LEAST = ['NAME', 'SIGNER', 'AGE', 'NAMESPACE']

/** A table of kubectl's without the names, which are long and say little, and as narrow as it goes; in a terminal, without what it can't hold. */
export function columnsOf(width: number | undefined, table: string): string {
  const [head = '', ...rows] = table.trimEnd().split('\n')
  const starts = [...head.matchAll(/\S+/g)].map(({ index }) => index)
  const cellsOf = (line: string): readonly string[] => starts.map((start, index) => line.slice(start, starts[index + 1]).trim())
  const lines = [head, ...rows].map(cellsOf)
  const render = (left: readonly string[]): string => {
    const kept = cellsOf(head).flatMap((name, index) => (left.includes(name) ? [] : [index]))
    const widths = kept.map((index) => Math.max(...lines.map((cells) => (cells[index] ?? '').length)))
    return lines
      .map((cells) =>
        kept
          .map((index, at) => (cells[index] ?? '').padEnd(widths[at] ?? 0))
          .join('  ')
          .trimEnd(),
      )
      .join('\n')
  }
  const widest = (text: string): number => Math.max(...text.split('\n').map(({ length }) => length))
  let text = render(LEAST.slice(0, 1))
  for (let count = 2; width !== undefined && widest(text) > width && count <= LEAST.length; count++) text = render(LEAST.slice(0, count))
  return text
}

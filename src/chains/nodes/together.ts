/** A failure of one node, by its number in the configuration, from 1. */
export interface NodeFailure<E> {
  readonly node: number
  readonly error: E
}

const maxEach = 240

/**
 * What is wrong with each node, where they don't all fail alike: one that refuses the key is not to be hidden by another that is down. Undefined where one
 * text says it of all.
 * @param brief A short text for one node that does not change from one try to the next, such as "gives no usable answer now".
 */
export function tellEach<E extends Error>(
  failures: readonly NodeFailure<E>[],
  { network, kind = 'node', brief }: { readonly network: string; readonly kind?: string; readonly brief: (error: E) => string | undefined },
): string | undefined {
  const texts = failures.map(({ error }) => brief(error) ?? error.message)
  if (new Set(texts).size < 2) return undefined
  const inOrder = failures.map(({ node }, index) => ({ node, text: texts[index] ?? '' })).toSorted((a, b) => a.node - b.node)
  return inOrder
    .map(({ node, text }) => {
      const name = `${kind} ${node} of ${network}`
      const said = text.startsWith(name) ? text : `${name} ${text.replace(/^the (?:beacon )?node (?=\S)/, '')}`
      return said.length > maxEach ? `${said.slice(0, maxEach)}…` : said
    })
    .join('; ')
}

/** How soon nodes are asked again of which one refuses us and another may answer by then. */
export const someMayAnswerMs = 10_000

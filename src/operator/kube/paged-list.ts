import { isAnswerTooLarge, isTimeout, KubeError } from './errors.ts'
import type { KubeLog } from './log.ts'
import { cacheKey, type KubeObject } from './objects.ts'
import type { PageSize } from './page-size.ts'
import type { ListOptions, ListPage, ResourceClient } from './resource-client.ts'

export interface PagedListOptions<T extends KubeObject> {
  readonly client: Pick<ResourceClient<T>, 'definition' | 'list'>
  readonly scope: Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'>
  /** Outlives a list: the next one begins with what the last one has learnt. */
  readonly pageSize: PageSize
  readonly log: KubeLog
}

/** Lists page by page, each of as many objects as make a moderate answer. The pages are one snapshot, taken at the list's resource version. */
export function createPagedList<T extends KubeObject>({ client, scope, pageSize, log }: PagedListOptions<T>) {
  const resource = client.definition.plural

  /** @throws KubeError `AnswerTooLarge` when not even one object is taken */
  async function nextPage(token: string | undefined, after: string, signal: AbortSignal): Promise<ListPage<T>> {
    // Ends: each turn asks for fewer objects, and one is the last.
    for (;;) {
      const { limit, maxBytes } = pageSize
      try {
        const asked = { ...scope, limit, ...(maxBytes !== undefined && { maxBytes }), ...(token !== undefined && { continue: token }) }
        const page = await client.list(asked, signal)
        pageSize.took(page.items.length, page.bytes)
        return page
      } catch (error) {
        if (!isAnswerTooLarge(error)) {
          // A server that gives no answer in time may have too much to put together: the next attempt asks for less.
          if (isTimeout(error)) pageSize.shrink()
          throw error
        }
        if (!pageSize.shrink())
          throw new KubeError(error.status, error.reason, `list ${resource}: the object after "${after}" is too large: ${error.message}`)
        log.debug({ resource, from: limit, to: pageSize.limit }, 'a page of the list is too large: asking for a smaller one')
      }
    }
  }

  return async function* pages(signal: AbortSignal): AsyncGenerator<ListPage<T>, void> {
    let token: string | undefined
    let last = ''
    do {
      const page: ListPage<T> = await nextPage(token, last, signal)
      yield page
      const end = page.items.at(-1)
      if (end !== undefined) last = cacheKey(end.metadata)
      token = page.continue
    } while (token !== undefined)
  }
}

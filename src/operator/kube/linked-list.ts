export interface Link<T> {
  readonly item: T
  before: Link<T> | undefined
  after: Link<T> | undefined
}

/** First in, first out, with removal from the middle; each operation takes constant time. */
export interface LinkedList<T> {
  push(item: T): Link<T>
  /** A link that is in this list. */
  remove(link: Link<T>): void
  readonly first: Link<T> | undefined
}

export function createLinkedList<T>(): LinkedList<T> {
  let first: Link<T> | undefined
  let last: Link<T> | undefined
  return {
    push(item) {
      const link: Link<T> = { item, before: last, after: undefined }
      if (last === undefined) first = link
      else last.after = link
      last = link
      return link
    },
    remove(link) {
      if (link.before === undefined) first = link.after
      else link.before.after = link.after
      if (link.after === undefined) last = link.before
      else link.after.before = link.before
    },
    get first() {
      return first
    },
  }
}

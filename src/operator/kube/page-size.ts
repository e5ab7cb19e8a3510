/** How many objects the next page of a list asks for, so that no answer is large, whatever stands in the objects. */
export interface PageSize {
  readonly limit: number
  /** How many bytes of the next answer are taken. */
  readonly maxBytes: number | undefined
  /** A page came: the next one asks for as many as would have filled `targetBytes`, but never for more than twice as many. */
  took(objects: number, bytes: number): void
  /** The page was refused as too large. False when it was one of a single object: there is no smaller one. */
  shrink(): boolean
}

export interface PageSizeOptions {
  /** Of the first page. */
  readonly start?: number
  readonly most?: number
  readonly targetBytes?: number
  /** What is taken of a page of several objects. A page of one is bound only by what is taken of any answer, so that no object is too large by itself. */
  readonly maxBytes?: number
}

const MiB = 1024 * 1024

export function createPageSize({ start = 100, most = 500, targetBytes = 2 * MiB, maxBytes = 4 * MiB }: PageSizeOptions = {}): PageSize {
  let limit = Math.min(start, most)
  return {
    get limit() {
      return limit
    },
    get maxBytes() {
      return limit === 1 ? undefined : maxBytes
    },
    took(objects, bytes) {
      if (objects === 0) return
      const fitting = Math.floor(targetBytes / (bytes / objects))
      limit = Math.max(1, Math.min(fitting, limit * 2, most))
    },
    shrink() {
      if (limit === 1) return false
      limit = Math.max(1, Math.floor(limit / 8))
      return true
    },
  }
}

/** A failure of one call that tells the status: 401, 402 or 403. */
interface Denied extends Error {
  readonly denied: number
}

/** Whether a call was answered with 401, 402 or 403: its method is not allowed here, or nothing is. */
export const isDenied = (error: unknown): error is Denied => error instanceof Error && 'denied' in error && typeof error.denied === 'number'

const isNotFound = (error: unknown): boolean => error instanceof Error && 'isNotFound' in error && error.isNotFound === true

/**
 * What is said of a node that answers so even to the question which chain it serves, which every node answers: it lets us in for nothing at all, or is not
 * there (404). Undefined for any other failure.
 * @param node By its number, from 1: its URL is often the key.
 */
export const accessDenied = (error: unknown, node: string, asked: string): string | undefined =>
  isDenied(error)
    ? `${node} answers ${error.denied} even to ${asked}: the key in its URL is wrong, expired or used up, or it does not allow this client (by hosts or addresses)`
    : isNotFound(error)
      ? `${node} answers 404 to every request: check the URL's path`
      : undefined

import { answerTooLarge } from './errors.ts'

const NEWLINE = 0x0a

/**
 * Cuts a stream of bytes at newlines; each byte is looked at once, and a line is decoded once, whole, however many pieces it came in.
 * @throws KubeError `AnswerTooLarge` for a line of more than `maxBytes`, as soon as that shows: no more than that is ever held.
 */
export function createLineSplitter(onLine: (line: string) => void, maxBytes: number): (chunk: Buffer) => void {
  let pieces: Buffer[] = []
  let held = 0
  const assertTaken = (more: number): void => {
    if (held + more > maxBytes) throw answerTooLarge(maxBytes)
  }
  return (chunk) => {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const last = chunk.subarray(start, end)
      assertTaken(last.length)
      start = end + 1
      const line = pieces.length === 0 ? last.toString('utf8') : Buffer.concat([...pieces, last]).toString('utf8')
      pieces = []
      held = 0
      if (line !== '') onLine(line)
    }
    if (start === chunk.length) return
    assertTaken(chunk.length - start)
    pieces.push(chunk.subarray(start))
    held += chunk.length - start
  }
}

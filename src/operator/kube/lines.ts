const NEWLINE = 0x0a

/** Cuts a stream of bytes at newlines; each byte is looked at once, and a line is decoded once, whole, however many pieces it came in. */
export function createLineSplitter(onLine: (line: string) => void): (chunk: Buffer) => void {
  let pieces: Buffer[] = []
  return (chunk) => {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const last = chunk.subarray(start, end)
      start = end + 1
      const line = pieces.length === 0 ? last.toString('utf8') : Buffer.concat([...pieces, last]).toString('utf8')
      pieces = []
      if (line !== '') onLine(line)
    }
    if (start < chunk.length) pieces.push(chunk.subarray(start))
  }
}

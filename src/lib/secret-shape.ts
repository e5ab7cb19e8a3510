/**
 * What is wrong with the content of a file that holds a secret, as far as its shape tells: a sentence to end a message with, or nothing. It quotes none of the
 * content, and says of it only what anybody who wrote it would see.
 */
export function wrongShape(content: Buffer): string {
  if (
    content.includes(0) ||
    content.subarray(0, 2).equals(Buffer.from([0xff, 0xfe])) ||
    content.subarray(0, 2).equals(Buffer.from([0xfe, 0xff]))
  )
    return ': it is UTF-16, or binary; save it as plain text'
  if (content.subarray(0, 3).equals(Buffer.from([0xef, 0xbb, 0xbf])))
    return ': it begins with a byte order mark, which some editors add; save it without'
  const text = content.toString('latin1').trim()
  const lines = text.split(/\r?\n/).length
  if (text.startsWith('[')) return ': it is a list of numbers, as solana-keygen writes it'
  if (lines > 1) return `: it has ${lines} lines`
  if (/^(["'`]).*\1$/.test(text)) return ': it is in quotes; leave them out'
  if (text.startsWith('0X')) return ': it begins with 0X; write 0x, or neither'
  if (/^bearer\s/i.test(text)) return ': it begins with the word Bearer; leave that out'
  if (/^[A-Za-z_]\w*\s*[=:]\s*\S/.test(text)) return ': a name stands before it; leave that out'
  if (/\s/.test(text)) return ': it has blanks in it'
  if (/^(0x)?[0-9a-fA-F]{64}$/.test(text)) return ': it has 64 hex digits, as a key of Ethereum has'
  if (/^(0x)?[0-9a-fA-F]+$/.test(text)) return `: it has ${text.replace(/^0x/, '').length} hex digits`
  return ''
}

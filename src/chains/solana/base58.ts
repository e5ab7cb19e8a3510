const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const digits: ReadonlyMap<string, bigint> = new Map([...alphabet].map((character, index) => [character, BigInt(index)]))

/** Longest text that is decoded by default: 64 bytes give at most 88 characters. Longer input is refused unread, since decoding is quadratic. */
const defaultMax = 128

/** Base58 as Bitcoin and Solana write it: a leading zero byte is a leading `1`. */
export function encodeBase58(bytes: Uint8Array): string {
  let value = bytes.length === 0 ? 0n : BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
  let text = ''
  while (value > 0n) {
    text = alphabet.charAt(Number(value % 58n)) + text
    value /= 58n
  }
  const zeros = bytes.findIndex((byte) => byte !== 0)
  return '1'.repeat(zeros === -1 ? bytes.length : zeros) + text
}

/** The bytes, or undefined for what is not base58 (also: empty, white space, longer than `max` characters). Never throws, never quotes. */
export function decodeBase58(text: string, max: number = defaultMax): Uint8Array | undefined {
  if (text === '' || text.length > max) return undefined
  let value = 0n
  for (const character of text) {
    const digit = digits.get(character)
    if (digit === undefined) return undefined
    value = value * 58n + digit
  }
  const hex = value === 0n ? '' : value.toString(16)
  const body = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex')
  const zeros = /^1*/.exec(text)?.[0].length ?? 0
  return Uint8Array.from([...new Uint8Array(zeros), ...body])
}

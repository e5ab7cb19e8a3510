import type { Words } from './words.ts'

/** How the next text is written, by the first character: the rest of what it says follows. */
const Head = { literal: 0, prefixedHex: 1, hex: 2, uuid: 3, frame: 4, word: 5, earlier: 6, time: 7 } as const
/** The first texts of the object, and of the dictionary, have a character of their own. */
const FIRST_EARLIER = 16
const FIRST_WORD = 96
const END = 256

/** Shorter texts are not taken apart. */
const SHORTEST_FRAME = 24
/** What differs in texts that are otherwise the same: hashes, keys, ids, numbers. */
const DIFFERING = /0x[0-9a-f]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16,}|\d+/gi
const HOLE = '\0'

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
/** Whole bytes in hex, of which each takes one character instead of two. */
const HEX = /^(?:0x)?(?:[0-9a-f]{2}){8,}$/

/** RFC 3339 in seconds, as the API server writes times: each object has its own, and several. From 1970 on. */
const TIME = /^(?:19[7-9]|[2-9]\d\d)\d-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$/
const timeOf = (seconds: number): string => `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`
/** Seconds since 1970; undefined for what is no time, or no day of its month. */
function secondsIn(text: string): number | undefined {
  if (text.length !== 20 || !TIME.test(text)) return undefined
  const at = (from: number): number => Number(text.slice(from, from + 2))
  const day = at(8)
  const ms = Date.UTC(Number(text.slice(0, 4)), at(5) - 1, day, at(11), at(14), at(17))
  const date = new Date(ms)
  return date.getUTCDate() === day && date.getUTCMonth() === at(5) - 1 ? ms / 1000 : undefined
}

/** Decimal digits of 128: the last has no mark. */
function varint(value: number): string {
  let text = ''
  let rest = value
  for (; rest > 127; rest = Math.floor(rest / 128)) text += String.fromCharCode(128 + (rest % 128))
  return text + String.fromCharCode(rest)
}

const bytesOf = (hex: string): string => Buffer.from(hex, 'hex').toString('latin1')
const hexOf = (bytes: string): string => Buffer.from(bytes, 'latin1').toString('hex')

/**
 * Writes texts one after the other: one that stood there before by its place, one that many objects have by its number, one that differs from others in an id or
 * a number by what is the same and by what differs.
 * @param numberOf the number of a text in the dictionary
 * @param given texts that count as having stood there before
 */
export function createWriter(numberOf: (text: string) => number | undefined, given: readonly string[]) {
  const parts: string[] = []
  const earlier = new Map<string, number>()
  for (const text of given) if (!earlier.has(text)) earlier.set(text, earlier.size)

  const short = (head: number, first: number, end: number, at: number): void => {
    parts.push(first + at < end ? String.fromCharCode(first + at) : String.fromCharCode(head) + varint(at))
  }

  /** As bytes, where it is nothing but hex. */
  function bytes(text: string): boolean {
    if (UUID.test(text)) parts.push(String.fromCharCode(Head.uuid), bytesOf(text.replaceAll('-', '')))
    else if (HEX.test(text)) {
      const isPrefixed = text.startsWith('0x')
      const packed = bytesOf(isPrefixed ? text.slice(2) : text)
      parts.push(String.fromCharCode(isPrefixed ? Head.prefixedHex : Head.hex), varint(packed.length), packed)
    } else return false
    return true
  }

  function framed(text: string): boolean {
    if (text.length <= SHORTEST_FRAME || text.includes(HOLE)) return false
    const differing: string[] = []
    const frame = text.replace(DIFFERING, (one) => {
      differing.push(one)
      return HOLE
    })
    const number = differing.length === 0 ? undefined : numberOf(frame)
    if (number === undefined) return false
    parts.push(String.fromCharCode(Head.frame), varint(number))
    for (const one of differing) write(one, false)
    return true
  }

  function write(text: string, mayFrame = true): void {
    const before = earlier.get(text)
    const time = before === undefined ? secondsIn(text) : undefined
    const number = before === undefined && time === undefined ? numberOf(text) : undefined
    if (before !== undefined) short(Head.earlier, FIRST_EARLIER, FIRST_WORD, before)
    else if (number !== undefined) short(Head.word, FIRST_WORD, END, number)
    else {
      if (time !== undefined) parts.push(String.fromCharCode(Head.time), varint(time))
      else if (!bytes(text) && !(mayFrame && framed(text))) parts.push(String.fromCharCode(Head.literal), varint(text.length), text)
      earlier.set(text, earlier.size)
    }
  }
  return { write: (text: string) => write(text), text: () => parts.join('') }
}

/** Reads what a writer has written, one text a call. */
export function createReader({ list }: Words, text: string, given: readonly string[]): () => string {
  let at = 0
  const earlier = [...new Set(given)]
  const remember = (one: string): string => {
    earlier.push(one)
    return one
  }

  function number(): number {
    let value = 0
    for (let unit = 1; ; unit *= 128) {
      const digit = text.charCodeAt(at++)
      // Past the end there is no digit.
      if (!(digit > 127)) return value + digit * unit
      value += (digit - 128) * unit
    }
  }
  const take = (length: number): string => {
    at += length
    return text.slice(at - length, at)
  }

  function literal(head: number): string {
    if (head === Head.uuid) {
      const hex = hexOf(take(16))
      return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
    }
    const found = take(number())
    return head === Head.literal ? found : head === Head.hex ? hexOf(found) : `0x${hexOf(found)}`
  }

  function read(): string {
    const head = text.charCodeAt(at++)
    if (head >= FIRST_WORD) return list[head - FIRST_WORD] ?? ''
    if (head >= FIRST_EARLIER) return earlier[head - FIRST_EARLIER] ?? ''
    if (head === Head.word) return list[number()] ?? ''
    if (head === Head.earlier) return earlier[number()] ?? ''
    if (head === Head.time) return remember(timeOf(number()))
    if (head !== Head.frame) return remember(literal(head))
    const [first = '', ...rest] = (list[number()] ?? '').split(HOLE)
    return remember(rest.reduce((whole, piece) => whole + read() + piece, first))
  }
  return read
}

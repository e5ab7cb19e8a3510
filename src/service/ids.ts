import { randomBytes, randomInt } from 'node:crypto'

/** The moment (Unix ms) that the last id stands for, and its counter. */
let last = { ms: 0, counter: 0 }

/** A clock may stand or go back so far (ms), and ids still sort by their making. Beyond that the clock was set, and is believed. */
const patienceMs = 1_000

/** Ids of one millisecond sort by a counter in `rand_a` (RFC 9562, section 6.2, method 1); when it is used up, the next millisecond is begun. */
function momentOf(ms: number): typeof last {
  const ahead = last.ms - ms
  if (ahead < 0 || ahead > patienceMs) return { ms, counter: randomInt(0x800) }
  return last.counter < 0xfff ? { ms: last.ms, counter: last.counter + 1 } : { ms: last.ms + 1, counter: 0 }
}

/**
 * 32 lower-case hex characters: a UUID of version 7 (RFC 9562) without its hyphens. They sort by the time of their making (ms), and those of
 * one process in the order of their making, so that a list by id is a list by age. The last 62 bits are random.
 */
export function newId(now: Date): string {
  last = momentOf(now.getTime())
  const bytes = randomBytes(16)
  bytes.writeUIntBE(last.ms, 0, 6)
  bytes.writeUInt16BE(0x7000 | last.counter, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  return bytes.toString('hex')
}

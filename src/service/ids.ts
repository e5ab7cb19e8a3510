import { randomBytes } from 'node:crypto'

/**
 * 32 lower-case hex characters: a UUID of version 7 (RFC 9562) without its hyphens. They sort by the time of their making (ms), so that a
 * list by id is a list by age, and its last 74 bits are random.
 */
export function newId(now: Date): string {
  const bytes = randomBytes(16)
  bytes.writeUIntBE(now.getTime(), 0, 6)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  return bytes.toString('hex')
}

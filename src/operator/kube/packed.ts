import { constants, deflateSync, inflateSync } from 'node:zlib'

/** Bytes of the objects that the dictionary is made of: a window of 8 KiB (2^13) holds it and the object itself. */
const MOST = 4096
const OPTIONS = { windowBits: 13, memLevel: 6, level: constants.Z_DEFAULT_COMPRESSION } as const

/** An object as one text: a character for each byte, which V8 holds as a byte. */
export type Packed = string

export interface Packing<T> {
  pack(object: T): Packed
  /** A copy of its own, as plain JSON. @throws Error where the bytes aren't those that were packed: they have a checksum. */
  unpack(packed: Packed): T
}

/**
 * Objects of one kind as compressed JSON (RFC 1950). The first one is the dictionary of all, so what they have in common (fields, conditions, messages,
 * addresses) takes next to nothing: of a settled stake's 3.5 kB of JSON are left what only it has, its hashes, keys and times.
 */
export function createPacking<T extends object>(): Packing<T> {
  let dictionary: Buffer | undefined
  return {
    pack(object) {
      const bytes = Buffer.from(JSON.stringify(object))
      dictionary ??= Buffer.from(bytes.subarray(-MOST))
      return deflateSync(bytes, { ...OPTIONS, dictionary }).toString('latin1')
    },
    unpack: (packed) =>
      JSON.parse(
        inflateSync(Buffer.from(packed, 'latin1'), { windowBits: OPTIONS.windowBits, ...(dictionary && { dictionary }) }).toString(),
      ) as T,
  }
}

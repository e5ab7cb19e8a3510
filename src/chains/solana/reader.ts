import { addressOf, type SolanaAddress } from './addresses.ts'

/** Data that is shorter or longer than its layout, or holds a value that the layout doesn't know. */
export class LayoutError extends Error {
  override readonly name = 'LayoutError'
}

/** Reads fields one after another; all integers are little-endian. Every read throws `LayoutError` beyond the end. */
export interface Reader {
  u8(): number
  u32(): number
  u64(): bigint
  i64(): bigint
  u128(): bigint
  f64(): number
  bytes(count: number): Uint8Array
  address(): SolanaAddress
  /** A length as u64, then as many bytes of UTF-8. */
  string(max: number): string
  remaining(): number
  /** Throws unless everything was read. */
  end(): void
}

export function createReader(data: Uint8Array, what: string): Reader {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  let at = 0
  const advance = (count: number): number => {
    if (at + count > data.length) throw new LayoutError(`${what} ends too early`)
    const start = at
    at += count
    return start
  }
  const reader: Reader = {
    u8: () => view.getUint8(advance(1)),
    u32: () => view.getUint32(advance(4), true),
    u64: () => view.getBigUint64(advance(8), true),
    i64: () => view.getBigInt64(advance(8), true),
    u128: () => reader.u64() + (reader.u64() << 64n),
    f64: () => view.getFloat64(advance(8), true),
    bytes: (count) => {
      const start = advance(count)
      return data.slice(start, start + count)
    },
    address: () => addressOf(reader.bytes(32)),
    string: (max) => {
      const length = reader.u64()
      if (length > BigInt(max)) throw new LayoutError(`${what} holds a text that is too long`)
      try {
        return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(reader.bytes(Number(length)))
      } catch (error) {
        if (error instanceof LayoutError) throw error
        throw new LayoutError(`${what} holds a text that is not UTF-8`)
      }
    },
    remaining: () => data.length - at,
    end: () => {
      if (at !== data.length) throw new LayoutError(`${what} is longer than its layout`)
    },
  }
  return reader
}

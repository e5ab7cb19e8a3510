import { createWriteStream, renameSync } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'

/** How long anvil may take to write its state, in ms: with the states of its blocks that is half a gigabyte after hours. */
const TIMEOUT_MS = 300_000

/**
 * Writes anvil's state, with that of the blocks that it keeps if `isWhole`, as `--load-state` reads it. Piece by piece: after an hour and a half of blocks the answer is a longer
 * text than a string can be.
 */
export async function saveAnvilState(url: string, file: string, isWhole: boolean): Promise<void> {
  const { body } = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'anvil_dumpState', params: [isWhole] }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  if (body === null) throw new Error('anvil_dumpState was answered without a body')
  await pipeline(body, bytesOfResult, createGunzip(), createWriteStream(`${file}.new`))
  renameSync(`${file}.new`, file)
}

/** The bytes that the one text of a JSON-RPC answer has in hex, `"result":"0x…"`. @throws with the answer where it is an error, and where it ends early. */
export async function* bytesOfResult(answer: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  const open = '"result":"0x'
  let rest = ''
  let isOpen = false
  for await (const chunk of answer) {
    rest += Buffer.from(chunk).toString('latin1')
    if (!isOpen) {
      const at = rest.indexOf(open)
      if (at < 0) {
        if (rest.length > 10_000) break
        continue
      }
      rest = rest.slice(at + open.length)
      isOpen = true
    }
    const end = rest.indexOf('"')
    const whole = end < 0 ? rest.length - (rest.length % 2) : end
    yield Buffer.from(rest.slice(0, whole), 'hex')
    if (end >= 0) return
    rest = rest.slice(whole)
  }
  throw new Error(`anvil_dumpState: ${isOpen ? 'the answer ended early' : rest.slice(0, 300)}`)
}

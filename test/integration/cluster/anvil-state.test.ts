import { expect, test } from 'vitest'
import { bytesOfResult } from '../../chains/anvil-state.ts'

async function read(answer: string, size: number): Promise<Buffer> {
  async function* pieces() {
    for (let at = 0; at < answer.length; at += size) yield Buffer.from(answer.slice(at, at + size))
  }
  const read: Buffer[] = []
  for await (const one of bytesOfResult(pieces())) read.push(one)
  return Buffer.concat(read)
}
const answer = '{"jsonrpc":"2.0","id":1,"result":"0x1f8b0102ff"}'

test.each([1, 2, 3, 7, 35, 1_000])('a state that comes in pieces of %i bytes is read whole', async (size) => {
  expect((await read(answer, size)).toString('hex')).toBe('1f8b0102ff')
})
test.each([
  ['an error', '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}', /Method not found/],
  ['an answer that ends early', answer.slice(0, -4), /ended early/],
])('%s is told', async (_what, text, message) => {
  await expect(read(text, 10)).rejects.toThrow(message)
})

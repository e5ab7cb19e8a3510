/** `0x…` as bytes. */
export const bytesOf = (hex: string): Buffer => Buffer.from(hex.replace(/^0x/, ''), 'hex')
export const hexOf = (bytes: Uint8Array): string => `0x${Buffer.from(bytes).toString('hex')}`

const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** Base58 in Bitcoin's alphabet, as Solana writes addresses and signatures. */
export function base58(bytes: Uint8Array): string {
  let number = BigInt(`0x0${Buffer.from(bytes).toString('hex')}`)
  let text = ''
  for (; number > 0n; number /= 58n) text = alphabet.charAt(Number(number % 58n)) + text
  const zeros = bytes.findIndex((byte) => byte !== 0)
  return '1'.repeat(zeros < 0 ? bytes.length : zeros) + text
}

let calls = 0
/** One JSON-RPC call. @throws with the node's error, or after 20 s */
export async function rpc<T>(url: string, method: string, params: readonly unknown[] = []): Promise<T> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: ++calls, method, params }),
    signal: AbortSignal.timeout(20_000),
  })
  const { result, error } = (await answer.json()) as { readonly result?: T; readonly error?: unknown }
  if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`)
  return result as T
}

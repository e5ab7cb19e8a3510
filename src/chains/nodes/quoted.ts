import type { NodeError } from '../../lib/rpc-failure.ts'

const maxQuoted = 120

/**
 * A refusal that nobody here knows, in the node's own words as far as they may be shown: its code and the beginning of its text, in plain ASCII, without
 * anything that may be a URL, a host, a key or a token. Addresses and hashes stay.
 */
export function quoted({ code, message }: NodeError): string {
  const text = message
    .slice(0, 2_000)
    .replace(/[^\x20-\x7e]+/g, ' ')
    .replace(/\S*:\/\/\S*/g, '…')
    .replace(/\S*\b(?:[a-z0-9-]+\.)+[a-z]{2,}\b\S*/gi, '…')
    .replace(/\b(?:key|token|secret|password|auth\w*|bearer|basic)\b\s*[=:]?\s*\S+/gi, '…')
    .replace(/(?<![\w-])(?!0x[0-9a-f]{1,64}(?![\w-]))[\w-]{24,}/gi, '…')
    .replace(/["\\<>]/g, "'")
    .replace(/\s+/g, ' ')
    .trim()
  const short = text.length > maxQuoted ? `${text.slice(0, maxQuoted)}…` : text
  return `code ${Number.isSafeInteger(code) ? code : 'none'}${short === '' ? '' : `: "${short}"`}`
}

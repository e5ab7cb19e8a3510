import { createHash } from 'node:crypto'

export interface ValidatorSetResult {
  readonly validators: number
  /** Of the answer to GET /eth/v1/beacon/states/finalized/validators. */
  readonly bytes: number
  /** To find each key in it, as fast as it can be done; and to parse it. */
  readonly scanCpuMs: number
  readonly parseCpuMs: number
}

const PER_CHUNK = 500

/** As beacon nodes write it: beacon-APIs, getStateValidators. */
const entryOf = (index: number): string => {
  const key = createHash('sha384').update(String(index)).digest('hex')
  const credentials = `010000000000000000000000${createHash('sha256').update(String(index)).digest('hex').slice(0, 40)}`
  return JSON.stringify({
    index: String(index),
    balance: '32012345678',
    status: 'active_ongoing',
    validator: {
      pubkey: `0x${key}`,
      withdrawal_credentials: `0x${credentials}`,
      effective_balance: '32000000000',
      slashed: false,
      activation_eligibility_epoch: '123456',
      activation_epoch: '123460',
      exit_epoch: '18446744073709551615',
      withdrawable_epoch: '18446744073709551615',
    },
  })
}

/**
 * What it would take to read the keys of a whole validator set from a beacon node, for the anchor that ADR 16 decides against: the bytes of the answer, and the
 * processor's time to read them at the least. The node's own time to make the answer, and the network's, come on top.
 */
export function benchValidatorSet(validators: number, say: (line: string) => void): ValidatorSetResult {
  say(`validator set: ${validators} validators`)
  const entries = Array.from({ length: PER_CHUNK }, (_, number) => entryOf(1_000_000 + number))
  const chunk = Buffer.from(`${entries.join(',')},`)
  const chunks = Math.ceil(validators / PER_CHUNK)
  const keys = new Uint32Array(validators * 2)
  const mark = Buffer.from('"pubkey":"0x')
  const scanCpuMs = cpuOf(() => {
    let found = 0
    for (let number = 0; number < chunks; number += 1) {
      for (let at = chunk.indexOf(mark); at >= 0; at = chunk.indexOf(mark, at + 96)) {
        const key = at + mark.length
        keys[found * 2] = Number.parseInt(chunk.toString('latin1', key + 2, key + 10), 16)
        keys[found * 2 + 1] = Number.parseInt(chunk.toString('latin1', key + 10, key + 18), 16)
        found += 1
      }
    }
    if (found < validators) throw new Error('a key was not found')
  })
  const parseCpuMs = cpuOf(() => {
    for (let number = 0; number < chunks; number += 1) JSON.parse(`[${chunk.toString('latin1', 0, chunk.length - 1)}]`)
  })
  return { validators, bytes: chunk.length * chunks, scanCpuMs, parseCpuMs }
}

function cpuOf(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

import type { LoggedRequest } from './requests.ts'
import { encodeRequestCalldata } from './requests.ts'

/** The storage of the EIP-7002 contract over the blocks, as its code writes it (EIP-7002, "Predeploy contract"): for tests and simulators. */
export function createContractQueue() {
  const logged = new Map<bigint, readonly LoggedRequest[]>()

  const after = (block: bigint): ReadonlyMap<bigint, bigint> => {
    const words = new Map<bigint, bigint>([
      [2n, 0n],
      [3n, 0n],
    ])
    const numbers = [...logged.keys()].filter((number) => number <= block).toSorted((a, b) => (a < b ? -1 : 1))
    let [head, tail] = [0n, 0n]
    const systemCall = (times: bigint): void => {
      head = head + 16n * times < tail ? head + 16n * times : tail
      if (head === tail) [head, tail] = [0n, 0n]
    }
    let last = numbers[0] ?? block
    for (const number of numbers) {
      systemCall(number - last)
      last = number
      for (const { source, request } of logged.get(number) ?? []) {
        const data = encodeRequestCalldata(request).slice(2).padEnd(128, '0')
        const parts = [BigInt(source), BigInt(`0x${data.slice(0, 64)}`), BigInt(`0x${data.slice(64)}`)]
        for (const [part, word] of parts.entries()) words.set(4n + 3n * tail + BigInt(part), word)
        tail += 1n
      }
    }
    systemCall(block - last + 1n)
    return words.set(2n, head).set(3n, tail)
  }

  return {
    /** What a block logs, once for each. */
    block: (number: bigint, requests: readonly LoggedRequest[]): void => void logged.set(number, requests),
    /** In the state after a block, its system call included. */
    storageAfter: (number: bigint, slots: readonly bigint[]): bigint[] => {
      const words = after(number)
      return slots.map((slot) => words.get(slot) ?? 0n)
    },
  }
}

/** What a beacon node of Hoodi answers to `/eth/v1/config/spec`, as far as it is read. */
export const hoodiSpec = {
  SECONDS_PER_SLOT: '12',
  SLOTS_PER_EPOCH: '32',
  SHARD_COMMITTEE_PERIOD: '256',
  MIN_VALIDATOR_WITHDRAWABILITY_DELAY: '256',
  MAX_SEED_LOOKAHEAD: '4',
  MIN_ACTIVATION_BALANCE: '32000000000',
  MAX_EFFECTIVE_BALANCE_ELECTRA: '2048000000000',
  PENDING_PARTIAL_WITHDRAWALS_LIMIT: '134217728',
  DEPOSIT_CHAIN_ID: '560048',
  DEPOSIT_CONTRACT_ADDRESS: '0x00000000219ab540356cbb839cbe05303d7705fa',
}

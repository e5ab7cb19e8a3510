import { formatWeiAsEth, wei } from '../../lib/amounts.ts'
import { type Halt, wait } from '../engine/verdict.ts'
import { verdictOf } from './hindrance.ts'
import type { Pass } from './limiter.ts'
import type { Memory } from './memory.ts'
import type { Moment } from './moment.ts'
import type { Ready } from './preparation.ts'
import { openAttempts } from './protocol.ts'
import { type RecordObject, recordOf } from './store.ts'

/** Wei that the open attempts of a record may cost: value and highest possible fee. */
const costOf = (record: RecordObject): bigint =>
  openAttempts(recordOf(record))
    .map(({ valueWei, gas, maxFeePerGasWei }) => BigInt(valueWei ?? '0') + BigInt(gas ?? '0') * BigInt(maxFeePerGasWei ?? '0'))
    .reduce((most, cost) => (cost > most ? cost : most), 0n)

/** Wei that open attempts may cost yet. */
const boundBy = ({ counts, records }: Pick<Moment, 'counts' | 'records'>): bigint =>
  records
    .filter(({ status }) => status?.place !== undefined && status.place >= counts.latest)
    .reduce((sum, record) => sum + costOf(record), 0n)

/** Wei that a lane has to pay yet: what open attempts may cost, and the values of those that wait for a place, whose fees nobody knows. */
export const neededBy = ({ counts, records }: Pick<Moment, 'counts' | 'records'>): bigint =>
  records
    .filter(({ status }) => status?.place === undefined)
    .reduce((sum, { spec }) => sum + BigInt(spec.call?.valueWei ?? '0'), boundBy({ counts, records }))

/** What a balance is enough for. */
export interface Affordable {
  /** Those that it pays for and a limit leaves room for, in their order. */
  readonly ready: readonly Ready[]
  /** Why what is left is not even enough for the value of another, whatever its fees. */
  readonly tooLittleFor: (record: RecordObject) => Halt | undefined
}

/** Those that the balance pays for and a limit leaves room for. The others are told what is missing. */
export async function affordable(memory: Memory, moment: Moment, prepared: readonly Ready[], limit: Pass): Promise<Affordable> {
  const { chain, lane, network, signal } = moment
  const balance = await chain.balance(lane.address, signal)
  let free = balance - boundBy(moment)
  const missing = (value: bigint): Halt =>
    wait(
      'InsufficientFunds',
      `${lane.address} holds ${formatWeiAsEth(balance)} ETH on ${network.config.name}, and with what is in flight that does not cover ${formatWeiAsEth(wei(value))} ETH and the highest possible fee. Fund the address: this goes on by itself.`,
      30_000,
    )
  const ready = prepared.filter(({ record, admission, value, gas, fees }) => {
    const cost = value + gas * fees.maxFeePerGas
    const over = limit.ask(record, admission.signer)
    if (over !== undefined) {
      memory.stand(record, verdictOf(over))
      return false
    }
    // What can't be paid takes nobody's room.
    if (free >= cost) {
      free -= cost
      limit.reserve(record)
      return true
    }
    memory.stand(record, verdictOf(missing(value)))
    return false
  })
  return {
    ready,
    tooLittleFor: ({ spec }) => {
      const value = BigInt(spec.call?.valueWei ?? '0')
      return value > free ? missing(value) : undefined
    },
  }
}

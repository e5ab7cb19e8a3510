import { formatWeiAsEth } from '../../lib/amounts.ts'
import { wait } from '../engine/verdict.ts'
import { verdictOf } from './hindrance.ts'
import type { Memory } from './memory.ts'
import type { Moment } from './moment.ts'
import type { Ready } from './preparation.ts'
import { openAttempts } from './protocol.ts'
import { recordOf } from './store.ts'

/** Wei that open attempts may cost yet: value and highest possible fee of each. */
const boundBy = ({ counts, records }: Moment): bigint =>
  records
    .filter(({ status }) => status?.place !== undefined && status.place >= counts.latest)
    .reduce((sum, record) => {
      const costs = openAttempts(recordOf(record)).map(
        ({ valueWei, gas, maxFeePerGasWei }) => BigInt(valueWei ?? '0') + BigInt(gas ?? '0') * BigInt(maxFeePerGasWei ?? '0'),
      )
      return sum + costs.reduce((most, cost) => (cost > most ? cost : most), 0n)
    }, 0n)

/** Those that the balance pays for, in their order. The others are told what is missing. */
export async function affordable(memory: Memory, moment: Moment, ready: readonly Ready[]): Promise<readonly Ready[]> {
  const { chain, lane, network, signal } = moment
  const balance = await chain.balance(lane.address, signal)
  let free = balance - boundBy(moment)
  return ready.filter(({ record, value, gas, fees }) => {
    const cost = value + gas * fees.maxFeePerGas
    if (free >= cost) {
      free -= cost
      return true
    }
    memory.stand(
      record,
      verdictOf(
        wait(
          'InsufficientFunds',
          `${lane.address} holds ${formatWeiAsEth(balance)} ETH on ${network.config.name}, and with what is in flight that does not cover ${formatWeiAsEth(value)} ETH and the highest possible fee. Fund the address: this goes on by itself.`,
          30_000,
        ),
      ),
    )
    return false
  })
}

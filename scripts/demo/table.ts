import type { WriteStream } from 'node:tty'
import { type ListedStake, nameOf, readyReason } from './stakes.ts'

export interface Table {
  show(stakes: readonly ListedStake[]): void
  end(): void
}

const row = (stake: ListedStake): readonly string[] => [
  nameOf(stake),
  `${stake.spec.amountEth} ETH`,
  stake.status?.phase ?? '',
  readyReason(stake),
  stake.status?.transaction?.hash?.slice(0, 18) ?? '',
  stake.status?.depositData?.pubkey.slice(0, 18) ?? '',
]
const head = ['STAKE', 'AMOUNT', 'PHASE', 'REASON', 'TRANSACTION', 'VALIDATOR']
const widths = [24, 10, 12, 22, 20, 20]
const line = (cells: readonly string[]): string =>
  cells
    .map((cell, index) => cell.padEnd(widths[index] ?? 0))
    .join(' ')
    .trimEnd()

/** A table that is drawn over and over in a terminal; elsewhere a line for each change. */
export function createTable(out: Pick<WriteStream, 'write' | 'isTTY'>): Table {
  const started = Date.now()
  const shown = new Map<string, string>()
  let drawn = 0
  return {
    show(stakes) {
      if (out.isTTY) {
        if (drawn > 0) out.write(`\x1b[${drawn}A\x1b[J`)
        const lines = [line(head), ...stakes.map((stake) => line(row(stake)))]
        out.write(`${lines.join('\n')}\n`)
        drawn = lines.length
        return
      }
      for (const stake of stakes) {
        const text = line(row(stake))
        if (shown.get(nameOf(stake)) === text) continue
        shown.set(nameOf(stake), text)
        out.write(`${((Date.now() - started) / 1000).toFixed(1).padStart(6)}s ${text}\n`)
      }
    },
    end() {
      drawn = 0
    },
  }
}

import type { WriteStream } from 'node:tty'
import { formatEth, gwei } from '../../src/lib/amounts.ts'
import { type Any, nameOf, type Resources, readyReason } from './resources.ts'

export interface Table {
  show(resources: Resources): void
  /** What was drawn stays; the next goes below it. */
  end(): void
}

type Row = readonly [id: string, ...cells: string[]]
const rowOf = (short: string, resource: Any, amount: string, hash = ''): Row => [
  `${short} ${nameOf(resource)}`,
  amount,
  resource.status?.phase ?? '',
  readyReason(resource),
  hash.slice(0, 18),
]
const sol = (lamports: string): string => `${formatEth(gwei(BigInt(lamports)))} SOL`
const rowsOf = ({ stakes, withdrawals, exits, solana }: Resources): readonly Row[] => [
  ...stakes.map((one) => rowOf('ethstake', one, `${one.spec.amountEth} ETH`, one.status?.transaction?.hash)),
  ...withdrawals.map((one) => rowOf('vwd', one, `${formatEth(gwei(BigInt(one.spec.amountGwei)))} ETH`, one.status?.transaction?.hash)),
  ...exits.map((one) => rowOf('vexit', one, 'all', one.status?.transaction?.hash)),
  ...solana.map((one) => rowOf('solstake', one, sol(one.spec.amountLamports), one.status?.transactions?.stake?.signature)),
]
const head = ['RESOURCE', 'AMOUNT', 'PHASE', 'REASON', 'TRANSACTION']
const widths = [30, 10, 14, 22, 20]
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
    show(resources) {
      const rows = rowsOf(resources)
      if (out.isTTY) {
        if (drawn > 0) out.write(`\x1b[${drawn}A\x1b[J`)
        const lines = [line(head), ...rows.map(line)]
        out.write(`${lines.join('\n')}\n`)
        drawn = lines.length
        return
      }
      for (const row of rows) {
        const text = line(row)
        if (shown.get(row[0]) === text) continue
        shown.set(row[0], text)
        out.write(`${((Date.now() - started) / 1000).toFixed(1).padStart(6)}s ${text}\n`)
      }
    },
    end() {
      drawn = 0
    },
  }
}

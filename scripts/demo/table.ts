import type { WriteStream } from 'node:tty'
import { formatSol, lamports } from '../../src/lib/amounts.ts'
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
const sol = (amount: string): string => `${formatSol(lamports(BigInt(amount)))} SOL`
const rowsOf = ({ stakes, withdrawals, exits, solana }: Resources): readonly Row[] => [
  ...stakes.map((one) => rowOf('ethstake', one, `${one.spec.amountEth} ETH`, one.status?.transaction?.hash)),
  ...withdrawals.map((one) => rowOf('vwd', one, `${one.spec.amountEth ?? one.status?.amountEth ?? ''} ETH`, one.status?.transaction?.hash)),
  ...exits.map((one) => rowOf('vexit', one, 'all', one.status?.transaction?.hash)),
  ...solana.map((one) => rowOf('solstake', one, sol(one.spec.amountLamports), one.status?.transactions?.stake?.signature)),
]
const head = ['RESOURCE', 'AMOUNT', 'PHASE', 'REASON', 'TRANSACTION']
const widths = [30, 10, 13, 23, 20]
/** Columns that fit go whole, and one that doesn't is left out: a line that wraps is drawn over only in part. */
const line = (cells: readonly string[], columns = Number.POSITIVE_INFINITY): string => {
  let text = ''
  for (const [index, cell] of cells.entries()) {
    const next = `${text === '' ? '' : `${text} `}${cell.padEnd(widths[index] ?? 0)}`
    if (next.length > columns) break
    text = next
  }
  return text.trimEnd().slice(0, columns)
}

/** A table that is drawn over and over in a terminal; elsewhere a line for each change. */
export function createTable(out: Pick<WriteStream, 'write' | 'isTTY'> & Partial<Pick<WriteStream, 'columns'>>): Table {
  const started = Date.now()
  const shown = new Map<string, string>()
  let drawn = 0
  return {
    show(resources) {
      const rows = rowsOf(resources)
      if (out.isTTY) {
        if (drawn > 0) out.write(`\x1b[${drawn}A\x1b[J`)
        const columns = out.columns ?? 80
        const lines = [line(head, columns), ...rows.map((row) => line(row, columns))]
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

import { describe, expect, test } from 'vitest'
import { operatorMetrics, serviceMetrics } from '../metrics/files.ts'
import { boards, dashboardFiles, dashboardOf } from './files.ts'

const declared = new Map([...operatorMetrics(), ...serviceMetrics()].map((metric) => [metric.name, metric]))
const metricOf = (name: string) => declared.get(name) ?? declared.get(name.replace(/_(bucket|count|sum)$/, ''))

test('there are four boards, each with an address of its own, and a file each', () => {
  expect(boards.map(({ uid }) => uid)).toEqual(['staking-fleet', 'staking-signers', 'staking-chains', 'staking-service'])
  expect(dashboardFiles().size).toBe(4)
})

describe.each(
  boards.flatMap((board) => board.rows.flatMap(({ panels }) => panels.map((panel) => [board.title, panel.title, panel] as const))),
)('%s: %s', (_board, _title, { queries, description }) => {
  test('asks for metrics and labels that are there', () => {
    expect(description).not.toBe('')
    for (const { expr, legend } of queries) {
      const names = expr.match(/staking_(operator|service)_[a-z_]+/g) ?? []
      expect(names.length, expr).toBeGreaterThan(0)
      for (const name of names) expect(metricOf(name), name).toBeDefined()
      const labels = new Set([...names.flatMap((name) => metricOf(name)?.labels ?? []), 'le'])
      const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '))
      const selected = [...expr.matchAll(/[{,]([a-z_]+)(?:=~|!=|=)"/g)].map(([, label = '']) => label)
      for (const label of [...grouped, ...selected]) expect(labels.has(label), `${label} of ${expr}`).toBe(true)
      for (const [, label = ''] of legend.matchAll(/\{\{([a-z_]+)\}\}/g))
        expect(grouped, `${label} in the legend of ${expr}`).toContain(label)
    }
  })
})

test.each(boards.map((board) => [board.title, board] as const))(
  '%s: panels lie beside and below one another, and each asks the chosen Prometheus',
  (_title, board) => {
    const { panels = [], templating } = dashboardOf(board)
    expect(templating?.list?.map(({ name }) => name)).toEqual(['datasource'])
    const shown = panels.flatMap((panel) => ('targets' in panel && panel.gridPos !== undefined ? [panel] : []))
    expect(shown).toHaveLength(board.rows.flatMap(({ panels: all }) => all).length)
    for (const panel of shown) expect(panel.datasource, panel.title).toEqual({ type: 'prometheus', uid: '$datasource' })
    const taken = new Set<string>()
    for (const { gridPos, title } of shown)
      for (let x = gridPos?.x ?? 0; x < (gridPos?.x ?? 0) + (gridPos?.w ?? 0); x++)
        for (let y = gridPos?.y ?? 0; y < (gridPos?.y ?? 0) + (gridPos?.h ?? 0); y++) {
          expect(x, title).toBeLessThan(24)
          expect(taken.has(`${x}/${y}`), `${title} at ${x}/${y}`).toBe(false)
          taken.add(`${x}/${y}`)
        }
  },
)

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { operatorMetrics, serviceMetrics } from './files.ts'

const declared = [...operatorMetrics(), ...serviceMetrics()]

test('the reference has a row for every metric of both programs, with its type, labels and meaning', () => {
  const page = readFileSync(new URL('../../docs/reference/metrics.md', import.meta.url), 'utf8')
  expect(declared.length).toBeGreaterThan(50)
  for (const { name, type, labels } of declared) expect(page).toContain(`| \`${name}\` | ${type} | ${labels.join(', ')} |`)
  const rows = [...page.matchAll(/^\| `(staking_(?:operator|service)_[a-z_]+)` /gm)].map(([, name]) => name)
  expect(rows.toSorted()).toEqual(declared.map(({ name }) => name).toSorted())
})

test.each(declared.map((metric) => [metric.name, metric] as const))(
  '%s has a name by the Prometheus conventions',
  (name, { type, help }) => {
    expect(name).toMatch(/^staking_(operator|service)_[a-z]+(_[a-z]+)*$/)
    expect(name.endsWith('_total'), 'counters, and they alone, end with _total').toBe(type === 'counter')
    if (type === 'histogram') expect(name).toMatch(/_seconds$/)
    expect(name, 'base units').not.toMatch(/_(ms|milliseconds|minutes|hours|lamports|wei)(_|$)/)
    expect(help.length).toBeGreaterThan(5)
  },
)

test('every source of the programs that declares a metric is read here', () => {
  const known = new Set(declared.map(({ name }) => name))
  const sources = ['operator/metrics.ts', 'service/metrics.ts', 'service/scraped-metrics.ts']
  for (const file of sources) {
    const text = readFileSync(new URL(`../../src/${file}`, import.meta.url), 'utf8')
    for (const [, name = ''] of text.matchAll(/'(staking_(?:operator|service)_[a-z_]+)'/g))
      expect(known.has(name), `${file}: ${name}`).toBe(true)
  }
})

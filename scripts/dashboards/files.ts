import {
  type Dashboard,
  DashboardBuilder,
  DatasourceVariableBuilder,
  RowBuilder,
  ThresholdsConfigBuilder,
  ThresholdsMode,
} from '@grafana/grafana-foundation-sdk/dashboard'
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus'
import { PanelBuilder as NumberBuilder } from '@grafana/grafana-foundation-sdk/stat'
import { PanelBuilder as TableBuilder } from '@grafana/grafana-foundation-sdk/table'
import { PanelBuilder as GraphBuilder } from '@grafana/grafana-foundation-sdk/timeseries'
import type { Board, Panel, Query } from './board.ts'
import { chains } from './chains.ts'
import { fleet } from './fleet.ts'
import { service } from './service.ts'
import { signers } from './signers.ts'

export const boards: readonly Board[] = [fleet, signers, chains, service]

const source = { type: 'prometheus', uid: '$datasource' }
const heights = { graph: 8, number: 4, table: 8 } as const
/** Names of a panel's queries, as Grafana has them. */
const letters = 'ABCDEFGH'

function queryOf({ expr, legend }: Query, at: number, { shows }: Panel): DataqueryBuilder {
  const query = new DataqueryBuilder()
    .datasource(source)
    .refId(letters[at] ?? '')
    .expr(expr)
    .legendFormat(legend)
  return shows === 'graph' ? query.range() : query.instant().format(shows === 'table' ? PromQueryFormat.Table : PromQueryFormat.TimeSeries)
}

function panelOf(panel: Panel) {
  const { shows, title, description, unit = 'short', alarmFrom, queries, width = 12 } = panel
  const builder = shows === 'graph' ? new GraphBuilder() : shows === 'number' ? new NumberBuilder() : new TableBuilder()
  builder.title(title).description(description).datasource(source).unit(unit).span(width).height(heights[shows]).min(0)
  queries.forEach((query, at) => {
    builder.withTarget(queryOf(query, at, panel))
  })
  if (alarmFrom !== undefined)
    builder.thresholds(
      new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps([
        { value: null, color: 'green' },
        { value: alarmFrom, color: 'red' },
      ]),
    )
  return builder
}

/** A board as Grafana imports it. */
export function dashboardOf({ uid, title, description, rows }: Board): Dashboard {
  const builder = new DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags(['staking'])
    .readonly()
    .time({ from: 'now-6h', to: 'now' })
    .refresh('1m')
    .withVariable(new DatasourceVariableBuilder('datasource').label('Prometheus').type('prometheus'))
  for (const row of rows) {
    builder.withRow(new RowBuilder(row.title))
    for (const panel of row.panels) builder.withPanel(panelOf(panel))
  }
  return builder.build()
}

/** The chart's files, by path within it. */
export const dashboardFiles = (): ReadonlyMap<string, string> =>
  new Map(boards.map((board) => [`files/dashboards/${board.uid}.json`, `${JSON.stringify(dashboardOf(board), null, 2)}\n`]))

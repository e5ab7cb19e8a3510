// Runs in the browser, beside uPlot: draws the board that the page holds as JSON. Its pictures are called what they are in docs/how-to/monitor.md.
const picture = JSON.parse(document.getElementById('data').textContent)
const colours = [
  '#7eb26d',
  '#e0a80d',
  '#1f78c1',
  '#ef843c',
  '#e24d42',
  '#6ed0e0',
  '#ba43a9',
  '#705da0',
  '#508642',
  '#cca300',
  '#447ebc',
  '#c15c17',
]
const SHOWN = 10

const seconds = (value) => {
  if (Math.abs(value) < 1) return `${Number((value * 1000).toPrecision(3))} ms`
  if (Math.abs(value) < 120) return `${Number(value.toPrecision(3))} s`
  return Math.abs(value) < 7200 ? `${Number((value / 60).toPrecision(3))} min` : `${Number((value / 3600).toPrecision(3))} h`
}
/** Minutes and seconds since the beginning. */
const minutes = (tick) => `${Math.floor(tick / 60)}:${String(Math.round(tick % 60)).padStart(2, '0')}`
const short = (value) => {
  for (const [limit, unit] of [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e4, 'k'],
  ])
    if (Math.abs(value) >= limit) return `${Number((value / (unit === 'k' ? 1000 : limit)).toPrecision(3))} ${unit}`
  return String(Number(value.toPrecision(4)))
}
const formats = {
  s: seconds,
  percentunit: (value) => `${Number((value * 100).toPrecision(3))} %`,
  reqps: (value) => `${Number(value.toPrecision(3))}/s`,
  dateTimeFromNow: (value) => seconds(Math.max(0, Date.now() / 1000 - value / 1000)),
  short,
}
const format = (unit) => formats[unit] ?? short

const element = (parent, tag, text, name) => {
  const made = document.createElement(tag)
  if (text !== undefined) made.textContent = text
  if (name !== undefined) made.className = name
  parent.append(made)
  return made
}

function graph(parent, { series, unit, alarmFrom }) {
  const shown = series.slice(0, SHOWN)
  const say = format(unit)
  const top = Math.max(0, ...series.flatMap(({ values }) => values.filter((value) => value !== null)))
  const width = parent.clientWidth - 20
  new uPlot(
    {
      width,
      height: 190,
      padding: [8, 16, 0, 0],
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: false }, y: { range: [0, top === 0 ? 1 : top * 1.1] } },
      axes: [
        { values: (_plot, ticks) => ticks.map(minutes), grid: { stroke: '#eceef0' }, size: 30, incrs: [5, 10, 15, 30, 60, 120, 300, 600] },
        { values: (_plot, ticks) => ticks.map((tick) => say(tick)), grid: { stroke: '#eceef0' }, size: 62 },
      ],
      series: [{}, ...series.map((_one, at) => ({ stroke: colours[at % colours.length], width: 1.5, points: { show: false } }))],
      hooks: {
        draw: [
          (plot) => {
            if (alarmFrom === undefined || alarmFrom > top * 1.1) return
            const y = plot.valToPos(alarmFrom, 'y', true)
            plot.ctx.save()
            plot.ctx.strokeStyle = '#c4162a'
            plot.ctx.setLineDash([6, 4])
            plot.ctx.beginPath()
            plot.ctx.moveTo(plot.bbox.left, y)
            plot.ctx.lineTo(plot.bbox.left + plot.bbox.width, y)
            plot.ctx.stroke()
            plot.ctx.restore()
          },
        ],
      },
    },
    [picture.times, ...series.map(({ values }) => values)],
    parent,
  )
  const legend = element(parent, 'div', undefined, 'legend')
  shown.forEach(({ name }, at) => {
    const item = element(legend, 'span')
    element(item, 'i').style.background = colours[at % colours.length]
    item.append(name)
  })
  if (series.length > SHOWN) element(legend, 'span', `and ${series.length - SHOWN} more`)
}

function table(parent, { table: { columns, rows }, unit, alarmFrom }) {
  const made = element(parent, 'table')
  const head = element(made, 'tr')
  for (const column of columns) element(head, 'th', column)
  for (const row of rows.slice(0, 8)) {
    const line = element(made, 'tr')
    row.forEach((cell, at) => {
      const isValue = at === columns.length - 1
      const isAlarm = isValue && alarmFrom !== undefined && Number(cell) >= alarmFrom
      element(line, 'td', isValue ? format(unit)(Number(cell)) : cell, isAlarm ? 'alarm' : undefined)
    })
  }
}

const main = document.querySelector('main')
element(main, 'h1', picture.title)
for (const { title, panels } of picture.rows) {
  element(main, 'h2', title)
  const row = element(main, 'div', undefined, 'row')
  for (const panel of panels) {
    const box = element(row, 'section', undefined, 'panel')
    box.style.gridColumn = `span ${panel.width}`
    element(box, 'h3', panel.title)
    if (panel.empty !== undefined) element(box, 'div', `Nothing: ${panel.empty}.`, 'empty')
    else if (panel.shows === 'graph') graph(box, panel)
    else if (panel.shows === 'table') table(box, panel)
    else {
      const value = panel.series[0].values[0]
      const isAlarm = panel.alarmFrom !== undefined && value >= panel.alarmFrom
      element(box, 'div', value === null ? '–' : format(panel.unit)(value), isAlarm ? 'number alarm' : 'number')
    }
  }
}
document.body.dataset.drawn = String(picture.rows.flatMap(({ panels }) => panels).length)

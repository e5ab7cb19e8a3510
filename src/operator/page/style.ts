import { createHash } from 'node:crypto'

/** The page's style sheet: system fonts, no image, colours of at least 4.5:1 on their ground in both schemes (WCAG 2.2, 1.4.3). */
export const style = `:root {
  color-scheme: light dark;
  --ground: #f6f7f9; --panel: #fff; --text: #1b2129; --soft: #56606d; --line: #d9dee5; --link: #0a56b0; --focus: #0a56b0;
  --good: #176639; --good-ground: #e2f4e8; --bad: #a3161f; --bad-ground: #fde8e8;
  --warn: #7a4a00; --warn-ground: #fff0d2; --busy: #0b4f9e; --busy-ground: #e4effc; --calm: #4a5361; --calm-ground: #eceff3;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #12161b; --panel: #1a2027; --text: #e6eaf0; --soft: #a3adba; --line: #313a45; --link: #7db8ff; --focus: #7db8ff;
    --good: #8fdcaa; --good-ground: #143322; --bad: #ffa3a3; --bad-ground: #431a1c;
    --warn: #ffd08a; --warn-ground: #3d2c0c; --busy: #a5ccff; --busy-ground: #172f4d; --calm: #c2cad5; --calm-ground: #2a323c;
  }
}
* { box-sizing: border-box }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100% }
body { margin: 0; background: var(--ground); color: var(--text); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif }
a { color: var(--link); text-underline-offset: 0.15em }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; border-radius: 3px }
.skip { position: absolute; left: -999rem }
.skip:focus { left: 1rem; top: 0.5rem; background: var(--panel); padding: 0.4rem 0.8rem; z-index: 1 }
header, main, footer { max-width: 1240px; margin: 0 auto; padding: 0 1.25rem }
header { display: flex; flex-wrap: wrap; gap: 0.25rem 1.5rem; align-items: baseline; padding-top: 1rem; padding-bottom: 0.75rem }
header strong { font-size: 1.05rem }
nav ul { display: flex; gap: 1.25rem; list-style: none; margin: 0; padding: 0 }
nav a[aria-current] { color: inherit; font-weight: 600; text-decoration: none }
.instance { margin: 0 0 0 auto; color: var(--soft); overflow-wrap: anywhere }
.instance strong { font-size: 1em; color: var(--text) }
footer { padding-top: 1.5rem; padding-bottom: 2rem; color: var(--soft); font-size: 0.87rem }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0.75rem 0; overflow-wrap: anywhere }
h2 { font-size: 1.1rem; margin: 2rem 0 0.6rem }
h3 { font-size: 1rem; margin: 1.4rem 0 0.5rem; overflow-wrap: anywhere }
p { margin: 0.5rem 0 }
code { font: 0.9em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere }
.note { border-left: 4px solid var(--busy); background: var(--busy-ground); color: var(--text); padding: 0.6rem 0.9rem; border-radius: 4px; margin: 0.75rem 0; overflow-wrap: anywhere }
.note.warn { border-color: var(--warn); background: var(--warn-ground) }
.note.bad { border-color: var(--bad); background: var(--bad-ground) }
.note.good { border-color: var(--good); background: var(--good-ground) }
.soft { color: var(--soft) }
.badge { display: inline-block; padding: 0 0.55em; border-radius: 1em; font-size: 0.86rem; font-weight: 600; white-space: nowrap; border: 1px solid transparent }
.Slashed, .Stalled { color: var(--bad); background: var(--bad-ground); border-color: var(--bad) }
.Waiting, .Deleting, .cancelling { color: var(--warn); background: var(--warn-ground) }
.InProgress, .open { color: var(--busy); background: var(--busy-ground) }
.NotSeen, .Suspended, .waiting { color: var(--calm); background: var(--calm-ground) }
.Ready { color: var(--good); background: var(--good-ground) }
.counts { display: flex; flex-wrap: wrap; gap: 0.5rem; list-style: none; margin: 0.5rem 0 1rem; padding: 0 }
.counts a { display: flex; gap: 0.5rem; align-items: center; padding: 0.3rem 0.7rem; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; color: inherit; text-decoration: none }
.counts a:hover { border-color: var(--link) }
.counts a[aria-current] { border-color: var(--link); box-shadow: 0 0 0 1px var(--link) }
.counts b { font-variant-numeric: tabular-nums }
form { display: flex; flex-wrap: wrap; gap: 0.6rem 0.9rem; align-items: end; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 0.8rem 1rem }
form div { display: grid; grid-template-columns: minmax(0, auto); gap: 0.15rem; min-width: 0 }
label { font-size: 0.87rem; color: var(--soft) }
select, input, button { font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--soft); border-radius: 6px; padding: 0.35rem 0.6rem; max-width: 100%; min-height: 2.25rem }
button { background: var(--link); border-color: var(--link); color: var(--panel); font-weight: 600; padding: 0.35rem 1.1rem; cursor: pointer }
.scroll { overflow-x: auto; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; margin: 0.6rem 0 }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
caption { text-align: left; padding: 0.6rem 0.9rem; color: var(--soft); font-size: 0.87rem }
th, td { text-align: left; vertical-align: top; padding: 0.5rem 0.9rem; border-top: 1px solid var(--line); overflow-wrap: break-word }
thead th { font-size: 0.85rem; color: var(--soft); font-weight: 600; white-space: nowrap; overflow-wrap: normal }
tbody th { font-weight: 600; min-width: 10.5rem; overflow-wrap: anywhere }
tbody th .soft { font-weight: 400 }
td.any { overflow-wrap: anywhere; min-width: 6rem }
td.tight { white-space: nowrap; overflow-wrap: normal }
td.wide { min-width: 16rem; width: 32%; overflow-wrap: anywhere }
td.number { text-align: right; white-space: nowrap }
thead th.number { text-align: right }
tbody tr:hover { background: var(--ground) }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0.35rem 1.25rem; margin: 0.6rem 0; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 0.9rem 1rem }
dt { color: var(--soft) }
dd { margin: 0; overflow-wrap: anywhere }
ol.timeline { list-style: none; margin: 0.6rem 0; padding: 0.9rem 1rem 0.4rem; background: var(--panel); border: 1px solid var(--line); border-radius: 8px }
ol.timeline li { position: relative; padding: 0 0 0.9rem 1.6rem; margin-left: 0.4rem; border-left: 2px solid var(--line) }
ol.timeline li:last-child { border-left-color: transparent }
ol.timeline li::before { content: ""; position: absolute; left: -0.44rem; top: 0.4rem; width: 0.75rem; height: 0.75rem; border-radius: 50%; background: var(--panel); border: 2px solid var(--soft) }
ol.timeline li.good::before { background: var(--good); border-color: var(--good) }
ol.timeline li.bad::before { background: var(--bad); border-color: var(--bad); border-radius: 2px }
ol.timeline h3 { margin: 0; font-size: 0.98rem }
ol.timeline p { margin: 0.1rem 0 0; overflow-wrap: anywhere }
.pages { display: flex; gap: 1.25rem; align-items: baseline; margin: 0.75rem 0 }
@media (max-width: 720px) {
  .instance { margin-left: 0 }
  form div, form button { flex: 1 1 8.5rem }
  select, input { width: 100% }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0 }
  dd { margin-bottom: 0.6rem }
  .scroll { border: 0; background: none; overflow: visible }
  .scroll table, .scroll caption, .scroll tbody, .scroll tr, .scroll th, .scroll td { display: block }
  .scroll caption { padding: 0.2rem 0 }
  .scroll thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
  .scroll tbody tr { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; margin: 0 0 0.75rem; padding: 0.6rem 0.9rem }
  .scroll tbody tr:hover { background: var(--panel) }
  .scroll tbody th, .scroll td, .scroll td.number { border: 0; padding: 0.1rem 0; min-width: 0; text-align: left; white-space: normal }
  .scroll td[data-label]::before { content: attr(data-label) ": "; color: var(--soft) }
  .scroll td:empty { display: none }
}
@media print { form, nav, .skip { display: none } }
`

/** A name that changes with the style sheet, so that it may be kept. */
export const styleVersion = createHash('sha256').update(style).digest('hex').slice(0, 12)

/** Of a browser's tab: a validator's seal. */
export const icon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="16" cy="16" r="14" fill="#0a56b0"/><path d="M9 16.5l5 5 9-11" fill="none" stroke="#fff" stroke-width="3.5"/></svg>'

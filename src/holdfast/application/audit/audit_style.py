"""How the reports look: one style for screens, light and dark, and for paper."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ground: #f4f5f3; --ink: #1d2522; --soft: #5a6660; --line: #d8ddd9;
  --accent: #0f5c4d; --good: #17663f; --good-bg: #e3f2e9; --bad: #a3221b; --bad-bg: #fbe7e5;
  --mind: #7a5200; --mind-bg: #fbf1da; --bar: #2f8f7a; --rest: #e0b04f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #1a211f; --ground: #121715; --ink: #e6ece9; --soft: #a3b0aa; --line: #35403b;
    --accent: #6fcdb6; --good: #86d9a8; --good-bg: #183527; --bad: #ff9d93; --bad-bg: #43201d;
    --mind: #f0c871; --mind-bg: #3b2f14; --bar: #4db39b; --rest: #b98a2c;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
main { max-width: 68rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
header.top { border-bottom: 3px solid var(--accent); padding-bottom: 1rem; margin-bottom: 1.5rem; }
header.top p { margin: .2rem 0 0; color: var(--soft); }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0; }
h2 { font-size: 1.2rem; margin: 0 0 .75rem; color: var(--accent); }
h3 { font-size: 1rem; margin: 1rem 0 .4rem; }
section {
  background: var(--paper); border: 1px solid var(--line); border-radius: 10px;
  padding: 1.1rem 1.25rem; margin: 0 0 1.25rem;
}
p { margin: .4rem 0; }
a { color: var(--accent); }
nav ul {
  list-style: none; display: flex; flex-wrap: wrap; gap: .35rem 1rem; padding: 0; margin: 0 0 1.25rem;
}
.soft { color: var(--soft); }
.mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .86em; }
.mono, td, dd { overflow-wrap: anywhere; }
.counts {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .6rem; margin: 0;
}
.counts div { border: 1px solid var(--line); border-radius: 8px; padding: .5rem .75rem; }
.counts dt { color: var(--soft); font-size: .85rem; }
.counts dd { margin: 0; font-size: 1.4rem; font-weight: 650; font-variant-numeric: tabular-nums; }
.columns {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 0 2rem;
  margin-top: 1.25rem;
}
.columns thead th:last-child, td.number { text-align: right; font-variant-numeric: tabular-nums; }
.verdict {
  border-left: 5px solid; border-radius: 6px; padding: .6rem .9rem; margin: 0 0 1rem; font-weight: 600;
}
.ok { color: var(--good); background: var(--good-bg); }
.bad { color: var(--bad); background: var(--bad-bg); }
.mind { color: var(--mind); background: var(--mind-bg); }
.verdict.ok, .verdict.bad, .verdict.mind { border-color: currentColor; }
.tag {
  display: inline-block; border-radius: 99px; padding: .02rem .55rem; font-size: .8rem; font-weight: 600;
  white-space: nowrap;
}
.tag.plain { border: 1px solid var(--line); color: var(--soft); font-weight: 500; }
ol.ladder { list-style: none; padding: 0; margin: 0 0 1rem; display: grid; gap: .5rem;
  grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); }
ol.ladder li {
  border: 1px solid var(--line); border-radius: 8px; padding: .55rem .75rem; color: var(--soft);
}
ol.ladder li.reached { border-color: var(--good); color: var(--ink); }
ol.ladder strong { display: block; }
ul.plain { list-style: none; padding: 0; margin: 0; }
table.pairs th[scope] { width: 30%; }
svg { display: block; width: 100%; height: auto; }
.fill { fill: var(--bar); } .rest { fill: var(--rest); } .back { fill: var(--line); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
caption { text-align: left; font-weight: 600; padding: .3rem 0 .4rem; font-size: .9rem; }
th, td {
  text-align: left; vertical-align: top; padding: .35rem .6rem .35rem 0; border-bottom: 1px solid var(--line);
}
thead th {
  color: var(--soft); font-weight: 600; border-bottom: 2px solid var(--line); white-space: nowrap;
}
tbody th { font-weight: 600; }
table.log { table-layout: fixed; min-width: 44rem; }
table.log th:nth-child(1) { width: 18%; }
table.log th:nth-child(2) { width: 17%; }
table.log th:nth-child(3) { width: 15%; }
table.log th:nth-child(5) { width: 6rem; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th.day { padding-top: .9rem; color: var(--accent); }
td.time, td.ref { font-variant-numeric: tabular-nums; }
td.time { white-space: nowrap; }
article { border: 1px solid var(--line); border-radius: 8px; padding: .75rem 1rem; margin: 0 0 .75rem; }
article h3 { margin: 0 0 .15rem; overflow-wrap: anywhere; }
article p.by { margin: 0 0 .5rem; color: var(--soft); font-size: .88rem; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .2rem .9rem; margin: .3rem 0 0; }
dl.facts dt { color: var(--soft); } dl.facts dd { margin: 0; white-space: pre-wrap; }
dl.facts ul { margin: 0; padding-left: 1.1rem; }
footer { color: var(--soft); font-size: .85rem; padding: 0 .25rem; }
@media (max-width: 40rem) {
  dl.facts { grid-template-columns: 1fr; } dl.facts dd { margin-bottom: .35rem; }
}
@page { size: A4; margin: 16mm 14mm; }
@media print {
  :root {
    --paper: #fff; --ground: #fff; --ink: #000; --soft: #444; --line: #bbb; --accent: #0a4a3d;
    --good: #0d4a2c; --good-bg: #fff; --bad: #8a1510; --bad-bg: #fff; --mind: #5c3d00; --mind-bg: #fff;
    --bar: #2f8f7a; --rest: #c9952f;
  }
  body { font-size: 9.5pt; line-height: 1.4; }
  main { max-width: none; padding: 0; }
  nav { display: none; }
  section { border: 0; border-top: 1px solid var(--line); border-radius: 0; padding: .6rem 0 0; }
  h2, h3, caption { break-after: avoid; }
  article, tr, .verdict, ol.ladder li, .counts div { break-inside: avoid; }
  thead { display: table-header-group; }
  .scroll { overflow: visible; }
  table.log { min-width: 0; }
  table { font-size: 8.5pt; }
  .tag { border: 1px solid currentColor; }
  svg { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

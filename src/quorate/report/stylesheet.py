"""The style sheet: light and dark, screen and paper. Nothing is told by hue alone, and no figure is a warning."""

from __future__ import annotations

from quorate.report.html import Markup

_LIGHT = """
  --paper: #fcfbf8; --ink: #1c2227; --muted: #56606a; --line: #dedad1; --track: #ebe7de;
  --deep: #1d4a73; --soft: #8db0cd; --rest: #b4b0a6; --chance: #a9b1b8;
"""
_DARK = """
  --paper: #13171b; --ink: #e8e5de; --muted: #a3adb6; --line: #2e353c; --track: #262d34;
  --deep: #8cc0ee; --soft: #4a7196; --rest: #5a636b; --chance: #6f7a84;
"""

_SCHEMES = f"""
:root {{ color-scheme: light dark; {_LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}
"""

_SCREEN = """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; max-width: 62rem; padding: 3.5rem 2rem 5rem; background: var(--paper); color: var(--ink);
  font: 400 .95rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere;
}
p, ul, dl, figure, h1, h2, h3 { margin: 0; }
h1, .promise, .figure {
  font-family: "Iowan Old Style", Charter, "Bitstream Charter", "Palatino Linotype", Palatino, "Source Serif 4",
    Georgia, Cambria, serif;
  font-weight: 400;
}
h1 { font-size: 1.5rem; line-height: 1.25; letter-spacing: -.005em; }
h2 { font-size: .8rem; line-height: 1.4; font-weight: 650; letter-spacing: .01em; }
h3 { font-size: .8rem; line-height: 1.4; font-weight: 650; margin: 1.6rem 0 .5rem; }
code, pre { font: .86em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.eyebrow { color: var(--muted); font-size: .8rem; margin-bottom: .4rem; }
.banner {
  position: sticky; top: 0; z-index: 2; margin: -3.5rem -2rem 2.5rem; padding: .6rem 2rem; text-align: center;
  background: var(--ink); color: var(--paper); font-weight: 650; letter-spacing: .02em;
}
.stamp {
  display: inline-block; margin-top: .5rem; padding: .15rem .45rem; border: 1.5px solid var(--ink);
  font-size: .68rem; line-height: 1.35; font-weight: 650;
}
.top { padding-bottom: 1.6rem; }
.glance { display: flex; flex-wrap: wrap; gap: .35rem 1.8rem; margin-top: .9rem; font-size: .84rem; }
.glance div { display: flex; gap: .45em; }
.glance dt { color: var(--muted); }
.glance dd { margin: 0; font-weight: 600; }
section {
  display: grid; grid-template-columns: 9.5rem minmax(0, 1fr); gap: 0 2.2rem;
  border-top: 1px solid var(--line); padding: 1.9rem 0 2.4rem;
}
section > header { padding-top: .15rem; }
.promise { font-size: 1.85rem; line-height: 1.27; letter-spacing: -.012em; max-width: 34ch; text-wrap: balance; }
.odds { margin-top: 1rem; max-width: 62ch; }
figure { margin-top: 1.4rem; }
svg { display: block; }
.pairs-of-worlds { display: grid; grid-template-columns: minmax(0, 1fr) 11rem; gap: 1.6rem; align-items: center; }
.dots { width: 100%; height: auto; }
figcaption { display: flex; flex-direction: column; gap: .5rem; }
figcaption { color: var(--muted); font-size: .84rem; }
figcaption span { display: grid; grid-template-columns: 1.3em minmax(0, 1fr); line-height: 1.4; }
.key { width: .85em; height: .85em; margin-top: .3em; }
.textures { position: absolute; width: 0; height: 0; }
.plain { padding-left: 1.1em; max-width: 68ch; }
.plain.halves { columns: 2; column-gap: 2.2rem; max-width: none; }
.plain li { break-inside: avoid; padding-left: .2em; margin-bottom: .18rem; }
.plain li::marker { color: var(--muted); content: "– "; }
.bigs { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 1.5rem; margin-bottom: 1.3rem; }
.bigs .name { font-size: .8rem; font-weight: 650; }
.bigs .figure { font-size: 2.6rem; line-height: 1.15; letter-spacing: -.02em; }
.bigs > div:not(:first-child) .figure { font-size: 1.8rem; line-height: 1.66; }
.note, .bigs .note { color: var(--muted); font-size: .84rem; }
.gauge { width: 100%; height: 1.5rem; }
.stacked { width: 100%; height: auto; margin-bottom: 1.1rem; }
.scale { display: flex; justify-content: space-between; color: var(--muted); font-size: .78rem; margin-bottom: 1.4rem; }
.pairs div { display: grid; grid-template-columns: 11rem minmax(0, 1fr); gap: 1rem; padding: .28rem 0; }
.pairs dt { color: var(--muted); }
.pairs dd { margin: 0; }
.pairs.small { font-size: .84rem; margin-top: 1rem; padding-top: .8rem; border-top: 1px solid var(--line); }
.reviewer { max-width: 72ch; }
table + .note, .scroll + .note { margin-top: .8rem; }
.apart { margin-top: 1.1rem; padding: .7rem 1rem; border: 1px dashed var(--muted); font-size: .88rem; }
.scroll { overflow-x: auto; }
p + .scroll { margin-top: .9rem; }
table { width: 100%; border-collapse: collapse; font-size: .86rem; line-height: 1.4; }
caption { text-align: left; color: var(--muted); padding-bottom: .5rem; caption-side: top; }
th, td { text-align: left; vertical-align: baseline; padding: .38rem .9rem .38rem 0; }
th, td { border-bottom: 1px solid var(--line); }
th:last-child, td:last-child { padding-right: 0; }
thead th { font-weight: 400; color: var(--muted); vertical-align: bottom; border-bottom-color: var(--muted); }
tbody th { font-weight: 600; }
.n { text-align: right; }
tbody th { overflow-wrap: anywhere; min-width: 6.5rem; }
td, thead th { overflow-wrap: normal; }
.n, td .at { white-space: nowrap; }
thead .n { white-space: normal; }
.swatch { display: inline-block; width: .85em; height: .85em; margin-right: .5em; vertical-align: -.06em; }
.bar { display: inline-block; width: 6.5rem; height: .5rem; vertical-align: .05em; }
.bar.against { width: 9rem; height: 1rem; vertical-align: -.2em; }
table.wide { font-size: .8rem; }
.ways .bar { display: block; width: 4.6rem; margin: .2rem 0 .1rem auto; }
.line-chart { mix-blend-mode: multiply; }
.line-chart + p, .scroll + ul { margin-top: .9rem; }
@media screen and (prefers-color-scheme: dark) {
  .line-chart { filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen; }
}
table:is(.wide, .names) tbody th { white-space: nowrap; }
table.wide .n:last-child { white-space: normal; }
table.wide :is(th, td):not(:last-child) { padding-right: .7rem; }
table.ways tbody th { white-space: normal; overflow-wrap: normal; min-width: 0; }
table.ways :is(th, td):not(:last-child) { padding-right: .55rem; }
td small { display: block; color: var(--muted); font-size: .9em; }
.multiples { margin-top: 1.3rem; }
.multiples td { white-space: nowrap; }
.multiples td .bar { width: 4rem; margin-right: .6em; }
.count { margin-top: .9rem; }
.grid {
  list-style: none; padding: 0; margin-top: .6rem; display: grid; gap: .55rem 1.2rem;
  grid-template-columns: repeat(auto-fill, minmax(8rem, 1fr)); font-size: .76rem; line-height: 1.3;
}
.grid .name { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-weight: 600; }
.grid .bar { display: block; width: 100%; height: .32rem; margin: .15rem 0; }
.grid .at { color: var(--muted); }
.checks { list-style: none; padding: 0; }
.checks li { display: grid; grid-template-columns: 9.6rem minmax(0, 1fr); padding: .3rem 0; }
.checks .meaning { color: var(--muted); }
.yes::before { content: "✓ "; }
.no { font-weight: 700; }
.no::before { content: "✕ "; }
.built::before { content: "= "; }
.open::before { content: "○ "; }
.verdict { font-weight: 700; }
details { margin-top: 1.1rem; font-size: .84rem; }
summary { cursor: pointer; color: var(--muted); }
pre { max-height: 28rem; overflow: auto; padding: 1rem; border: 1px solid var(--line); white-space: pre-wrap; }
footer { border-top: 1px solid var(--line); padding-top: 1rem; color: var(--muted); font-size: .84rem; }
.board > div { grid-template-columns: 8rem minmax(0, 1fr); padding: .4rem 0; }
.board p + p, .board ul + p { margin-top: .35rem; }
.ticks {
  list-style: none; padding: 0; margin-top: 1.2rem; display: grid; grid-template-columns: 1fr 1fr; gap: .3rem 2rem;
}
.ticks li { padding-left: 1.3em; text-indent: -1.3em; }
.summary .note, .summary .verdict, .summary .note + p { margin-top: .7rem; }
.sign { display: grid; grid-template-columns: auto repeat(3, 1fr); gap: 1.5rem; margin-top: 2.4rem; font-size: .84rem; }
.sign span { border-top: 1px solid var(--muted); color: var(--muted); padding-top: .2rem; margin-top: 1.1rem; }
.ink-1 { fill: var(--deep); }
.ink-2 { fill: url(#hatch); }
.ink-3 { fill: var(--soft); }
.ink-4 { fill: url(#grain); }
.ink-5 { fill: var(--muted); }
.ink-6 { fill: url(#weave); }
.attacker { display: grid; grid-template-columns: 12.5rem minmax(0, 1fr); gap: 1.6rem; align-items: center; }
.curves { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 15rem)); gap: 1.6rem; margin: .6rem 0; }
.curves figcaption { margin-top: .3rem; }
.trade-off { width: 100%; height: auto; overflow: visible; }
.trade-off text { font-size: 9px; fill: var(--muted); }
.trade-off .end { text-anchor: end; }
.trade-off .middle { text-anchor: middle; }
.trade-off path.guess { fill: none; stroke: var(--muted); stroke-dasharray: 3 3; }
.trade-off path.best { fill: none; stroke: var(--deep); stroke-width: 2; }
.trade-off path.axis { fill: none; stroke: var(--muted); }
.attacker p + p { margin-top: .6rem; }
.track { fill: var(--track); }
.tick { fill: var(--muted); }
.mark { fill: var(--ink); }
.ground { fill: var(--paper); }
.thread { stroke: var(--deep); stroke-width: 2; fill: none; }
.thread-dot { fill: var(--deep); }
.row { fill: none; stroke-linecap: round; stroke-dasharray: 0 10; }
.chance { stroke: var(--chance); }
.gain { stroke: var(--deep); }
.rest { stroke: var(--rest); }
.hollow { stroke: var(--paper); }
@media screen and (max-width: 44rem) {
  body { padding: 2rem 1.1rem 3rem; }
  .banner { margin: -2rem -1.1rem 1.5rem; }
  section { grid-template-columns: minmax(0, 1fr); gap: .8rem; padding: 1.4rem 0 1.8rem; }
  .promise { font-size: 1.45rem; }
  .ticks, .sign { grid-template-columns: minmax(0, 1fr); }
  .bigs, .pairs-of-worlds, .attacker { grid-template-columns: minmax(0, 1fr); gap: .8rem; }
  .plain.halves { columns: 1; }
  .pairs div { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .scroll caption { max-width: 100cqi; }
  .scroll {  /* a shade on the side to which a table goes on */
    container-type: inline-size;
    background: linear-gradient(to right, var(--paper) 40%, transparent) 0 0 / 2.5rem 100% no-repeat local,
      linear-gradient(to left, var(--paper) 40%, transparent) 100% 0 / 2.5rem 100% no-repeat local,
      linear-gradient(to right, var(--rest), transparent) 0 0 / .9rem 100% no-repeat scroll,
      linear-gradient(to left, var(--rest), transparent) 100% 0 / .9rem 100% no-repeat scroll;
  }
  .checks li { grid-template-columns: minmax(0, 1fr); padding: .5rem 0; }
  .grid .name { white-space: normal; }
}
"""

_INK_ON_PAPER = f"""
@media print {{ :root {{ color-scheme: light; {_LIGHT} --paper: #fff; }} }}
"""

_PAPER = """
@page {
  size: A4; margin: 12mm 15mm 13mm;
  @bottom-right { content: counter(page) " / " counter(pages); font: 7.5pt sans-serif; color: #56606a; }
}
@media print {
  html { font-size: 9.2pt; }
  body { max-width: none; padding: 0; font-size: .9rem; line-height: 1.42; print-color-adjust: exact;
    -webkit-print-color-adjust: exact; }
  .banner { position: static; margin: 0 0 1rem; }
  section { display: block; position: relative; padding: .65rem 0 .65rem 9.6rem; }
  section > header { position: absolute; left: 0; width: 8.4rem; }
  .top { padding-bottom: 1rem; }
  .promise { font-size: 1.6rem; max-width: 46ch; }
  .odds, .reviewer, .plain { max-width: none; }
  .pairs-of-worlds { grid-template-columns: 20rem minmax(0, 1fr); }
  .attacker { grid-template-columns: 5.2rem minmax(0, 1fr); margin-top: .3rem; gap: 1rem; font-size: .92em; }
  .attacker p + p { margin-top: .2rem; }
  figure { margin-top: .9rem; }
  h3 { margin: .8rem 0 .3rem; }
  .count { margin-top: .5rem; }
  .bigs { margin-bottom: .8rem; }
  .pairs div { padding: .12rem 0; }
  th, td { padding-top: .24rem; padding-bottom: .24rem; }
  section:is(.utility, .sensitivity) :is(th, td) { padding-top: .1rem; padding-bottom: .1rem; }
  .curves { grid-template-columns: 1fr 1fr; }
  .curves:has(> figure:only-child) { grid-template-columns: minmax(0, 1fr); }
  .curves > figure { display: grid; grid-template-columns: 6.8rem minmax(0, 1fr); gap: 1rem; }
  .checks { columns: 2; column-gap: 1.6rem; font-size: .8em; line-height: 1.34; }
  .checks li { display: block; padding: .16rem 0; }
  .checks li > span { font-weight: 700; }
  .grid { grid-template-columns: repeat(8, minmax(0, 1fr)); gap: .25rem .6rem; font-size: .6rem; }
  .scroll { overflow: visible; }
  details { display: none; }
  section, figure, table, dl, .bigs, .grid li, .checks li, .apart, tr { break-inside: avoid; }
  section:is(.composition, .implementation, .utility, .provenance, .internal) { break-inside: auto; }
  section:is(.composition, .implementation, .provenance) dl { break-inside: auto; }
  section.internal, section.guarantee { break-before: page; }
  h3, caption { break-after: avoid; }
}
"""

STYLE = Markup(_SCHEMES + _SCREEN + _INK_ON_PAPER + _PAPER)

STAMPED = {
    stamp: Markup('@page { @top-center { content: "' + stamp + '"; font: bold 9pt sans-serif; } }')
    for stamp in (
        "reproducible, therefore not private",
        "not for release",
        "reproducible, therefore not private · not for release",
    )
}  #: what each printed sheet says at its head; these texts alone, so that nothing from the facts enters the style sheet

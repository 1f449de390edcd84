"""What somebody with poor eyes, a screen reader or a keyboard would stumble over, in pages as Chromium lays them out.

Two checks see the same pages, each in a frame 400 pixels wide, in the light and in the dark scheme: one of our own, and
axe-core where ``QUORATE_AXE`` names its file (``.ci/run`` fetches it by npm). Ours computes the contrast of every text
as it is drawn, and asks for names of pictures and controls, the order of headings, a language, landmarks, heads of
tables, that nothing is wider than the frame, and that what can be scrolled can be reached by keyboard.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from html import escape, unescape
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
SCHEMES: Mapping[str, tuple[str, ...]] = {
    "light": ("--blink-settings=preferredColorScheme=1",),
    "dark": ("--blink-settings=preferredColorScheme=0",),
}
WIDTH = 400  # pixels

_OWN = """
function faults(document) {
  const found = new Set(), window = document.defaultView, all = [...document.querySelectorAll('body, body *')];
  const add = (what, element) => found.add(what + (element ? ': ' + element.tagName.toLowerCase() + ' ' +
    (element.textContent || '').trim().slice(0, 40) : ''));
  const numbers = colour => { const found = colour.match(/[\\d.]+/g).map(Number);
    return found.length < 4 ? [...found, 1] : found; };
  const over = (top, under) => [0, 1, 2].map(k => top[k] * top[3] + under[k] * (1 - top[3]));
  const luminance = rgb => { const [r, g, b] = rgb.map(v => v / 255).map(v =>
    v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
  function behind(element) {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const colour = numbers(window.getComputedStyle(at).backgroundColor);
      layers.push(colour);
      if (colour[3] === 1) break;
    }
    const dark = window.matchMedia('(prefers-color-scheme: dark)').matches;
    const scheme = window.getComputedStyle(document.documentElement).colorScheme;
    const canvas = dark && scheme.includes('dark') ? [18, 18, 18] : [255, 255, 255];
    return layers.reverse().reduce((under, top) => over(top, under), canvas);
  }
  for (const element of all) {
    const style = window.getComputedStyle(element), box = element.getBoundingClientRect();
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!own || !box.width || style.visibility === 'hidden' || element.closest('svg')) continue;
    const under = behind(element), text = over(numbers(style.color), under);
    const [light, dark] = [luminance(text), luminance(under)].sort((a, b) => b - a);
    if ((light + .05) / (dark + .05) < 4.5) add('contrast', element);
  }
  const named = element => (element.getAttribute('aria-label') || element.getAttribute('alt') ||
    element.getAttribute('title') || (element.labels && element.labels.length) ||
    (element.getAttribute('aria-labelledby') || '').split(' ').find(id => id && document.getElementById(id)) ||
    element.textContent.trim());
  const talking = 'a, button, input, select, textarea, summary, img, svg[role], [role=img]';
  for (const element of document.querySelectorAll(talking))
    if (!named(element)) add('name', element);
  for (const element of document.querySelectorAll('svg'))
    if (element.getAttribute('role') !== 'img' && element.getAttribute('aria-hidden') !== 'true')
      add('picture', element);
  for (const element of document.querySelectorAll('section'))
    if (!named(element)) add('section', element);
  const levels = [...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(each => Number(each.tagName[1]));
  if (levels[0] !== 1 || levels.filter(level => level === 1).length !== 1) add('one h1, and first');
  levels.forEach((level, at) => { if (at && level > levels[at - 1] + 1) add('order of headings'); });
  if (!document.documentElement.lang) add('language');
  if (!document.title) add('title');
  if (document.querySelectorAll('main').length !== 1) add('landmark main');
  for (const each of document.body.children)
    if (!each.matches('header, main, footer, nav, aside, script, style') && each.textContent.trim())
      add('outside', each);
  for (const table of document.querySelectorAll('table'))
    if (![...table.querySelectorAll('th')].length || [...table.querySelectorAll('th')].some(th => !th.scope))
      add('heads of a table', table);
  for (const th of document.querySelectorAll('th')) if (!th.textContent.trim()) add('head without words', th);
  for (const element of all) {
    const over = window.getComputedStyle(element).overflowX;
    if ((over === 'auto' || over === 'scroll') && element.scrollWidth > element.clientWidth && element.tabIndex < 0)
      add('no way there by keyboard', element);
    if ((over === 'hidden' || over === 'clip') && element.scrollWidth > element.clientWidth) add('cut', element);
  }
  for (const element of document.querySelectorAll('.scroll caption'))
    if (element.offsetWidth > element.closest('.scroll').clientWidth + 1) add('cut', element);
  const ids = [...document.querySelectorAll('[id]')].map(each => each.id);
  if (new Set(ids).size !== ids.length) add('an id twice');
  if (document.documentElement.scrollWidth > window.innerWidth) add('wider than the frame');
  return [...found];
}
"""

_RUN = """
onload = async () => {
  const told = {};
  for (const frame of document.querySelectorAll('iframe')) {
    const page = frame.contentDocument;
    const found = faults(page).map(each => 'own: ' + each);
    if (window.AXE) {
      const script = page.createElement('script');
      script.textContent = AXE;
      page.head.append(script);
      const result = await frame.contentWindow.axe.run(page, {iframes: false, resultTypes: ['violations']});
      for (const rule of result.violations) for (const node of rule.nodes)
        found.push('axe: ' + rule.id + ': ' + node.target.join(' '));
    }
    told[frame.title] = found;
  }
  const result = document.createElement('pre');
  result.id = 'result';
  result.textContent = JSON.stringify(told);
  document.body.append(result);
};
"""


def axe() -> str | None:
    """The source of axe-core; None where it is not here."""
    place = os.environ.get("QUORATE_AXE")
    return None if not place else Path(place).read_text(encoding="utf-8")


_SCROLLED = """
onload = () => {
  const page = document.querySelector('iframe').contentDocument;
  const wide = [page.documentElement, ...page.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth);
  const result = document.createElement('pre');
  result.id = 'result';
  result.textContent = JSON.stringify(wide.map(e => e.getAttribute('aria-label') || 'the page'));
  document.body.append(result);
};
"""


def scrolled_in_browser(page: str, folder: Path, *, width: int) -> list[str]:
    """Lay a page out in a frame of so many pixels, and name the parts of it that have to be moved to be seen whole."""
    frame = f'<iframe width="{width}" height="900" srcdoc="{escape(page)}"></iframe>'
    found: list[str] = _result(f"<script>{_SCROLLED}</script>{frame}", "light", folder)
    return found


def faults_in_browser(pages: Mapping[str, str], scheme: str, folder: Path, engine: str | None) -> dict[str, list[str]]:
    """Lay pages out and return what is wrong with each; by our own check, and by `engine` where it is given."""
    frames = "".join(
        f'<iframe title="{escape(name)}" width="{WIDTH}" height="900" srcdoc="{escape(page)}"></iframe>'
        for name, page in pages.items()
    )
    source = "" if engine is None else "window.AXE = " + json.dumps(engine).replace("</", "<\\/") + ";"
    found: dict[str, list[str]] = _result(f"<script>{source}{_OWN}{_RUN}</script>{frames}", scheme, folder)
    return found


def _result(body: str, scheme: str, folder: Path) -> Any:
    """Have the browser run a page of ours and read what it wrote at its end."""
    place = folder / f"{scheme}.html"
    place.write_text(f"<!doctype html><meta charset=utf-8><title>-</title>{body}", encoding="utf-8")
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS, *SCHEMES[scheme], f"--user-data-dir={folder}/profile", "--virtual-time-budget=60000"]
    done = subprocess.run([*command, "--dump-dom", f"file://{place}"], capture_output=True, check=True, timeout=300)
    told = re.search(r'<pre id="result">(.*?)</pre>', done.stdout.decode(), re.DOTALL)
    assert told is not None, "the browser did not come to the end"
    return json.loads(unescape(told[1]))


def picture(page: str, scheme: str, folder: Path, to: Path, *, width: int = WIDTH, height: int = 2400) -> None:
    """Keep a picture of a page. Chromium draws no window below 500 pixels, so a narrow page is drawn in a frame."""
    assert CHROMIUM is not None
    frame = f'<iframe width="{width}" height="{height}" style="border:0" srcdoc="{escape(page)}"></iframe>'
    (folder / "picture.html").write_text(f"<!doctype html><style>body{{margin:0}}</style>{frame}", encoding="utf-8")
    command = [CHROMIUM, *FLAGS, *SCHEMES[scheme], f"--user-data-dir={folder}/profile", f"--screenshot={to}"]
    size = f"--window-size={max(width, 500)},{height}"
    subprocess.run([*command, size, f"file://{folder}/picture.html"], capture_output=True, check=True, timeout=120)

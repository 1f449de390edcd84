"""What somebody with poor eyes, a screen reader or a keyboard would stumble over, in pages as Chromium lays them out.

Two checks see the same pages, each in a frame 400 pixels wide, in the light and in the dark scheme: one of our own, and
axe-core where ``QUORATE_AXE`` names its file (``.ci/run`` fetches it by npm). Ours computes the contrast of every text
as it is drawn, and asks for names of pictures and controls, the order of headings, a language, landmarks, heads of
tables, that nothing is wider than the frame, and that what can be scrolled can be reached by keyboard.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from html import escape, unescape
from html.parser import HTMLParser
from itertools import pairwise
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


VOID = {"meta", "br", "hr"}


class Page(HTMLParser):
    """Reads a page strictly: every tag is closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({key for key, _ in attrs}) == len(attrs)
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.words.append((self.open[-1] if self.open else "", data))

    def of(self, tag: str) -> list[str]:
        return [data for name, data in self.words if name == tag]

    def text(self) -> str:
        return " ".join(data for tag, data in self.words if tag != "style")


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    colour = "".join(2 * digit for digit in colour[1:]) if len(colour) == 4 else colour[1:]
    channels = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def faults_of(text: str) -> list[str]:
    """What a reader with a screen reader, poor eyes or a keyboard would stumble over (after the rules of axe)."""
    read, faults = Page(text), list[str]()
    tags = read.seen
    names = [tag for tag, _ in tags]
    if names.count("main") != 1 or names.count("h1") != 1 or "header" not in names or "footer" not in names:
        faults.append("landmarks")
    headings = [int(tag[1]) for tag in names if re.fullmatch(r"h[1-6]", tag)]
    if headings[:1] != [1] or any(after > before + 1 for before, after in pairwise(headings)):
        faults.append("order of headings")
    attributes = dict(tags[names.index("html")][1])
    metas = " ".join(str(a.get("content")) for tag, a in tags if tag == "meta")
    if attributes.get("lang") != "en" or "initial-scale=1" not in metas:
        faults.append("language or viewport")
    ids = [a["id"] for _, a in tags if "id" in a]
    if len(ids) != len(set(ids)):
        faults.append("an id twice")
    if any(a.get("aria-labelledby") not in ids for tag, a in tags if tag == "section"):
        faults.append("a section without a name")
    for tag, a in tags:
        if tag == "svg" and a.get("aria-hidden") != "true" and not (a.get("role") == "img" and a.get("aria-label")):
            faults.append("a picture without words")
        if tag == "th" and a.get("scope") not in ("col", "row"):
            faults.append("a head without a scope")
    if names.count("table") != names.count("caption"):
        faults.append("a table without a caption")
    for scheme in re.findall(r"--paper: (#\w+); --ink: (#\w+); --muted: (#\w+)", text):
        if min(contrast(scheme[0], other) for other in scheme[1:]) < 4.5:
            faults.append("contrast")
    if "prefers-color-scheme: dark" not in text:
        faults.append("dark scheme")
    return faults

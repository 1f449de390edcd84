"""From what is printed to the sentences about privacy in it: of a terminal table, a report's page, a model card."""

import re
from html.parser import HTMLParser

_ROWS = ("!", "caution:", "teachers", "noise", "ex post", "guarantee", "spent", "raised", "left", "failed", "shards",
         "answered", "ledger", "caveat")  # fmt: skip
_SECTIONS = ("summary", "guarantee", "composition", "implementation", "internal")
_SENTENCES = {"p", "li", "dd", "dt", "figcaption"}
_SILENT = {"head", "svg", "style", "details"}


def rows_of(table):
    """Return the lines of a terminal table that speak of privacy, each on one line."""
    rows = []
    for line in table.splitlines():
        if line.startswith(" " * 12) and rows:
            rows[-1] += f" {line.strip()}"
        else:
            rows.append(line)
    said = [re.sub(r"\s+", " ", row) for row in rows if row.startswith(_ROWS)]
    return [row for row in said if "answers left" not in row]


class _Page(HTMLParser):
    """Gathers the sentences of the sections about privacy."""

    def __init__(self):
        super().__init__()
        self.lines = []
        self._parts = []
        self._section, self._silent = "top", 0

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        if tag == "section":
            self._section = names.get("id") or names.get("aria-labelledby") or ""
        elif tag == "footer":
            self._section = "top"
        self._silent += tag in _SILENT
        if tag in _SENTENCES:
            self._end()
        else:
            self._parts.append(" ")

    def handle_endtag(self, tag):
        self._silent -= tag in _SILENT
        if tag in _SENTENCES:
            self._end(": " if tag == "dt" else "")

    def handle_data(self, data):
        if not self._silent and (self._section == "top" or self._section.startswith(_SECTIONS)):
            self._parts.append(data)

    def _end(self, mark=""):
        line = re.sub(r"\s+", " ", "".join(self._parts)).strip()
        self._parts = [f"{line}{mark}"] if mark else []
        if line and not mark:
            self.lines.append(line)


def sentences_of_page(page):
    parser = _Page()
    parser.feed(page)
    return list(dict.fromkeys(parser.lines))


def sentences_of_card(card):
    card = re.sub(r"\A---\n.*?^---\n", "", card, flags=re.MULTILINE | re.DOTALL)
    parts = re.split(r"^## ", card.strip().replace("\\", ""), flags=re.MULTILINE)
    said = [part for part in parts if not part.startswith(("How to use it", "Utility", "Provenance"))]
    lines = [line.strip() for part in said for line in part.splitlines()[1:]]
    return [line for line in lines if line and not line.startswith("|--") and not line.startswith("Classes:")]


_MOVING = (
    (re.compile(r"quorate \d+(\.\w+)+"), "quorate"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?"), "TIME"),
    (re.compile(r"\b[0-9a-f]{32,}\b"), "HASH"),
)


def settled(line, place):
    """Return a line without what moves from one run to the next."""
    line = line.replace(f"{place.resolve()}/", "").replace(f"{place}/", "")
    for moving, name in _MOVING:
        line = moving.sub(name, line)
    return line

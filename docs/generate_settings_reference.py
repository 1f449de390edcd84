"""Write the tables of keys, and of the fields of mechanisms, on docs/reference/settings.md from what they describe.

python docs/generate_settings_reference.py            writes it
python docs/generate_settings_reference.py --check    exit code 1 if it is not what would be written
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from quorate.folder.section import MISSING, Setting, settings_of_section
from quorate.folder.settings import SECTIONS
from quorate.folder.template import written
from quorate.mechanisms import (
    Mechanism,
    StreamMechanism,
    for_runs,
    noise_fields,
    required_fields,
    user_fields,
)
from quorate.mechanisms.fields import falls_with

PAGE = Path(__file__).parent / "reference" / "settings.md"
INDEX = Path(__file__).parent / "theory" / "README.md"  # which page is about which mechanism, in what order
HEAD = "| key | default | meaning |\n| --- | --- | --- |\n"
HEAD_OF_FIELDS = "| name | noise | also needed | may be given |\n| --- | --- | --- | --- |\n"
SCHEMA = (
    '| `[schema] COLUMN` | none | for `"direct"` and `"votes"` '
    "[without public rows](../how-to/learn-directly.md#without-public-rows), "
    'in place of `[data] public`: two numbers or two dates that bound the column (`age = [0, 120]`), `"number"`, the '
    'list of its values (`sex = ["F", "M"]`), or `"drop"`. Of sparse rows, `columns` alone: their number |'
)
SIGMA = (
    "| `[mechanism] sigma` | the least that the budget allows | noise in votes; other mechanisms have "
    "[fields of their own](#fields-of-each-mechanism) |"
)
AFTER = {"method": [SCHEMA], "mechanism": [SIGMA]}  # what follows the keys of a section


def main(arguments: list[str]) -> int:
    page = PAGE.read_text(encoding="utf-8")
    current = with_table(with_table(page, HEAD, table()), HEAD_OF_FIELDS, table_of_fields())
    if arguments == ["--check"]:
        if page == current:
            return 0
        print(f"{PAGE.name} is not current; run: python docs/generate_settings_reference.py")
        return 1
    PAGE.write_text(current, encoding="utf-8")
    return 0


def with_table(page: str, head: str, rows: str) -> str:
    before, head, after = page.partition(head)
    return before + head + rows + after[after.index("\n\n") + 1 :]


def table() -> str:
    lines = []
    for section, shape in SECTIONS.items():
        for key, setting in settings_of_section(shape).items():
            meaning = setting.help.replace("|", "\\|")
            lines.append(f"| `[{section}] {key}` | {default_of(setting)} | {meaning} |")
        lines += AFTER.get(section, [])
    return "\n".join(lines) + "\n"


def default_of(setting: Setting) -> str:
    if setting.default_words or setting.default is MISSING:
        return setting.default_words or "required"
    if setting.default is None or setting.default == ():
        return "none"
    return f"`{written(setting.default)}`"


def table_of_fields() -> str:
    kinds = for_runs()
    pages = re.findall(r"^\| \[[^]]+\]\(([\w-]+\.md)\) \|([^|]*)\|", INDEX.read_text(encoding="utf-8"), re.MULTILINE)
    rows = [(name, page) for page, names in pages for name in re.findall(r"`(\w+)`", names) if name in kinds]
    lines = [(f'[`"{name}"`](../theory/{page})', *cells_of(kinds[name])) for name, page in rows]
    return "".join(f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in line)}|\n" for line in lines)


def cells_of(kind: type[Mechanism]) -> tuple[str, str, str]:
    """Its noise, what a user must give beside, and what a user may give."""
    noise, needed = noise_fields(kind), required_fields(kind)
    of = "of the whole run" if issubclass(kind, StreamMechanism) else "of one answer"
    of = ", in votes" if falls_with(kind, noise[0]) else f" {of}"
    others = [part.name for part in fields(kind) if part.name in {*user_fields(kind)} - {*noise, *needed}]
    must = "; ".join(f"`{name}`: {meaning}" for name, (_, meaning) in needed.items())
    return f"{quoted(noise)}{of}", must, quoted(others)


def quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

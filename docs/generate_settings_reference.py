"""Write the table of keys on docs/reference/settings.md from the settings themselves.

python docs/generate_settings_reference.py            writes it
python docs/generate_settings_reference.py --check    exit code 1 if it is not what would be written
"""

from __future__ import annotations

import sys
from pathlib import Path

from quorate.folder.section import MISSING, Setting, settings_of_section
from quorate.folder.settings import SECTIONS
from quorate.folder.template import written

PAGE = Path(__file__).parent / "reference" / "settings.md"
HEAD = "| key | default | meaning |\n| --- | --- | --- |\n"
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
    before, head, after = page.partition(HEAD)
    current = before + head + table() + after[after.index("\n\n") + 1 :]
    if arguments == ["--check"]:
        if page == current:
            return 0
        print(f"{PAGE.name} is not current; run: python docs/generate_settings_reference.py")
        return 1
    PAGE.write_text(current, encoding="utf-8")
    return 0


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

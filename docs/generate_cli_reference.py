"""Write docs/reference/cli.md from the commands themselves.

python docs/generate_cli_reference.py            writes it
python docs/generate_cli_reference.py --check    exit code 1 if it is not what would be written
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import click

from quorate.cli.group import COMMANDS, EXIT_CODES, group

PAGE = Path(__file__).parent / "reference" / "cli.md"
HEAD = """\
# Commands

Made from the commands themselves by `docs/generate_cli_reference.py`; do not edit. `RUN` is a run's folder, by default
the one you are in. Every command has `--help`. Progress goes to standard error, results to standard output, and with
`--json` they are one JSON object. Refusals are listed under [errors](errors.md).
"""


def main(arguments: list[str]) -> int:
    page = reference()
    if arguments == ["--check"]:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page:
            return 0
        print(f"{PAGE.name} is not current; run: python docs/generate_cli_reference.py")
        return 1
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page, encoding="utf-8")
    return 0


def reference() -> str:
    parts = [HEAD]
    context = click.Context(group, info_name="quorate")
    for name in COMMANDS:
        command = group.get_command(context, name)
        if command is None:
            raise LookupError(name)
        parts += [f"## quorate {name}\n", *described(command, f"quorate {name}")]
        if isinstance(command, click.Group):
            for sub in command.list_commands(context):
                inner = command.commands[sub]
                parts += [f"### quorate {name} {sub}\n", *described(inner, f"quorate {name} {sub}")]
    return "\n".join([*parts, "## Exit codes\n", exit_codes()])


def described(command: click.Command, name: str) -> list[str]:
    """Its text, how it is typed, and a table of its options."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(command.help or ""))
    text = "\n\n".join(paragraph(part) for part in paragraphs) + "\n"
    if isinstance(command, click.Group):
        return [text]
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    options = [each for each in command.params if isinstance(each, click.Option)]
    typed = " ".join([name, *(word(each) for each in arguments), *(["[OPTIONS]"] if options else [])])
    table = ["| option | meaning |", "| --- | --- |", *(row(each) for each in options)]
    return [text, f"Usage: `{typed}`\n", *(["\n".join(table) + "\n"] if options else [])]


def paragraph(part: str) -> str:
    """A paragraph on one line; one whose lines stay as they are, for click, is a block of them."""
    if part.startswith("\b\n"):
        return f"```text\n{part[2:]}\n```"
    return " ".join(part.split())


def word(argument: click.Argument) -> str:
    shown = argument.metavar or (argument.name or "").upper()
    return shown if argument.required or shown.startswith("[") else f"[{shown}]"


def row(option: click.Option) -> str:
    name = ", ".join(option.opts)
    if isinstance(option.type, click.Choice):
        name += " " + "\\|".join(map(str, option.type.choices))
    elif not option.is_flag:
        name += f" {(option.metavar or option.type.name).upper()}"
    notes = ["required"] if option.required else []
    if option.show_default and option.default is not None:
        notes.append(f"default: {option.default}")
    meaning = " ".join((option.help or "").split()) + (f" ({'; '.join(notes)})" if notes else "")
    return f"| `{name}` | {meaning} |"


def exit_codes() -> str:
    """The table that `quorate --help` prints, in the order of the codes."""
    found = sorted(re.findall(r"(\d)  (.+?)(?=\s{2,}\d  |\n|$)", EXIT_CODES))
    rows = (f"| {code} | {text.strip()} |" for code, text in found)
    return "\n".join(["| code | meaning |", "| --- | --- |", *rows]) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``quorate init``: a commented ``quorate.toml`` to fill in, or one that begins with the columns of a table."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorate.arguments import for_shell
from quorate.cli.options import WholeAtLeast, number
from quorate.cli.stopping import interrupted_as
from quorate.errors import Interrupted, PreconditionFailed, QuorateError

if TYPE_CHECKING:
    from quorate.folder.begin import Begun

_FILE = click.Path(path_type=Path)


@click.command(name="init")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=".")
@click.option(
    "--from", "private", type=_FILE, help="Your private table. Its first line is read, the names of the columns, and "
    "nothing else of it."
)  # fmt: skip
@click.option("--public", type=_FILE, help="The table of public rows; it says what the columns hold.")
@click.option("--evaluation", type=_FILE, help="A table of public rows with labels, to score the student on.")
@click.option("--label", help="The column to predict.")
@click.option("--classes", help="Every label there may be, with commas between: no,yes. Never read off private rows.")
@click.option("--target", help="The column to predict if it is a number; use it in place of --label and --classes.")
@click.option("--range", help="With --target: the least and the largest value it can have, from public knowledge, such "
    "as 0,5000. Never read them off private rows.")  # fmt: skip
@click.option("--unit", help="The column that says whose row it is; without it the guarantee is per record.")
@click.option("--unit-name", help="The word for one unit, in the singular, as reports print it: patient.")
@click.option("--n-records", type=WholeAtLeast(min=1), help="How many records (with --unit: units), if public.")
@click.option("--n-rows", type=WholeAtLeast(min=1), help="With --unit: how many rows, if a unit has several.")
@click.option("--epsilon", type=number, help="The cap for the life of these data. There is no default.")
@click.option("--delta", type=number, help="Below 1 / number of units.")
@click.option("--yes", is_flag=True, help="Ask nothing: what is not given stays to be filled in.")
def command(folder: Path, private: Path | None, yes: bool, **given: Any) -> None:
    """Write a commented quorate.toml into FOLDER (default: here). An existing one is never overwritten.

    With --from it begins with the columns of your table, and asks for what only you can know. No private row is read.
    """
    path = folder / "quorate.toml"
    if path.exists():
        raise PreconditionFailed(f"{path} exists already; edit it, or choose another folder")
    from quorate.folder.template import filled, keys_lacking, template

    text, left, following = template(), ["[data]", "[budget] epsilon", "[budget] delta"], "plan"
    if private is not None:
        from quorate.folder.begin import Begun
        from quorate.folder.begin_words import column_lines

        begun = Begun.of(private, **given)
        if not yes:
            begun = _ask_or_nothing(begun)
        answers = begun.answers(folder)
        text, left = filled(answers), keys_lacking(answers)
        following = begun.next_command
        for line in column_lines(begun):
            click.echo(line)
    elif any(value is not None for value in given.values()):
        raise click.UsageError("these options go with --from, the private table whose columns they are about")
    from quorate.release.keys import write_atomically

    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode(), mode=0o644)
    click.echo(f"wrote {path}")
    if left:
        lacking = [key for key in left if key.startswith("[budget] ")]
        steps = [f"fill in {key}" for key in left if key not in lacking and key != "[data]"]
        if "[data]" in left:
            steps.insert(0, "check [data]")
        if lacking:
            keys = " and ".join(key.removeprefix("[budget] ") for key in lacking)
            steps.append(f"fill in {keys} under [budget], which {'have' if len(lacking) > 1 else 'has'} no default")
        click.echo("; ".join(steps))
    then = f"next: {'edit it, then ' if left else ''}quorate {following} {for_shell(folder)}"
    if following == "plan" and private is not None and begun.n_records is None:
        then += f", which needs [data] n_records; else quorate check {for_shell(folder)}"
    if private is None:
        then += f" (without public rows quorate check {for_shell(folder)} --look)"
    click.echo(then)


def _ask_or_nothing(begun: Begun) -> Begun:
    """Ask; where that is broken off, say that nothing was written."""
    words = "interrupted; nothing was written, and the same command begins again"
    with interrupted_as(Interrupted(words, charged="nothing was charged")):
        try:
            return _ask(begun)
        except (click.Abort, KeyboardInterrupt):
            click.echo(err=True)  # the question has no end of line
            raise


def _ask(begun: Begun) -> Begun:
    """Ask for what was not given; an empty answer leaves it to be filled in."""
    from quorate.folder.begin import QUESTIONS
    from quorate.folder.begin_words import hint

    if not sys.stdin.isatty():
        raise PreconditionFailed(
            "init asks at a terminal, and there is none; give --yes, and by options what is known: --label and "
            "--classes, or for a number --target and --range, --public, --unit where a person has several rows, "
            "--epsilon, --delta"
        )
    for key in QUESTIONS:
        while begun.wants(key):
            if beside := hint(begun, key):
                click.echo(beside)
            signal.siginterrupt(signal.SIGINT, True)  # polars has its own handler, with which a read would go on
            default = begun.default(key)
            typed = click.prompt(begun.question(key), default=default, show_default=bool(default))
            if not typed.strip():
                break
            try:
                answered = begun.with_answer(key, typed.strip())
            except QuorateError as refusal:
                click.echo(str(refusal))
                continue
            if (doubt := answered.doubt(key)) and not click.confirm(f"{doubt}. Is it meant so", default=False):
                continue
            begun = answered
    return begun

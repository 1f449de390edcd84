"""Arguments and options that several commands share, and a mechanism that is named with its fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorate.cli.unforeseen import run_in_question
from quorate.errors import InvalidParameter

if TYPE_CHECKING:
    from quorate.mechanisms import Mechanism


GLOSSARY = "The words are explained in docs/glossary.md."


def in_question(_: click.Context, __: click.Parameter, run: Path) -> Path:
    """Note which run a command is about, for what has to be kept on its private side."""
    run_in_question.set(run)
    return run


run_folder = click.argument(
    "run",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="[RUN]",
    callback=in_question,
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")


class Number(click.types.FloatParamType):
    """A number with a point; what is refused is told in words, such as a decimal comma."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it as Python does."""
        try:
            return float(value)
        except ValueError:
            return self.fail(f"expected a number with a point, such as 1.0, got {value!r}", param, ctx)


class NumberAbove(click.FloatRange, Number):
    """The same above a bound."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it, and say the bound in the same words."""
        number = Number.convert(self, value, param, ctx)
        if not number > self.min:  # written this way round so that NaN is refused too
            self.fail(f"expected a number > {self.min:g}, got {value!r}", param, ctx)
        return number


class Whole(click.types.IntParamType):
    """A whole number; what is refused is told in words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it as Python does."""
        try:
            return int(value)
        except ValueError:
            return self.fail(f"expected a whole number, such as 1000, got {value!r}", param, ctx)


class WholeAtLeast(click.IntRange, Whole):
    """The same, with a least one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it, and say the bound in the same words."""
        number = Whole.convert(self, value, param, ctx)
        if number < self.min:
            self.fail(f"expected a whole number >= {self.min}, got {value!r}", param, ctx)
        return number


number = Number()
whole = Whole()


def say_before(words: str) -> None:
    """Say what takes a while, beside what the command prints."""
    click.echo(words, err=True)


def print_json(value: Any) -> None:
    """Print one object, with Greek letters as they are."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


mechanism_fields = click.option(
    "--set", "given", multiple=True, metavar="FIELD=VALUE", help="A field of the mechanism."
)


def mechanism_class(name: str, called: str = "--mechanism") -> type[Mechanism]:
    """Return the class of one of quorate's mechanisms, or of ``package.module:Class``, which is imported.

    A module of the current folder is found too.
    """
    from quorate.arguments import one_of
    from quorate.mechanisms import for_runs
    from quorate.voting.models import mechanism_of

    kind = mechanism_of(name, folder=Path.cwd())
    if isinstance(kind, str):
        hint = 'A class of your own is written "package.module:Class"'
        return for_runs()[one_of(called, kind, for_runs(), hint=hint)]
    return kind


def fields_of(given: tuple[str, ...]) -> dict[str, Any]:
    """Read ``FIELD=VALUE`` pairs; what looks like a number is one."""
    fields: dict[str, Any] = {}
    for pair in given:
        field, equals, value = pair.partition("=")
        if not equals:
            raise InvalidParameter(f"--set must be FIELD=VALUE, got {pair!r}")
        fields[field.strip()] = _value(value.strip())
    return fields


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

"""Arguments and options that several commands share, and a mechanism that is named with its fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

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


class _InWords(click.ParamType[Any]):
    """A number of which is told in words what was expected: such as a point for a decimal comma, or the least one."""

    kind: ClassVar[tuple[Callable[[Any], Any], str, str]]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it as Python does."""
        read, word, example = self.kind
        try:
            number = read(value)
        except ValueError:
            return self.fail(f"expected {word}{example}, got {value!r}", param, ctx)
        least = getattr(self, "min", None)
        sign = ">" if getattr(self, "min_open", False) else ">="
        if least is not None and not (number > least if sign == ">" else number >= least):  # so that NaN is refused too
            self.fail(f"expected {word} {sign} {least:g}, got {value!r}", param, ctx)
        return number


class Number(_InWords, click.types.FloatParamType):
    """A number with a point."""

    kind = (float, "a number", " with a point, such as 1.0")


class NumberAbove(Number, click.FloatRange):
    """The same above a bound."""


class Whole(_InWords, click.types.IntParamType):
    """A whole number."""

    kind = (int, "a whole number", ", such as 1000")


class WholeAtLeast(Whole, click.IntRange):
    """The same, with a least one."""


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
    """Return the class of one of quorate's mechanisms, or of ``package.module:Class``, which is imported, here too."""
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

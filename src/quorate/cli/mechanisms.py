"""A mechanism that is named on the command line, with its fields."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorate.errors import InvalidParameter

if TYPE_CHECKING:
    from quorate.mechanisms import Mechanism

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
    """Read ``FIELD=VALUE`` pairs; what looks like a number is one.

    Examples
    --------
    >>> fields_of(("sigma=40", "calibration=tight"))
    {'sigma': 40, 'calibration': 'tight'}
    """
    fields: dict[str, Any] = {}
    for each in given:
        field, equals, value = each.partition("=")
        if not equals:
            raise InvalidParameter(f"--set must be FIELD=VALUE, got {each!r}")
        fields[field.strip()] = _value(value.strip())
    return fields


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

"""A section of ``quorate.toml`` as a frozen dataclass, whose fields are its keys: each has its check, default and help.

What reads a file, writes a new one or documents the keys follows from the fields, so that a key stands in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from quorate.arguments import count, nearest, one_of
from quorate.errors import InvalidParameter

Label = str | int | bool
Check: TypeAlias = Callable[[str, Any], Any]
S = TypeVar("S")
_SETTING: Final = "setting"


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One key. `check`: takes what refusals call the key, and the value as TOML has it; returns what is used, or raises
    InvalidParameter. A path that it returns is relative to the file. `help`: for the page on settings; its first
    sentence stands beside the key in a new file. `default`: MISSING where the key is required. `default_words`: what
    the page says of it, where the value says too little. `example`: the value in a new file, where the key is a comment
    unless it is `written`; None for a key that a new file does not have. `argument`: what it is called in Python.
    `required`: what is said where it is missing.
    """

    check: Check
    help: str = ""
    default: Any
    default_words: str = ""
    example: Any = None
    written: bool = False
    argument: str = ""
    required: str = ""
    name: str = ""


def setting(check: Check, help: str = "", *, default: Any = MISSING, **more: Any) -> Any:  # noqa: A002 - as click calls it
    """Return the field of a key; see :class:`Setting`."""
    known = Setting(check=check, help=help, default=default, **more)
    return field(default=default, metadata={_SETTING: known})


def settings_of_section(section: type) -> dict[str, Setting]:
    """Return the keys of a section, in their order."""
    settings = {part.name: part.metadata[_SETTING] for part in fields(section) if _SETTING in part.metadata}
    return {key: replace(known, name=key, argument=known.argument or key) for key, known in settings.items()}


def no_section(name: str, sections: Collection[str]) -> str:
    """Say that quorate.toml has no such section, and which one may be meant."""
    near = get_close_matches(name, sorted(sections), n=1, cutoff=0.5)
    hint = f"; did you mean [{near[0]}]?" if near else f"; its sections are {', '.join(sorted(sections))}"
    return f"quorate.toml has no section [{name}]{hint}"


def read_section(
    name: str,
    given: Mapping[str, Any],
    section: type[S],
    folder: Path,
    *,
    keys: Collection[str] | None = None,
    more: Collection[str] = (),
    others: Mapping[str, type] = MappingProxyType({}),
    **values: Any,
) -> S:
    """Check what stands in a section `name`. `folder`: what paths are relative to. `keys`: those of its own that may
    stand there, by default all. `more`: others, left to the caller. `others`: sections that may have an unknown key.
    `values`: of fields that are no keys, or were read.
    """
    settings = {key: known for key, known in settings_of_section(section).items() if keys is None or key in keys}
    allowed = [*settings, *more]
    for key in given:
        if key not in allowed:
            near = _of_another(key, others) or nearest(key, allowed)
            near = near or f"; its keys are {', '.join(sorted(allowed))}"
            raise InvalidParameter(f"[{name}] has no key {key!r}{near}", parameter=key)
    for key, known in settings.items():
        if key in given and key not in values:
            value = known.check(f"[{name}] {key}", given[key])
            values[key] = folder / value if isinstance(value, Path) else value
        elif known.default is MISSING and key not in values:
            raise InvalidParameter(f"[{name}] {key} is required. {known.required}".rstrip())
    return section(**values)


def _of_another(key: str, others: Mapping[str, type]) -> str:
    """Say which other sections have this key; "" where none has."""
    names = [f"[{name}]" for name, section in others.items() if key in settings_of_section(section)]
    return f"; {' and '.join(names)} {'has' if len(names) == 1 else 'have'} one" if names else ""


def as_it_is(_: str, value: Any) -> Any:
    """Leave a value to a check that rests on other keys."""
    return value


def string(name: str, value: Any) -> str:
    """Read a text."""
    if not isinstance(value, str) or not value:
        raise InvalidParameter(parameter=name, got=value, expected="a text in quotes")
    return value


def path(name: str, value: Any) -> Path:
    """Read the path of a file or a folder."""
    return Path(string(name, value))


def labels(name: str, value: Any) -> tuple[Label, ...]:
    """Read the classes."""
    if not isinstance(value, list) or not all(isinstance(item, str | int | bool) for item in value):
        raise InvalidParameter(
            parameter=name,
            got=value,
            expected='a list of texts, whole numbers or truth values (["no", "yes"], [0, 1], [false, true])',
        )
    if len(value) < 2:
        raise InvalidParameter(parameter=name, got=value, expected="a list of at least two labels")
    return tuple(value)


def flag(name: str, value: Any) -> bool:
    """Read a truth value."""
    if not isinstance(value, bool):
        raise InvalidParameter(parameter=name, got=value, expected="true or false", advice="write it without quotes")
    return value


def choice(*allowed: str) -> Check:
    """Return what reads one of some words."""
    return partial(one_of, allowed=allowed)


def whole_number(*words: str, at_least: int = 0) -> Check:
    """Return what reads a whole number, or one of `words`."""

    def read(name: str, value: Any) -> int | str:
        if words and isinstance(value, str):
            listed = " or ".join(f'"{word}"' for word in words)
            return one_of(name, value, words, hint=f"A whole number or {listed} is expected")
        return count(name, value, at_least=at_least)

    return read


def built_in_or_own(name: str, value: Any, *, built_in: Collection[str]) -> str:
    """Read a built-in name, or the name of the user's own code, which is not imported to read a file."""
    if isinstance(value, str) and (value in built_in or ":" in value):
        return value
    return one_of(name, value, built_in, hint='A factory of your own is written "package.module:factory"')

"""One section of ``quorate.toml`` while it is read: every refusal names the section and the key."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any, Final

from quorate.arguments import count, nearest, one_of
from quorate.errors import InvalidParameter

Label = str | int | bool
ARGUMENT: Final = "argument"  # in the metadata of a key's field: what it is called in Python, where that is not the key


class Section:
    """What a section was given, beside the defaults of its `shape`; a key that is none is refused at once."""

    def __init__(self, name: str, document: Mapping[str, Any], shape: type, more: Collection[str] = ()) -> None:
        self.name = name
        self.more = more
        self.given: Mapping[str, Any] = document.get(name, {})
        self.defaults = {part.name: part.default for part in fields(shape) if part.name != "fields"}
        allowed = [*self.defaults, *more]
        for key in self.given:
            if key not in allowed:
                raise InvalidParameter(f"[{name}] has no key {key!r}{nearest(key, allowed)}")

    def required(self, key: str) -> Any:
        """Return what was given; a key that must be there is refused where it is not."""
        if key not in self.given:
            hints = {
                "private": ' The rows to protect. Example: private = "visits.csv"',
                "public": ' Rows that may be shown. Example: public = "survey.csv"',
                "label": ' The column to predict. Example: label = "diagnosis"',
                "classes": " Reading the label set from the data can reveal that a rare label is present. Example: "
                'classes = ["no", "yes"]',
                "epsilon": " There is no default: it is your decision. Example: epsilon = 1.0",
                "name": ' Example: name = "north"',
                "votes": ' The file that the site has signed. Example: votes = "north.votes"',
                "key": " What quorate votes keys has printed at the site, in quotes",
                "model": ' The name of a language model at the endpoint. Example: model = "qwen2.5-7b-instruct"',
                "delta": " There is no default: below 1/n. Example: delta = 1e-6",
            }
            raise InvalidParameter(f"[{self.name}] {key} is required.{hints.get(key, '')}")
        return self.given[key]

    def optional(self, key: str, read: Any) -> Any:
        """Return what `read` makes of a key, or None."""
        return read(key) if key in self.given else None

    def text(self, key: str) -> str:
        """Read a text."""
        value = self.required(key)
        if not isinstance(value, str) or not value:
            raise InvalidParameter(f"[{self.name}] {key} must be a text in quotes, got {value!r}")
        return value

    def names(self, key: str) -> tuple[str, ...]:
        """Read names of columns: a list, or one."""
        value = self.given.get(key, [])
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise InvalidParameter(f'[{self.name}] {key} must name columns (["review"]), got {value!r}')
        return tuple(value)

    def classes(self, key: str) -> tuple[Label, ...]:
        """Read the classes."""
        value = self.required(key)
        if not isinstance(value, list) or not all(isinstance(item, str | int | bool) for item in value):
            raise InvalidParameter(
                f"[{self.name}] {key} must be a list of texts, whole numbers or truth values "
                f'(["no", "yes"], [0, 1], [false, true]), got {value!r}'
            )
        return tuple(value)

    def number(self, key: str, *, at_least: int = 0) -> int:
        """Read a whole number that was given."""
        return count(f"[{self.name}] {key}", self.required(key), at_least=at_least)

    def count(self, key: str, *, at_least: int = 0) -> int:
        """Read a whole number."""
        return count(f"[{self.name}] {key}", self.given.get(key, self.defaults[key]), at_least=at_least)

    def count_or(self, key: str, words: tuple[str, ...], *, at_least: int) -> int | str:
        """Read a whole number, or one of `words`."""
        value = self.given.get(key, self.defaults[key])
        if isinstance(value, str):
            listed = " or ".join(f'"{word}"' for word in words)
            return one_of(f"[{self.name}] {key}", value, words, hint=f"A whole number or {listed} is expected")
        return self.count(key, at_least=at_least)

    def flag(self, key: str) -> bool:
        """Read a truth value."""
        value = self.given.get(key, self.defaults[key])
        if not isinstance(value, bool):
            raise InvalidParameter(f"[{self.name}] {key} must be true or false, got {value!r}; write it without quotes")
        return value

    def choice(self, key: str, allowed: tuple[str, ...]) -> str:
        """Read one of the allowed words."""
        return one_of(f"[{self.name}] {key}", self.given.get(key, self.defaults[key]), allowed)

    def model(self, key: str, built_in: tuple[str, ...]) -> str:
        """Read the name of a model, or of a factory."""
        return self.named(key, built_in, hint='A factory of your own is written "package.module:factory"')

    def named(self, key: str, built_in: tuple[str, ...], *, hint: str) -> str:
        """Read a built-in name, or a name of the user's own code."""
        value = self.given.get(key, self.defaults[key])
        if isinstance(value, str) and (value in built_in or ":" in value):
            return value
        return one_of(f"[{self.name}] {key}", value, built_in, hint=hint)

"""Plain values: numbers, words, and frozen trees of them, checked when they are made and read back from JSON.

A report is made from plain values alone. What is not one (a Secret, an array, a model) is refused at the place
where it is put in, so that it cannot be printed further down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from json import dumps, loads
from math import isfinite
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, ClassVar, Final, Union, cast, get_args, get_origin, get_type_hints

from quorate.accounting import Guarantee
from quorate.errors import InvalidParameter, SecretRefused
from quorate.findings import Finding, Outcome
from quorate.types import Secret


@dataclass(frozen=True, kw_only=True, slots=True)
class Plain:
    """Base of every part of a report: a frozen value whose fields are plain, checked when it is made.

    Fields take what their annotation says and what means the same: numpy scalars for numbers, lists for tuples.
    Booleans and strings in place of numbers, NaN, infinities, and any Secret are refused.

    Raises InvalidParameter a field is of the wrong kind or out of range; SecretRefused a field was given a
    :class:`~quorate.types.Secret`.
    """

    #: Fields of a later version, which are not written where they are None: what an earlier one wrote stays as it is.
    LEFT_OUT: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name, hint in _hints(cast(Any, type(self))).items():
            object.__setattr__(self, name, read(hint, getattr(self, name), f"{type(self).__name__}.{name}"))
        self._check()

    def _check(self) -> None:
        """Refuse fields that do not fit together."""


def require(good: bool, message: str) -> None:
    """Refuse a value that is out of range."""
    if not good:
        raise InvalidParameter(message)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return {name: hint for name, hint in get_type_hints(kind).items() if name in {f.name for f in fields(kind)}}


def read(hint: Any, value: Any, where: str) -> Any:
    """Return `value` as the plain value that `hint` describes; `where` names it in errors.

    `hint`: ``int``, ``float``, ``str``, ``bool``, an enumeration of words, a :class:`Plain` class, ``Guarantee``, a
    :class:`~quorate.findings.Finding`, a tuple of these, or one of these ``| None``. `value`: a value of that kind, or
    what JSON holds in its place (lists for tuples, objects for frozen trees). `where`: ``"Class.field"``. A refusal
    names the kind of `value`, never the value.
    """
    if isinstance(value, Secret):
        raise SecretRefused(f"{where} is printed, and a Secret never is: pass what was released in its place")
    if get_origin(hint) in (Union, UnionType):
        if value is None and NoneType in get_args(hint):
            return None
        (hint,) = (arm for arm in get_args(hint) if arm is not NoneType)
    if get_origin(hint) is tuple:
        return _read_tuple(get_args(hint), value, where)
    if hint is int and not isinstance(value, bool) and isinstance(value, Integral):
        return int(value)
    if hint is float and not isinstance(value, bool) and isinstance(value, Real):
        if not isfinite(value):
            raise InvalidParameter(f"{where}: expected a finite number, got {float(value)!r}")
        return float(value)
    if hint is bool and isinstance(value, bool):
        return value
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        if not isinstance(value, str) or value not in tuple(hint):
            raise InvalidParameter(f"{where}: expected one of {', '.join(hint)}")
        return hint(value)
    if hint is str and isinstance(value, str):
        if any(0xD800 <= ord(char) <= 0xDFFF for char in value):
            raise InvalidParameter(f"{where}: expected text that UTF-8 can hold, got an unpaired surrogate")
        return str(value)
    if hint is Finding:
        return _read_finding(value, where)
    if is_dataclass(hint) and isinstance(hint, type):
        if isinstance(value, hint):
            return value
        if isinstance(value, Mapping):
            return _read_tree(hint, value, where)
    raise InvalidParameter(f"{where}: expected {getattr(hint, '__name__', hint)}, got {type(value).__name__}")


def _read_tuple(hints: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise InvalidParameter(f"{where}: expected a tuple, got {type(value).__name__}")
    if hints[1:] == (...,):
        return tuple(read(hints[0], item, where) for item in value)
    if len(value) != len(hints):
        raise InvalidParameter(f"{where}: expected {len(hints)} values, got {len(value)}")
    return tuple(read(hint, item, where) for hint, item in zip(hints, value, strict=True))


def _read_finding(value: Any, where: str) -> Finding:
    """Read the answer to a question; one that nothing looked into is never "passed"."""
    tree = value.answer_tree() if isinstance(value, Finding) else value
    if not isinstance(tree, Mapping):
        raise InvalidParameter(f"{where}: expected Finding, got {type(value).__name__}")
    _refuse_other_keys(tree, where, known=_ANSWER, needed=("code", "question", "outcome", "evidence"))
    fields_of = {key: read(hint, tree.get(key), f"{where}.{key}") for key, hint in _ANSWER.items()}
    code, outcome, ran = fields_of["code"], fields_of["outcome"], fields_of["ran"]
    require(
        (outcome in (Outcome.PASSED, Outcome.FAILED)) == (ran is not None),
        f"check {code!r}: only a function that ran can end in passed or failed; "
        + ("name it" if ran is None else "leave out ran"),
    )
    return Finding(words=fields_of.pop("question"), **fields_of)


#: What facts hold of a finding: the answer to a question.
_ANSWER: Final[Mapping[str, Any]] = {
    "code": str,
    "question": str,
    "outcome": Outcome,
    "evidence": str,
    "ran": str | None,
    "remedy": str | None,
}


def _refuse_other_keys(value: Mapping[str, Any], where: str, *, known: Iterable[str], needed: Iterable[str]) -> None:
    if unknown := sorted(set(value) - set(known)):
        raise InvalidParameter(f"{where}: no field is called {unknown[0]!r}; a newer version may have written it")
    if missing := sorted(set(needed) - set(value)):
        raise InvalidParameter(f"{where}: {missing[0]!r} is missing")


def _read_tree(kind: type, value: Mapping[str, Any], where: str) -> Any:
    if kind is Guarantee:
        return Guarantee.from_json(dumps(value))
    names = {field.name for field in fields(kind)}
    needed = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}
    _refuse_other_keys(value, where, known=names, needed=needed)
    return kind(**value)


def as_json(value: Any) -> Any:
    """Return a plain value as what :mod:`json` writes: objects, lists, numbers, words."""
    if isinstance(value, Guarantee):
        return loads(value.to_json())
    if isinstance(value, Finding):
        return value.answer_tree()
    if isinstance(value, Plain):
        values = {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
        return {name: held for name, held in values.items() if held is not None or name not in value.LEFT_OUT}
    if isinstance(value, tuple):
        return [as_json(item) for item in value]
    return value

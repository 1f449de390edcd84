"""What a Python object shows: its displays and attributes, down to a depth, and never into a Secret."""

from __future__ import annotations

import functools
import logging
import types
from collections import deque
from collections.abc import Iterator, Mapping
from numbers import Number
from typing import Any

import numpy as np

from quorate.ambient import unwarned
from quorate.audit.unpacking import Content, unpack
from quorate.types import Secret

_DISPLAYS = ("_repr_html_", "_repr_markdown_", "_repr_latex_", "_repr_json_", "_repr_svg_", "_repr_png_", "_repr_jpeg_",
             "_repr_mimebundle_")  # fmt: skip
_CLOSED = (Secret, type, types.ModuleType, types.BuiltinFunctionType, logging.Logger, logging.Handler,
           types.TracebackType, types.FrameType, types.CodeType)  # fmt: skip


def walk(name: str, value: object, *, depth: int = 6) -> Iterator[tuple[str, Content]]:
    """Yield ``(name, content)`` for each display of `value`, and for what can be reached from it.

    Examples
    --------
    >>> dict(walk("x", Secret(977)))
    {'x.repr': 'Secret(…)', 'x.str': 'Secret(…)', 'x.format': 'Secret(…)'}
    """
    with unwarned():  # a deprecated attribute is not what is looked for here
        found = [*_displays(name, value), *_Walk().enter(name, value, depth)]
    yield from found


def _displays(name: str, value: object) -> Iterator[tuple[str, Content]]:
    for how, display in (("repr", repr), ("str", str), ("format", format)):
        try:
            yield f"{name}.{how}", display(value)
        except Exception as error:  # noqa: BLE001  (a display that fails shows its error)
            yield f"{name}.{how}", f"{type(error).__name__}: {error}"
    for method in _DISPLAYS:
        rich = getattr(type(value), method, None)
        shown = _quietly(lambda rich=rich: rich(value)) if callable(rich) else None
        if isinstance(shown, bytes):
            yield from unpack(f"{name}.{method}", shown)
        elif shown is not None:
            yield f"{name}.{method}", str(shown)


def _quietly(call: Any) -> Any:
    try:
        return call()
    except Exception:  # noqa: BLE001  (a display or property that fails shows nothing)
        return None


class _Walk:
    """One walk; it enters each object once."""

    def __init__(self) -> None:
        self._seen: dict[int, object] = {}  # the objects are kept, or their ids could be given to others

    def enter(self, name: str, value: Any, depth: int) -> Iterator[tuple[str, Content]]:
        if isinstance(value, (str, Number, np.generic)) or value is None:
            yield name, str(value)
            return
        if isinstance(value, (bytes, bytearray)):
            yield from unpack(name, bytes(value))
            return
        if depth < 0 or isinstance(value, _CLOSED) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            yield name, _flat(value)
            return
        table = _table(value)
        if table is not None:
            yield name, table
        numbers = _numbers(value)
        if numbers is not None:
            yield name, numbers
            return
        for part, inner in _parts(value):
            yield from self.enter(f"{name}{part}", inner, depth - 1)


def _flat(array: np.ndarray[Any, Any]) -> Content:
    if array.dtype.kind in "biuf":
        return np.asarray(array, dtype=np.float64).ravel()
    return "\n".join(str(each) for each in array.ravel().tolist())


def _numbers(value: Any) -> Content | None:
    """Return the numbers of a (nested) list or tuple of numbers, one after another."""
    if not isinstance(value, (list, tuple)) or not value:
        return None
    array = _quietly(lambda: np.asarray(value))
    return _flat(array) if isinstance(array, np.ndarray) and array.dtype.kind in "biuf" and array.size else None


def _table(value: Any) -> str | None:
    """Return a data frame (polars, pandas) as CSV: its columns are not attributes."""
    writer = getattr(type(value), "write_csv", None) or getattr(type(value), "to_csv", None)
    shown = _quietly(lambda: writer(value)) if callable(writer) else None
    return shown if isinstance(shown, str) else None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for place, (key, inner) in enumerate(list(value.items())):
            if isinstance(key, str):
                yield f".{key}", inner
            else:
                yield f".key[{place}]", key
                yield f".value[{place}]", inner
    elif isinstance(value, (list, tuple, set, frozenset, deque)):
        yield from ((f"[{place}]", inner) for place, inner in enumerate(list(value)))
    elif isinstance(value, np.ndarray):
        yield from ((f"[{place}]", inner) for place, inner in enumerate(value.ravel().tolist()))
    if isinstance(value, types.MethodType):
        yield ".__self__", value.__self__
    elif isinstance(value, types.FunctionType):
        yield ".__defaults__", value.__defaults__
        yield ".__kwdefaults__", value.__kwdefaults__
        for place, cell in enumerate(value.__closure__ or ()):
            yield f".closure[{place}]", _quietly(lambda cell=cell: cell.cell_contents)
    elif isinstance(value, functools.partial):
        yield from ((".func", value.func), (".args", value.args), (".keywords", value.keywords))
    yield from _attributes(value)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    names = dict.fromkeys(_quietly(lambda: list(vars(value))) or ())
    for kind in type(value).__mro__:
        unit_keys = kind.__dict__.get("__slots__", ())
        names |= dict.fromkeys([unit_keys] if isinstance(unit_keys, str) else unit_keys)
        names |= dict.fromkeys(
            attribute
            for attribute, member in kind.__dict__.items()
            if isinstance(member, (property, functools.cached_property)) and not attribute.startswith("_")
        )
    for attribute in names:
        if isinstance(attribute, str) and not attribute.startswith("__"):
            yield f".{attribute}", _quietly(lambda attribute=attribute: getattr(value, attribute))

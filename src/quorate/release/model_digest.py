"""A model as plain text, and a user's own class as a digest of its code: what keys of stages and charges are made from.

The text is the same in every process, and another one for a model that would learn otherwise. Were an address in memory
part of it, a resumed run would not know its own work again. A charge rests on the code that answers: were the name of a
user's class all that counts, one that was edited between a charge and its resumption would go on under what was paid
for another.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cached_property, partial
from hashlib import blake2b
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from quorate.mechanisms import Mechanism, is_own
from quorate.stored_names import stored_name

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
_DEPTH = 12  # of models within models; what lies deeper is told by its type alone
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_NUMBERS = (Decimal, Fraction, date, timedelta, np.generic)
_WITHIN = ("__func__", "__wrapped__", "func", "fget")  # where a property, a method or a decorator keeps a function


def described(value: Any, depth: int = _DEPTH) -> str:
    """Describe an estimator, or a parameter of one, by its class and all that it holds."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return repr(value)
    if depth < 0:
        return stored_name(type(value))

    def inner(item: Any) -> str:
        return described(item, depth - 1)

    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return f"array({value.dtype}, {value.shape}, {blake2b(value.tobytes(), digest_size=16).hexdigest()})"
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):  # weights that a network comes with
        return inner(value.detach().cpu().numpy())
    if isinstance(value, list | tuple | np.ndarray):
        return f"{type(value).__name__}({', '.join(map(inner, value))})"
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}({', '.join(sorted(map(inner, value)))})"
    if isinstance(value, Mapping):
        return f"{type(value).__name__}({', '.join(f'{inner(key)}: {inner(item)}' for key, item in value.items())})"
    if isinstance(value, partial):
        return f"partial({inner(value.func)}, {inner(value.args)}, {inner(value.keywords)})"
    if isinstance(value, MethodType):
        return f"{inner(value.__self__)}.{value.__name__}"
    if isinstance(value, FunctionType):
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        return f"{stored_name(value)}({code_text(value.__code__)}, {inner(value.__defaults__)}, {inner(held)})"
    if isinstance(value, type) or hasattr(value, "__qualname__"):
        return stored_name(value)
    if not (hasattr(value, "__dict__") or hasattr(value, "get_params")):
        return _without_dict(value, depth - 1)
    # What was learned counts too: a step may be fitted on public rows before.
    state = {**getattr(value, "__dict__", {}), **(value.get_params(deep=False) if hasattr(value, "get_params") else {})}
    for name in getattr(type(value), "left_out_where_none", ()):  # what version 0.1 did not have
        if state.get(name, name) is None:
            del state[name]
    return f"{stored_name(type(value))}({', '.join(f'{key}={inner(state[key])}' for key in sorted(state))})"


def described_mechanism(mechanism: Mechanism) -> str:
    """Describe what answers, with all its fields: several mechanisms have one event, and their answers differ.

    One of quorate's is described as version 0.1 did, so that keys of its charges are found again; one of a user's own
    with its module and a digest of its code, so that it is taken for no other of its name, and for no earlier self.
    """
    if not is_own(mechanism):
        return repr(mechanism)
    # Field by field, wherever a class keeps them: one that inherits from a class with slots has them in two places.
    values = (f"{part.name}={described(getattr(mechanism, part.name))}" for part in fields(mechanism))
    return f"{stored_name(type(mechanism))}({', '.join(values)}) of code {code_digest(type(mechanism))}"


def _without_dict(value: Any, depth: int) -> str:
    """Describe what keeps its state in slots or in C: by the state it would be copied from."""
    try:
        state = value.__getstate__()
    except (AttributeError, TypeError):  # it has none, or does not let itself be copied
        state = None
    return _ADDRESS.sub("", repr(value)) if state is None else f"{stored_name(type(value))}({described(state, depth)})"


def code_digest(kind: type) -> str:
    """Return a digest of the code of a class: of its own methods, and of the user's functions that they name.

    `kind`: not of this package. Returns: 32 hexadecimal digits: the same in every process of one version of Python,
    which is what compiles the code. Followed are names that the code looks up in its module, constants there (numbers,
    texts, arrays, containers, frozen dataclasses; no object that may change), and modules of the user's. Code of
    quorate, of the standard library and of other installed packages is not: their versions are not in a charge.
    """
    walk = _Walk(kind.__module__.partition(".")[0])
    walk.take(kind)
    return blake2b("\n".join(walk.told).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def code_text(code: CodeType) -> str:
    """Digest of what a function does, its inner functions included."""
    constants = [
        code_text(constant) if isinstance(constant, CodeType) else _constant(constant) for constant in code.co_consts
    ]
    text = repr((code.co_code, code.co_names, constants))
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _constant(value: Any) -> str:
    """A constant in words; a set has no order of its own, and texts are in another one in each process."""
    return f"frozenset({sorted(map(repr, value))})" if isinstance(value, frozenset) else repr(value)


class _Walk:
    """Everything of the user's that is met on the way from a class, in an order that each process has."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.told: list[str] = []
        self._seen: set[int] = set()

    def take(self, value: Any) -> None:
        if isinstance(value, _PLAIN):
            self.told.append(repr(value))
            return
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, tuple | list | frozenset | set):
            ordered = sorted(value, key=repr) if isinstance(value, frozenset | set) else value
            for part in ordered:
                self.take(part)
        elif isinstance(value, dict):
            for key in sorted(value, key=repr):
                self.take((key, value[key]))
        elif isinstance(value, type):
            self._take_class(value)
        elif isinstance(value, FunctionType):
            self._take_function(value)
        else:
            self._take_constant(value)
            for inner in _within(value):
                self.take(inner)

    def _take_constant(self, value: Any) -> None:
        """Take what cannot change while a process runs, and arrays; other objects are not followed."""
        if isinstance(value, np.ndarray):
            self.told.append(f"array {value.dtype} {value.shape}")
            self.take(value.ravel().tolist())
        elif isinstance(value, _NUMBERS):
            self.told.append(repr(value))
        elif isinstance(value, Enum):
            self.told.append(f"{type(value).__qualname__}.{value.name}")
            self.take(value.value)
        elif getattr(getattr(value, "__dataclass_params__", None), "frozen", False):
            self.take(type(value))
            for part in fields(value):
                self.take((part.name, getattr(value, part.name)))

    def _take_class(self, kind: type) -> None:
        if not self._is_own(kind.__module__):
            return
        self.told.append(kind.__qualname__)
        for base in kind.__mro__:
            if self._is_own(base.__module__):
                for name in sorted(vars(base)):
                    value = vars(base)[name]
                    if not name.startswith("__") or (callable(value) and not _is_generated(value)):
                        self.told.append(name)
                        self.take(value)

    def _take_function(self, function: FunctionType) -> None:
        if not self._is_own(function.__module__):
            return
        self.told.append(code_text(function.__code__))
        self.take(function.__defaults__ or ())
        self.take(function.__kwdefaults__ or {})
        for cell in function.__closure__ or ():
            self.take(cell.cell_contents)
        names = sorted(set(_names(function.__code__)))
        for name in names:
            named = function.__globals__.get(name)
            if isinstance(named, ModuleType):
                if self._is_own(named.__name__):
                    for attribute in names:
                        self.take(getattr(named, attribute, None))
            else:
                self.take(named)

    def _is_own(self, module: str | None) -> bool:
        top = (module or "").partition(".")[0]
        if top == self.package:
            return True
        if top == "quorate" or top in sys.stdlib_module_names:
            return False
        place = getattr(sys.modules.get(module or ""), "__file__", None)
        installed = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
        return place is not None and not any(place.startswith(prefix) for prefix in installed)


def _within(value: Any) -> Iterator[Any]:
    if isinstance(value, partial):
        yield from (value.args, value.keywords)
    if isinstance(value, property | staticmethod | classmethod | cached_property | partial) or callable(value):
        yield from (part for name in _WITHIN if (part := getattr(value, name, None)) is not None)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_generated(value: Any) -> bool:
    """Whether a method was written by a dataclass: its fields are told elsewhere."""
    code = getattr(value, "__code__", None)
    return code is None or code.co_filename == "<string>"

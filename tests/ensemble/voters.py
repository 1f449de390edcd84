"""What teachers of the tests do wrong, and all that a voter has learned, to compare by."""

import logging
import os
import signal
import sys
import warnings
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from quorate import PrivateClassifier, PublicPool
from quorate.ensemble import hash_shards
from quorate.types import IntArray, Secret

KEY = Secret(bytes(range(32)))


def shards_of(n_rows: int, n_teachers: int) -> Secret[IntArray]:
    """Each row is a unit."""
    return hash_shards([row.to_bytes(4, "big") for row in range(n_rows)], n_teachers, KEY)


def misbehave(way: str) -> None:
    """Fail, end this process or its parent, or never come back; nothing for any other word."""
    match way:
        case "raise":
            raise ValueError("a private row")
        case "interrupt":
            raise KeyboardInterrupt
        case "exit":
            sys.exit(3)
        case "vanish":
            os._exit(0)
        case "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "kill the worker":
            os.kill(os.getppid(), signal.SIGKILL)
        case "memory":
            np.ones(2**50)
        case "spin":
            while True:
                pass


def speak() -> None:
    """Say something private in every way in which a process is heard."""
    print("private")
    print("private", file=sys.stderr, flush=True)
    assert sys.__stdout__ is not None
    sys.__stdout__.write("private")
    os.write(1, b"private")
    os.write(2, b"private")
    os.system("echo private; echo private >&2")  # noqa: S605
    warnings.warn("private", stacklevel=1)
    logging.getLogger("teacher").critical("private")
    logging.getLogger("teacher").log(10**6, "private")


def private(teacher: Any, X: Any, y: Any, pool: Any, student: Any = None, *, n_teachers: int = 4) -> Any:
    """Fit the classifier on rows that are about nobody, at an ε that hides little."""
    classes = np.unique(np.asarray(y)).tolist()
    how: dict[str, Any] = {"epsilon": 50.0, "delta": 1e-3, "n_teachers": n_teachers, "unsafe_noise_seed": 1}
    return PrivateClassifier(teacher, student, classes=classes, **how).fit(X, y, public=PublicPool(pool))


def learned(thing: Any) -> Any:
    """Everything in a trained teacher, to the last bit, as nested tuples that compare by value."""
    if isinstance(thing, np.ndarray):
        if thing.dtype.names:  # field by field: the padding between fields holds anything
            return tuple((name, learned(thing[name])) for name in thing.dtype.names)
        if thing.dtype == object:
            return tuple(map(learned, thing.tolist()))
        return str(thing.dtype), thing.shape, thing.tobytes()
    if isinstance(thing, dict):
        return tuple((str(key), learned(value)) for key, value in sorted(thing.items(), key=lambda item: str(item[0])))
    if isinstance(thing, list | tuple):
        return tuple(map(learned, thing))
    if thing is None or isinstance(thing, bool | int | float | str | bytes | np.generic | np.dtype):
        return repr(thing)
    if isinstance(thing, type | FunctionType | BuiltinFunctionType):
        return thing.__qualname__
    return type(thing).__name__, learned(thing.__getstate__())

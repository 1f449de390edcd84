"""What is loaded when it is first used: polars, pandas, parts of SciPy and scikit-learn, skops, the files of a room.

A command that reads a ledger, refuses a setting or prints help needs few files of this package, and nothing of these,
which take longer to load than all of quorate. So a file writes ``from quorate.deferred import special`` and then
``special.ndtr(x)``; and a room that is large lists its names under ``if TYPE_CHECKING:`` and ends with
``__getattr__ = on_demand(__name__)``.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import skops.io
    from scipy import fft, linalg, optimize, sparse, special, stats
    from sklearn import compose, decomposition, frozen, kernel_approximation, pipeline, preprocessing

_OF_SKLEARN = ("compose", "decomposition", "frozen", "kernel_approximation", "pipeline", "preprocessing")
_OF_SCIPY = ("fft", "linalg", "optimize", "sparse", "special", "stats")
__all__ = ["fft", "linalg", "optimize", "pd", "pl", "skops", "sparse", "special", "stats"]
__all__ += ["compose", "decomposition", "frozen", "kernel_approximation", "pipeline", "preprocessing"]


class DeferredModule(ModuleType):
    """Stands for a module, and loads it when an attribute is first asked for.

    Examples
    --------
    >>> functions = DeferredModule("cmath")
    >>> functions.exp(0j)
    (1+0j)
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what inspects objects asks every one of them for such names
            raise AttributeError(name)
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


class _Skops:
    """Stands for ``skops``, and loads ``skops.io`` without what that has no use for.

    To learn which types it may trust, skops walks through all packages inside scikit-learn. Three of these load
    PyTorch, Dask or CuPy where they are installed, and hold none of those types; that takes as long as training a few
    hundred teachers.
    """

    @property
    def io(self) -> ModuleType:
        """``skops.io``."""
        loaded = sys.modules.get("skops.io")
        return loaded if loaded is not None else self._load()

    @staticmethod
    def _load() -> ModuleType:
        absent = [f"sklearn.externals.array_api_compat.{name}" for name in ("torch", "dask", "cupy")]
        absent = [name for name in absent if name not in sys.modules]
        sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type] # None: Python's word for "not to be had"
        try:
            return import_module("skops.io")
        finally:
            for name in absent:
                sys.modules.pop(name, None)


if not TYPE_CHECKING:
    fft, linalg, optimize, sparse, special, stats = (DeferredModule(f"scipy.{name}") for name in _OF_SCIPY)
    compose, decomposition, frozen, kernel_approximation, pipeline, preprocessing = (
        DeferredModule(f"sklearn.{name}") for name in _OF_SKLEARN
    )
    pd, pl = DeferredModule("pandas"), DeferredModule("polars")
    skops = _Skops()


def load_ahead_of_skops() -> None:
    """Load SciPy's functions early, in a command that will load skops later.

    skops names each of some 230 functions after the first loaded module that holds it, and so asks for all of them in
    every module that was loaded before SciPy's. Where these are a thousand, that takes half a second.
    """
    import_module("scipy.special")


def on_demand(room: str) -> Callable[[str], Any]:
    """Return a room's ``__getattr__``: it loads a file of the room when a name of that file is first asked for.

    `room`: the ``__name__`` of a package whose ``__init__`` imports its names under ``if TYPE_CHECKING:``. Type
    checkers and readers see these imports as they stand; a program makes the ones that it uses. ``import *`` stands for
    the functions and classes that a file defines. A name that a file of the room has too cannot be listed there, since
    Python binds such a name to the file.

    Examples
    --------
    >>> on_demand("quorate.accounting")("PureDP").__module__
    'quorate.accounting.events'
    """
    files: dict[str, str] = {}

    def load(name: str) -> Any:
        if not files and not name.startswith("__"):
            files.update(_listed(Path(str(sys.modules[room].__file__))))
        if name not in files:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        value = getattr(import_module(files[name]), name)
        setattr(sys.modules[room], name, value)
        return value

    return load


def _listed(init: Path) -> dict[str, str]:
    """Return the names that a file imports under ``if TYPE_CHECKING:``, each with the module that it comes from."""
    blocks = [
        node
        for node in ast.parse(init.read_text(encoding="utf-8")).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    listed = [(alias.name, str(node.module)) for node in imports for alias in node.names]
    return {name: module for said, module in listed for name in (_defined(init, module) if said == "*" else (said,))}


def _defined(init: Path, module: str) -> list[str]:
    """Return the public functions and classes of a file beside an ``__init__``."""
    tree = ast.parse(init.with_name(f"{module.rpartition('.')[2]}.py").read_text(encoding="utf-8"))
    named = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [name for name in named if not name.startswith("_")]

"""What the last bits of a teacher hang on beside its shard, its number and the run's key: versions and arithmetic.

On one machine all teachers have it in common. Beyond one machine it would depend on where a teacher was trained, and by
that on how long its fellows took; so it has to be the same everywhere.
"""

from __future__ import annotations

import pickletools
import platform
import re
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, distributions, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.metadata import Distribution

#: Distributions that have to be the same wherever teachers are trained.
ALWAYS = ("quorate", "numpy", "scipy", "scikit-learn", "cloudpickle")
#: The same, where they are loaded here: names of modules, and of the distributions that they come from.
_WHERE_LOADED = {
    "polars": ("polars",),
    "pandas": ("pandas",),
    "torch": ("torch",),
    "skorch": ("skorch",),
    "xgboost": ("xgboost", "xgboost-cpu"),
    "lightgbm": ("lightgbm",),
    "catboost": ("catboost",),
}
# "numpy/__init__.py,sha256=...,22" or "six.py": a line of RECORD, and what is imported to have it
_FILE_OF_MODULE = re.compile(r"\"?([A-Za-z_]\w*)(?:/[^,]*)?(?:\.[\w-]+)*\.(?:py|so|pyd)(?:[\",]|\Z)")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.\w+)*( |\Z)")


def environment() -> dict[str, str]:
    """Return what must be equal on every worker: names that people know, and their versions."""
    loaded = (name for module, names in _WHERE_LOADED.items() if module in sys.modules for name in names)
    packages = {name: version_of(name) for name in (*ALWAYS, *loaded)}
    return {"Python": platform.python_version(), **packages, **_arithmetic()}


def packages_named(pickled: bytes) -> dict[str, str]:
    """Return the distributions, and their versions, of the loaded modules that a pickle names.

    `pickled`: a teacher, say, as it travels. It is read and not run. A pickle within it, as bytes, is read too; a text
    that happens to be a module's name counts as one.

    Examples
    --------
    >>> import pickle, hypothesis
    >>> list(packages_named(pickle.dumps(hypothesis.settings))), packages_named(pickle.dumps(print))
    (['hypothesis'], {})
    """
    modules = {name.partition(".")[0] for name in _names_in(pickled)} & sys.modules.keys()
    found = {_canonical(each.metadata["Name"]) for module in modules for each in _distributions().get(module, ())}
    return {name: version_of(name) for name in sorted(found)}


def _names_in(pickled: bytes) -> Iterator[str]:
    """Yield the texts of a pickle that could be names of modules."""
    try:
        for _, argument, _ in pickletools.genops(pickled):
            if isinstance(argument, str) and _MODULE.match(argument):
                yield argument.partition(" ")[0]
            elif isinstance(argument, bytes | bytearray) and argument[:1] == b"\x80":
                yield from _names_in(bytes(argument))
    except ValueError:  # bytes that are no pickle
        return


@cache
def _distributions() -> Mapping[str, list[Distribution]]:
    """Return the distributions that a module at the top may come from.

    As :func:`importlib.metadata.packages_distributions`, which makes a path of each file of each distribution and reads
    every description, and by that takes longer than to connect to a scheduler.
    """
    found: dict[str, list[Distribution]] = {}
    for each in distributions():
        for module in set((each.read_text("top_level.txt") or "").split()) or _modules_of(each):
            found.setdefault(module, []).append(each)
    return found


def _modules_of(distribution: Distribution) -> set[str]:
    """Return the first parts of the names of its files of Python code, compiled ones among them."""
    record = distribution.read_text("RECORD")
    files = record.splitlines() if record is not None else map(str, distribution.files or ())
    return {found[1] for each in files if (found := _FILE_OF_MODULE.match(each))}


def _canonical(distribution: str) -> str:
    """Return a distribution's name as an index knows it: in small letters, by which it is told from other facts."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def differences(here: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    """Return what differs, as it is told.

    Examples
    --------
    >>> differences({"numpy": "2.4.0", "scipy": "1.16"}, {"numpy": "2.1.3", "scipy": "1.16"})
    ['numpy 2.1.3 there and 2.4.0 here']
    """
    return [
        f"{name} {there.get(name, 'missing')} there and {mine} here"
        for name, mine in here.items()
        if there.get(name, "missing") != mine
    ]


@cache
def version_of(distribution: str) -> str:
    """Return the version of a distribution that is installed here, or that it is missing."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "missing"


def unlike(here: Mapping[str, str]) -> list[str]:
    """Return in what this process differs from another one, whose :func:`environment` is given."""
    packages = {name: version_of(name) for name in here if name[0].islower()}
    return differences(here, {"Python": platform.python_version(), **packages, **_arithmetic()})


@cache
def _arithmetic() -> dict[str, str]:
    """What a sum or a logarithm of this machine is computed by."""
    import numpy as np
    import scipy.linalg  # noqa: F401 - so that its BLAS is looked at too
    from threadpoolctl import threadpool_info

    kernels = {
        each.get("architecture") or each["internal_api"] for each in threadpool_info() if each["user_api"] == "blas"
    }
    simd = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return {
        "Machine": platform.machine(),
        "C library": " ".join(platform.libc_ver()).strip() or platform.system(),
        "BLAS kernels": " ".join(sorted(kernels)),
        "SIMD": " ".join(simd),
    }

"""Switches of a process belong to its user: none is swapped here, and none decides what is worked out.

What libraries read from the process (warnings that are errors, NumPy's error state, scikit-learn's configuration, the
precision of decimals) is set aside for one block of one thread. Three of them have a door for that of their own. The
warnings of Python before 3.14 have none: :func:`warnings.catch_warnings` puts a list back that another thread may have
changed meanwhile. So one filter is added to the list for good, which matches nothing outside of such a block.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from decimal import ROUND_HALF_EVEN, Context, DivisionByZero, InvalidOperation, Overflow, localcontext
from functools import cache
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# Decimals as Python has them by default; every field is given, since those that are not follow another switch.
_DECIMALS = Context(
    prec=28,
    rounding=ROUND_HALF_EVEN,
    Emin=-999_999,
    Emax=999_999,
    capitals=1,
    clamp=0,
    flags=[],
    traps=[InvalidOperation, DivisionByZero, Overflow],
)
_ordering = Lock()
_on_one_thread = Lock()
_unheard: ContextVar[bool] = ContextVar("_unheard", default=False)

# scikit-learn's own defaults, which it does not tell once they were changed.
_SKLEARN = {
    "assume_finite": False,
    "working_memory": 1024,
    "enable_cython_pairwise_dist": True,
    "pairwise_dist_chunk_size": 256,
    "array_api_dispatch": False,
    "transform_output": "default",
    "enable_metadata_routing": False,
    "skip_parameter_validation": False,
}


class _Unheard:
    """Stands in a filter where a pattern does: it matches every warning of a block that is not to be heard."""

    def match(self, _: str) -> bool:
        return _unheard.get()

    @property
    def pattern(self) -> str:
        """The same as an expression, for scikit-learn, which writes the filters anew in each task of a parallel fit."""
        return "" if _unheard.get() else "(?!)"


_FILTER: Any = ("ignore", _Unheard(), Warning, None, 0)


@contextmanager
def unwarned() -> Iterator[None]:
    """Let no warning of the block be shown, or raised as an error, in this thread; other threads' warnings are heard.

    For what other libraries say of rows and models: it may quote a row, or depend on one.
    """
    _stand_first(warnings.filters)  # type: ignore[arg-type]
    before = _unheard.set(True)
    try:
        yield
    finally:
        _unheard.reset(before)


def _stand_first(filters: list[Any]) -> None:
    """Put the filter before all others, where what the user has added since stands before it."""
    if filters and filters[0] is _FILTER:
        return
    with _ordering:
        filters.insert(0, _FILTER)
        while filters.count(_FILTER) > 1:
            del filters[len(filters) - 1 - filters[::-1].index(_FILTER)]


@contextmanager
def own_switches() -> Iterator[None]:
    """Have NumPy, decimals and scikit-learn work as they do by default, in this thread, until the end of the block.

    Where a library was not imported, nothing of it was set; it is left for later.
    """
    with ExitStack() as stack:
        stack.enter_context(plain_decimals())
        if "numpy" in sys.modules:
            from numpy import errstate

            stack.enter_context(errstate(all="ignore"))
        if "sklearn" in sys.modules:
            from sklearn import config_context

            stack.enter_context(config_context(**_known_to_sklearn()))
        yield


class _Held:
    """How many blocks of all threads hold the libraries to one thread, and how many they had before the first."""

    blocks = 0
    before: tuple[tuple[Any, int], ...] = ()


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold numerical libraries to one thread in this thread until the end of the block; then all is as before.

    For work that is small, or done by processes: a thread a processor waits for the others by spinning. Some libraries
    have a number for each thread, others one for the process, of which a block that began within another thread's would
    put back what that one had set; so the last block to end puts back what was there before the first.
    """
    from threadpoolctl import ThreadpoolController

    for library in ("scipy.linalg", "sklearn.utils"):  # a library that is loaded later is not held
        import_module(library)
    with _on_one_thread:
        controller = ThreadpoolController()
        if not _Held.blocks:
            _Held.before = tuple((library, library.num_threads) for library in controller.lib_controllers)
        _Held.blocks += 1
        limiter = controller.limit(limits=1)
    try:
        yield
    finally:
        with _on_one_thread:
            limiter.restore_original_limits()
            _Held.blocks -= 1
            for library, number in () if _Held.blocks else _Held.before:
                if library.num_threads < number:
                    library.set_num_threads(number)


@contextmanager
def plain_decimals() -> Iterator[None]:
    """Compute decimals with 28 digits in this thread: a bound that is printed is rounded up from all of them.

    Examples
    --------
    >>> from decimal import Decimal
    >>> with localcontext(Context(prec=3)), plain_decimals():
    ...     Decimal(39401) / 10000
    Decimal('3.9401')
    """
    with localcontext(_DECIMALS):
        yield


def of_arrays(steps: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Have fitted transformers give arrays, also where scikit-learn is told to give frames (``transform_output``).

    Models that are published are opened in other processes, whose switches are those of whoever opens them.
    """
    for _, step in steps:
        _give_arrays(step)
    return steps


def _give_arrays(step: Any) -> None:
    """Have a fitted transformer and all that it is made of give arrays; one that has no other output is left alone."""
    if hasattr(step, "set_output"):
        with suppress(ValueError):  # a part cannot be told, such as one of words, which gives a sparse matrix always
            step.set_output(transform="default")
    for parts in ("steps", "transformers_", "transformer_list"):
        for _, part, *_ in getattr(step, parts, ()):
            _give_arrays(part)
    for part in ("estimator", "_encoder"):  # the one that is frozen, and that by which numbers are cut into intervals
        if hasattr(step, part):
            _give_arrays(getattr(step, part))


@cache
def _known_to_sklearn() -> dict[str, Any]:
    from sklearn import get_config

    return {name: value for name, value in _SKLEARN.items() if name in get_config()}

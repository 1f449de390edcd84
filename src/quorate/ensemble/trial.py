"""Try a piece of a user's code where teachers run: in a child of a worker, which nobody hears and which may crash.

For public rows alone: unlike what a teacher does on private ones, the failure of a trial may be told.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from quorate.ensemble.workers.isolation import Lost, on_one_thread_each, seed_global_generators
from quorate.ensemble.workers.workers import isolated_map, packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

_LONGEST = 300  # characters of another library's message
_CRASHED = "its process ended without a word, as it does where memory is short or compiled code crashes"


class TrialFailed(Exception):
    """What a trial raised, as ``Type: message`` on one line."""


def tried(function: Callable[..., Result], *rows: Any, called: str = "what is tried") -> Result:
    """Return ``function(*rows)``, called in a child process that prints, warns and logs to nobody; rows are public.

    `function`: travels by cloudpickle with all that it holds, as a teacher does. `called`: what a refusal calls it.
    Raises TrialFailed if it raises, exits or crashes there; InvalidParameter if it cannot be sent; PreconditionFailed
    if a worker cannot import what it is made of, or this process may have no children.
    """
    from cloudpickle import loads  # type: ignore[import-untyped]

    pickled = packed(function, called, where="a process of its own, where it is tried on public rows")
    work = partial(_try_batch, pickled, called)
    ((_, answer),) = isolated_map(work, lambda _: rows, [0], n_jobs=1, batch=1)
    if answer is None:
        raise TrialFailed(_CRASHED)
    result, failure = loads(answer)
    if failure is not None:
        raise TrialFailed(failure)
    return result  # type: ignore[no-any-return]


def sent(value: Result) -> Result:
    """Return a value as it comes out of a pipe; raises what it raises where it cannot be sent."""
    from cloudpickle import dumps, loads

    received: Result = loads(dumps(value))
    return received


def _try_batch(pickled: bytes, called: str, items: list[tuple[Any, ...]]) -> list[bytes | Lost]:
    """In a worker: load what is tried, as it loads a teacher, and call it in a child."""
    return on_one_thread_each(partial(_try, unpacked(pickled, called)), False, None, items)


def _try(function: Callable[..., Any], rows: tuple[Any, ...]) -> bytes:
    from cloudpickle import dumps

    seed_global_generators(0)
    try:
        answer: bytes = dumps((function(*rows), None))
    except MemoryError:
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit and what compiled code raises too
        said = " ".join(str(error).split())
        answer = dumps((None, f"{type(error).__name__}: {said[:_LONGEST]}" if said else type(error).__name__))
    return answer

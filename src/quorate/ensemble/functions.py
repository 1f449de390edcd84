"""Any function computed on each shard by itself: the private half of subsample-and-aggregate (BTT18a Algorithm 4).

The values are votes. A shard's vote is a function of its own rows, the public function, and a seed derived from the
run's key and the shard's number; so one changed unit changes one vote, whatever the function is.

Each value of a discrete range has one canonical text, so that equal values can be counted whoever computed them. A
value is a string, an integer, a truth value, or a tuple or frozenset of values, and is written with its type: ``1``,
``True`` and ``"1"`` are three values. A float is none of them: two shards would hardly ever agree on one. Round it to
an integer first.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from quorate.arguments import count, real
from quorate.data.fixed_types import fixed_labels, label_array
from quorate.ensemble.partition import rows_of_shards
from quorate.ensemble.training import Shard, rows_alone
from quorate.ensemble.workers.isolation import Lost, on_one_thread_each, seed_global_generators
from quorate.ensemble.workers.workers import isolated_map, packed, unpacked
from quorate.errors import InvalidParameter
from quorate.types import Secret, derive

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from quorate.types import IntArray

DiscreteValue: TypeAlias = "str | int | bool | tuple[Any, ...] | frozenset[Any]"

LONGEST = 65_536  # characters of the canonical text
DEEPEST = 16  # tuples within tuples


def encode_value(value: object) -> str:
    """Return the canonical text of a value, in ASCII: equal for equal values of the same type, different otherwise.
    Raises TypeError for no discrete type (a float, a list, None); ValueError for deep nesting or more than ``LONGEST``
    characters.
    """
    text = json.dumps(_encoded(value, DEEPEST), separators=(",", ":"), ensure_ascii=True)
    if len(text) > LONGEST:
        raise ValueError("the value is too long to be counted")
    return text


def decode_value(text: str) -> DiscreteValue:
    """Return the value of a canonical text; ValueError if :func:`encode_value` writes no such text."""
    try:
        value = _read(json.loads(text), DEEPEST)
    except (TypeError, KeyError, RecursionError):
        raise ValueError("not the canonical text of a value") from None
    if encode_value(value) != text:
        raise ValueError("not the canonical text of a value")
    return value


def _encoded(value: object, depth: int) -> list[Any]:
    if depth < 0:
        raise ValueError("the value is nested too deeply to be counted")
    match value:
        case bool() | np.bool_():
            return ["bool", bool(value)]
        case int() | np.integer():
            return ["int", hex(int(value))]  # decimal digits of a huge integer take Python quadratic time
        case str():
            return ["str", str.__str__(value)]
        case tuple():
            return ["tuple", [_encoded(part, depth - 1) for part in value]]
        case frozenset():
            return ["frozenset", sorted((_encoded(part, depth - 1) for part in value), key=json.dumps)]
        case _:
            raise TypeError(f"{type(value).__name__} is no discrete type")


def _read(content: Any, depth: int) -> DiscreteValue:
    if depth < 0 or not isinstance(content, list) or len(content) != 2:
        raise ValueError("not the canonical text of a value")
    match content:
        case ["bool", bool(value)]:
            return value
        case ["int", str(digits)]:
            return int(digits, 16)
        case ["str", str(text)]:
            return text
        case ["tuple", list(parts)]:
            return tuple(_read(part, depth - 1) for part in parts)
        case ["frozenset", list(parts)]:
            return frozenset(_read(part, depth - 1) for part in parts)
        case _:
            raise ValueError("not the canonical text of a value")


#: The canonical text of each shard's value, ``(n_shards,)``; None where the shard abstains.
Values: TypeAlias = "list[str | None]"

_BATCH = 16  # shards a task


def split_rows(
    X: Any, y: Any | None, shards: Secret[IntArray], n_shards: int, key: Secret[bytes]
) -> Secret[tuple[Shard, ...]]:
    """Cut the private rows into k shards, each without a trace of the others and with a seed derived from the run's
    key.

    A shard has the rows' container, and the types of :func:`~quorate.data.fixed_types.fixed_types`: a type read off all
    rows would tell of other shards. Its labels are float64 where all its own are numbers, truth values or missing
    (NaN), and else objects: numbers as floats, text as text.
    """
    labels = None if y is None else fixed_labels(y)
    rows = rows_of_shards(shards.reveal(), n_shards, range(n_shards))
    return Secret(
        tuple(
            Shard(
                rows_alone(X, rows[number]),
                None if labels is None else label_array([labels[row] for row in rows[number]]),
                _seed(key, number),
            )
            for number in range(n_shards)
        )
    )


def portable(function: Callable[..., Any], args: tuple[Any, ...] = ()) -> bytes:
    """Return a function and its further arguments as the bytes that worker processes are sent, or refuse it."""
    if not callable(function):
        raise InvalidParameter(f"function must be callable as function(X, y), got {type(function).__name__}")
    return packed((function, args), "the function")


def function_values(
    calls: Sequence[bytes],
    shards: Secret[tuple[Shard, ...]],
    *,
    n_jobs: int = 1,
    cpu_seconds: float | None = None,
) -> Secret[list[Values]]:
    """Compute every function on every shard as ``function(X, y, *args)``, each in a process of its own.

    `calls`: from :func:`portable`. `cpu_seconds`: CPU time after which a shard abstains. Raises PreconditionFailed if a
    worker cannot import what a function is made of. Privacy: one changed shard changes one value of each function. A
    shard on which a function raises, crashes, runs out of memory or CPU time, or gives back no discrete value abstains,
    and nothing it printed, warned of or logged is seen.
    """
    n_jobs = count("n_jobs", n_jobs, at_least=1)
    if cpu_seconds is not None:
        cpu_seconds = real("function_cpu_seconds", cpu_seconds, above=0)
    rows = shards.reveal()
    values: list[Values] = [[None] * len(rows) for _ in calls]

    def item(number: int) -> tuple[int, Shard]:
        return number // len(rows), rows[number % len(rows)]

    work = partial(_compute_batch, tuple(calls), cpu_seconds)
    for number, result in isolated_map(work, item, range(len(calls) * len(rows)), n_jobs=n_jobs, batch=_BATCH):
        which, shard = divmod(number, len(rows))
        values[which][shard] = _checked(result)
    return Secret(values)


def _compute_batch(
    calls: tuple[bytes, ...], cpu_seconds: float | None, items: list[tuple[int, Shard]]
) -> list[bytes | Lost]:
    """In a worker: compute one function on one shard for each item, each in a child process of its own."""
    loaded = {which: unpacked(calls[which], "the function") for which in sorted({which for which, _ in items})}
    # Never two in one child: what a function leaves behind in its process must not reach another shard.
    return on_one_thread_each(partial(_compute, loaded), False, cpu_seconds, items)


def _compute(loaded: dict[int, tuple[Callable[..., Any], tuple[Any, ...]]], item: tuple[int, Shard]) -> bytes:
    which, shard = item
    function, args = loaded[which]
    seed_global_generators(shard.seed)
    return encode_value(function(shard.X, shard.y, *args)).encode("ascii")


def _checked(result: bytes | None) -> str | None:
    try:
        text = None if result is None else result.decode("ascii")
        if text is not None:
            decode_value(text)
    except ValueError:
        return None
    return text


def _seed(key: Secret[bytes], number: int) -> int:
    return int.from_bytes(derive(key, "shard", number)[:8], "big") >> 1

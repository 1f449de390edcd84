"""Functions on shards: one vote a shard, silence and abstention whatever a function does, values with one text each."""

import enum
import random
import sys
import threading
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ensemble.voters import KEY, misbehave, speak

from quorate.ensemble import hash_shards
from quorate.ensemble.functions import LONGEST, decode_value, encode_value, function_values, portable, split_rows
from quorate.errors import InvalidParameter

pytestmark = pytest.mark.mostly_heavy

K = 6
N = 60
X = np.arange(float(N))[:, None]
SLOTS = [b"%d" % row for row in range(N)]
SHARDS = hash_shards(SLOTS, K, KEY)

discrete = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4).map(tuple), st.frozensets(inner, max_size=4)),
    max_leaves=8,
)


def typed(value: object) -> object:
    """The value with its types, as an independent way to tell values apart: 1, True and "1" are three."""
    if isinstance(value, tuple):
        return ("tuple", *map(typed, value))
    if isinstance(value, frozenset):
        return ("frozenset", frozenset(map(typed, value)))
    return (type(value).__name__, value)


@given(value=discrete)
def test_a_value_comes_back_from_its_text(value):
    assert typed(decode_value(encode_value(value))) == typed(value)


@given(one=discrete, other=discrete)
def test_two_values_have_one_text_exactly_where_they_are_equal_and_of_one_type(one, other):
    assert (encode_value(one) == encode_value(other)) == (typed(one) == typed(other))


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.quick
@pytest.mark.parametrize(
    ("given_", "plain"),
    [(np.int8(-3), -3), (np.bool_(True), True), (np.str_("é"), "é"), (Colour.RED, "red"), (10**5000, 10**5000)],
    ids=["int8", "bool", "str", "enum", "huge"],
)
def test_values_of_numpy_and_of_subclasses_are_those_of_python(given_, plain):
    assert encode_value(given_) == encode_value(plain)
    assert typed(decode_value(encode_value(given_))) == typed(plain)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "bad",
    [1.0, np.float32(2), float("nan"), None, [1], {"a": 1}, b"a", 1j, np.array(3), ((1.0,),)],
    ids=lambda bad: type(bad).__name__,
)
def test_what_is_not_discrete_has_no_text(bad):
    with pytest.raises(TypeError):
        encode_value(bad)


@pytest.mark.quick
def test_what_is_too_long_or_too_deep_has_no_text():
    nested: Any = 1
    for _ in range(40):
        nested = (nested,)
    for bad in ("x" * LONGEST, nested):
        with pytest.raises(ValueError, match="counted"):
            encode_value(bad)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "text",
    ["", "1", "[]", '["int","7"]', '["int",7]', '["float",1.0]', '["str","a"] ', '["tuple",[["str"]]]', "[" * 3000,
     '["frozenset",[["str","b"],["str","a"]]]', '["bool",1]'],
)  # fmt: skip
def test_a_text_that_no_value_has_is_not_read(text):
    with pytest.raises(ValueError, match=r"canonical|base|JSON|Expecting|Extra"):
        decode_value(text)


def values(
    *functions: Any, y: Any = None, rows: Any = X, n_jobs: int = 1, cpu_seconds: float | None = None
) -> list[Any]:
    """Decoded values, ``(n_functions, n_shards)``."""
    found = function_values(
        [portable(function) for function in functions],
        split_rows(rows, y, SHARDS, K, KEY),
        n_jobs=n_jobs,
        cpu_seconds=cpu_seconds,
    ).reveal()
    return [[None if text is None else decode_value(text) for text in each] for each in found]


def parts() -> list[list[int]]:
    shard_of = SHARDS.reveal().tolist()
    return [[row for row in range(N) if shard_of[row] == number] for number in range(K)]


def test_each_shard_is_asked_about_its_own_rows_and_labels_in_their_order():
    y = [f"label {row}" for row in range(N)]
    [told] = values(lambda X, y: tuple((int(x), str(label)) for x, label in zip(X[:, 0], y, strict=True)), y=y)
    assert told == [tuple((row, y[row]) for row in part) for part in parts()]


def speaks(X: Any, y: Any) -> int:
    speak()
    return 7


BAD = {
    **{way: lambda X, y, way=way: misbehave(way) or 1 for way in ("raise", "segfault", "exit")},
    "list": lambda X, y: [1, 2], "float": lambda X, y: 1.5,
    "nan": lambda X, y: float("nan"), "none": lambda X, y: None, "huge": lambda X, y: "x" * 10**7,
    "huge integer": lambda X, y: 10**200_000, "array": lambda X, y: X, "recursion": lambda X, y: BAD["recursion"](X, y),
}  # fmt: skip


def test_a_function_that_fails_or_has_no_discrete_value_abstains_in_silence(capfd, caplog):
    found = values(*BAD.values(), speaks)
    assert found == [[None] * K] * len(BAD) + [[7] * K]
    assert "private" not in "".join(capfd.readouterr())
    assert caplog.records == []


def test_one_bad_shard_abstains_alone():
    first = parts()[2][0]

    def picky(X: Any, y: Any) -> str:
        if first in X[:, 0]:
            misbehave("killed")
        return "fine"

    [told] = values(picky, n_jobs=2)
    assert told == ["fine"] * 2 + [None] + ["fine"] * 3


def test_cpu_time_that_runs_out_is_an_abstention():
    def endless(X: Any, y: Any) -> int:
        while 0 in X[:, 0]:
            pass
        return 1

    [told] = values(endless, cpu_seconds=0.3)
    owner = next(number for number, part in enumerate(parts()) if 0 in part)
    assert told == [None if number == owner else 1 for number in range(K)]


def test_what_a_function_leaves_behind_reaches_no_other_shard():
    seen: list[int] = []

    def remembers(X: Any, y: Any) -> int:
        seen.append(1)
        sys.modules["left behind"] = sys.modules["sys"]
        return len(seen) + sum(name == "left behind" for name in sys.modules)

    [told] = values(remembers)
    assert told == [2] * K


def test_one_changed_unit_changes_one_value_of_a_function_that_looks_at_everything():
    """Rows, labels, their types and widths, and the random generators."""

    def everything(X: Any, y: Any) -> str:
        return repr((X.tolist(), y.tolist(), y.dtype.str, random.random(), float(np.random.rand())))  # noqa: NPY002

    y: list[Any] = [row % 3 for row in range(N)]
    [before] = values(everything, y=y)
    for odd in ["a very long label", 3.5, None, True]:
        [after] = values(everything, y=[*y[:17], odd, *y[18:]])
        owner = next(number for number, part in enumerate(parts()) if 17 in part)
        assert [number for number in range(K) if before[number] != after[number]] == [owner]


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame])
def test_a_frame_stays_one_and_forgets_where_its_rows_stood(container):
    def told(X: Any, y: Any) -> tuple[str, int]:
        return type(X).__module__.split(".")[0], int(X.index[0]) if hasattr(X, "index") else 0

    [found] = values(told, rows=container({"a": X[:, 0]}))
    assert found == [(container.__module__.split(".")[0], 0)] * K


def test_values_do_not_depend_on_how_many_processes_compute_them():
    def draws(X: Any, y: Any) -> int:
        return random.randrange(2**60) + int(np.random.randint(2**30))  # noqa: NPY002

    [one], [two] = values(draws), values(draws, n_jobs=2)
    assert one == two
    assert len(set(one)) == K


@pytest.mark.quick
@pytest.mark.parametrize("bad", [3, "f", None])
def test_what_cannot_be_called_is_refused(bad):
    with pytest.raises(InvalidParameter, match="must be callable"):
        portable(bad)


@pytest.mark.quick
def test_what_cannot_be_sent_is_refused_and_its_content_not_told():
    lock, row = threading.Lock(), "a private row"
    with pytest.raises(InvalidParameter, match="cannot be sent to a worker process: TypeError") as refused:
        portable(lambda X, y: (lock, row))
    assert row not in str(refused.value)

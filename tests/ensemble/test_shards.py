"""The fact that every sensitivity rests on: one changed unit changes one teacher, and every other one not by a bit."""

import pickle
import subprocess
import sys
from functools import cache
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.ensemble.voters import KEY, learned

from quorate.data import load_adult, take
from quorate.ensemble import ClassifierTeacher, ClassifierVoter, balanced_shards, hash_shards, train_chunk
from quorate.ensemble.functions import split_rows
from quorate.types import Secret

cloudpickle.register_pickle_by_value(sys.modules[__name__])

K = 4
N_UNITS = 160
TRAINERS = {
    "logistic": LogisticRegression(max_iter=200),
    "forest": RandomForestClassifier(3, max_depth=3),
    "boosting": HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5),
    "pipeline": make_pipeline(StandardScaler(), SGDClassifier(max_iter=5, tol=None)),
}


@cache  # not where the module is imported: every worker of the tests does that
def adult_units() -> dict[bytes, tuple[Any, Any]]:
    """Units of one to three rows each, by slot: rows of Adult, numbers on public scales."""
    adult = load_adult()
    numbers = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    X = adult.train.select(numbers).head(400).to_numpy().astype(np.float64) / [100, 16, 1e5, 5e3, 100]
    y = (adult.train_labels[:400] == ">50K").astype(np.int64)
    ends = np.cumsum(np.random.default_rng(5).integers(1, 4, size=N_UNITS))
    starts = [0, *ends[:-1]]
    return {
        f"person {unit}".encode(): (X[start:end], y[start:end])
        for unit, (start, end) in enumerate(zip(starts, ends, strict=True))
    }


@cache
def somebody() -> bytes:
    """In the first shard, so that whatever is handed on from teacher to teacher shows in the later ones."""
    shards = hash_shards(list(adult_units()), K, KEY).reveal()
    return next(slot for slot, shard in zip(adult_units(), shards, strict=True) if shard == 0)


NEWCOMER = b"person of another table"


def neighbouring(change: str) -> dict[bytes, tuple[Any, Any]]:
    units = dict(adult_units())
    X, y = units[somebody()]
    if change == "remove":
        del units[somebody()]
    elif change == "add":
        # In front, so that every other row moves down.
        units = {NEWCOMER: (np.vstack([X, X]) + 0.5, np.concatenate([1 - y, y])), **units}
    else:
        units[somebody()] = (np.vstack([X, X + 1.0, X]), np.concatenate([1 - y, 1 - y, y]))
    return units


def table(units):
    unit_keys = [slot for slot, (_, y) in units.items() for _ in y]
    return unit_keys, np.vstack([X for X, _ in units.values()]), np.concatenate([y for _, y in units.values()])


def honest(teacher, units, rule):
    unit_keys, X, y = table(units)
    shards = rule(unit_keys, K, KEY)
    return train_chunk(teacher, X, y, shards, numbers=range(K), n_teachers=K, n_classes=2, key=KEY).reveal()


def changed_teachers(train, change: str) -> list[int]:
    before, after = train(adult_units()), train(neighbouring(change))
    return [number for number in range(K) if learned(before[number]) != learned(after[number])]


@pytest.mark.heavy
@pytest.mark.parametrize("name", TRAINERS)
@pytest.mark.parametrize("change", ["add", "remove", "replace"])
def test_one_changed_unit_changes_exactly_one_teacher(name, change):
    teacher = ClassifierTeacher(TRAINERS[name])
    slot = NEWCOMER if change == "add" else somebody()
    shard = int(hash_shards([slot, *adult_units()], K, KEY).reveal()[0])

    assert changed_teachers(lambda units: honest(teacher, units, hash_shards), change) == [shard]


@pytest.mark.heavy
@pytest.mark.parametrize("name", TRAINERS)
def test_one_replaced_unit_changes_exactly_one_teacher_under_the_balanced_rule(name):
    teacher = ClassifierTeacher(TRAINERS[name])
    shards = dict(zip(adult_units(), balanced_shards(list(adult_units()), K, KEY).reveal(), strict=True))

    assert changed_teachers(lambda units: honest(teacher, units, balanced_shards), "replace") == [shards[somebody()]]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", TRAINERS)
def test_every_teacher_of_the_real_trainers_was_trained(name):
    """Otherwise the tests above would compare abstentions."""
    voters = honest(ClassifierTeacher(TRAINERS[name]), adult_units(), hash_shards)

    assert all(isinstance(voter, ClassifierVoter) for voter in voters)
    assert len({learned(voter) for voter in voters}) == K


# Cheating twins: each breaks the rule in one way, and the same comparison must see it.


def in_shards(units):
    """All rows and labels, and which rows each teacher gets."""
    unit_keys, X, y = table(units)
    shards = hash_shards(unit_keys, K, KEY).reveal()
    return X, y, [np.flatnonzero(shards == number) for number in range(K)]


def with_a_pooled_scaler(units):
    X, y, shards = in_shards(units)
    X = StandardScaler().fit(X).transform(X)
    return [LogisticRegression().fit(X[rows], y[rows]) for rows in shards]


def with_blocks_of_rows(units):
    _, X, y = table(units)
    return [LogisticRegression().fit(X[rows], y[rows]) for rows in np.array_split(np.arange(len(y)), K)]


def with_a_shared_generator(units):
    X, y, shards = in_shards(units)
    generator = np.random.default_rng(0)
    shuffled = [rows[np.argsort(generator.random(rows.size))] for rows in shards]
    return [SGDClassifier(shuffle=False, random_state=0).fit(X[rows], y[rows]) for rows in shuffled]


def with_a_shared_warm_start(units):
    X, y, shards = in_shards(units)
    model = SGDClassifier(random_state=0, warm_start=True, max_iter=1, tol=None)
    return [model.fit(X[rows], y[rows]).coef_.copy() for rows in shards]


def with_rows_of_a_unit_apart(units):
    _, X, y = table(units)
    rows = [slot + bytes([copy]) for slot, (_, labels) in units.items() for copy in range(len(labels))]
    shards = hash_shards(rows, K, KEY).reveal()
    return [LogisticRegression().fit(X[shards == number], y[shards == number]) for number in range(K)]


def under_the_balanced_rule(units):
    return honest(ClassifierTeacher(LogisticRegression()), units, balanced_shards)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("cheat", "change"),
    [
        (with_a_pooled_scaler, "replace"),
        (with_blocks_of_rows, "remove"),
        (with_blocks_of_rows, "add"),
        (with_a_shared_generator, "remove"),
        (with_a_shared_warm_start, "replace"),
        (with_rows_of_a_unit_apart, "replace"),
        (under_the_balanced_rule, "remove"),
        (under_the_balanced_rule, "add"),
    ],
)
def test_that_comparison_catches_a_cheat(cheat, change):
    assert len(changed_teachers(cheat, change)) > 1


PARTS, N = 5, 60
SHARDS = hash_shards([b"%d" % row for row in range(N)], PARTS, KEY)
ROW = 17
RARE = "a rare word that is longer than any buffer holds in place"
WORDS = [("a", "b", "c")[row % 3] for row in range(N)]
NUMBERS = [row % 4 for row in range(N)]
TRUTHS = [row % 2 == 0 for row in range(N)]


def changed(values: list[Any], odd: Any) -> list[Any]:
    return [*values[:ROW], odd, *values[ROW + 1 :]]


def as_bytes(part: Any) -> bytes:
    """All that a function can see of a part: its types, its values, and what travels with them."""
    seen: Any = pickle.dumps(part)
    if isinstance(part, pl.DataFrame):
        # a pickled frame is compressed; codes and categories must be the same, too
        seen = repr((part.schema, part.rows(), [series.to_physical().to_list() for series in part]))
    if isinstance(part, pd.DataFrame):
        codes = [(c.cat.codes.tolist(), c.cat.categories) for _, c in part.items() if hasattr(c, "cat")]
        seen = repr((part.dtypes.tolist(), part.to_dict("split"), codes)).encode() + pickle.dumps(
            [part.iloc[:, i].to_numpy() for i in range(part.shape[1])]
        )
    return seen.encode() if isinstance(seen, str) else seen


def coupled(X: Any, y: Any, X_changed: Any, y_changed: Any) -> list[int]:
    """Which shards look different, by their number."""
    before, after = (
        split_rows(rows, labels, SHARDS, PARTS, KEY).reveal() for rows, labels in ((X, y), (X_changed, y_changed))
    )
    return [
        number
        for number, (one, other) in enumerate(zip(before, after, strict=True))
        if as_bytes(one.X) != as_bytes(other.X) or as_bytes(one.y) != as_bytes(other.y)
    ]


OWNER = int(SHARDS.reveal()[ROW])
EMPTY = np.zeros((N, 1))

LABELS: list[tuple[str, Any, list[Any], list[Any]]] = [
    ("list of numbers", list, NUMBERS, [0.5, None, "a", 10**400]),
    ("array of numbers", np.array, NUMBERS, [0.5, float("nan"), 2**62]),
    ("series of numbers", pd.Series, NUMBERS, [0.5, None, "a"]),
    ("series of nullable numbers", lambda v: pd.Series(v).convert_dtypes(), NUMBERS, [0.5, None]),
    ("polars numbers", lambda v: pl.Series(v, strict=False), NUMBERS, [0.5, None]),
    ("truth values", np.array, TRUTHS, [7, 0.5]),
    ("series of truth values", pd.Series, TRUTHS, [None, 3]),
    ("list of words", list, WORDS, [RARE, None, 3]),
    ("array of words", np.array, WORDS, [RARE]),
    ("series of words", pd.Series, WORDS, [RARE, None, 3]),
    ("pandas categories", lambda v: pd.Series(v, dtype="category"), WORDS, [RARE, None]),
    ("polars categories", lambda v: pl.Series(v, dtype=pl.Categorical), WORDS, [RARE, None]),
]  # fmt: skip


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(("make", "values", "odds"), [row[1:] for row in LABELS], ids=[row[0] for row in LABELS])
def test_one_changed_label_changes_no_other_shard(make, values, odds):
    for odd in odds:
        assert coupled(EMPTY, make(values), EMPTY, make(changed(values, odd))) == [OWNER], odd


def pandas_frame(values: Any, **types: Any) -> pd.DataFrame:
    return pd.DataFrame({"before": range(N), "it": pd.Series(values, **types), "after": WORDS})


def polars_frame(values: Any, **types: Any) -> pl.DataFrame:
    return pl.DataFrame({"before": range(N), "it": pl.Series(values, **types), "after": WORDS})


COLUMNS: list[tuple[str, Any, list[Any], list[Any]]] = [
    ("numpy", lambda v: np.column_stack([np.arange(N), np.array(v)]), NUMBERS, [0.5, float("nan")]),
    ("sparse", lambda v: sparse.csr_array(np.column_stack([np.arange(N), np.array(v)])), NUMBERS, [0.5, 0]),
    ("pandas numbers", pandas_frame, NUMBERS, [0.5, None]),
    ("pandas truth values", pandas_frame, TRUTHS, [None]),
    ("pandas nullable numbers", lambda v: pandas_frame(v).convert_dtypes(), NUMBERS, [0.5, None]),
    ("pandas words", pandas_frame, WORDS, [RARE, None]),
    ("pandas categories", lambda v: pandas_frame(v, dtype="category"), WORDS, [RARE, None]),
    ("pandas categories of numbers", lambda v: pandas_frame(v, dtype="category"), NUMBERS, [0.5, None, "a"]),
    ("pandas without a value", pandas_frame, [None] * N, [3, 0.5]),
    ("pandas times", lambda v: pandas_frame(pd.to_datetime(pd.Series(v), format="ISO8601")),
     ["2024-02-01"] * N, ["2024-02-01T00:00:00.000001", "2024-02-02T00:00:00.000000001", None]),
    ("polars numbers", lambda v: polars_frame(v, strict=False), NUMBERS, [0.5, None, 2**40]),
    ("polars small numbers", lambda v: polars_frame(v, dtype=pl.Int8 if max(x or 0 for x in v) < 99 else pl.Int32),
     NUMBERS, [300]),
    ("polars truth values", lambda v: polars_frame(v, strict=False), TRUTHS, [None, 3]),
    ("polars words", polars_frame, WORDS, [RARE, None]),
    ("polars categories", lambda v: polars_frame(v, dtype=pl.Categorical), WORDS, [RARE, None]),
    ("polars enumerations", lambda v: polars_frame(v, dtype=pl.Enum(sorted({x for x in v if x}))), WORDS, ["aa", None]),
    ("polars without a value", polars_frame, [None] * N, [3, 0.5]),
]  # fmt: skip


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("make", "values", "odds"), [row[1:] for row in COLUMNS], ids=[row[0] for row in COLUMNS])
def test_one_changed_value_changes_no_other_shard(make, values, odds):
    for odd in odds:
        before, after = make(values), make(changed(values, odd))
        assert coupled(before, None, after, None) == [OWNER], odd
        for shard in split_rows(after, None, SHARDS, PARTS, KEY).reveal()[:OWNER]:
            assert RARE.encode() not in pickle.dumps(shard)


@pytest.mark.parametrize("name", ["numpy", "pandas numbers", "polars categories", "polars enumerations"])
def test_rows_that_are_merely_taken_would_be_coupled_so_that_these_tests_can_fail(name):
    make, values, odds = next(row[1:] for row in COLUMNS if row[0] == name)
    rows = np.flatnonzero(SHARDS.reveal() == (OWNER + 1) % PARTS)
    before, after = (take(make(each), rows) for each in (values, changed(values, odds[0])))

    def seen(part: Any) -> Any:
        types = part.dtype if isinstance(part, np.ndarray) else list(part.dtypes)
        return str(types), [series.to_physical().to_list() for series in part] if isinstance(part, pl.DataFrame) else 0

    if name == "polars categories":  # the codes depend on what this process saw before: only text is safe
        assert before["it"].dtype == pl.Categorical
    else:
        assert seen(before) != seen(after)


CODES = """
import pickle, sys
import numpy as np, polars as pl
from quorate.ensemble.training import rows_alone
words = sys.argv[1].split()
part = rows_alone(pl.DataFrame({"c": pl.Series(words, dtype=pl.Categorical)}), np.array([1, 2, 3]))
print(repr((part.schema, part["c"].to_physical().to_list(), b"RARE" in pickle.dumps(part))))
"""


@pytest.mark.heavy
def test_codes_of_polars_categories_do_not_tell_what_else_the_process_has_seen():
    told = [
        subprocess.run([sys.executable, "-c", CODES, words], capture_output=True, text=True, check=True).stdout
        for words in ("a b a b", "RARE b a b")
    ]
    assert told[0] == told[1]
    assert "True" not in told[0]


def test_values_are_kept_and_numbers_are_floats():
    frame = pd.DataFrame({"n": [1, 2, 3], "t": [True, False, True], "w": ["x", "y", "x"]})
    shards = Secret(np.array([0, 1, 0]))
    own = split_rows(frame, [7, 8, "nine"], shards, 2, KEY).reveal()
    assert own[0].X.to_dict("list") == {"n": [1.0, 3.0], "t": [1.0, 1.0], "w": ["x", "x"]}
    assert [str(each) for each in own[0].X.dtypes] == ["float64", "float64", "str"]
    assert own[0].y.tolist() == [7.0, "nine"]
    assert own[1].y.dtype == np.float64

"""Marginals through the code that releases them: counts by a slow second way, resume, and audits that catch twins."""

import datetime as dt
import hashlib
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from quorate.audit import GaussianClaim, audit_mechanism
from quorate.data.declared_schema import NumberColumn, Schema
from quorate.data.unit_ids import one_row_of_each, usable_slots
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import NoisyMarginals, Partition
from quorate.mechanisms import marginals as mechanism_module
from quorate.noise import SeededNoise
from quorate.release.charge import COORDINATES, MARGINAL_LEVEL
from quorate.run import drawn_pool
from quorate.run.drawn_pool import CellCounts, count_cells, partitions_of, release_marginals, state_coordinates
from quorate.run.drawn_rows import draw_rows
from quorate.types import Secret

KEY = Secret(bytes(range(32)))
SCHEMA = Schema({"age": (0, 120), "sex": ["F", "M"], "income": "number", "note": "drop"})


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(np.array(["F", "M", "other", None], dtype=object), n).tolist()
    ages = [None if age % 10 == 0 else age for age in rng.integers(-5, 130, n).tolist()]
    return pl.DataFrame({"income": np.exp(rng.normal(5, 3, n)), "sex": sex, "note": ["-"] * n, "age": ages})


def everybody(schema, frame):
    return count_cells(schema, [frame], np.ones(len(frame), dtype=bool))


def marginals_of(schema, mu=3.0):
    return NoisyMarginals(partitions_of(schema), mu=mu, neighbours="add-or-remove")


def reserved(marginals, key="levels"):
    ledger, purposes = Ledger(budget=Budget(50.0, 1e-5)), {MARGINAL_LEVEL: marginals.n_levels, COORDINATES: 1}
    return ledger.reserve(marginals.event, delta=1e-5, purposes=purposes, key=key)


@pytest.fixture
def silent(monkeypatch):
    """No noise, so that exact counts can be compared."""
    monkeypatch.setattr(mechanism_module, "discrete_gaussian", lambda sigma, shape, noise: np.zeros(shape, dtype=int))


def test_one_row_of_a_unit_counts_whatever_stands_around_it():
    rng = np.random.default_rng(4)
    groups = rng.integers(0, 60, 300).tolist()
    rows = one_row_of_each(usable_slots(groups, 300), KEY)
    assert sorted(groups[row] for row in rows) == sorted(set(groups))
    number_of = {groups[row]: groups[:row].count(groups[row]) for row in rows.tolist()}
    assert len(set(number_of.values())) > 3  # not always the first
    # Its own rows keep their order, and everything else moves, comes or goes.
    order = np.argsort(np.array(groups) % 7, kind="stable")
    others = [groups[row] for row in order] + [1_000, 1_000, 1_001, None]
    moved = one_row_of_each(usable_slots(others, len(others)), KEY)
    again = {others[row]: others[:row].count(others[row]) for row in moved.tolist()}
    assert {unit: again[unit] for unit in number_of} == number_of
    assert None not in again
    other_key = one_row_of_each(usable_slots(groups, 300), Secret(bytes(32)))
    assert rows.tolist() != other_key.tolist()


def test_counts_are_those_of_the_chosen_rows_and_no_block_matters():
    frame, chosen = table(), np.arange(400) % 3 == 0
    whole = count_cells(SCHEMA, [frame], chosen).reveal()
    parted = count_cells(SCHEMA, [frame[:7], frame[7:201], frame[201:201], frame[201:]], chosen).reveal()
    codes = {name: held.codes(frame[name]) for name, held in SCHEMA.columns.items()}
    for name, one, other in zip(SCHEMA.columns, whole, parted, strict=True):
        first = np.unique(codes[name][codes[name] >= 0])
        expected = [int((codes[name][chosen] == cell).sum()) for cell in first]
        assert one.within(first, first + 1).tolist() == other.within(first, first + 1).tolist() == expected


def test_cells_that_are_joined_on_the_way_are_the_same(monkeypatch):
    monkeypatch.setattr(drawn_pool, "_MERGED_AT", 3)
    codes = np.random.default_rng(0).integers(-1, 9, 200)
    counts = CellCounts()
    for part in np.array_split(codes, 40):
        counts.add(part)
    cells = np.arange(9)
    assert counts.within(cells, cells + 1).tolist() == [int((codes == cell).sum()) for cell in cells]


def test_every_level_counts_its_parts_exactly_and_cuts_by_the_rule(silent):
    frame, marginals = table(3_000), marginals_of(SCHEMA)
    released = whole(marginals, reserved(marginals), SeededNoise(0))
    assert [level.number for level, _ in released.levels] == list(range(1, marginals.n_levels + 1))
    assert released.lost == ()
    codes = [held.codes(frame[name]) for name, held in SCHEMA.columns.items()]
    for at, (level, noisy) in enumerate(released.levels):
        for place, (nodes, counts) in enumerate(zip(level.nodes, noisy, strict=True)):
            ends = zip(*partitions_of(SCHEMA)[place].cells_of(nodes), strict=True)
            assert counts.tolist() == [int(((codes[place] >= low) & (codes[place] < high)).sum()) for low, high in ends]
            if len(nodes):  # parts are disjoint, and nobody is left out
                assert counts.sum() == (codes[place] >= 0).sum()
        expected = marginals.level(level.number, released.levels[:at])
        assert [nodes.tolist() for nodes in level.nodes] == [nodes.tolist() for nodes in expected.nodes]


class Killed(BaseException):
    """The process dies."""


def whole(marginals, reservation, noise):
    return release_marginals(marginals, everybody(SCHEMA, table(3_000)), reservation, noise)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("killed_at", [1, 2, 4])
def test_a_level_that_was_drawn_and_not_stored_is_left_out_and_never_drawn_again(killed_at, monkeypatch):
    marginals = marginals_of(SCHEMA)
    reservation, levels = reserved(marginals), []
    real = NoisyMarginals.release_level

    def dying(self, level, counts, noise):
        levels.append(level.number)
        if levels == list(range(1, killed_at + 1)):
            raise Killed
        return real(self, level, counts, noise)

    monkeypatch.setattr(NoisyMarginals, "release_level", dying)
    with pytest.raises(Killed):
        whole(marginals, reservation, SeededNoise(0))
    resumed = whole(marginals, reservation, SeededNoise(0))
    every = list(range(1, marginals.n_levels + 1))
    assert levels == every  # nothing was drawn again
    assert resumed.lost == (killed_at,)
    assert [level.number for level, _ in resumed.levels] == [number for number in every if number != killed_at]
    assert reservation.remaining(MARGINAL_LEVEL) == 0
    age = resumed.levels[0][0].nodes[0]
    assert len(age) >= 5  # also where the first level was lost trees begin with quarters
    assert draw_rows(SCHEMA, resumed, 100, KEY).height >= 100


def test_once_coordinates_rest_on_what_was_released_no_level_is():
    marginals = marginals_of(SCHEMA)
    reservation = reserved(marginals)
    reservation.draw(MARGINAL_LEVEL, 1)  # and lost
    state_coordinates(reservation, "of rows that were drawn evenly", refusal="")
    released = whole(marginals, reservation, SeededNoise(0))
    assert (released.levels, released.lost) == ([], (1,))
    assert draw_rows(SCHEMA, released, 100, KEY).equals(draw_rows(SCHEMA, None, 100, KEY))
    assert reservation.remaining(MARGINAL_LEVEL) == marginals.n_levels - 1


def test_stored_levels_are_read_and_not_drawn_again():
    marginals = marginals_of(SCHEMA)
    reservation = reserved(marginals)
    first = whole(marginals, reservation, SeededNoise(0))
    again = whole(marginals, reservation, SeededNoise(1))  # other noise, of which nothing is asked
    flat = [[column.tolist() for column in noisy] for _, noisy in first.levels]
    assert flat == [[column.tolist() for column in noisy] for _, noisy in again.levels]
    assert flat == [block.answers[0] for block in reservation.blocks(MARGINAL_LEVEL)]


def test_a_level_is_durably_drawn_before_its_noise_and_stored_before_the_next(monkeypatch):
    marginals = marginals_of(SCHEMA)
    reservation = reserved(marginals)
    real = NoisyMarginals.release_level

    def watched(self, level, counts, noise):
        blocks = reservation.blocks(MARGINAL_LEVEL)
        assert len(blocks) == level.number
        assert [block.answers is None for block in blocks] == [False] * (level.number - 1) + [True]
        return real(self, level, counts, noise)

    monkeypatch.setattr(NoisyMarginals, "release_level", watched)
    whole(marginals, reservation, SeededNoise(0))


TREE, LIST = Partition.tree(3), Partition(3)
N = 4_000  # in one leaf and one value, so that its path is always opened


class Unpaid:
    """A reservation of which the audit asks nothing: it runs the release many times."""

    def __init__(self):
        self.drawn = -1

    def blocks(self, purpose):
        return ()

    def draw(self, purpose, count):
        self.drawn += 1
        return SimpleNamespace(purpose=purpose, first=self.drawn, count=count)

    def store(self, block, answers):
        return None


def columns_with(codes):
    """Counts of N units in cells 0 of both columns, and of the rows of one more: a code a column, each."""
    counts = (CellCounts(), CellCounts())
    for column in counts:
        column.add(np.zeros(N, dtype=np.int64))
    for row in codes:
        for column, code in zip(counts, row, strict=True):
            column.add(np.array([code]))
    return Secret(counts)


NOBODY = ()
ONE = ((0, 0),)
OTHER = ((7, 2),)


def unpaid(marginals, counts, noise):
    noise = SeededNoise(noise) if isinstance(noise, int) else noise
    return release_marginals(marginals, counts, Unpaid(), noise)


def numbers_of(marginals, unit, noise):
    """Everything that one whole release publishes of the nodes that a unit or its replacement can be in."""
    released = unpaid(marginals, columns_with(unit), noise)
    return np.concatenate([column for _, noisy in released.levels for column in noisy])


def moved(marginals, pair):
    """μ of the whole release on two neighbours, without noise: the length of what moves, in priced σ."""
    lengths, runs = 0.0, [unpaid(marginals, columns_with(unit), 0).levels for unit in pair]
    for (_, one), (_, other) in zip(*runs, strict=True):
        for partition, a, b in zip(marginals.partitions, one, other, strict=True):
            assert a.shape == b.shape
            lengths += float(((a - b) ** 2).sum()) / marginals.sigma(partition) ** 2
    return float(np.sqrt(lengths))


PAIRS = {"add-or-remove": (NOBODY, ONE), "replace": (ONE, OTHER)}


def audited(neighbours, mu=0.9):
    return NoisyMarginals((TREE, LIST), mu=mu, neighbours=neighbours)


@pytest.mark.parametrize("neighbours", PAIRS)
def test_one_unit_moves_the_release_by_what_is_paid_for_and_not_less(neighbours, silent):
    marginals = audited(neighbours)
    assert moved(marginals, PAIRS[neighbours]) <= marginals.mu * (1 + 1e-12)
    assert moved(marginals, PAIRS[neighbours]) > 0.99 * marginals.mu


def with_root(monkeypatch):
    """The root is counted too, beside its quarters."""
    real = Partition.cells_of

    def cells_of(self, nodes):
        first, behind = real(self, nodes)
        return (np.where(nodes == 0, 0, first) if self.depth else first), behind  # what is missing, and everybody

    monkeypatch.setattr(Partition, "cells_of", cells_of)


def a_whole_beside_its_halves(monkeypatch):
    """A part that is halved is counted again with its halves."""
    real = NoisyMarginals._halved

    def halved(self, place, n_left, before):
        parts = real(self, place, n_left, before)
        return np.unique(np.concatenate([parts, before[-1][0].nodes[place]]))

    monkeypatch.setattr(NoisyMarginals, "_halved", halved)


@pytest.mark.parametrize("twin", [with_root, a_whole_beside_its_halves])
def test_a_release_of_more_than_is_paid_for_is_caught(twin, silent, monkeypatch):
    marginals = audited("add-or-remove")
    twin(monkeypatch)
    assert moved(marginals, PAIRS["add-or-remove"]) > 1.05 * marginals.mu


@pytest.mark.parametrize(
    ("pair", "least"),
    [((NOBODY, (*ONE, *ONE)), 1.9), (PAIRS["replace"], 1.1)],
    ids=["all rows of a unit", "noise for adding where a unit is replaced"],
)
def test_a_unit_that_moves_more_than_is_paid_for_is_caught(pair, least, silent):
    marginals = audited("add-or-remove")
    assert moved(marginals, pair) > least * marginals.mu


class ManyReleases:
    """The whole release on the counts that are handed in, as an audit attacks it."""

    def __init__(self, marginals, pair):
        self.marginals, self.pair, self.runs = marginals, pair, 0

    def release(self, counts, noise):
        self.runs += 1
        numbers = numbers_of(self.marginals, self.pair[int(counts[0])], noise.at("run", self.runs))
        return np.asarray(numbers[: self.length], dtype=np.int64)

    @property
    def length(self):
        return 5 + 3 + 6 + 6  # level 1 of both columns, and the parts of two more, of which one is always halved


def attacked(marginals, neighbours, runs):
    return audit_mechanism(
        ManyReleases(marginals, PAIRS[neighbours]),
        ([0, 0], [1, 0]),
        GaussianClaim(audited(neighbours).mu),
        confidence=1 - 1e-6,
        runs=runs,
        seed=1,
    )


@pytest.mark.heavy
@pytest.mark.heavy_cases(1)
@pytest.mark.parametrize("neighbours", PAIRS)
def test_the_attack_on_whole_releases_proves_no_more_than_is_claimed_and_is_not_blind(neighbours):
    result = attacked(audited(neighbours), neighbours, 6_000)  # at 1 − 10⁻⁶ they prove a third at least
    assert not result.violated, result.verdict
    assert result.lower_bound > 0.3 * audited(neighbours).mu


@pytest.mark.heavy
def test_the_attack_catches_a_release_with_little_noise():
    assert attacked(audited("add-or-remove", mu=5.0), "add-or-remove", 600).violated


KINDS = Schema(
    {
        "age": (0, 500),
        "sex": ["F", "M", "X"],
        "income": "number",
        "flag": [True, False],
        "day": (dt.date(2000, 1, 1), dt.date(2040, 1, 1)),
        "bit": (0, 1),
        "gap": (0.0, 4.0),
    }
)


def people(n=20_000):
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "age": rng.normal(40, 12, n).round().clip(0, 90),
            "sex": rng.choice(["F", "M"], n, p=[0.3, 0.7]),
            "income": np.exp(rng.normal(8, 1, n)),
            "flag": rng.random(n) < 0.2,
            "day": [dt.date(2020, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 300, n)],
            "bit": (rng.random(n) < 0.25).astype(int),
            "gap": np.where(rng.random(n) < 0.3, np.nan, rng.uniform(1, 2, n)),
        }
    )


def released_of(frame, mu=0.3):
    marginals = marginals_of(KINDS, mu)
    return release_marginals(marginals, everybody(KINDS, frame), reserved(marginals), SeededNoise(5))


@pytest.mark.heavy
@pytest.mark.parametrize(("wide", "most"), [(1, 0.2), (20, 0.8)])
def test_columns_keep_their_spread_where_few_parts_of_a_range_can_be_told_apart(wide, most):
    rng, n, columns = np.random.default_rng(1), 6_600, 12
    rows = rng.normal(size=(n, columns))
    low, high = -5.0 * wide, 4.0 * wide
    schema = Schema({str(place): (low, high) for place in range(columns)})
    frame = pl.DataFrame({str(place): rows[:, place] for place in range(columns)})
    released = unpaid(marginals_of(schema, 0.0475 * np.sqrt(columns / 20)), everybody(schema, frame), 2)
    spread = draw_rows(schema, released, 2_000, KEY).to_numpy().std(axis=0)
    assert np.sqrt((np.log(spread) ** 2).mean()) < most


def test_values_of_a_long_list_are_drawn_together_where_each_is_lost_in_the_noise():
    """200 codes of 33 rows each, but one of a third of all: noise of 20 hides what is not that one."""
    n, codes = 10_000, [f"c{code}" for code in range(200)]
    schema = Schema({"code": codes})
    rng = np.random.default_rng(3)
    drawn = [codes[0] if rng.random() < 1 / 3 else codes[rng.integers(1, 200)] for _ in range(n)]
    marginals = marginals_of(schema, 0.05)
    released = unpaid(marginals, everybody(schema, pl.DataFrame({"code": drawn})), 2)
    rows = draw_rows(schema, released, 2_000, KEY)["code"]
    assert rows.n_unique() > 195
    assert abs((rows == codes[0]).mean() - 1 / 3) < 0.05

    none = pl.DataFrame({"code": [codes[0]] * n})  # noise alone is not believed, of however many values
    released = unpaid(marginals, everybody(schema, none), 2)
    assert draw_rows(schema, released, 2_000, KEY)["code"].n_unique() < 10


@pytest.mark.heavy
def test_drawn_rows_are_distributed_as_the_private_ones_column_by_column():
    frame = people()
    pool = draw_rows(KINDS, released_of(frame), 2_000, KEY)
    assert pool.columns == list(KINDS.columns)
    assert set(pool["sex"].drop_nulls()) == {"F", "M", "X"}  # also the listed value that nobody has
    for name in ("age", "income", "gap", "bit"):
        numbers, drawn = frame[name].cast(float).fill_nan(None), pool[name].fill_nan(None)
        assert drawn.null_count() / len(pool) == pytest.approx(numbers.null_count() / 20_000, abs=0.04)
        for share in (0.1, 0.25, 0.5, 0.75, 0.9):  # four standard errors of a quantile's rank, and some noise
            below = (numbers.drop_nulls() < drawn.quantile(share)).mean()
            upto = (numbers.drop_nulls() <= drawn.quantile(share)).mean()
            assert below - 0.06 < share < upto + 0.06, name
    assert (pool["sex"] == "M").mean() == pytest.approx(0.7, abs=0.05)
    assert (pool["flag"] == "True").mean() == pytest.approx(0.2, abs=0.05)
    assert (pool["age"] == pool["age"].round()).all()
    assert set(pool["bit"].unique()) == {0.0, 1.0}
    within = pool["day"].is_between(dt.date(2019, 11, 1), dt.date(2020, 12, 31))
    assert pool["day"].dtype == pl.Date
    assert within.mean() > 0.97


def test_each_listed_value_that_no_row_has_gets_a_row():
    schema = Schema({"code": [str(code) for code in range(40)], "long": [f"v{code}" for code in range(60)]})
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"code": rng.choice(["3", "4"], 5_000), "long": rng.choice(["v1", "v2"], 5_000)})
    marginals = NoisyMarginals(partitions_of(schema), mu=3.0, neighbours="replace")
    pool = draw_rows(schema, unpaid(marginals, everybody(schema, frame), 1), 100, KEY)
    assert pool["code"].n_unique() == 40
    assert pool["long"].n_unique() < 60
    assert set(pool["code"][:100]).isdisjoint(pool["code"][100:])


@pytest.mark.heavy
def test_where_noise_explains_every_count_all_values_and_the_whole_range_are_as_likely():
    for released in (released_of(people(5), mu=1e-3), None):
        pool = draw_rows(KINDS, released, 3_000, KEY)
        assert pool["sex"].null_count() == 0
        assert pool["sex"].value_counts()["count"].min() > 850
        assert pool["age"].min() < 5
        assert pool["age"].max() > 495
        assert (pool["bit"]).mean() == pytest.approx(0.5, abs=0.05)
        assert (pool["income"] > 0).mean() == pytest.approx(0.5, abs=0.05)


def test_a_run_that_was_begun_by_halves_goes_on_so_and_draws_the_same_rows(monkeypatch):
    marginals = marginals_of(KINDS, 0.3)
    with monkeypatch.context() as then:
        then.setattr(drawn_pool, "counted_by_halves", lambda *_: True)
        begun = release_marginals(
            marginals, everybody(KINDS, people()), reservation := reserved(marginals), SeededNoise(5)
        )
    again = release_marginals(marginals, everybody(KINDS, people()), reservation, SeededNoise(6))
    assert begun.by_halves
    assert again.by_halves
    rows = draw_rows(KINDS, again, 400, KEY)
    assert hashlib.sha256(rows.write_csv().encode()).hexdigest() == ROWS_BY_HALVES
    assert not draw_rows(KINDS, released_of(people()), 400, KEY).equals(rows)


ROWS_BY_HALVES = "3255936627d9df9fdc39bdaf9f8b7036ae63f09accf5ae5077282471712f0ffd"  # as they were drawn then


def test_rows_follow_from_what_was_released_and_the_key_on_every_machine():
    released = released_of(people())
    one, again, other = (draw_rows(KINDS, released, 400, key) for key in (KEY, KEY, Secret(bytes(32))))
    assert one.equals(again)
    assert not one.equals(other)
    first = draw_rows(KINDS, None, 2, KEY)
    assert first.select("sex", "flag", "day", "age").rows()[0] == FIRST_ROW


FIRST_ROW = ("F", "True", dt.date(2018, 1, 8), 314.0)  # as it was drawn first


def test_a_value_of_a_range_of_leaves_lies_in_it():
    rng = np.random.default_rng(0)
    for declared in ((0, 1), (0, 120), (0, 10**6), (-0.3, 7.1), "number", (dt.date(2020, 1, 1), dt.date(2020, 1, 9))):
        held = Schema({"x": declared}).columns["x"]
        assert isinstance(held, NumberColumn)
        levels = rng.integers(0, held.depth + 1, 500)
        nodes = np.floor(rng.random(500) * 2.0**levels).astype(np.int64)
        first, behind = nodes << (held.depth - levels), (nodes + 1) << (held.depth - levels)
        values = held.values(first, behind, rng.random((500, 2)))
        leaves = held.codes(values)
        inside = (leaves >= first) & (leaves < behind)
        if held.grid in ("int", "date"):
            assert (values == np.floor(values)).all()
            whole = held.codes(np.arange(held.low, min(held.high, held.low + 4e5) + 1))
            holds = np.array([((whole >= low) & (whole < high)).any() for low, high in zip(first, behind, strict=True)])
            assert inside[holds].all()
        elif held.low is not None:
            assert inside.all()
        else:  # of a part that no number is in, it is 0
            assert (inside | (values == 0)).all()

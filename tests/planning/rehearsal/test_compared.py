"""Rows beside each other: what of their differences is luck."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.planning.plan_row import PlanRow
from quorate.planning.rehearsal.estimate import Played
from quorate.planning.rehearsal.rehearsal import kept, without_luck
from quorate.run.expected import Expected


@pytest.mark.parametrize(("between", "luck"), [(0.02, 0.02), (0.01, 0.03), (0.03, 0.01)])
def test_what_is_kept_is_the_share_of_the_variance_that_is_the_rows_own(between: float, luck: float) -> None:
    """Over 40 rows in 4 divisions, by the definition of the share; its standard error is 0.12 at most."""
    rng, n_rows, n_divisions = np.random.default_rng(0), 40, 4
    own, common = between * rng.normal(size=(n_rows, 1)), 0.05 * rng.normal(size=(1, n_divisions))
    found = kept(own + common + luck * rng.normal(size=(n_rows, n_divisions)))
    assert found == pytest.approx(between**2 / (between**2 + luck**2 / n_divisions), abs=0.3)


def test_the_best_of_several_is_expected_as_well_as_it_is() -> None:
    """The twin beside it: as played, the best of six is expected too well, and differences are further off."""
    rng, off, as_played = np.random.default_rng(1), [], []
    for _ in range(300):
        true = 0.8 + 0.01 * rng.normal(size=6)
        played = true[:, None] + 0.03 * rng.normal(size=(6, 4))
        raw = played.mean(axis=1)
        shrunk = raw.mean() + kept(played) * (raw - raw.mean())
        best = int(raw.argmax())
        off.append([shrunk[best] - true[best], np.std(shrunk - true)])
        as_played.append([raw[best] - true[best], np.std(raw - true)])
    luck, spread = np.mean(off, axis=0)
    raw_luck, raw_spread = np.mean(as_played, axis=0)
    assert raw_luck > 0.01
    assert luck < raw_luck / 2
    assert spread < 0.8 * raw_spread


def played(accuracies: list[float]) -> list[Played]:
    """One play in each division."""
    return [
        Played(hits=np.arange(1_000) < np.full((3, 1), 1_000 * each), fold=fold, size=1.0)
        for fold, each in enumerate(accuracies)
    ]


def test_rows_keep_their_order_and_their_ranges_move_along() -> None:
    plays = {"votes/A": played([0.8, 0.7]), "votes/B": played([0.76, 0.7]), "votes/C": played([0.62, 0.68])}
    rows = [
        PlanRow(
            way="votes", name=name, expected=Expected(accuracy=a, low=a - 0.1, high=a + 0.05, basis="paid estimate")
        )
        for name, a in (("A", 0.75), ("B", 0.73), ("C", 0.65), ("D", 0.9))
    ]
    by_key = {row.key: list(plays.values())[at] for at, row in enumerate(rows[:3])}
    found = without_luck(rows, by_key)
    accuracies = [row.expected.accuracy for row in found if row.expected is not None]
    assert accuracies[3] == 0.9  # of which no plays were given
    assert accuracies[0] > accuracies[1] > accuracies[2]
    assert accuracies[0] < 0.75
    assert accuracies[2] > 0.65
    assert sum(accuracies[:3]) == pytest.approx(0.75 + 0.73 + 0.65)
    for row in found[:3]:
        assert row.expected is not None
        assert row.expected.accuracy - row.expected.low == pytest.approx(0.1)
    uneven = {**by_key, rows[0].key: played([0.8])}
    assert without_luck(rows, uneven) == rows  # a row that could not be played in each division is compared with none

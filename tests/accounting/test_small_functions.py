"""Examples of functions that nobody outside the room calls: what each returns for a value or two."""

from __future__ import annotations

import numpy as np

from quorate.accounting.attacker import delta_cautions, epsilon_caution
from quorate.accounting.data_dependent.noisy_max import bit_divergence, effective_gap, log1mexp
from quorate.accounting.figures import plural
from quorate.accounting.neighbouring import N_IS_PUBLIC, Neighbouring, holds_where_read_off
from quorate.accounting.outward import least_epsilon


def test_budget_cautions() -> None:
    assert (epsilon_caution(10.0, 1e-5, "record").applies, epsilon_caution(10.1, 1e-5, "record").code) == (
        False,
        "epsilon-promises-little",
    )
    for n, delta, codes in (
        (1_000, 0.01, ["delta-gives-away-a-unit"]),
        (None, 0.01, ["delta-was-not-compared"]),
        (1_000, 1e-5, []),
    ):
        assert [caution.code for caution in delta_cautions(n, delta, "record") if caution.applies] == codes


def test_data_dependent() -> None:
    assert log1mexp(np.array([-1e-20, -1.0])).round(3).tolist() == [-46.052, -0.459]
    assert effective_gap(np.array([np.log(0.5)]), 2).round(6).tolist() == [0.0]
    assert bit_divergence(np.array([100]), 100.0, 1.0, np.array([2.0]), "continuous").round(3).tolist() == [[0.627]]


def test_least_epsilon() -> None:
    assert least_epsilon(lambda epsilon: -2 * epsilon, 1e-4) >= 4.605170185988091


def test_neighbouring() -> None:
    changes = ("add-remove-replace", "add-or-remove", "replace")
    assert [holds_where_read_off(Neighbouring.of(change, "person"), [N_IS_PUBLIC]) for change in changes] == [
        False,
        False,
        True,
    ]


def test_figures() -> None:
    assert (plural("record"), plural("class"), plural("entry"), plural("day")) == (
        "records",
        "classes",
        "entries",
        "days",
    )

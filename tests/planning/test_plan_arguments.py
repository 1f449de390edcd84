"""What a plan is asked for wrongly is refused in one line, that names the argument."""

from __future__ import annotations

from typing import Any

import pytest

import quorate
from quorate.errors import InvalidParameter
from quorate.mechanisms import NoisyCounts

TASK: dict[str, Any] = {
    "n_records": 600, "n_public": 200, "n_classes": 2, "width": 9, "epsilon": 1.0, "delta": 1e-5,
}  # fmt: skip


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"learning_curve": [1, 2]}, r"learning_curve must be pairs .* got \[1, 2\]"),
        ({"learning_curve": 0.8}, r"learning_curve must be pairs .* got 0\.8"),
        ({"learning_curve": [(20, 0.7, 3)]}, "learning_curve must be pairs"),
        ({"learning_curve": [("many", 0.7)]}, "learning_curve must be pairs"),
        ({"learning_curve": [(float("inf"), 0.7)]}, "learning_curve must be pairs"),
        ({"n_teachers": 5}, "n_teachers must be a list of at least one, got 5"),
        ({"n_teachers": []}, r"n_teachers must be a list of at least one, got \[\]"),
        ({"n_teachers": [601]}, "n_teachers must be at most 600 here, got 601"),
        ({"queries": 50}, "queries must be a list of at least one, got 50"),
        ({"queries": [0]}, "queries must be a whole number >= 1, got 0"),
        ({"mechanisms": [int]}, "mechanisms must be mechanisms, their classes, or names"),
        ({"mechanisms": ["NoisyCount"]}, "got 'NoisyCount'; did you mean \"NoisyCounts\""),
        ({"mechanisms": "NoisyCounts"}, "mechanisms must be a list of at least one"),
        ({"mechanisms": NoisyCounts}, "mechanisms must be a list of at least one"),
        ({"mechanisms": []}, "mechanisms must be a list of at least one"),
        ({"unit": 5}, 'unit must be a word such as "person", got 5'),
        ({"unit": ""}, "unit must be a word"),
        ({"n_rows": 599}, "n_rows must be at least n_records, since each record has a row, got 599"),
        ({"width": 0}, "width must be a whole number >= 1, got 0"),
        ({"classes": ["a", "b", "c"]}, "n_classes=2, and classes has 3; leave out n_classes"),
        ({"n_classes": None}, "n_classes is needed"),
    ],
)
def test_a_wrong_argument_is_one_line(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said) as refused:
        quorate.plan(**{**TASK, **wrong})
    assert "\n" not in str(refused.value)


@pytest.mark.heavy
def test_a_mechanism_may_be_named() -> None:
    named, typed = (quorate.plan(**TASK, mechanisms=[each]) for each in ("NoisyCounts", NoisyCounts))
    assert [row.key for row in named.rows] == [row.key for row in typed.rows]

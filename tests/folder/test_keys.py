"""What a run in a folder refuses is told by the keys of its settings, and Python's refusals by its own arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.folder.conftest import Cli, MakeRun

from quorate import PrivateClassifier, PublicPool
from quorate.errors import QuorateError

DECLARED: dict[str, Any] = {"data.n_records": 400}
DIRECT: dict[str, Any] = {"method.by": "direct", **DECLARED}
REFUSED = [
    ({"mechanism.queries": 9_000}, "[mechanism] queries = 9000 but the pool has 150 distinct points"),
    ({"teachers.count": 500, **DECLARED}, "try [teachers] count = "),
    ({"teachers.count": 500, "data.n_records": 600}, "for which [data] n_records = 600 was declared"),
    ({"teachers.count": 500, "data.n_records": 600}, 'and take [teachers] count = "auto"'),
    ({"mechanism.queries": 900, "mechanism.strategy": "margin"}, "Margin asks 900 queries ([mechanism] queries), but"),
    (
        {"mechanism.name": "StableSparseVector", "mechanism.cutoff": 200, "mechanism.queries": 100},
        "[mechanism] cutoff must be at most the number of queries, which is 100, got 200; no more can be declined",
    ),
    (
        {"teachers.prior_matching": True, "data.classes": ["no", "yes", "perhaps"]},
        "[teachers] prior_matching is for two classes, and there are 3; leave it out",
    ),
    ({**DIRECT, "method.feature_map": "patches"}, '[method] feature_map = "patches" takes square grey images'),
    ({**DIRECT, "budget.epsilon": 9_000.0}, "[budget] epsilon = 9000.0 is too large for [budget] delta = 1e-5: round"),
    ({**DIRECT, "budget.epsilon": 9_000.0, "run.epsilon": 8_000.0}, "[run] epsilon = 8000.0 is too large for"),
    ({"budget.epsilon": 0.001, "run.allow_hopeless": None, **DECLARED}, "same: [run] allow_hopeless = true"),
]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("changes", "told"), REFUSED)
def test_a_refusal_in_a_folder_names_keys_and_no_argument(
    make_run: MakeRun, cli: Cli, changes: dict[str, Any], told: str
) -> None:
    code, _, err = cli("check", make_run(**changes))
    assert code in (2, 4)
    assert told in err
    assert "\n" not in err.strip().partition("\n(QUO-")[0]
    assert not [name for name in ("queries=", "n_teachers", "n_records=", "allow_hopeless=") if name in err]


@pytest.mark.heavy
def test_a_rehearsal_without_a_number_of_records_names_the_key(make_run: MakeRun, cli: Cli) -> None:
    err = cli.refused(2, "check", make_run(**{"data.evaluation": "evaluation.csv"}), "--rehearse")
    assert "quorate: rehearsing needs the number of records; declare [data] n_records\n" in err


@pytest.mark.parametrize(
    ("given", "told"),
    [({"queries": 900}, r"^queries=900 but"), ({"n_teachers": 900}, r"try n_teachers=\d+$")],
)
def test_python_hears_of_arguments_alone(given: dict[str, Any], told: str) -> None:
    X = np.arange(120.0).reshape(60, 2)
    made = PrivateClassifier(classes=[0, 1], epsilon=1.0, delta=1e-5, n_records=60, **given)
    with pytest.raises(QuorateError, match=told) as refused:
        made.fit(X, np.arange(60) % 2, public=PublicPool(X + 0.5))
    assert "[" not in str(refused.value).partition(";")[0]

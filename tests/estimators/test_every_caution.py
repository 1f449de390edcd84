"""Each code of the page on errors that `fit` warns with is given by every `fit` that can have it, before it charges."""

import re
import warnings
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.dummy import DummyClassifier

from quorate import (
    LabelPrivateClassifier,
    PrivateClassifier,
    PrivateLogisticRegression,
    PublicPool,
    QuorateWarning,
    SubsampleAggregate,
)
from quorate.labelling.active import Disagreement
from quorate.learners import (
    AgnosticLearner,
    AgnosticPrediction,
    EmpiricalLearner,
    ExponentialLearner,
    GenericLearner,
    LabelBoost,
    NoisyThreshold,
    SubsampledAgnostic,
    SubSampling,
)
from quorate.learners.concepts import Thresholds
from quorate.learners.sanitizers import Medians, Tree
from quorate.ledger import Budget, Ledger

pytestmark = pytest.mark.several_fits

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"
N = 600
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
Y = (X[:, 0] > 0).astype(np.int64)
POOL = PublicPool(rng.normal(size=(100, 3)))
FEW = PublicPool(rng.normal(size=(12, 3)))

LINE = Thresholds(bits=16)
POINTS = rng.integers(0, 2**16, (3_000, 1))
CUT = (POINTS[:, 0] < 30_000).astype(np.int64)
BASE = NoisyThreshold(concepts=LINE, epsilon=1.0)


def words(n):
    """A number, a text that names each row, days as people write them, and prices with thousands."""
    days = [(date(2024, 1, 1) + timedelta(days=i % 300)).strftime("%d/%m/%Y") for i in range(n)]
    prices = [f"{1 + i % 9},{i % 1_000:03d}" for i in range(n)]
    crp = ["<0.5" if i % 10 == 0 else f"{i / 7:.2f}" for i in range(n)]
    known = {"age": rng.normal(size=n), "name": [f"n{i}" for i in range(n)], "day": days, "price": prices}
    return pl.DataFrame({**known, "crp": crp, "dose": crp})


VISITS = pl.DataFrame({"age": rng.normal(size=N + 100), "patient_id": [i // 3 for i in range(N + 100)]})
PRIVATE_WORDS, PUBLIC_WORDS = words(N), PublicPool(words(100), numeric=["dose"])


def votes(**how):
    return PrivateClassifier(
        **{"method": "votes", "classes": [0, 1], "epsilon": 2.0, "delta": 1e-5, "n_jobs": 1, **how}
    )


def labels(**how):
    return LabelPrivateClassifier(**{"classes": [0, 1], "epsilon": 2.0, "delta": 1e-5, "n_jobs": 1, **how})


def direct(**how):
    return PrivateLogisticRegression(**{"classes": [0, 1], "epsilon": 2.0, "delta": 1e-5, **how})


def of(make, how, *given, **takes):
    return lambda ledger: make(**how, ledger=ledger).fit(*given, **takes)


LARGE, WIDE = {"epsilon": 12.0}, {"delta": 0.01}
HOPELESS = {"epsilon": 0.001, "allow_hopeless": True}
LEARNERS = {
    "exponential": (ExponentialLearner, {"concepts": LINE, "limit": 100_000, "domain": [[0], [30_000]]}),
    "threshold": (NoisyThreshold, {"concepts": LINE}),
    "generic": (GenericLearner, {"concepts": LINE, "sanitizer": Tree()}),
    "boost": (LabelBoost, {"base": BASE}),
    "sub-sampling": (SubSampling, {"base": BASE}),
    "empirical": (EmpiricalLearner, {"base": BASE}),
    "agnostic": (AgnosticLearner, {"base": BASE}),
    "subsampled": (SubsampledAgnostic, {"base": BASE}),
    "prediction": (AgnosticPrediction, {"concepts": LINE}),
}
HALF = np.where(np.arange(len(CUT)) % 2, -1, CUT)


def learner(name, **how):
    make, fixed = LEARNERS[name]
    return of(make, {"epsilon": 1.0} | fixed | how, POINTS, HALF if name in {"generic", "boost"} else CUT)


DECLARED = pl.DataFrame(X, schema=[f"x{at}" for at in range(X.shape[1])])
QUOTED = dict.fromkeys(DECLARED.columns, ("-9", "9"))

#: Each code that a fit can warn with, and every fit that can have it.
GIVEN = {
    "nothing-can-be-answered": {
        "votes": of(votes, HOPELESS, X, Y, public=POOL),
        "labels": of(labels, HOPELESS, X, Y),
    },
    "labels-are-coins": {
        "votes": of(votes, {"epsilon": 0.02, "allow_hopeless": True}, X, Y, public=POOL),
        "labels": of(labels, {"epsilon": 0.02, "allow_hopeless": True}, X, Y),
    },
    "rounds-tell-nothing": {
        "direct": of(direct, {"epsilon": 0.01}, X, Y, public=POOL),
    },
    "one-answer-is-unsure": {
        "votes": of(votes, {"online_answers": 90, "epsilon": 0.5}, X, Y, public=POOL),
    },
    "teachers-are-constants": {
        "votes": of(votes, {"teacher": DummyClassifier(), "n_records": N}, X, Y, public=POOL),
        "labels": of(labels, {"teacher": DummyClassifier()}, X, Y),
    },
    "delta-gives-away-a-unit": {
        "votes": of(votes, WIDE, X, Y, public=POOL),
        "labels": of(labels, WIDE, X, Y),
        "direct": of(direct, WIDE, X, Y, public=POOL),
        "generic": learner("generic", sanitizer=Medians(delta=0.01)),
        **{name: learner(name, **WIDE)
           for name in ("boost", "sub-sampling", "empirical", "agnostic", "subsampled", "prediction")},
    },
    "epsilon-promises-little": {
        "votes": of(votes, LARGE, X, Y, public=POOL),
        "labels": of(labels, LARGE, X, Y),
        "direct": of(direct, LARGE, X, Y, public=POOL),
        "shards": of(SubsampleAggregate, {"n_shards": 100, "cutoff": 1, "n_queries": 9, "delta": 1e-5, **LARGE}, X),
        **{name: learner(name, **LARGE) for name in LEARNERS},
    },
    "column-that-may-be-the-unit": {
        "votes": of(votes, {}, VISITS[:N], Y, public=PublicPool(VISITS[N:])),
        "direct": of(direct, {}, VISITS[:N], Y, public=PublicPool(VISITS[N:])),
    },
    "coarse-marginals": {
        "direct": of(direct, {"epsilon": 0.05}, DECLARED, Y, schema=dict.fromkeys(DECLARED.columns, (-9.0, 9.0))),
    },
    "bounds-are-texts": {
        "votes": of(votes, {"queries": 3}, DECLARED, Y, schema=QUOTED),
        "direct": of(direct, {}, DECLARED, Y, schema=QUOTED),
    },
    "columns-of-dates": {
        "votes": of(votes, {}, PRIVATE_WORDS, Y, public=PUBLIC_WORDS),
        "direct": of(direct, {}, PRIVATE_WORDS, Y, public=PUBLIC_WORDS),
        "labels": of(labels, {}, PRIVATE_WORDS, Y),
    },
    "few-public-rows": {
        "votes": of(votes, {"allow_hopeless": True}, X, Y, public=FEW),
        "direct": of(direct, {}, X, Y, public=FEW),
    },
    "asks-everything": {
        "votes": of(votes, {"queries": Disagreement(2)}, X, Y, public=POOL),
        "labels": of(labels, {"queries": Disagreement(2)}, X, Y),
    },
    "base-alone-needs-no-more-labels": {
        name: learner(name) for name in ("boost", "sub-sampling", "empirical", "agnostic", "subsampled")
    },
    "fewer-labels-than-requested": {"sub-sampling": learner("sub-sampling", epsilon=0.1, n_labels=2_000)},
}  # fmt: skip
for code in ("columns-of-distinct-texts", "columns-of-numbers-with-marks", "columns-of-mostly-numbers"):
    GIVEN[code] = GIVEN["columns-of-dates"]
GIVEN["columns-with-entries-that-are-no-numbers"] = {
    name: fit
    for name, fit in GIVEN["columns-of-dates"].items()
    if name != "labels"  # which names no columns
}

#: Codes above a note that no fit gives as a warning of this kind, and what gives them.
ELSEWHERE = {
    "prompts-show-few-rows": "tests/ensemble/prompted: its teachers ask an endpoint",
    "rehearsed-at-the-commonest-class": "a rehearsal, which check and the command are asked for",
    "no-useful-error-bound": "quorate learn",
    "begun-without-marginals": "tests/direct: a fit after another one, which was charged",
    "drawn-and-lost": "tests/direct/test_drawn_pool_fit.py: a fit that goes on after its process ended",
    "cells-with-line-breaks": "tests/folder: text tables of a folder",
    "target-without-numbers": "tests/folder: the public table of a folder",
    **dict.fromkeys(
        ("public-rows-carry-private-ids", "private-columns-were-scaled", "columns-on-other-scales"),
        "tests/voting/test_notes.py: private rows show it, so that a fit gives a PrivacyWarning",
    ),
    "calibration-rows-used-twice": "tests/estimators/test_calibrate.py: calibrate, after a fit",
    "cells-that-are-no-numbers": "tests/folder: rows that a finished run is asked about, of no fit",
}


def test_every_code_of_the_page_that_is_more_than_a_note_is_tried_here_or_is_of_no_fit():
    rows = re.findall(r"^\| `([a-z-]+)` \| (\w+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    warned = {code for code, severity in rows if severity in {"warning", "serious"}}
    assert warned == GIVEN.keys() | ELSEWHERE.keys()


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("code", "name"), [(code, name) for code, fits in GIVEN.items() for name in fits], ids=lambda value: str(value)
)
def test_a_fit_warns_with_the_code_before_it_charges(code, name):
    with Ledger(budget=Budget(50.0, 0.1)) as ledger, warnings.catch_warnings():
        warnings.filterwarnings("error", code, QuorateWarning)
        with pytest.raises(QuorateWarning, match=f"^{code}: ") as refusal:
            GIVEN[code][name](ledger)
        assert ledger.spent.epsilon == 0
        assert ledger.reservations() == ()
    assert refusal.type is QuorateWarning


def test_a_sound_fit_of_a_learner_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error", QuorateWarning)
        BASE.__class__(concepts=LINE, epsilon=1.0, unsafe_noise_seed=0).fit(POINTS, CUT)


def test_the_warning_of_a_learner_stands_at_the_line_that_called_it():
    with pytest.warns(QuorateWarning, match="^epsilon-promises-little") as caught:
        NoisyThreshold(concepts=LINE, epsilon=12.0, unsafe_noise_seed=0).fit(POINTS, CUT)
    assert {each.filename for each in caught} == {__file__}

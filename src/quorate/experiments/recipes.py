r"""Two recipes that go past the default where one knows what kind of table it is: what is passed to the classifier.

Both take smaller shards than the default, :math:`r = 0.18\sqrt{\mu n \sqrt w}`, and teachers that make more of few
rows. Which of them suits a table was found on the training side: a part of the *private* rows of a split played the
whole problem again, private rows, pool and test rows of its own. The rows that are scored on took no part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quorate.data import n_rows
from quorate.experiments.sources import Split
from quorate.planning import PublicFacts
from quorate.planning.recipe import ROWS_FACTOR, rows_per_teacher
from quorate.students import VoteShareStudent

SMALLER = 0.18 / ROWS_FACTOR  # shards, against the default's


def trees(n_teachers: int) -> dict[str, Any]:
    """Decision trees as teachers, and a forest as the student: for rules and categories (Mushroom)."""
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.tree import DecisionTreeClassifier

    return {
        "teacher": DecisionTreeClassifier(),
        "student": VoteShareStudent(ExtraTreesClassifier(100, max_features=0.3)),
        "n_teachers": n_teachers,
    }


def linear(n_teachers: int) -> dict[str, Any]:
    """Logistic teachers with their priors matched, and the model of the vote shares itself: for sums of indicators."""
    from sklearn.linear_model import LogisticRegression

    return {
        "teacher": LogisticRegression(C=10.0, max_iter=1_000),
        "prior_matching": True,
        "student": VoteShareStudent(),
        "n_teachers": n_teachers,
    }


#: Which recipe is the best of its data set.
BEST: Mapping[str, Callable[[int], dict[str, Any]]] = {"mushroom": trees}


def best_recipe(data: str, parts: Split, epsilon: float) -> dict[str, Any]:
    """Return the arguments of the best recipe for a data set and a split of it, from public facts alone."""
    n = len(parts.y_private)
    facts = PublicFacts(
        n_records=n,
        n_public=n_rows(parts.X_public),
        n_classes=2,
        width=parts.X_public.shape[1],
        epsilon=epsilon,
        delta=1 / n,
    )
    return BEST.get(data, linear)(round(n / (SMALLER * rows_per_teacher(facts))))

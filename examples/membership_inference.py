"""Who was among the private rows? A model that was trained on them tells; a student of private labels does not.

The attack is the simplest that works: a row on whose own label the model is surer was rather among those it was trained
on. Its AUC is 0.5 where it guesses, and 1 where it always knows. Adult's training rows play the private data.

Run it with ``python examples/membership_inference.py``.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from quorate import PrivateClassifier, PublicPool
from quorate.data import load_adult

COLUMNS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
CLASSES = ["<=50K", ">50K"]


def membership_auc(model: Any, members: tuple[Any, Any], others: tuple[Any, Any]) -> float:
    """Return the AUC of the attack, which ranks rows by the probability that the model gives to their label."""
    sure = [
        model.predict_proba(rows)[np.arange(len(rows)), [CLASSES.index(each) for each in labels]]
        for rows, labels in (members, others)
    ]
    truth = np.repeat([1, 0], [len(each) for each in sure])
    return float(roc_auc_score(truth, np.concatenate(sure)))


def main(n_records: int, n_teachers: int, epsilon: float, seed: int | None) -> None:
    """Attack a tree that was trained on private rows, and the same kind of tree as a student of their votes."""
    adult = load_adult()
    rows, labels = adult.train.select(COLUMNS).to_numpy(), np.asarray(adult.train_labels)
    members = rows[:n_records], labels[:n_records]
    others = rows[n_records : 2 * n_records], labels[n_records : 2 * n_records]
    tree = DecisionTreeClassifier(random_state=0).fit(*members)
    private = PrivateClassifier(
        student=DecisionTreeClassifier(random_state=0),
        classes=CLASSES,
        epsilon=epsilon,
        delta=1e-5,
        n_teachers=n_teachers,
        unsafe_noise_seed=seed,
    ).fit(*members, public=PublicPool(adult.test.select(COLUMNS).to_numpy()[:2_000]))
    print(f"a tree on the private rows         AUC {membership_auc(tree, members, others):.2f}")
    print(f"a student of their private labels  AUC {membership_auc(private, members, others):.2f}")
    print(private.guarantee_)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--records", type=int, default=10_000)
    arguments.add_argument("--teachers", type=int, default=100)
    arguments.add_argument("--epsilon", type=float, default=1.0)
    arguments.add_argument("--seed", type=int, help="for tests: reproducible, therefore not private")
    told = arguments.parse_args()
    main(told.records, told.teachers, told.epsilon, told.seed)

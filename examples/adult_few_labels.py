"""Learn four small rules from few labels: two thresholds, a rectangle and a stump on columns of Adult.

Adult's training rows play the private data. Only some of them are labelled; the others are sanitized, and the rule is
chosen by the labelled ones. Beside each rule stands the best one of all labels, found without privacy. That is shown
because Adult is public; on data of your own it would be a release.

Run it with ``python examples/adult_few_labels.py``.
"""

from __future__ import annotations

import argparse

import numpy as np

from quorate.data import load_adult
from quorate.experiments.few_labels.adult import questions
from quorate.learners import UNLABELLED


def main(n_labels: int, epsilon: float, seed: int | None) -> None:
    """Ask the four questions, and say what was learned and what was promised."""
    adult = load_adult()
    order = np.random.default_rng(seed).permutation(adult.train.height)
    for question in questions():
        X, truth = question.points(adult.train), question.labels(adult.train, adult.train_labels)
        X_test, y_test = question.points(adult.test), question.labels(adult.test, adult.test_labels)
        y = np.full(len(X), UNLABELLED, dtype=np.int8)
        y[order[:n_labels]] = truth[order[:n_labels]]
        learner = question.learner.set_params(epsilon=epsilon, unsafe_noise_seed=seed).fit(X, y)
        best = learner.concepts.erm(learner.concepts.check(X), truth)
        print(question.name)
        print(f"  learned     {learner.concept_}")
        print(f"  errs on     {1 - learner.score(X_test, y_test):.1%} of the test rows")
        print(f"  at best     {np.mean(best.labels(learner.concepts.check(X_test)) != y_test):.1%}, without privacy")
        print(f"  guarantee   {learner.guarantee_}")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--labels", type=int, default=600)
    arguments.add_argument("--epsilon", type=float, default=1.0)
    arguments.add_argument("--seed", type=int, help="for tests: reproducible, therefore not private")
    told = arguments.parse_args()
    main(told.labels, told.epsilon, told.seed)

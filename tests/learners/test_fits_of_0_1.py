"""A fit that version 0.1 charged is known again: whatever was moved or renamed, its key is made from the same text.

What a fit is charged under is a digest of its class, its arguments and its plan, by the names that version 0.1 had for
them; the phrase of the plan that says what was released is in it too. A class that moves or is renamed keeps its old
name there by :func:`quorate.stored_names.stored_as`. Where one of these tests fails, do not write the ledgers anew: a
user would pay twice.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from fits_of_0_1 import FITS, LEDGERS, fitted, rows

from quorate.learners.stored_concepts import from_stored
from quorate.ledger import Ledger


@pytest.fixture
def copied(tmp_path: Path) -> dict[str, Path]:
    """The ledgers of 0.1 in a folder of their own."""
    for place in LEDGERS.values():
        for file in place.parent.glob(f"{place.name}*"):
            shutil.copy(file, tmp_path)
    return {labels: tmp_path / place.name for labels, place in LEDGERS.items()}


def charges_and_answers(place: Path) -> tuple[list[Any], list[Any]]:
    with Ledger(place) as ledger:
        blocks = [block for each in ledger.reservations() for block in each.blocks("learner")]
        return [ledger.spent, *(each.key for each in ledger.reservations())], [block.answers[0] for block in blocks]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", FITS)
def test_a_fit_of_0_1_is_neither_charged_nor_drawn_again(name: str, copied: dict[str, Path]) -> None:
    place = copied[FITS[name][0]]
    before = charges_and_answers(place)
    learner = fitted(name, place)
    assert charges_and_answers(place) == before
    assert learner.concept_ in [from_stored(answer, learner.concepts) for answer in before[1]]


def test_another_fit_is_charged(copied: dict[str, Path]) -> None:
    place = copied["few labels"]
    with Ledger(place) as ledger:
        spent = ledger.spent.epsilon
    learner = FITS["exponential"][1]
    other = type(learner)(**learner.get_params(deep=False) | {"alpha": 0.2, "ledger": place, "unsafe_noise_seed": 5})
    other.fit(*rows("few labels"))
    with Ledger(place) as ledger:
        assert ledger.spent.epsilon > spent

"""Examples of functions that nobody outside the room calls: what each returns for a value or two."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.errors import InvalidParameter
from quorate.mechanisms.answer_law import AnswerNoise, chosen_classes, passes
from quorate.mechanisms.answers import in_blocks, many_queries
from quorate.mechanisms.choice import many_choices
from quorate.mechanisms.schedule import open_fields, scale_of


def test_answer_law() -> None:
    noise = AnswerNoise(distribution="gaussian", scale=20.0)
    assert chosen_classes(noise, np.array([[60, 40], [50, 50]])).round(3).tolist() == [[0.766, 0.234], [0.507, 0.493]]
    assert (round(passes("laplace", 2.0, 1), 4), round(passes("laplace", 2.0, 0), 4)) == (0.3775, 0.6225)


def test_counts_and_scores_are_integers() -> None:
    with pytest.raises(InvalidParameter, match="counts must be int64, got float64; count votes as integers"):
        many_queries(np.array([[3.0, 4.0]]))
    with pytest.raises(InvalidParameter, match="counts must be int64 scores, got float64; round them to a grid"):
        many_choices(np.array([[0.5, 4.0]]))
    assert [rows for rows, _ in in_blocks(np.zeros((3, 2), dtype=np.int64))] == [slice(0, 3, None)]


def test_schedule() -> None:
    from quorate.mechanisms import LaplaceNoisyMax, PrivatePrediction

    assert (scale_of(LaplaceNoisyMax(laplace_scale=20.0)), scale_of(PrivatePrediction(epsilon=0.1))) == (20.0, None)
    from quorate.mechanisms import StableSparseVector

    assert open_fields(StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=20, n_queries=100)) == {
        "cutoff": 20,
        "calibration": "tight",
    }

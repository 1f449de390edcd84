"""Running text as weighed words, by the public pool alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from quorate.data.encoding import public_encoder, refuse_without_text
from quorate.data.rows import take
from quorate.deferred import skops
from quorate.errors import DataRefused, InvalidParameter
from quorate.run.schema import Schema

ROWS: dict[str, Any] = {
    "note": ["a good film", "a bad bad film", "nothing of note", "good or bad"] * 5,
    "age": [float(i) for i in range(20)],
    "ward": ["north", "south"] * 10,
}


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_words_stand_beside_the_other_columns_and_each_row_is_its_own(frame: Any) -> None:
    pool = frame(ROWS)
    encoder = public_encoder(pool, ["note"])
    together = encoder.transform(pool)
    alone = [encoder.transform(take(pool, [i])).toarray()[0] for i in range(20)]
    assert (np.array(alone) == together.toarray()).all()
    words = together[:, -8:].toarray()
    assert np.allclose(np.linalg.norm(words, axis=1), 1.0)
    assert skops.io.get_untrusted_types(data=skops.io.dumps(encoder)) == []


def test_a_pool_that_does_not_fit_is_refused_in_one_line() -> None:
    pool = pl.DataFrame(ROWS)
    lacking = pool.with_columns(pl.Series("note", [None, *ROWS["note"][1:]]))
    cases = [
        (refuse_without_text, np.ones((3, 2)), ["note"], InvalidParameter, "array"),
        (refuse_without_text, pool, ["notes"], InvalidParameter, "is not there"),
        (refuse_without_text, pool, ["age"], InvalidParameter, "holds no text"),
        (refuse_without_text, lacking, ["note"], DataRefused, "lacks a text"),
        (public_encoder, lacking, ["note"], DataRefused, "lacks a text"),
        (public_encoder, pool.with_columns(note=pl.lit("!")), ["note"], DataRefused, "no words"),
        (lambda rows, names: Schema.of(rows, text=names), lacking, ["note"], DataRefused, "lacks a text"),
    ]
    for check, rows, names, error, told in cases:
        with pytest.raises(error, match=told) as refusal:
            check(rows, names)
        assert "\n" not in str(refusal.value)

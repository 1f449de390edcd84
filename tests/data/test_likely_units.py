"""Columns that probably say whose row it is, and columns that only look a little like them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from quorate.data.unit_ids import likely_units
from quorate.run.pool_cautions import pool_cautions, unit_caution

N = 300
RNG = np.random.default_rng(4)
PERSONS = [f"P{place // 3:05d}" for place in range(N)]

LIKELY: dict[str, tuple[str, Any]] = {
    "named as persons": ("Patienten_ID", PERSONS),
    "named as persons, of numbers": ("patient_id", [place // 3 for place in range(N)]),
    "each once": ("PatientID", [f"P{place:05d}" for place in range(N)]),
    "one word": ("Kundennummer", [10_000 + place // 2 for place in range(N)]),
    "short": ("MRN", [f"{place // 3:06d}" for place in range(N)]),
    "an id of something that repeats": ("case_id", [place // 3 for place in range(N)]),
    "no name at all": ("key", PERSONS),
    "a hash": ("pseudo", [f"{place // 3:08d}"[::-1] + "af" for place in range(N)]),
}
OTHERS: dict[str, tuple[str, Any]] = {
    "of persons, and no id": ("patient_age", RNG.integers(18, 95, N)),
    "yes or no": ("customer", RNG.integers(0, 2, N)),
    "an id of few things": ("ward_id", RNG.integers(0, 5, N)),
    "an id of each row": ("case_id", list(range(N))),
    "a code of few values": ("bed", [f"B{number:03d}" for number in RNG.integers(0, 9, N)]),
    "places": ("zip", [f"0{number}" for number in RNG.integers(9_000, 9_100, N)]),
    "counts": ("leukocytes", RNG.integers(900, 1_100, N)),
    "days": ("seen", [f"2024-03-{day:02d}" for day in RNG.integers(1, 29, N)]),
    "words": ("note", [f"seen {number} times" for number in RNG.integers(0, 99, N)]),
}


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
@pytest.mark.parametrize("case", [*LIKELY, *OTHERS])
def test_a_column_looks_like_an_id_of_persons_or_does_not(case: str, frame: Any) -> None:
    name, cells = {**LIKELY, **OTHERS}[case]
    pool = frame({"age": RNG.normal(size=N), name: cells})
    assert likely_units(pool) == ((name,) if case in LIKELY else ())


def test_of_columns_that_no_public_table_has_the_name_alone_counts() -> None:
    assert likely_units(pl.DataFrame({"age": [1.0]}), ["subject", "case_id", "userId", "user_agent"]) == (
        "subject",
        "userId",
    )
    assert likely_units(np.zeros((3, 2)), ["patient_id"]) == ("patient_id",)
    assert likely_units(np.zeros((3, 2))) == ()


def test_a_column_that_is_asked_about_is_not_said_to_be_left_out() -> None:
    pool = pl.DataFrame({"age": RNG.normal(size=N), "key": PERSONS, "name": [f"n{place}" for place in range(N)]})
    assert "'key'" in unit_caution(pool).words
    [distinct] = [each.words for each in pool_cautions(pool, "public.csv") if each.applies]
    assert "'name'" in distinct
    assert "'key'" not in distinct


def test_entries_that_repeat_and_are_rare_are_not_called_texts_of_their_own() -> None:
    rooms = [f"room {chr(97 + place % 26)}{place // 4}" for place in range(1_200)]
    pool = pl.DataFrame({"age": RNG.normal(size=1_200), "room": [*rooms[:600], *rooms[:600]]})
    [words] = [each.words for each in pool_cautions(pool, "public.csv") if each.applies]
    assert "entries repeat there" in words
    assert "of its own" not in words

"""A public column of numbers or dates that other entries, or marks, keep from being read as one, which are quoted."""

import datetime as dt
import re

import numpy as np
import polars as pl
import pytest

from quorate import PublicPool
from quorate.data.column_kinds import GivenKinds, column_kinds
from quorate.data.dialect import Dialect
from quorate.errors import InvalidParameter
from quorate.run.pool_cautions import COLUMNS_OF_DATES, ENTRIES_LOST, MOSTLY_NUMBERS, pool_cautions


def said(cells, *, library="polars", **given):
    pool = pl.DataFrame({"a": cells, "b": np.arange(len(cells))})
    pool = pool.to_pandas() if library == "pandas" else pool
    kinds = column_kinds(pool, PublicPool(pool, **given).given)
    return {each.code: each.words for each in pool_cautions(pool, "public.csv", kinds=kinds) if each.applies}


def numbers(n, write="{:.2f}".format):
    """Different numbers of two digits before the point, the same ones always, in ascending order."""
    return [write(10.26 + 0.83 * i) for i in range(n)]


MARKED = {
    "below a limit, 30 %": (numbers(70) + ["<-0.50"] * 30, "'<-0.50'"),
    "below many limits": (numbers(70) + [f"<{i / 10}" for i in range(30)], "'<0.0'"),
    "2 %": (numbers(98) + ["k.A."] * 2, "'k.A.'"),
    "a word, 30 %": (numbers(70) + ["trace"] * 20 + ["n.d."] * 10, "'trace', 'n.d.'"),
    "commas and a limit": (numbers(80, lambda value: f"{value:.1f}".replace(".", ",")) + ["<0,6"] * 20, "'<0,6'"),
    "padded": (numbers(100, " {:.1f} ".format), "blanks around them"),
    "U+2212": (numbers(100, lambda value: f"{value - 50:.2f}".replace("-", "\N{MINUS SIGN}")), "U+2212"),
    "percent": (numbers(100, "{:.1f}%".format), "a percent sign"),
    "currency": (numbers(100, "${:.2f}".format), "a currency"),
    "euro": (numbers(100, "{:.2f} \N{EURO SIGN}".format), "a currency"),
}


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("library", ["polars", "pandas"])
@pytest.mark.parametrize("name", MARKED)
def test_what_keeps_a_column_from_being_read_as_numbers_is_quoted_with_its_remedy(name, library):
    cells, quoted = MARKED[name]
    words = said(cells, library=library)[MOSTLY_NUMBERS]
    assert quoted in words
    assert "rite plain numbers" in words
    pool, numeric = pl.DataFrame({"a": cells}), GivenKinds(numeric=("a",))
    if name in ("percent", "currency", "euro"):  # what is refused is not advised
        with pytest.raises(InvalidParameter, match=re.escape(repr(cells[0]))):
            column_kinds(pool, numeric)
        assert "numeric" not in words
    else:
        assert column_kinds(pool, numeric).kinds == {"a": "number"}
        assert 'Write numeric = ["a"] (in a folder under [data]), and such an entry counts as missing; or' in words


SOUND = {
    "numbers": numbers(100),
    "numbers and missing ones": [*numbers(90), *["n/a"] * 5, *["?"] * 5],
    "decimal commas": numbers(100, lambda value: f"{value:.1f}".replace(".", ",")),
    "rooms": [f"{100 + i}{'ABC'[i % 3]}" for i in range(100)],
    "rooms, some without a letter": [f"{100 + i}{['', 'A', 'B'][i % 3]}" for i in range(100)],
    "grades": ["1", "2", "3", "4", "absent"] * 20,
    "words": ["north", "south"] * 50,
    "ids": [f"P{i:04d}" for i in range(100)],
}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("name", SOUND)
def test_codes_words_and_columns_that_are_read_as_numbers_are_not_accused(name):
    assert not {MOSTLY_NUMBERS, ENTRIES_LOST} & said(SOUND[name]).keys()


@pytest.mark.parametrize("share", [1, 50, 99])
def test_entries_that_are_no_numbers_where_the_owner_says_numbers_are_quoted_however_many(share):
    words = said([*numbers(100 - share), *["12%"] * share], numeric=["a"])[ENTRIES_LOST]
    assert "'12%'" in words
    assert f"{share} of 100 in 'a', such as '12%'" in words
    assert ENTRIES_LOST not in said([*numbers(90), *["n/a"] * 10], numeric=["a"])


def dates(write, days=range(1, 98)):
    return [f"{dt.date(2023, 1, 1) + dt.timedelta(days=day):{write}}" for day in days]


FIRST_DAYS = [day for day in range(365) if (dt.date(2023, 1, 1) + dt.timedelta(days=day)).day <= 12]
DATED = {
    "a mark": ([*dates("%d.%m.%Y"), "k.A."], ["1 of 98 in 'a', such as 'k.A.'", 'Write dates = ["a"]']),
    "a mark in ISO 8601": ([*dates("%Y-%m-%d"), "k.A."], ['Write dates = ["a"] (in a folder under [data]), and such']),
    "no day": ([*dates("%d.%m.%Y"), "00.00.0000"], ["'00.00.0000'", 'Write dates = ["a"]']),
    "an order": (dates("%m/%d/%Y"), ['In a folder write date_format = "mm/dd/yyyy" under [data]; or']),
    "no order": (
        dates("%m/%d/%Y", FIRST_DAYS),
        ["such as '01/01/2023' do not show", 'date_format = "dd/mm/yyyy" or date_format = "mm/dd/yyyy"'],
    ),
    "two digits": (dates("%d.%m.%y"), ["Years of two digits, such as in '02.01.23', do not tell the century"]),
    "two digits and a clock": (dates("%d.%m.%y 12:30"), ["do not tell the century"]),
    "words": (["3. M\u00e4rz 2023", "4. Okt 2023"] * 10, ["Write dates as ISO 8601 in all tables"]),
}


@pytest.mark.parametrize("library", ["polars", "pandas"])
@pytest.mark.parametrize("name", DATED)
def test_what_keeps_a_column_from_being_read_as_dates_is_said_with_its_remedy(name, library):
    cells, parts = DATED[name]
    words = said(cells, library=library)[COLUMNS_OF_DATES]
    assert not [part for part in parts if part not in words], words
    assert ("date_format" in words) == (name in ("a mark", "no day", "an order", "no order"))


@pytest.mark.parametrize("name", ["a mark", "no day"])
def test_a_column_that_was_named_says_what_it_lost_and_a_declared_format_is_not_asked_for(name):
    cells, _ = DATED[name]
    pool, dialect = pl.DataFrame({"a": cells}), Dialect(date_format="dd.mm.yyyy")
    for given, code in (
        (GivenKinds(dialect=dialect), COLUMNS_OF_DATES),
        (GivenKinds(dates=("a",), dialect=dialect), ENTRIES_LOST),
    ):
        [finding] = [each for each in pool_cautions(pool, "p", kinds=column_kinds(pool, given)) if each.applies]
        assert finding.code == code
        assert f"1 of 98 in 'a', such as '{cells[-1]}'" in finding.words
        assert "date_format" not in finding.words
        assert code != ENTRIES_LOST or finding.words.endswith("[data] missing lists what stands for a missing value")


@pytest.mark.heavy
def test_published_tables_are_not_accused():
    from quorate.data import load_adult, load_mushroom

    for pool in (load_adult().test, load_mushroom().X):
        found = pool_cautions(pool, "public", kinds=column_kinds(pool))
        assert not [each for each in found if each.code in (MOSTLY_NUMBERS, ENTRIES_LOST) and each.applies]

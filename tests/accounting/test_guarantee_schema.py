"""The published schema takes every guarantee that quorate ever wrote, and refuses what `from_json` refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from quorate.accounting import Guarantee, guarantee_schema
from quorate.accounting.guarantee import SCHEMA_VERSION
from quorate.errors import InvalidParameter

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "golden" / "recorded" / "guarantee.json"
VALID = Draft202012Validator(guarantee_schema())
PLAIN = Guarantee(
    epsilon=1.0,
    delta=1e-5,
    unit="patient",
    neighbours="add, remove or replace one patient",
    mechanism="977 votes with discrete Gaussian noise, sigma 116",
    accounting="discrete Gaussian, exact",
    caveats=("nothing durable was recorded",),
)


def recorded() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def test_the_schema_is_one_and_is_published_in_the_package_and_in_the_reference() -> None:
    Draft202012Validator.check_schema(guarantee_schema())
    packaged = files("quorate.accounting").joinpath("guarantee.schema.json").read_text(encoding="utf-8")
    assert packaged == (ROOT / "docs" / "reference" / "guarantee.schema.json").read_text(encoding="utf-8")


def test_every_kind_of_guarantee_of_the_golden_files_is_valid_with_and_without_the_version() -> None:
    kinds = recorded()
    assert len(kinds) > 20
    for tree in kinds.values():
        VALID.validate(tree)
        again = json.loads(Guarantee.from_json(json.dumps(tree)).to_json())
        assert again == {**tree, "schema_version": SCHEMA_VERSION}
        VALID.validate(again)


def without(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda tree: tree.pop(name)


def having(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda tree: tree.update(values)


NAMES = ("epsilon", "delta", "unit", "neighbours", "mechanism", "accounting", "caveats")
WRONG: dict[str, Callable[[dict[str, Any]], object]] = {
    **{f"no {name}": without(name) for name in NAMES},
    "a later schema": having(schema_version=2),
    "a schema of another kind": having(schema_version="1"),
    "a schema that is a truth value": having(schema_version=True),
    "no number": having(epsilon="1"),
    "a truth value": having(delta=True),
    "below zero": having(epsilon=-0.1),
    "above one": having(delta=1.1),
    "no text": having(unit=3),
    "an empty text": having(unit=""),
    "a blank text": having(mechanism="   "),
    "two lines": having(accounting="a\nb"),
    "a caveat alone": having(caveats="seeded"),
    "a number among caveats": having(caveats=[1]),
    "a field of its own": having(votes=[1, 2]),
}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_the_schema_and_the_reader_refuse_the_same(change: Callable[[dict[str, Any]], object]) -> None:
    """Two descriptions, written apart: each catches what the other does."""
    tree = json.loads(PLAIN.to_json())
    change(tree)
    assert not VALID.is_valid(tree)
    with pytest.raises(InvalidParameter):
        Guarantee.from_json(json.dumps(tree))


def test_an_object_that_is_no_object_is_refused_by_both() -> None:
    assert not VALID.is_valid([])
    with pytest.raises(InvalidParameter):
        Guarantee.from_json("[]")
